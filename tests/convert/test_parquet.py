"""A trace as a Parquet dataset: its folders, its values, what is left after an interruption."""

import sys
from io import StringIO

import pytest

import tracepoint as tp
from tracefile.making import GOLDEN
from tracepoint.cli.main import main
from tracepoint.decode.trace import Trace
from tracepoint.tracefile.sieve import Window

CUT = GOLDEN / "cut.v6.dat"
parquet = pytest.importorskip("pyarrow.parquet", reason="no pyarrow: pip install pyarrow")


@pytest.fixture
def trace():
    with tp.open_trace(CUT) as trace:
        yield trace


def test_every_event_has_a_file_with_its_rows_and_its_format(trace, tmp_path):
    tp.write_parquet(trace, str(tmp_path))
    host = tmp_path / "trace=cut.v6" / "host=%28none%29"
    assert {path.name for path in host.iterdir()} == {f"event={n.replace(':', '.')}" for n in trace.events}
    for name, table in trace.tables().items():
        path = host / f"event={name.replace(':', '.')}" / "part-0.parquet"
        read = parquet.ParquetFile(path).read()
        assert read.to_pylist() == table.to_dicts(), name
        text = read.schema.metadata[b"format"].decode()
        assert tp.read_format(text, table.format.system) == table.format


def test_duckdb_reads_it_as_one_dataset(trace, tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="no DuckDB: pip install duckdb")
    tp.write_parquet(trace.select("sched"), tmp_path)
    found = duckdb.connect().execute(
        "select event, count(*) from read_parquet(?, hive_partitioning = true, union_by_name = true) group by 1",
        [str(tmp_path / "**" / "*.parquet")],
    )
    assert dict(found.fetchall()) == {
        name.replace(":", "."): n for name, n in trace.events.items() if name.startswith("sched:")
    }


def test_what_is_there_is_not_replaced(trace, tmp_path):
    tp.write_parquet(trace.select("sched_switch"), tmp_path)
    with pytest.raises(FileExistsError):
        tp.write_parquet(trace.select("irq"), tmp_path)


def test_a_write_that_fails_leaves_nothing(trace, tmp_path):
    def fail(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tp.write_parquet(trace, tmp_path, fail)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("is_locked", [False, True])
def test_a_file_is_in_the_dataset_when_all_are_complete(trace, tmp_path, monkeypatch, is_locked):
    """DuckDB and polars read `**/*.parquet`, in folders with a dot too: what a kill has left would be rows."""
    if is_locked:
        monkeypatch.setattr("os.access", lambda *_: False)
    folder, found = tmp_path / "data", []
    tp.write_parquet(trace, folder, lambda _: found.extend(folder.rglob("*.parquet")))
    # Where the folder above it is another user's there is no other place.
    assert bool(found) == is_locked
    assert len([*folder.rglob("*.parquet")]) == len(trace.events)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_without_pyarrow_the_error_says_how_to_get_it(trace, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(tp.TracepointError, match=r"pip install 'tracepoint\[arrow\]'"):
        tp.write_parquet(trace, tmp_path)


def test_the_command_writes_the_dataset(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdout", StringIO())
    assert main(["convert", str(CUT), str(tmp_path / "data"), "sched", "--to", "parquet"]) == 0
    assert len([*(tmp_path / "data").rglob("*.parquet")]) == 9


def test_a_large_recording_is_written_part_by_part(trace, tmp_path, monkeypatch):
    tp.write_parquet(trace, tmp_path / "whole")
    middle = sum(trace.span) // 2
    halves = [Window(stop=middle), Window(start=middle)]
    monkeypatch.setattr(Trace, "windows", lambda _: halves)
    monkeypatch.setattr("tracepoint.convert.parquet._OPEN_FILES", 3)
    tp.write_parquet(trace, tmp_path / "parts")
    names = sorted(path.relative_to(tmp_path / "whole") for path in (tmp_path / "whole").rglob("*.parquet"))
    assert len(names) == len(trace.events)
    for name in names:
        one, parts = (parquet.ParquetFile(tmp_path / folder / name) for folder in ("whole", "parts"))
        assert one.read().to_pylist() == parts.read().to_pylist(), name
        assert one.schema_arrow.metadata[b"format"] == parts.schema_arrow.metadata[b"format"]
    assert any(parquet.ParquetFile(tmp_path / "parts" / name).num_row_groups > 1 for name in names)
