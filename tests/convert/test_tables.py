"""Records of all events as one table, CSV, JSON lines and Arrow IPC: what `read` prints of each."""

import csv
import json
from dataclasses import replace
from io import StringIO

import pytest

import tracepoint as tp
from tracefile.making import GOLDEN, content_of, written
from tracepoint.cli.main import main
from tracepoint.convert import tables
from tracepoint.decode.records import RECORD_COLUMNS

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


def test_csv_shows_bytes_that_are_not_utf_8_as_they_are(tmp_path):
    comms = b"7 \xff,x\n"
    content = replace(content_of(n_records=1), saved_cmdlines=comms.decode(errors="surrogateescape"))
    (tmp_path / "some.dat").write_bytes(written(content))
    with tp.open_trace(tmp_path / "some.dat") as trace:
        tp.write_csv(trace, tmp_path / "out.csv")
    assert b',"\xff,x",' in (tmp_path / "out.csv").read_bytes()
