"""Pages: the worked examples of real kernels, round trips, damage, and other writers and readers."""

import importlib
import struct
import sys
import threading
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from printk import pages as plain
from tracefile.making import layout_of
from tracepoint.errors import DecodeError
from tracepoint.record.layout import (
    MAX_PAGE_BYTES,
    PageLayout,
    check_header_event,
    header_page_text,
    read_page_layout,
)
from tracepoint.record.page import DELTA_MASK, LOST_UNKNOWN, U64, read_page, walk_pages
from tracepoint.record.pages import read_pages, read_pages_slowly, records_of
from tracepoint.record.write import EventWriter, PageWriter, page_bytes, write_pages
from tracepoint.runtime.rings.ring import Ring

HEADER_64 = (
    "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
    "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
    "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
    "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n"
)
LAYOUTS = [layout_of(big, long) for big in (False, True) for long in (4, 8)]


def page_of(head, data):
    return (bytes.fromhex(head) + bytes.fromhex(data)).ljust(4096, b"\0")


def words(layout, *values):
    return struct.pack(f"{'>' if layout.is_big_endian else '<'}{len(values)}I", *values)


def event(layout, kind, delta):
    return kind << 27 | delta if layout.is_big_endian else kind | delta << 5


def made(layout, data, stamp=1000, commit=None):
    code = (">" if layout.is_big_endian else "<") + ("QQ" if layout.long_size == 8 else "QI")
    head = struct.pack(code, stamp, len(data) if commit is None else commit)
    return (head + data).ljust(layout.page_size, b"\0")


def test_header_page_of_a_real_kernel():
    assert read_page_layout(HEADER_64) == PageLayout()
    assert header_page_text(PageLayout()) == HEADER_64


@pytest.mark.parametrize("layout", LAYOUTS)
def test_header_page_is_written_and_read_back(layout):
    assert read_page_layout(header_page_text(layout), is_big_endian=layout.is_big_endian) == layout


@pytest.mark.parametrize(
    "change",
    [
        ("offset:16;", "offset:12;"),
        ("size:4080;", "size:0;"),
        ("size:4080;", "size:999999999;"),
        ("offset:16;", "offset:17;"),
        ("timestamp", "time"),
        ("offset:8;\tsize:8;", "offset:8;\tsize:2;"),
        ("offset:8;\tsize:8;", "offset:4;\tsize:8;"),
    ],
)
def test_header_page_that_no_kernel_has(change):
    with pytest.raises(DecodeError):
        read_page_layout(HEADER_64.replace(*change, 1))


def test_header_event_from_before_type_len():
    check_header_event("")
    check_header_event("# compressed entry header\n\ttype_len    :    5 bits\n")
    with pytest.raises(DecodeError, match="type_len"):
        check_header_event(
            "# compressed entry header\n\ttype        :    2 bits\n\tlen         :    3 bits\n"
        )


def test_extend_first_on_the_page_then_six_sched_switches():
    """The page g_six_sched_switch of Perfetto's tests: the headers with blank payloads."""
    body = "1e00000000000000" + "10000000" + "2f000103" + "00" * 60
    for head in ("b0728805", "f0b04700", "1001ef00", "f0c7e601", "d0300e00"):
        body += head + "00" * 64
    page = read_page(page_of("2b16c3be90b60300 a001000000000000", body), 0, PageLayout())
    stamps = [stamp for stamp, _, _ in page.records]
    assert (page.size, page.lost, page.fault) == (0x1A0, 0, "")
    assert stamps[0] == 1045157722134059
    assert stamps[1] == 1045157725034944
    assert stamps[-1] == 1045157726697236
    assert [b - a for a, b in pairwise(stamps)] == [2900885, 146823, 489480, 996927, 29062]
    assert {length for _, _, length in page.records} == {64}


def test_lost_events_with_their_number():
    """The head of the page g_full_page_ext4 of Perfetto's tests."""
    data = "08000000" + "00" * 32 + "1d000000"
    head = "50fe585227 9f0000" + "c80f00c0ffffffff"
    raw = bytearray(page_of(head, data))
    raw[16 + 0xFC8 : 16 + 0xFC8 + 8] = (17141).to_bytes(8, "little")
    page = read_page(bytes(raw), 0, PageLayout())
    assert (page.stamp, page.size, page.lost) == (0x9F275258FE50, 4040, 17141)
    assert len(page.records) == 1


def test_large_event():
    """The head of the page g_really_long_event of Perfetto's tests."""
    data = "1e00000000000000" + "00000000c0030000" + "05000001fc1a0000" + "41" * 948
    page = read_page(page_of("0000000000000000 cc03000000000000", data), 0, PageLayout())
    assert page.records == [(0, 0x20, 956)]
    assert page.fault == ""


def test_time_extend_of_a_marker_after_a_second():
    """A page recorded on 6.1: `echo behind-one-second > trace_marker` 1.8 s after the one before."""
    data = "07000000" + "00" * 28 + "de705679 0d000000" + "09000000" + "00" * 36
    page = read_page(page_of("111b26e707000000 5000000000000000", data), 0, PageLayout())
    first, second = (stamp for stamp, _, _ in page.records)
    assert first == 33942805265
    assert second - first == 13 << 27 | 0x795670DE >> 5 == 1808446342


def test_absolute_stamp_of_a_hist_trigger():
    data = "9f4c4d82 47010000" + "07000000" + "00" * 28
    page = read_page(page_of("0000000000000000 2800000000000000", data), 0, PageLayout())
    assert page.records[0][0] == 43957512804


@pytest.mark.parametrize("layout", LAYOUTS)
def test_absolute_stamp_keeps_the_top_five_bits(layout):
    data = words(layout, event(layout, 31, 5), 1, event(layout, 1, 2), 0)
    page = read_page(made(layout, data, stamp=3 << 59 | 99), 0, layout)
    assert page.records[0][0] == 3 << 59 | 1 << 27 | 7


@pytest.mark.parametrize("layout", LAYOUTS)
def test_discarded_event_counts_its_time(layout):
    data = words(layout, event(layout, 29, 3), 8, 0, event(layout, 1, 4), 0)
    page = read_page(made(layout, data), 0, layout)
    assert page.records == [(1007, layout.data_offset + 16, 4)]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_odd_length_of_a_long_event_is_rounded_up(layout):
    data = words(layout, event(layout, 0, 3), 10, 1, 2, event(layout, 1, 4), 0)
    page = read_page(made(layout, data), 0, layout)
    start = layout.data_offset
    assert page.records == [(1003, start + 8, 6), (1007, start + 20, 4)]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_padding_without_time_ends_the_page(layout):
    data = words(layout, event(layout, 1, 4), 0, event(layout, 29, 0), event(layout, 1, 4), 0)
    page = read_page(made(layout, data), 0, layout)
    assert (len(page.records), page.fault) == (1, "")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("tail", "left_at"),
    [
        (((28, 0), 0), 0),  # an event longer than what is left
        (((0, 0), 400), 0),
        (((0, 0), 3), 0),  # a length that does not count itself
        (((30, 1),), 0),  # no second word
        (((29, 1), 4000), 0),
    ],
)
def test_event_past_the_end_is_a_fault_and_the_rest_is_read(layout, tail, left_at):
    (kind, delta), *more = tail
    data = words(layout, event(layout, 1, 4), 0, event(layout, kind, delta), *more)
    page = read_page(made(layout, data), 0, layout)
    assert len(page.records) == 1
    assert "past the end" in page.fault
    assert page.fault_at == layout.data_offset + 8 + left_at


@pytest.mark.parametrize("layout", LAYOUTS)
def test_impossible_sizes(layout):
    too_big = read_page(made(layout, b"", commit=layout.data_size + 1), 0, layout)
    assert too_big.fault == f"a page claims {layout.data_size + 1} bytes of data"
    assert too_big.fault_at == 8
    odd = read_page(made(layout, words(layout, event(layout, 1, 4), 0), commit=9), 0, layout)
    assert len(odd.records) == 1
    assert "whole word" in odd.fault
    assert read_page(made(layout, b""), 0, layout).fault == ""


@pytest.mark.parametrize("layout", LAYOUTS)
def test_time_wraps_at_64_bits(layout):
    data = words(layout, event(layout, 1, 4), 0)
    assert read_page(made(layout, data, stamp=U64), 0, layout).records[0][0] == 3


def test_rest_after_the_pages_is_a_fault():
    *pages, rest = walk_pages(bytes(4096 * 2 + 10), PageLayout())
    assert [page.fault for page in pages] == ["", ""]
    assert (rest.fault_at, rest.records) == (8192, [])
    assert "10 bytes" in rest.fault


RECORDS = st.lists(
    st.tuples(
        st.one_of(st.integers(0, 1 << 20), st.integers(0, 1 << 40), st.just(-5)),
        st.binary(min_size=1, max_size=300),
        st.sampled_from(["", "", "", "lose", "unknown"]),
    ),
    max_size=60,
)


@given(RECORDS, st.sampled_from(LAYOUTS), st.integers(0, 1 << 63))
def test_what_is_written_is_read(steps, layout, now):
    writer, expected, lost = PageWriter(layout), [], 0
    pending = 0
    for delta, payload, act in steps:
        now = max(now + delta, 0)
        if act:
            number = 3 if act == "lose" else LOST_UNKNOWN
            writer.lose(number)
            pending = LOST_UNKNOWN if LOST_UNKNOWN in (number, pending) else pending + number
        writer.add(now, payload)
        expected.append((now, payload, pending))
        pending = 0
    data, got = writer.pages(), []
    for page in walk_pages(data, layout):
        assert not page.fault
        lost = page.lost
        for stamp, at, length in page.records:
            got.append((stamp, data[at : at + length], lost))
            lost = 0
    assert len(got) == len(expected)
    for (stamp, payload, before), (stamp_got, slot, before_got) in zip(expected, got, strict=True):
        assert stamp_got == stamp
        assert slot.startswith(payload)
        assert len(slot) - len(payload) < (12 if len(payload) <= 8 else 4)
        assert before_got in (before, LOST_UNKNOWN if before else 0)


def columns(pages):
    return [list(column) for column in pages]


def pieces_of(layout):
    """Words that are often events, so that pages have more in them than one fault."""
    kind = st.one_of(st.integers(0, 31), st.sampled_from([0, 1, 2, 29, 30, 31]))
    delta = st.one_of(st.integers(0, 3), st.integers(0, DELTA_MASK))
    heads = st.builds(lambda k, d: event(layout, k, d), kind, delta)
    return st.lists(st.one_of(heads, st.integers(0, 40), st.integers(0, (1 << 32) - 1)), max_size=40)


@given(st.data(), st.sampled_from(LAYOUTS))
def test_the_c_reader_gives_what_its_twin_gives(drawn, layout):
    data = b""
    for _ in range(drawn.draw(st.integers(0, 3))):
        body = words(layout, *drawn.draw(pieces_of(layout)))
        flags = drawn.draw(st.sampled_from([0, 0, 1 << 31, 1 << 31 | 1 << 30]))
        size = drawn.draw(st.sampled_from([len(body), len(body), len(body) + 1, 4, layout.data_size + 4]))
        data += made(layout, body, drawn.draw(st.integers(0, U64)), size | flags)
    data += bytes(drawn.draw(st.sampled_from([0, 0, 5])))
    assert columns(read_pages(data, layout)) == columns(read_pages_slowly(data, layout))


@given(RECORDS, st.sampled_from(LAYOUTS))
def test_the_c_reader_reads_what_is_written(steps, layout):
    writer, now = PageWriter(layout), 0
    for delta, payload, act in steps:
        now = max(now + delta, 0)
        if act:
            writer.lose(3 if act == "lose" else LOST_UNKNOWN)
        writer.add(now, payload)
    data = writer.pages()
    assert columns(read_pages(data, layout)) == columns(read_pages_slowly(data, layout))


def test_marks_name_the_cpu_of_what_follows():
    events = EventWriter()
    parts = [events.record(b"abcd", 0), events.cpu_mark(3), events.record(b"efgh", 1), events.cpu_mark(-1)]
    data = page_bytes(PageLayout(), 100, b"".join([*parts, events.record(b"ijkl", 1)]), lost=2)
    assert list(records_of([(data, read_pages(data, PageLayout()))], cpu=7)) == [
        (100, 7, b"abcd", 2),
        (102, 3, b"efgh", 0),
        (104, 0, b"ijkl", 0),
    ]


def test_the_largest_page_of_a_header_page_is_taken_by_both_readers():
    layout = read_page_layout(HEADER_64.replace("size:4080", f"size:{MAX_PAGE_BYTES}"))
    assert columns(read_pages(bytes(100), layout)) == columns(read_pages_slowly(bytes(100), layout))


def test_a_layout_that_is_not_one_is_refused_in_c():
    decode = importlib.import_module("tracepoint._decode")
    for words_of in [(16, 0, 8, 8), (16, 4080, 8, 5), (16, 4080, 0, 8), (16, 4080, 12, 8), (999, 4080, 8, 8)]:
        with pytest.raises(ValueError, match="layout"):
            decode.read_pages(bytes(4096), *words_of, False)


def test_the_c_reader_lets_other_threads_run():
    data = write_pages(((n, bytes(8)) for n in range(50_000)), PageLayout()) * 20
    go, ran = threading.Lock(), []
    go.acquire()

    def work():
        with go:
            ran.append(True)

    other = threading.Thread(target=work)
    other.start()
    old = sys.getswitchinterval()
    # From here on the other thread runs only when this one gives way.
    sys.setswitchinterval(1000)
    try:
        go.release()
        read_pages(data, PageLayout())
        has_run = bool(ran)
    finally:
        sys.setswitchinterval(old)
        other.join()
    assert has_run


def test_a_record_that_no_page_holds():
    with pytest.raises(ValueError, match="does not fit"):
        write_pages([(0, bytes(4072))], PageLayout())


@given(st.lists(st.tuples(st.integers(0, 1 << 32), st.binary(max_size=200)), max_size=80))
def test_pages_of_the_runtime_ring(steps):
    ring, now, expected = Ring(65534), 5, []
    for delta, payload in steps:
        now += delta
        ring.commit(ring.reserve(now, payload))
        expected.append((now, payload))
    data = b"".join(iter(ring.read, None))
    got = [(s, data[a : a + n]) for page in walk_pages(data, PageLayout()) for s, a, n in page.records]
    assert [stamp for stamp, _ in got] == [stamp for stamp, _ in expected]
    assert all(slot.startswith(payload) for (_, slot), (_, payload) in zip(got, expected, strict=True))


@given(st.lists(st.tuples(st.integers(0, 1 << 40), st.binary(min_size=1, max_size=400)), max_size=60))
def test_the_plain_reader_of_the_printk_tests_agrees(records):
    records.sort()
    data = write_pages(records, PageLayout())
    ours = [(s, data[a : a + n]) for page in walk_pages(data, PageLayout()) for s, a, n in page.records]
    assert ours == list(plain.records(data))


@given(st.binary(min_size=4080, max_size=4080), st.integers(0, 4080), st.sampled_from(LAYOUTS))
def test_any_bytes_are_records_within_the_page(noise, size, layout):
    page = read_page(made(layout, noise[: layout.data_size], commit=min(size, layout.data_size)), 0, layout)
    end = layout.data_offset + page.size
    for stamp, at, length in page.records:
        assert 0 <= stamp <= U64
        assert layout.data_offset < at
        assert at + length <= end
