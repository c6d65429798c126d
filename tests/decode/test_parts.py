"""One event part by part: the rows of the whole table, for whatever takes Arrow streams."""

import gc
import weakref
from itertools import pairwise

import pytest

import tracepoint as tp
from tracefile.making import GOLDEN, content_of, tick
from tracepoint.decode import engine
from tracepoint.decode.arrow import table_node
from tracepoint.decode.handing import hand_parts
from tracepoint.decode.parts import TableParts
from tracepoint.decode.trace import Trace
from tracepoint.record.write import PageWriter
from tracepoint.tracefile.content import BufferContent, CpuPages
from tracepoint.tracefile.sieve import ALL_TIMES, MAX_TIME, MIN_TIME, Window
from tracepoint.tracefile.write import write_tracedat

pytestmark = pytest.mark.skipif(engine.DECODE is None, reason="tracepoint._decode was not built")


@pytest.fixture
def parts(monkeypatch):
    """The switches of a small recording, which is read as if it were a large one."""
    with tp.open_trace(GOLDEN / "cut.v6.dat") as trace:
        start, stop = trace.span
        times = [MIN_TIME, *(start + (stop - start) * n // 5 for n in range(1, 5)), MAX_TIME]
        monkeypatch.setattr(Trace, "windows", lambda _: [Window(*pair) for pair in pairwise(times)])
        yield TableParts(trace, "sched_switch")


def whole():
    with tp.open_trace(GOLDEN / "cut.v6.dat") as trace:
        return list(trace["sched_switch"])


def test_parts_have_the_rows_of_the_table(parts):
    tables = list(parts)
    assert sum(map(bool, map(len, tables))) > 2
    assert [row for table in tables for row in table] == whole()
    assert parts.columns == tables[0].columns


def test_a_small_recording_is_one_part():
    with tp.open_trace(GOLDEN / "cut.v6.dat") as trace:
        parts = TableParts(trace, "sched_switch")
        (first,), (second,) = parts, parts
        assert first is second


@pytest.mark.parametrize("version", [6, 7])
@pytest.mark.parametrize("shift", [0, -500_000, 500_000])
def test_records_that_go_back_in_pages_that_do_not_are_read_as_one_part(
    tmp_path, monkeypatch, version, shift
):
    """The time at which a page begins does not say which records such pages have."""
    monkeypatch.setattr(engine, "_SLICE_BYTES", 4096)
    monkeypatch.setattr(engine, "_MIN_SLICES", 2)
    content = content_of(n_records=1)
    writer = PageWriter(content.layout)
    for n in range(30_000):
        writer.add(1_000_000 + 1000 * n + (shift if n == 15_001 else 0), tick(n))
    cpus = (CpuPages(0, [writer.pages()]),)
    compression = "none" if version == 6 else "zlib"
    with (path := tmp_path / "back.dat").open("wb") as file:
        made = content._replace(buffers=(BufferContent(cpus),))
        write_tracedat(file, made, version=version, compression=compression)
    with tp.open_trace(path) as trace:
        assert (trace.windows() == [ALL_TIMES]) == bool(shift)
        assert sorted(row["n"] for table in TableParts(trace, "tick") for row in table) == list(range(30_000))


def test_libraries_read_one_part_after_the_other(parts):
    pyarrow = pytest.importorskip("pyarrow", reason="no pyarrow: pip install pyarrow")
    reader = pyarrow.RecordBatchReader.from_stream(parts)
    batches = list(reader)
    assert len(batches) == len(list(parts))
    assert pyarrow.Table.from_batches(batches).to_pylist() == whole()
    assert pyarrow.schema(parts) == reader.schema
    polars = pytest.importorskip("polars", reason="no polars: pip install polars")
    assert polars.DataFrame(parts)["next_comm"].to_list() == [row["next_comm"] for row in whole()]


def test_duckdb_reads_parts_as_often_as_a_query_names_them(parts):
    duckdb = pytest.importorskip("duckdb", reason="no DuckDB: pip install duckdb")
    connection = duckdb.connect()
    connection.register("t", parts)
    for _ in range(2):
        found = connection.execute("select count(*) from t a join t b using (common_timestamp, common_cpu)")
        assert found.fetchall() == [(len(whole()),)]
    names = connection.execute("select next_comm from t order by common_timestamp, common_cpu").fetchall()
    assert [name for (name,) in names] == [row["next_comm"] for row in whole()]


def test_what_a_part_raises_is_what_the_reader_raises(parts):
    pyarrow = pytest.importorskip("pyarrow", reason="no pyarrow: pip install pyarrow")
    tables = iter(parts)
    node = table_node([column for _, column in sorted(next(tables)._decoded().items())])

    def broken():
        yield node
        raise tp.TracepointError("a page is gone")

    class Broken:
        def __arrow_c_stream__(self, requested_schema=None):
            return hand_parts(node, broken())

    reader = pyarrow.RecordBatchReader.from_stream(Broken())
    assert len(reader.read_next_batch()) == node.length
    with pytest.raises(OSError, match="a page is gone"):
        reader.read_next_batch()


def test_a_stream_that_is_not_read_to_its_end_frees_what_makes_it(parts):
    pyarrow = pytest.importorskip("pyarrow", reason="no pyarrow: pip install pyarrow")

    class Nodes:
        def __iter__(self):
            return self

        def __next__(self):
            return parts._node()

    nodes = Nodes()
    capsule = hand_parts(parts._node(), nodes)
    gone = weakref.ref(nodes)
    reader = pyarrow.RecordBatchReader._import_from_c_capsule(capsule)
    del nodes
    reader.read_next_batch()
    assert gone()
    del reader, capsule
    gc.collect()
    assert not gone()


def test_what_is_no_iterator_is_an_error(parts):
    with pytest.raises(TypeError, match="iterator"):
        hand_parts(parts._node(), 3)
    with pytest.raises(TypeError):
        hand_parts((), iter(()))
