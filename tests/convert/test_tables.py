"""Records of all events as one table, CSV, JSON lines and Arrow IPC: what `read` prints of each."""

import csv
import gc
import json
from io import StringIO

import pytest

import tracepoint as tp
from tracefile.making import GOLDEN, content_of, tick, written
from tracepoint.cli.main import main
from tracepoint.convert import tables
from tracepoint.decode.records import RECORD_COLUMNS
from tracepoint.record.write import PageWriter
from tracepoint.tracefile.content import BufferContent, CpuPages

CUT = GOLDEN / "cut.v6.dat"
FORMS = {"csv": tp.write_csv, "jsonl": tp.write_json_lines, "arrow": tp.write_arrow}


@pytest.fixture
def trace():
    with tp.open_trace(CUT) as trace:
        yield trace


def rows_of(form, path):
    """Return the rows of a file as tuples of RECORD_COLUMNS."""
    if form == "csv":
        found = list(csv.reader(StringIO(path.read_text())))
        assert tuple(found[0]) == RECORD_COLUMNS
        return [(int(a), int(b), int(c), *texts) for a, b, c, *texts in found[1:]]
    if form == "jsonl":
        return [tuple(json.loads(line)[n] for n in RECORD_COLUMNS) for line in path.read_text().splitlines()]
    ipc = pytest.importorskip("pyarrow.ipc", reason="no pyarrow: pip install pyarrow")
    return [tuple(row.values()) for row in ipc.open_file(path).read_all().to_pylist()]


@pytest.mark.parametrize("form", FORMS)
def test_each_form_has_what_each_record_says(form, trace, tmp_path):
    path, steps = tmp_path / "out", []
    FORMS[form](trace.select("sched"), path, steps.append)
    records = list(trace.select("sched").records())
    expected = [(r.timestamp, r.cpu, r.pid, r.comm, r.event, r.text) for r in records]
    assert rows_of(form, path) == expected
    assert expected
    assert sum(steps) <= len(expected)


def test_the_table_has_the_same_rows_and_goes_to_libraries(trace):
    table = trace.record_table()
    assert table.columns == RECORD_COLUMNS
    assert len(table) == trace.n_records
    first = next(iter(trace.records()))
    assert table.to_dicts(0, 1) == [dict(zip(RECORD_COLUMNS, values_of(first), strict=True))]
    assert table.schema == {
        "timestamp": "l", "cpu": "i", "pid": "i",
        "comm": "dictionary<i, U>", "event": "dictionary<i, U>", "text": "dictionary<i, U>",
    }  # fmt: skip
    pytest.importorskip("duckdb", reason="no DuckDB: pip install duckdb")
    assert table.duckdb().aggregate("count(*)").fetchall() == [(trace.n_records,)]


def values_of(record):
    return record.timestamp, record.cpu, record.pid, record.comm, record.event, record.text


@pytest.mark.parametrize("form", FORMS)
def test_a_recording_without_records_gives_a_file_without_rows(form, trace, tmp_path):
    empty = trace.between(0, 1)
    FORMS[form](empty, tmp_path / "out")
    assert rows_of(form, tmp_path / "out") == []
    assert len(empty.record_table()) == 0
    assert empty.record_table().columns == RECORD_COLUMNS


@pytest.mark.parametrize("form", FORMS)
def test_an_interruption_leaves_no_file(form, trace, tmp_path, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(tables, "_STEP", 1)
    with pytest.raises(KeyboardInterrupt):
        FORMS[form](trace, tmp_path / "out", interrupt)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", FORMS)
def test_the_command_takes_the_form_from_the_name(form, tmp_path):
    path = tmp_path / f"out.{form}"
    assert main(["convert", str(CUT), str(path), "sched"]) == 0
    with tp.open_trace(CUT) as trace:
        assert len(rows_of(form, path)) == trace.select("sched").n_records


@pytest.mark.parametrize("form", FORMS)
def test_the_command_writes_to_stdout(form, tmp_path, capsysbinary, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["convert", str(CUT), "out", "sched", "--to", form]) == 0
    assert capsysbinary.readouterr().out == b""
    assert main(["convert", str(CUT), "-", "sched", "--to", form]) == 0
    assert capsysbinary.readouterr().out == (tmp_path / "out").read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_cannot_go_to_stdout_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words, reason in (
        (["-"], "-: no format for this name: give --to"),
        (["-", "--to", "ctf"], "ctf is a folder, which stdout cannot be"),
        (["-", "--to", "parquet"], "parquet is a folder, which stdout cannot be"),
    ):
        assert main(["convert", str(CUT), *words]) == 2
        assert reason in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def raw_file(tmp_path):
    """A recording whose only task and text have bytes that are not UTF-8."""
    comms = b"7 caf\xe9,\xf0\x9f\x8e\x89\n".decode(errors="surrogateescape")
    content = content_of(n_records=2)
    writer = PageWriter(content.layout)
    for n, name in enumerate("\udcfe\udcff"):
        writer.add(n, tick(n, name))
    buffer = BufferContent((CpuPages(0, (writer.pages(),)),))
    path = tmp_path / "raw.dat"
    path.write_bytes(written(content._replace(saved_cmdlines=comms, buffers=(buffer,))))
    return path


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_valid_utf_8(form, raw_file, tmp_path, capsysbinary):
    with tp.open_trace(raw_file) as trace:
        FORMS[form](trace, tmp_path / f"out.{form}")
        rows = rows_of(form, tmp_path / f"out.{form}")
    assert [row[3:] for row in rows] == [
        ("caf\ufffd,\U0001f389", "demo:tick", f"n={n} name=\ufffd") for n in range(2)
    ]
    if form == "arrow":
        return
    assert main(["read", str(raw_file), "--format", form]) == 0
    shown = capsysbinary.readouterr().out.decode()
    assert "\ufffd" in (json.loads(shown.split("\n")[0])["fields"]["name"] if form == "jsonl" else shown)
    polars = pytest.importorskip("polars", reason="no polars: pip install polars")
    read = polars.read_ndjson if form == "jsonl" else polars.read_csv
    assert read(shown.encode()).height == 2
    assert read(tmp_path / f"out.{form}")["comm"].to_list() == [row[3] for row in rows]


def test_the_text_has_the_bytes_as_the_kernel_prints_them(raw_file, capsysbinary):
    assert main(["read", str(raw_file)]) == 0
    assert b"name=\xfe\n" in capsysbinary.readouterr().out


def test_texts_that_differ_only_in_such_bytes_are_one_word_of_a_dictionary(raw_file):
    with tp.open_trace(raw_file) as trace:
        table = trace["tick"]
        assert table["name"].tolist() == ["\udcfe", "\udcff"]
    for library in ("pandas", "pyarrow", "polars"):
        pytest.importorskip(library, reason=f"no {library}: pip install {library}")
    assert table.pandas()["name"].tolist() == ["\ufffd", "\ufffd"]
    # pandas refuses categories that are there twice.
    assert table.arrow().to_pandas()["name"].tolist() == ["\ufffd", "\ufffd"]
    assert table.polars()["name"].to_list() == ["\ufffd", "\ufffd"]


@pytest.mark.parametrize("form", ["arrow", "parquet"])
@pytest.mark.parametrize("fault", [OSError, KeyboardInterrupt])
def test_a_table_that_was_interrupted_does_not_look_complete(form, fault, trace, tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="no pyarrow: pip install pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")

    def parts():
        yield trace["sched_switch"]
        raise fault

    def read(path):
        if form == "parquet":
            return parquet.read_table(path)
        with pyarrow.OSFile(str(path)) as source, pyarrow.ipc.open_stream(source) as reader:
            found = list(reader)
        # An end that is missing ends the stream; the mark of the end is what a careful reader asks for.
        if path.read_bytes()[-8:] != b"\xff\xff\xff\xff\0\0\0\0":
            raise pyarrow.ArrowInvalid("no end")
        return found

    path = tmp_path / "out"
    with path.open("wb") as stream, pytest.raises(fault):
        tables.write_table(parts(), stream, form)
    gc.collect()
    assert path.stat().st_size > 100
    with pytest.raises(pyarrow.ArrowInvalid):
        read(path)
    with path.open("wb") as stream:
        tables.write_table([trace["sched_switch"]] * 2, stream, form)
    assert sum(map(len, read(path)) if form == "arrow" else [len(read(path))]) == 2 * len(
        trace["sched_switch"]
    )
