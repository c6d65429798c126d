"""Rings: the same tests for the C ring and its twin, and both against each other."""

import mmap
import random
import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracepoint.record.page import read_page
from tracepoint.record.write import event_size
from tracepoint.runtime.rings import ring as twin
from tracepoint.runtime.rings.ring import LAYOUT, MAX_PAYLOAD, PAGE_DATA


@pytest.fixture(params=["c", "twin"])
def make_ring(request):
    return request.getfixturevalue("c_core").Ring if request.param == "c" else twin.Ring


def write(ring, stamp, payload, *cpu):
    token = ring.reserve(stamp, payload, *cpu)
    if token is not None:
        ring.commit(token)
    return token is not None


def parse(page):
    """Return (stamp, payload) of every event of a page."""
    return [(when, page[at : at + size]) for when, at, size in read_page(page, 0, LAYOUT).records]


def lost_of(page):
    commit = struct.unpack_from("<Q", page, 8)[0]
    if not commit >> 31 & 1:
        return 0
    return struct.unpack_from("<Q", page, 16 + (commit & 0x7FFFFFF))[0] if commit >> 30 & 1 else -1


def read_all(ring):
    events = []
    while (page := ring.read()) is not None:
        events += parse(page)
    return events


def read_with_cpu(ring):
    """Return (stamp, payload, CPU) of every event."""
    found = []
    for page in iter(ring.read, None):
        read, cpu = read_page(page, 0, LAYOUT), -1
        marks = dict(read.marks)
        for index, (when, at, size) in enumerate(read.records):
            cpu = marks.get(index, cpu)
            found.append((when, page[at : at + size], cpu))
    return found


class TestCpus:
    def test_a_mark_where_the_cpu_changes(self, make_ring):
        ring = make_ring(2)
        for stamp, cpu in ((10, 3), (20, 3), (30, 1), (30, 2)):
            write(ring, stamp, b"aaaa", cpu)
        page = ring.peek()[0]
        assert page[16:28] == bytes.fromhex("3d000000 08000000 03000000"), "padding of 12 bytes"
        assert [s for s, _ in parse(page)] == [10, 20, 30, 31], "a mark takes a unit of time"
        assert [c for *_, c in read_with_cpu(ring)] == [3, 3, 1, 2]

    def test_a_page_read_in_parts(self, make_ring):
        ring = make_ring(2)
        write(ring, 10, b"aaaa", 3)
        assert read_with_cpu(ring) == [(10, b"aaaa", 3)]
        write(ring, 20, b"bbbb", 3)
        assert read_with_cpu(ring) == [(20, b"bbbb", 3)]
        write(ring, 30, b"cccc", 0)
        assert read_with_cpu(ring) == [(30, b"cccc", 0)]

    def test_the_longest_events_have_none(self, make_ring):
        ring = make_ring(3)
        write(ring, 10, bytes(MAX_PAYLOAD), 3)
        write(ring, 20, b"bbbb", 3)
        assert len(ring.peek()) == 2
        assert [c for *_, c in read_with_cpu(ring)] == [-1, 3]

    def test_the_longest_event_takes_the_first_page(self, make_ring):
        ring = make_ring(2, False)
        assert [write(ring, i, bytes(MAX_PAYLOAD), 0) for i in range(3)] == [True, True, False]


def test_header_bytes(make_ring):
    """The first bytes of the spec's worked example E: an event of 28 bytes, then a time extend."""
    ring = make_ring(2)
    write(ring, 33942805265, b"a" * 28)
    write(ring, 33942805265 + 825921, b"b" * 28)
    write(ring, 33942805265 + 825921 + 1808446342, b"c" * 36)
    page = ring.read()
    assert struct.unpack_from("<QQ", page) == (33942805265, 32 + 32 + 8 + 40)
    assert page[16:20] == bytes.fromhex("07000000")
    assert page[48:52] == bytes.fromhex("27489301")
    assert page[80:88] == bytes.fromhex("de705679 0d000000")
    assert page[88:92] == bytes.fromhex("09000000")


def test_long_events_say_their_length(make_ring):
    ring = make_ring(2)
    write(ring, 1, b"x" * 956)
    assert ring.read()[16:24] == bytes.fromhex("00000000 c0030000")


@pytest.mark.parametrize("length", [0, 1, 4, 5, 8, 9, 112, 113, 116, 1000, MAX_PAYLOAD])
def test_payloads_come_back_padded_to_four(make_ring, length):
    ring = make_ring(2)
    payload = bytes(i % 251 + 1 for i in range(length))
    assert write(ring, 7, payload)
    ((stamp, back),) = read_all(ring)
    assert stamp == 7
    assert back[:length] == payload
    assert len(back) == event_size(length) - (8 if length > 112 else 4)


def test_too_long_is_dropped(make_ring):
    ring = make_ring(2)
    assert ring.reserve(1, bytes(MAX_PAYLOAD + 1)) is None
    assert ring.stats()["dropped"] == 1


def test_overwrite_keeps_the_newest(make_ring):
    ring = make_ring(3)
    for i in range(400):
        write(ring, i, struct.pack("<I", i) + bytes(56))
    per_page = PAGE_DATA // 64
    stats = ring.stats()
    assert stats["overrun"] == 400 - stats["entries"]
    assert stats["overrun"] % per_page == 0
    first = ring.read()
    assert lost_of(first) == stats["overrun"]
    assert struct.unpack_from("<Q", first, 8)[0] == 0xFFFFFFFFC0000000 + per_page * 64
    rest = [e for p in iter(ring.read, None) for e in parse(p) if lost_of(p) == 0]
    numbers = [struct.unpack_from("<I", e[1])[0] for e in parse(first) + rest]
    assert numbers == list(range(stats["overrun"], 400))
    assert ring.stats()["read"] == len(numbers)
    assert ring.stats()["entries"] == 0


def test_without_overwrite_the_oldest_stay(make_ring):
    ring = make_ring(3, False)
    results = [write(ring, i, struct.pack("<I", i) + bytes(56)) for i in range(400)]
    stats = ring.stats()
    assert results.count(True) == stats["entries"] == 3 * (PAGE_DATA // 64)
    assert stats["dropped"] == results.count(False)
    assert [struct.unpack_from("<I", p)[0] for _, p in read_all(ring)] == list(range(stats["entries"]))
    assert write(ring, 500, b"room again")


def test_a_full_ring_takes_no_smaller_event_either(make_ring):
    ring = make_ring(2, False)
    while write(ring, 1, bytes(1000)):
        pass
    assert not write(ring, 1, b"x")


def test_the_page_being_written_can_be_read(make_ring):
    ring = make_ring(2)
    write(ring, 100, b"one!")
    assert [p for _, p in parse(ring.read())] == [b"one!"]
    assert ring.read() is None
    write(ring, 130, b"two!")
    page = ring.read()
    assert parse(page) == [(130, b"two!")]
    assert struct.unpack_from("<Q", page)[0] == 100, "the stamp before the first event of this part"


def test_peeking_takes_nothing(make_ring):
    ring = make_ring(3)
    for i in range(150):
        write(ring, i, bytes(60))
    before = [e for p in ring.peek() for e in parse(p)]
    assert before == [e for p in ring.peek() for e in parse(p)]
    assert ring.read() is not None
    after = [e for p in ring.peek() for e in parse(p)]
    assert after == before[len(before) - len(after) :]
    assert read_all(ring) == after


def test_clear(make_ring):
    ring = make_ring(2)
    for i in range(400):
        write(ring, i, bytes(60))
    ring.read()
    ring.clear()
    assert ring.read() is None
    assert {k: v for k, v in ring.stats().items() if v} == {}
    write(ring, 999, b"next")
    assert ring.stats()["entries"] == 1
    assert read_all(ring) == [(999, b"next")]


class TestTimes:
    @pytest.mark.parametrize(
        "delta", [0, 1, (1 << 27) - 1, 1 << 27, 1 << 40, (1 << 59) - 1, 1 << 59, 1 << 62]
    )
    def test_forward(self, make_ring, delta):
        ring = make_ring(2)
        write(ring, 5, b"aaaa")
        write(ring, 5 + delta, b"bbbb")
        assert read_all(ring) == [(5, b"aaaa"), (5 + delta, b"bbbb")]

    @pytest.mark.parametrize("stamps", [(1000, 10), (1 << 60, 10), ((1 << 60) + 5, 1 << 60)])
    def test_backward(self, make_ring, stamps):
        ring = make_ring(4)
        for stamp in stamps:
            write(ring, stamp, b"aaaa")
        assert [s for s, _ in read_all(ring)] == list(stamps)

    def test_the_bytes_of_an_absolute_stamp(self, make_ring):
        """A time before the last one cannot be a difference."""
        ring = make_ring(2)
        write(ring, 43957512805, b"bbbb")
        write(ring, 43957512804, b"aaaa")
        page = ring.read()
        assert page[24:32] == bytes.fromhex("9f4c4d82 47010000")
        assert parse(page) == [(43957512805, b"bbbb"), (43957512804, b"aaaa")]


class TestNesting:
    def test_an_inner_event_waits_for_the_outer(self, make_ring):
        ring = make_ring(2)
        outer = ring.reserve(1, b"out.")
        inner = ring.reserve(2, b"in..")
        ring.commit(inner)
        assert ring.read() is None
        ring.commit(outer)
        assert [p for _, p in read_all(ring)] == [b"out.", b"in.."]

    def test_the_page_of_an_open_event_is_not_overwritten(self, make_ring):
        ring = make_ring(2)
        outer = ring.reserve(1, b"out.")
        while write(ring, 2, bytes(1000)):
            pass
        assert ring.stats()["commit_overrun"] == 1
        ring.commit(outer)
        events = read_all(ring)
        assert events[0] == (1, b"out.")
        assert len(events) == ring.stats()["read"]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 5000), st.integers(-1000, 1 << 28)),
        st.tuples(
            st.just("write"),
            st.sampled_from([0, 4, 8, 60, 1000]),
            st.sampled_from([0, 1, 1 << 40, -(1 << 60)]),
        ),
        st.tuples(
            st.sampled_from(["write", "open"]),
            st.integers(0, 4072),
            st.integers(-1, 1 << 28),
            st.integers(-1, 2),
        ),
        st.tuples(st.just("open"), st.integers(0, 300), st.integers(0, 100)),
        st.tuples(st.sampled_from(["commit", "read", "peek"])),
        st.tuples(st.just("clear")),
    ),
    max_size=120,
)


def run_steps(ring, steps):
    """Return everything that can be seen of a ring while it goes through `steps`."""
    seen, opened = [], []
    stamp = 1 << 61
    for kind, *rest in steps:
        if kind in ("write", "open"):
            length, delta, *cpu = rest
            stamp = (stamp + delta) % (1 << 64)
            token = ring.reserve(stamp, bytes(i & 0xFF for i in range(length)), *cpu)
            seen.append(token is None)
            if token is not None:
                opened.append(token)
            if kind == "write" and token is not None:
                ring.commit(opened.pop())
        elif kind == "commit":
            if opened:
                ring.commit(opened.pop())
        elif kind == "read":
            seen.append(ring.read())
        elif kind == "peek":
            seen.append(ring.peek())
        else:
            ring.clear()
        seen.append(ring.stats())
    return seen


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(steps=STEPS, n_pages=st.integers(2, 4), overwrite=st.booleans())
def test_the_c_ring_is_its_twin(c_core, steps, n_pages, overwrite):
    ours = run_steps(c_core.Ring(n_pages, overwrite), steps)
    theirs = run_steps(twin.Ring(n_pages, overwrite), steps)
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert a == b, i


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    events=st.lists(
        st.tuples(st.binary(max_size=300), st.integers(1, 1 << 30), st.integers(0, 3)), max_size=200
    ),
    every=st.integers(1, 50),
)
def test_what_goes_in_comes_out(make_ring, events, every):
    """read + overrun + dropped = fired, and what is read is a subsequence in order."""
    ring = make_ring(2)
    fired, got, stamp = [], [], 0
    for i, (payload, delta, cpu) in enumerate(events):
        stamp += delta
        fired.append((stamp, payload, cpu))
        assert write(ring, stamp, payload, cpu)
        if i % every == 0:
            got += read_with_cpu(ring)
    got += read_with_cpu(ring)
    stats = ring.stats()
    assert stats["read"] == len(got)
    assert stats["read"] + stats["overrun"] + stats["dropped"] == len(fired)
    remaining = iter(fired)
    for when, payload, cpu in got:
        assert any(w == when and payload[: len(p)] == p and c == cpu for w, p, c in remaining)


@pytest.mark.parametrize("damage", range(60))
def test_damaged_files_are_refused_or_read_without_harm(c_core, damage, tmp_path):
    """An attached ring is somebody else's memory: every byte of its head may be anything."""
    random_bytes = random.Random(damage)
    path = tmp_path / "ring"
    buffer = c_core.Buffer(4, directory=str(tmp_path))
    for i in range(200):
        buffer.write(struct.pack("<HBBi", 7, 0, 0, 0) + bytes(i))
    (path,) = tmp_path.glob("ring-*")
    whole = bytearray(path.read_bytes())
    for _ in range(random_bytes.randrange(1, 6)):
        whole[random_bytes.randrange(16, 1024)] = random_bytes.randrange(256)
    memory = mmap.mmap(-1, len(whole))
    memory[:] = bytes(whole)
    try:
        ring = c_core.Ring.attach(memory)
    except ValueError:
        return
    ring.stats()
    ring.peek()
    for _ in range(20):
        ring.read()
    with pytest.raises(ValueError, match="only be read"):
        ring.reserve(1, b"x")
