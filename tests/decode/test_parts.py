"""One event part by part: the rows of the whole table, for whatever takes Arrow streams."""

import gc
import weakref
from itertools import pairwise

import pytest

import tracepoint as tp
from tracefile.making import GOLDEN
from tracepoint.decode import engine
from tracepoint.decode.arrow import table_node
from tracepoint.decode.handing import hand_parts
from tracepoint.decode.parts import TableParts
from tracepoint.decode.trace import Trace
from tracepoint.tracefile.sieve import MAX_TIME, MIN_TIME, Window

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
