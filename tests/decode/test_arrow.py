"""Arrow data given away: read by the published ABI with ctypes, by pyarrow and by polars."""

import ctypes
import gc

import pytest

from decode.shapes import format_of
from decode.test_columns import cpus_of
from tracepoint.decode import engine
from tracepoint.decode.table import Table
from tracepoint.errors import TracepointError

pytestmark = pytest.mark.skipif(engine.DECODE is None, reason="tracepoint._decode is not built")


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


class Stream(ctypes.Structure):
    pass


RELEASE_SCHEMA = ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))
RELEASE_ARRAY = ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))
Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.POINTER(Schema)),
    ("release", RELEASE_SCHEMA),
    ("private_data", ctypes.c_void_p),
]
Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.POINTER(Array)),
    ("release", RELEASE_ARRAY),
    ("private_data", ctypes.c_void_p),
]
Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Schema))),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Array))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(Stream))),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Stream))),
    ("private_data", ctypes.c_void_p),
]


def pointer_in(capsule, name, kind):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(get(capsule, name), ctypes.POINTER(kind))


@pytest.fixture
def table():
    form = format_of()
    return Table(form, lambda: engine.read_columns(cpus_of(1), [form], 1)[0])


def plain(value):
    """A value as pyarrow and polars give it: they know no surrogates."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return value


def expected(table):
    return [{name: plain(value) for name, value in row.items()} for row in table.to_dicts()]


def test_structs_of_the_published_layout(table):
    schema_capsule, array_capsule = table.__arrow_c_array__()
    schema = pointer_in(schema_capsule, b"arrow_schema", Schema).contents
    array = pointer_in(array_capsule, b"arrow_array", Array).contents
    assert schema.format == b"+s"
    assert array.length == len(table)
    assert schema.n_children == array.n_children == len(table.columns)
    names = [schema.children[n].contents.name.decode() for n in range(schema.n_children)]
    assert names == list(table.columns)
    formats = {name: schema.children[n].contents.format for n, name in enumerate(names)}
    assert formats["common_timestamp"] == b"l"
    assert formats["n8"] == b"c"
    assert formats["comm"] == b"i"
    times = array.children[0].contents
    values = ctypes.cast(times.buffers[1], ctypes.POINTER(ctypes.c_int64))
    assert [values[n] for n in range(times.length)] == table["common_timestamp"].tolist()
    comm = schema.children[names.index("comm")].contents
    assert comm.dictionary.contents.format == b"U"
    schema.release(schema)
    assert not schema.release
    # Releasing again is the capsule's business: it must see that it was done.
    del schema_capsule, array_capsule
    gc.collect()


def test_children_may_be_moved_out_before_the_rest_is_released(table):
    capsule, _ = table.__arrow_c_array__()
    schema = pointer_in(capsule, b"arrow_schema", Schema).contents
    moved = Schema.from_buffer_copy(schema.children[0].contents)
    schema.children[0].contents.release = RELEASE_SCHEMA()
    schema.release(schema)
    assert moved.name == b"common_timestamp"
    moved.release(moved)
    assert not moved.release


def test_a_stream_gives_one_array_and_then_the_end(table):
    capsule = table.__arrow_c_stream__()
    stream = pointer_in(capsule, b"arrow_array_stream", Stream).contents
    array, schema = Array(), Schema()
    assert stream.get_schema(stream, schema) == 0
    assert stream.get_next(stream, array) == 0
    assert array.length == len(table)
    del table, capsule
    gc.collect()
    assert array.children[0].contents.length == array.length
    array.release(array)
    schema.release(schema)


def test_memory_stays_while_an_array_does(table):
    capsule = table.__arrow_c_array__()[1]
    times = table["common_timestamp"].tolist()
    array = pointer_in(capsule, b"arrow_array", Array).contents
    table._columns = None
    gc.collect()
    values = ctypes.cast(array.children[0].contents.buffers[1], ctypes.POINTER(ctypes.c_int64))
    assert values[0] == times[0]
    assert values[len(times) - 1] == times[-1]


def test_pyarrow_reads_the_same(table):
    pyarrow = pytest.importorskip("pyarrow")
    found = pyarrow.table(table)
    found.validate(full=True)
    assert found.to_pylist() == expected(table)
    assert table.arrow().schema.field("comm").type == pyarrow.dictionary(
        pyarrow.int32(), pyarrow.large_string()
    )
    assert pyarrow.schema(table) == found.schema
    batch = pyarrow.record_batch(table)
    batch.validate(full=True)
    assert batch.num_rows == len(table)


def test_polars_reads_the_same(table):
    pytest.importorskip("polars")
    assert table.polars().to_dicts() == expected(table)


def test_numpy_and_pandas_hold_the_same(table):
    numpy, pandas = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    for name in table.columns:
        values = table.numpy(name)
        found = [v.item() if isinstance(v, numpy.generic) else v for v in values.tolist()]
        assert found == table[name].tolist(), name
    frame = table.pandas()
    assert list(frame.columns) == list(table.columns)
    assert [None if pandas.isna(v) else v for v in frame["comm"]] == [
        plain(v) for v in table["comm"].tolist()
    ]
    assert [None if pandas.isna(v) else v for v in frame["n32"]] == table["n32"].tolist()


def test_no_rows_are_a_table_too():
    form = format_of()
    table = Table(form, lambda: engine.read_columns([], [form], 1)[0])
    assert (len(table), table.to_dicts()) == (0, [])
    pyarrow = pytest.importorskip("pyarrow")
    found = pyarrow.table(table)
    found.validate(full=True)
    assert found.num_rows == 0
    assert found.column_names == list(table.columns)


def test_a_library_that_is_missing_is_named(table, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with pytest.raises(TracepointError, match="pip install polars"):
        table.polars()
