"""Columns: the C form gives what the twin gives, whatever the pages; both give what single fields give."""

import gc
import random
import struct
import threading
import weakref
from array import array
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decode.shapes import format_of, record_of
from tracefile.making import layout_of
from tracepoint.decode import engine, join
from tracepoint.decode.plan import ColumnKind, plan_columns
from tracepoint.decode.table import Table
from tracepoint.filter.parse import parse_filter
from tracepoint.filter.program import compile_filter
from tracepoint.record.field import field_values
from tracepoint.record.layout import PageLayout
from tracepoint.record.write import PageWriter, write_pages
from tracepoint.tracefile.cpudata import CpuData
from tracepoint.tracefile.options import ClockSample, TimeShift
from tracepoint.tracefile.sieve import Sieve, Window
from tracepoint.tracefile.timing import TimeMap

needs_c = pytest.mark.skipif(engine.DECODE is None, reason="tracepoint._decode is not built")


@contextmanager
def twin():
    held, engine.DECODE = engine.DECODE, None
    try:
        yield
    finally:
        engine.DECODE = held


def cpus_of(seed, is_big_endian=False, n_cpus=3, n_records=80, long_size=8):
    """CPUs with records of two events, and of one that no format describes."""
    rng, layout, cpus = random.Random(seed), layout_of(is_big_endian, long_size), []
    for cpu in range(n_cpus):
        records = [
            (
                10**9 + 1000 * rng.randrange(500) * (n + 1),
                record_of(rng, rng.choice((17, 18, 99)), is_big_endian),
            )
            for n in range(n_records)
        ]
        data = write_pages(sorted(records), layout)
        cpus.append(CpuData(cpu, 0, len(data), layout, data))
    return cpus


def mutated(cpu, rng):
    data = bytearray(cpu.data)
    for _ in range(rng.randrange(1, 40)):
        data[rng.randrange(len(data))] = rng.choice((0, 1, 29, 30, 31, 255, rng.randrange(256)))
    return CpuData(cpu.cpu, 0, len(data), cpu.layout, bytes(data))


def memory(columns):
    """All that columns hold, as plain values."""
    return [
        [
            (
                c.plan,
                c.n_rows,
                c.n_nulls,
                *(None if m is None else bytes(m) for m in (c.validity, c.values, c.bytes_, c.ends)),
            )
            for c in event
        ]
        for event in columns
    ]


def both(cpus, forms, threads=1):
    quick = memory(engine.read_columns(cpus, forms, threads))
    with twin():
        slow = memory(engine.read_columns(cpus, forms, threads))
    return quick, slow


@needs_c
@pytest.mark.parametrize("long_size", [4, 8])
@pytest.mark.parametrize("is_big_endian", [False, True])
def test_c_and_twin_give_the_same_memory(is_big_endian, long_size):
    forms = [format_of(17, is_big_endian), format_of(18, is_big_endian)]
    quick, slow = both(cpus_of(1, is_big_endian, long_size=long_size), forms)
    assert quick == slow
    assert all(event[0][1] for event in quick)


@needs_c
@settings(max_examples=40)
@given(st.integers(0, 1 << 32))
def test_damaged_pages_give_the_same_memory(seed):
    rng = random.Random(seed)
    is_big = rng.random() < 0.3
    cpus = [mutated(cpu, rng) for cpu in cpus_of(seed, is_big, n_records=30)]
    quick, slow = both(cpus, [format_of(17, is_big), format_of(18, is_big)])
    assert quick == slow


def sieve_of(layout, choice, times=None):
    """A sieve by window, by filter, and one that gives other ids: 17 to records of 18, and 99 to those of 17."""
    program = compile_filter(parse_filter('n32 > 5 && name ~ "*r*"', format_of(17)))
    new_ids = array("H", range(1 << 16))
    new_ids[18], new_ids[17] = 17, 99
    window = Window(10**9 + 20_000, 10**9 + 12_000_000)
    programs = [None, {17: program}, {17: program, 18: None}, {17: program, 99: None}][choice]
    return Sieve(layout, window, programs, times, new_ids if choice == 3 else None)


@needs_c
@pytest.mark.parametrize("choice", range(4))
@pytest.mark.parametrize(
    "times",
    [
        None,
        TimeMap(mult=3, n_bits=1, offset=-(5 * 10**8)),
        TimeMap(TimeShift(1, 0, ((ClockSample(9, 4, 1),),))),
    ],
)
def test_what_a_sieve_keeps_has_no_pages_of_its_own(monkeypatch, choice, times):
    """C and twin choose the same records while they collect, of damaged pages too."""
    forms = [format_of(17), format_of(18)]
    monkeypatch.setattr(Sieve, "sift", None)
    n_rows = []
    for seed in range(30):
        rng = random.Random(seed)
        cpus = cpus_of(seed, n_records=40)
        if seed:
            cpus = [mutated(cpu, rng) for cpu in cpus]
        sieve = sieve_of(cpus[0].layout, choice, times)
        quick, slow = both([replace(cpu, sieve=sieve) for cpu in cpus], forms)
        assert quick == slow
        n_rows.append([event[0][1] for event in quick])
    assert n_rows[0][0] > 5
    assert (n_rows[0][1] > 5) == (choice in (0, 2))


@needs_c
def test_a_sieve_and_slices_of_time(monkeypatch):
    cpus = ordered_cpus(6)
    window, program = Window(1500, 2_000_000), compile_filter(parse_filter("n32 > 5", format_of(17)))
    sieve = Sieve(cpus[0].layout, window, {17: program, 18: None})
    chosen = [replace(cpu, sieve=sieve) for cpu in cpus]
    whole = values(engine.read_columns(chosen, [format_of(17), format_of(18)], 1))
    monkeypatch.setattr(engine, "_MIN_SLICES", 2)
    monkeypatch.setattr(engine, "_SLICE_BYTES", 4096)
    assert len(engine.time_slices(chosen)) > 2
    assert values(engine.read_columns(chosen, [format_of(17), format_of(18)], 2)) == whole
    assert 0 < len(whole[0][0][3]) < len(values(engine.read_columns(cpus, [format_of(17)], 1))[0][0][3])


@needs_c
@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_pages(data, is_big):
    layout = layout_of(is_big, 8, 64)
    cpus = [CpuData(0, 0, len(data), layout, data)]
    quick, slow = both(cpus, [format_of(17, is_big)])
    assert quick == slow


@needs_c
def test_damaged_pages_are_counted_alike():
    for seed in range(20):
        rng = random.Random(seed)
        cpus = [mutated(cpu, rng) for cpu in cpus_of(seed, n_cpus=1, n_records=40)]
        quick = engine.count_records(cpus, 1)
        with twin():
            assert engine.count_records(cpus, 1) == quick


@pytest.mark.parametrize("is_big_endian", [False, True])
def test_values_are_those_of_single_fields(is_big_endian):
    form, cpus = format_of(17, is_big_endian), cpus_of(2, is_big_endian)
    (columns,) = engine.read_columns(cpus, [form], 1)
    found = dict(zip([c.name for c in columns], [c.tolist() for c in columns], strict=True))
    records = sorted(
        (r for cpu in cpus for r in cpu.records() if r.id(is_big_endian=is_big_endian) == 17),
        key=lambda r: r.timestamp,
    )
    assert found["common_timestamp"] == [r.timestamp for r in records]
    assert found["common_cpu"] == [r.cpu for r in records]
    expected = [field_values(form, r.data) for r in records]
    for plan in plan_columns(form)[6:]:
        values = [v.hex() if isinstance(v, bytes) else v for v in found[plan.name]]
        assert values == [row[plan.name] for row in expected], plan


def test_slices_and_threads_change_nothing(monkeypatch):
    cpus, form = cpus_of(3, n_records=400), format_of()
    one = memory(engine.read_columns(cpus, [form], 1))
    monkeypatch.setattr(engine, "_SLICE_ROWS", 64)
    monkeypatch.setattr(engine, "_PART_BYTES", 4096)
    assert memory(engine.read_columns(cpus, [form], 4)) == one
    assert one[0][0][1] > 300


@needs_c
@pytest.mark.parametrize("n_records", [20, 700])
@pytest.mark.parametrize("times", [None, TimeMap(mult=3, n_bits=1, offset=(1 << 63) - 4000)])
def test_time_that_goes_back_is_put_in_order(monkeypatch, n_records, times):
    """Of few sequences each slice of rows is merged on its own, of many all at once; many times are equal."""
    rng, cpus, layout = random.Random(n_records), [], PageLayout(16, 496, 8, 8, False)
    monkeypatch.setattr(engine, "_SLICE_ROWS", 64)
    monkeypatch.setattr(engine, "_PART_BYTES", 2048)
    for number in range(3):
        writer = PageWriter(layout)
        for _ in range(n_records):
            writer.add(rng.choice([1 << 40, 1000 + rng.randrange(40)]), record_of(rng, 17))
        data = writer.pages()
        cpus.append(CpuData(number, 0, len(data), layout, data, time_map=times))
    for chosen in (cpus, cpus[:1], [*cpus_of(1, n_records=400), *cpus_of(1, n_records=400)]):
        quick, slow = both(chosen, [format_of(17)], 3)
        assert quick == slow


U64 = st.one_of(
    st.integers(0, 1 << 12), st.integers(0, (1 << 64) - 1), st.sampled_from([(1 << 63) - 1, (1 << 64) - 1])
)
S64 = st.one_of(st.integers(-(1 << 12), 1 << 12), st.integers(-(1 << 63), (1 << 63) - 1))
CLOCK = st.builds(ClockSample, U64, S64, st.one_of(st.just(1), U64), st.integers(0, 63))


def by_time(samples):
    return tuple({sample.time: sample for sample in sorted(samples, key=lambda s: s.time)}.values())


@needs_c
@settings(max_examples=150)
@given(
    st.lists(st.lists(CLOCK, max_size=5).map(by_time), max_size=2).map(tuple),
    st.integers(0, 3),
    st.tuples(st.integers(1, (1 << 32) - 1), st.integers(0, 63), S64),
    st.lists(U64, min_size=1, max_size=12),
)
def test_any_clock_of_a_guest_is_shifted_by_c_as_by_the_twin(samples, flags, scale, stamps):
    times = TimeMap(TimeShift(1, flags, samples), *scale)
    writer = PageWriter(layout_of(False, 8))
    for stamp in stamps:
        writer.add(stamp, record_of(random.Random(1), 17))
    data = writer.pages()
    cpus = [CpuData(n, 0, len(data), layout_of(False, 8), data, time_map=times) for n in range(2)]
    quick, slow = both(cpus, [format_of(17)])
    assert quick == slow


@needs_c
def test_what_is_no_clock_is_an_error():
    decode = engine.DECODE
    sample = struct.pack("QqQQ", 5, 0, 1, 0)
    with pytest.raises(ValueError, match="63"):
        decode.clock(1, 64, 0, False, ())
    with pytest.raises(ValueError, match="by time"):
        decode.clock(1, 0, 0, False, (sample, sample + sample))
    with pytest.raises(ValueError, match="above 63"):
        decode.clock(1, 0, 0, False, (struct.pack("QqQQ", 5, 0, 1, 64),))
    with pytest.raises(TypeError):
        decode.clock(1, 0, 0, False, (3,))
    with pytest.raises(ValueError, match="PyCapsule"):
        decode.show_times(object(), object())


def ordered_cpus(seed, n_cpus=3, n_records=300, *, is_big_endian=False):
    """CPUs whose pages are in the order of time, as those of a kernel."""
    rng, cpus = random.Random(seed), []
    layout = PageLayout(16, 496, 8, 8, is_big_endian)
    for number in range(n_cpus):
        stamp, records = 1000, []
        for _ in range(n_records):
            stamp += rng.choice([0, 3, 500, 40_000])
            records.append((stamp, record_of(rng, rng.choice([17, 18]), is_big_endian)))
        data = write_pages(records, layout)
        cpus.append(CpuData(number, 0, len(data), layout, data))
    return [*cpus, CpuData(7, 0, 0, layout, b"")]


def values(columns):
    """What columns say; which word a row without one has does not matter."""
    return [[(c.name, c.n_nulls, c.words, c.tolist()) for c in event] for event in columns]


@needs_c
@pytest.mark.parametrize("is_big_endian", [False, True])
@pytest.mark.parametrize("times", [None, TimeMap(mult=5, n_bits=2, offset=-77)])
def test_slices_of_time_give_the_same_values(monkeypatch, is_big_endian, times):
    cpus = [replace(cpu, time_map=times) for cpu in ordered_cpus(5, is_big_endian=is_big_endian)]
    forms = [format_of(17, is_big_endian), format_of(18, is_big_endian), format_of(19, is_big_endian)]
    whole = values(engine.read_columns(cpus, forms, 1))
    monkeypatch.setattr(engine, "_MIN_SLICES", 2)
    for size, large in ((2048, 1 << 20), (4096, 100), (1 << 14, 5000)):
        monkeypatch.setattr(join, "_LARGE", large)
        monkeypatch.setattr(engine, "_SLICE_BYTES", size)
        assert len(engine.time_slices(cpus)) > 2
        assert values(engine.read_columns(cpus, forms, 2)) == whole
    assert len(whole[0][0][3]) > 300


@pytest.mark.thorough
@needs_c
def test_pages_that_are_not_in_order_are_read_as_one(monkeypatch):
    rng = random.Random(1)
    monkeypatch.setattr(engine, "_PART_BYTES", 2048)
    for seed in range(60):
        cpus = []
        for cpu in ordered_cpus(seed, n_records=60):
            pages = [
                cpu.data[at : at + cpu.layout.page_size] for at in range(0, cpu.size, cpu.layout.page_size)
            ]
            for _ in range(rng.randrange(3) if pages else 0):
                a, b = rng.randrange(len(pages)), rng.randrange(len(pages))
                pages[a], pages[b] = pages[b], pages[a]
            data = b"".join(pages)
            cpus.append(replace(cpu, data=data))
        forms = [format_of(17), format_of(18)]
        with monkeypatch.context() as patch:
            patch.setattr(engine, "_SLICE_BYTES", 1024)
            patch.setattr(engine, "_MIN_SLICES", 2)
            found = values(engine.read_columns(cpus, forms, 1))
        assert found == values(engine.read_columns(cpus, forms, 1)), seed


@needs_c
def test_wrong_parts_are_errors():
    decode = engine.DECODE
    with pytest.raises(TypeError):
        decode.join_ends([b""])
    with pytest.raises(ValueError, match="ends"):
        decode.join_ends((array("q", [0, 1]), b"123"))
    assert array("q", bytes(decode.join_ends((array("q", [0, 2]), array("q", [0, 1, 5]))))).tolist() == [
        0,
        2,
        3,
        7,
    ]
    assert array("i", bytes(decode.remap(array("i", [1, 0, 9, -1]), array("i", [4, 5])))).tolist() == [
        5,
        4,
        0,
        0,
    ]


def test_plan_of_every_shape():
    kinds = {c.name: c.kind for c in plan_columns(format_of())}
    assert kinds["n64"] is kinds["real"] is kinds["common_pid"] is ColumnKind.NUMBER
    assert kinds["comm"] is kinds["name"] is kinds["path"] is kinds["rest"] is ColumnKind.TEXT
    assert kinds["list"] is kinds["words"] is ColumnKind.LIST
    assert kinds["blob"] is ColumnKind.BYTES
    assert kinds["mask"] is kinds["cpus"] is ColumnKind.BITS


@needs_c
def test_wrong_arguments_are_errors():
    decode = engine.DECODE
    with pytest.raises(ValueError, match="layout"):
        decode.collector(decode.pool(), None, bytes(1 << 17), 1, (16, 0, 8, 8, False), 0, 1)
    with pytest.raises(ValueError, match="slot"):
        decode.collector(decode.pool(), None, bytes(3), 1, (16, 4080, 8, 8, False), 0, 1)
    with pytest.raises(ValueError, match="PyCapsule"):
        decode.collector(decode.pool(), decode.pool(), bytes(1 << 17), 1, (16, 4080, 8, 8, False), 0, 1)
    with pytest.raises(ValueError, match="PyCapsule"):
        decode.collect_pages(object(), b"", 0)
    collector = decode.collector(decode.pool(), None, bytes(1 << 17), 1, (16, 4080, 8, 8, False), 0, 1)
    with pytest.raises(IndexError):
        decode.merge_rows((collector,), 1)
    rows, n_rows = decode.merge_rows((collector,), 0)
    assert n_rows == 0
    with pytest.raises(ValueError, match="plan"):
        decode.start_columns(rows, ((2, 0, 0, 3, 1),), False, 1)
    with pytest.raises(ValueError, match="plan"):
        decode.start_columns(rows, ((6, 1, 0, 4, 2),), False, 1)
    columns = decode.start_columns(rows, ((2, 0, 0, 4, 1),), False, 2)
    decode.fill_columns(columns, 0)
    with pytest.raises(ValueError, match="slice"):
        decode.fill_columns(columns, 0)
    with pytest.raises(ValueError, match="slice"):
        decode.finish_columns(columns)
    decode.fill_columns(columns, 1)
    assert len(decode.finish_columns(columns)) == 1
    with pytest.raises(ValueError, match="before"):
        decode.finish_columns(columns)


@needs_c
def test_a_damaged_name_of_a_field_is_given_away():
    form = replace(format_of(), fields=tuple(replace(f, name=f"a\0{f.name}") for f in format_of().fields))
    table = Table(form, lambda: engine.read_columns(cpus_of(1), [form], 1)[0])
    assert table.__arrow_c_schema__()
    assert table.__arrow_c_stream__()


@needs_c
def test_damaged_tables_are_given_away():
    form = format_of()
    for seed in range(10):
        rng = random.Random(seed)
        columns = engine.read_columns([mutated(c, rng) for c in cpus_of(seed)], [form], 1)[0]
        table = Table(form, lambda columns=columns: columns)
        assert table.__arrow_c_schema__()
        assert table.__arrow_c_stream__()
        assert len(table.__arrow_c_array__()) == 2


def test_many_threads_read_at_once():
    cpus, form = cpus_of(5), format_of()
    expected, found = memory(engine.read_columns(cpus, [form], 1)), []
    threads = [
        threading.Thread(target=lambda: found.append(memory(engine.read_columns(cpus, [form], 2))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8


def test_memory_of_a_table_does_not_wait_for_the_garbage_collector():
    pyarrow = pytest.importorskip("pyarrow", reason="no pyarrow: pip install pyarrow")
    gc.collect()
    gc.disable()
    try:
        table = Table(format_of(17), lambda: engine.read_columns(cpus_of(3), [format_of(17)], 1)[0])
        assert len(pyarrow.RecordBatchReader.from_stream(table).read_all()) == len(table)
        columns = [weakref.ref(table[name]) for name in table.columns]
        del table
        assert [column() for column in columns] == [None] * len(columns)
    finally:
        gc.enable()
