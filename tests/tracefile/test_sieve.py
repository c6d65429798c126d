"""Pages of the chosen records: C and twin keep the same ones, which are those that a plain loop keeps."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decode.shapes import format_of, record_of
from tracepoint.filter.context import RecordContext
from tracepoint.filter.parse import parse_filter
from tracepoint.filter.program import compile_filter
from tracepoint.record.layout import PageLayout
from tracepoint.record.page import LOST_UNKNOWN, walk_pages
from tracepoint.record.pages import read_pages, records_of
from tracepoint.record.write import EventWriter, PageWriter, page_bytes
from tracepoint.tracefile import sieve as sieve_module
from tracepoint.tracefile.options import ClockSample, TimeShift
from tracepoint.tracefile.sieve import ALL_TIMES, MAX_TIME, Sieve, Window
from tracepoint.tracefile.timing import TimeMap

needs_c = pytest.mark.skipif(sieve_module.DECODE is None, reason="tracepoint._decode was not built")


def pages_of(seed: int, layout: PageLayout, n_records: int = 200) -> bytes:
    rng, writer, stamp = random.Random(seed), PageWriter(layout), 1 << 40
    for _ in range(n_records):
        stamp += rng.choice([0, 1, 500, 1 << 20, 1 << 30, -3])
        if rng.random() < 0.05:
            writer.lose(rng.choice([1, 7, LOST_UNKNOWN]))
        cpu = rng.choice([None, None, 5, 6]) if seed % 2 else None
        writer.add(stamp, record_of(rng, rng.choice([17, 18, 19]), layout.is_big_endian), cpu)
    if rng.random() < 0.3:
        writer.lose(4)
    return writer.pages()


def kept(pages, layout, cpu=3):
    """Return the records with what was lost before each, and at the end."""
    records = list(records_of([(bytes(pages), read_pages(pages, layout))], cpu))
    n_lost = [page.lost for page in walk_pages(pages, layout) if page.lost]
    return [(r.timestamp, r.cpu, r.data) for r in records], n_lost


def by_hand(data, layout, window, programs, convert=None):
    found = []
    for record in records_of([(data, read_pages(data, layout))], 3):
        shown = record.timestamp if convert is None else convert(record.timestamp, record.cpu)
        number = record.id(is_big_endian=layout.is_big_endian) if len(record.data) > 1 else None
        if not window.start <= shown < window.stop:
            continue
        if programs is not None:
            if number not in programs:
                continue
            program = programs[number]
            if program is not None and not program.matches(record.data, RecordContext(record.cpu)):
                continue
        found.append((record.timestamp, record.cpu, record.data))
    return found


def programs_of(text: str, is_big_endian: bool = False):
    program = compile_filter(parse_filter(text, format_of(17, is_big_endian)))
    return {17: program, 18: None}


LAYOUTS = [PageLayout(8 + long_size, 512, 8, long_size, big) for long_size in (4, 8) for big in (False, True)]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("choice", range(5))
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_is_kept_is_what_a_loop_keeps(layout, choice, seed, monkeypatch):
    data = pages_of(seed, layout)
    times = [r.timestamp for r in records_of([(data, read_pages(data, layout))], 3)]
    window = ALL_TIMES if choice == 0 else Window(sorted(times)[50], sorted(times)[150])
    text = ("n32 > 5", 'comm == "sh"', "common_pid < 50 || words & 1", 'name ~ "work*"', "CPU == 3")[choice]
    programs = None if choice == 1 else programs_of(text, layout.is_big_endian)
    expected = by_hand(data, layout, window, programs)
    pages, faults = Sieve(layout, window, programs).sift(data, 3)
    found, n_lost = kept(pages, layout)
    assert found == expected
    assert not faults
    monkeypatch.setattr(sieve_module, "DECODE", None)
    slow, slow_faults = Sieve(layout, window, programs).sift(data, 3)
    assert kept(slow, layout) == (found, n_lost)
    assert bytes(slow) == bytes(pages)
    assert slow_faults == faults
    # Each loss of the window is there, also where the record after it is left out.
    lossy = [page for page in walk_pages(data, layout) if page.lost]
    assert n_lost == [
        page.lost
        for page in lossy
        if window.start <= (page.records[0][0] if page.records else page.stamp) < window.stop
    ]
    other, _ = Sieve(layout, window, programs, cpus={4}).sift(data, 3)
    before = {
        (r.timestamp, r.cpu, r.data) for r in records_of([(data, read_pages(data, layout))], 3) if r.lost
    }
    assert sum(page.lost != 0 for page in walk_pages(other, layout)) == len(before & set(expected))


SHIFT = TimeShift(
    1, 1, ((), (), (), (ClockSample(0, 5, 3, 1), ClockSample(1 << 40, 900, 1), ClockSample(1 << 41, 0, 1)))
)


@pytest.mark.parametrize(
    "convert",
    [TimeMap(mult=3, n_bits=1, offset=-(1 << 40)), TimeMap(offset=77), TimeMap(SHIFT, mult=5, n_bits=2)],
    ids=["cycles", "offset", "guest"],
)
@pytest.mark.parametrize("is_quick", [True, False])
def test_a_window_counts_in_the_times_shown(convert, is_quick, monkeypatch):
    layout = LAYOUTS[2]
    if not is_quick:
        monkeypatch.setattr(sieve_module, "DECODE", None)
    data = pages_of(4, layout)
    times = sorted(convert(r.timestamp, 3) for r in records_of([(data, read_pages(data, layout))], 3))
    for window in (
        Window(times[40], times[41]),
        Window(times[40] + 1, times[90]),
        Window(times[150], MAX_TIME),
    ):
        pages, _ = Sieve(layout, window, None, convert).sift(data, 3)
        assert kept(pages, layout)[0] == by_hand(data, layout, window, None, convert)


@needs_c
@settings(max_examples=60)
@given(st.integers(0, 1 << 32))
def test_damaged_pages_are_sifted_alike(seed):
    rng = random.Random(seed)
    layout = rng.choice(LAYOUTS)
    data = bytearray(pages_of(seed, layout, 40))
    for _ in range(rng.randrange(1, 6)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    data = bytes(data[: len(data) - rng.choice([0, 0, 3])])
    programs = programs_of('n32 > 5 && name ~ "*r*"', layout.is_big_endian)
    window = Window(0, MAX_TIME)
    quick, faults = Sieve(layout, window, programs).sift(data, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sieve_module, "DECODE", None)
        slow, slow_faults = Sieve(layout, window, programs).sift(data, 3)
    assert bytes(quick) == bytes(slow)
    assert faults == slow_faults


@needs_c
@given(st.binary(max_size=300), st.sampled_from(LAYOUTS))
def test_any_bytes_are_pages(data, layout):
    small = PageLayout(layout.data_offset, 64, 8, layout.long_size, layout.is_big_endian)
    quick = Sieve(small).sift(data, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sieve_module, "DECODE", None)
        slow = Sieve(small).sift(data, 0)
    assert (bytes(quick.pages), quick.faults) == (bytes(slow.pages), slow.faults)


@needs_c
def test_wrong_arguments_are_errors():
    decode = sieve_module.DECODE
    layout = (16, 4080, 8, 8, False)
    with pytest.raises(ValueError, match="layout"):
        decode.sieve(b"", b"", (), (16, 0, 8, 8, False), 0, 1, None)
    with pytest.raises(ValueError, match="slot"):
        decode.sieve(b"123", b"", (), layout, 0, 1, None)
    with pytest.raises(ValueError, match="filter program"):
        decode.sieve(b"", b"", (b"no program",), layout, 0, 1, None)
    with pytest.raises(ValueError, match="slot"):
        decode.sieve(b"", b"123", (), layout, 0, 1, None)
    with pytest.raises(TypeError):
        decode.sieve(b"", b"", (3,), layout, 0, 1, None)
    with pytest.raises(ValueError, match="PyCapsule"):
        decode.sieve(b"", b"", (), layout, 0, 1, object())
    with pytest.raises(ValueError, match="PyCapsule"):
        decode.sift_pages(object(), b"", 0, True)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("is_quick", [True, False])
def test_losses_that_no_page_holds_are_not_counted(layout, is_quick, monkeypatch):
    if not is_quick:
        monkeypatch.setattr(sieve_module, "DECODE", None)
    most, events = (1 << 8 * layout.long_size) - 1, EventWriter(is_big_endian=layout.is_big_endian)
    # The first page has only an event that was taken back.
    record = record_of(random.Random(1), 17, layout.is_big_endian)
    data = (events.padding(1, 8), events.record(record, 0))
    both = b"".join(page_bytes(layout, stamp, data[stamp], most) for stamp in (0, 1))
    for window in (ALL_TIMES, Window(1, 2)):
        pages, _ = Sieve(layout, window, {}).sift(both, 0)
        assert [page.lost for page in walk_pages(pages, layout)] == [LOST_UNKNOWN]
    pages, _ = Sieve(layout).sift(both, 0)
    assert [page.lost for page in walk_pages(pages, layout)] == [LOST_UNKNOWN]
