"""The quick way of recording integers and strings writes what the general way writes, byte for byte."""

import itertools
import random
import struct
import sys
import threading
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from effort import examples
from tracepoint.filter.parse import parse_filter
from tracepoint.filter.program import compile_filter
from tracepoint.layout.format import EventFormat, FieldFormat
from tracepoint.record.page import read_page
from tracepoint.runtime.rings.ring import LAYOUT

INT, STRING, SIGNED = 0, 6, 1
NUMBERS = itertools.count()
UNLIMITED = settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])


def records(buffer):
    """Every record with its time, without the rings' pages."""
    found = []
    for serial, *_ in buffer.rings():
        while (page := buffer.read(serial)) is not None:
            found += [(when, page[at : at + size]) for when, at, size in read_page(page, 0, LAYOUT).records]
    return found


def lay_out(kinds):
    """Return (fields, size, dynamic) of fields as the kernel's struct has them: aligned, padded at the end."""
    fields, at, most = [], 8, 4
    for number, (kind, size, flags) in enumerate(kinds):
        at = -(-at // size) * size
        fields.append((f"f{number}", kind, flags, at, size, 1, number))
        at += size
        most = max(most, size)
    return tuple(fields), -(-at // most) * most, at


def pair(core, kinds, **options):
    """Two events of one declaration with a buffer each: the second has a probe and goes the general way."""
    fields, size, dynamic = lay_out(kinds)
    names = tuple(f[0] for f in fields)
    made = []
    for extra in ((), (("probe", lambda *_: None),)):
        buffer = core.Buffer(16, clock="counter" if not options else options["clock"])
        event = core.Tracepoint(f"quick:e{next(NUMBERS)}", names, fields, size, dynamic)
        event.set_entries((("record", buffer, 7, options.get("filter")), *extra))
        made.append((event, buffer))
    return made


KINDS = st.lists(
    st.sampled_from(
        [(INT, size, flags) for size in (1, 2, 4, 8) for flags in (0, SIGNED)] + [(STRING, 4, 0)]
    ),
    min_size=1,
    max_size=9,
)
VALUES = st.one_of(
    st.integers(-(2**70), 2**70),
    st.integers(-3, 300),
    st.sampled_from([2**30 - 1, 2**30, -(2**30), 2**31, 2**63, 2**64 - 1, True, None, 1.5]),
    st.text(max_size=40),
    st.text(st.characters(max_codepoint=127), max_size=150),
)


def test_an_event_without_fields_carries_no_bytes_of_older_records(c_core):
    """A ring that has come round is full of old bytes, of which every event must clear its own."""
    (full, buffer), _ = pair(c_core, [(INT, 8, 0)] * 3, clock="mono")
    bare = c_core.Tracepoint(f"quick:e{next(NUMBERS)}", (), (), 8, 8)
    bare.set_entries((("record", buffer, 8, None),))
    for _ in range(5_000):
        full(2**29 - 1, 2**29 - 1, 2**29 - 1)
    for _ in range(20_000):
        bare()
    found = {data[8:] for _, data in records(buffer) if data[0] == 8}
    assert found == {bytes(4)}


def test_another_thread_runs_while_pages_are_copied(c_core):
    """It gets its turn between the pages of a large ring, and between those of one that a file holds."""
    fields, size, dynamic = lay_out([(STRING, 4, 0)])
    buffer = c_core.Buffer(8_000)
    event = c_core.Tracepoint(f"quick:e{next(NUMBERS)}", ("s",), fields, size, dynamic)
    event.set_entries((("record", buffer, 7, None),))
    for _ in range(8_000):
        event("x" * 3_000)
    ring = c_core.Ring(8_000)
    for stamp in range(8_000):
        ring.commit(ring.reserve(stamp, bytes(3_000)))
    ((serial, *_),) = buffer.rings()
    turns, is_over = [0], threading.Event()

    def take_turns():
        while not is_over.is_set():
            turns[0] += 1
            time.sleep(0)

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=take_turns)
    thread.start()
    try:
        # Nobody is made to give way: only who lets go of the lock does.
        sys.setswitchinterval(10)
        for peek in (lambda: buffer.peek(serial), ring.peek):
            before = turns[0]
            pages = peek()
            taken = turns[0] - before
            assert len(pages) >= 7_999
            assert taken > 0
    finally:
        sys.setswitchinterval(interval)
        is_over.set()
        thread.join()


@UNLIMITED
@given(st.data())
def test_the_same_bytes_and_faults(c_core, data):
    kinds = data.draw(KINDS)
    (quick, quick_buffer), (general, general_buffer) = pair(c_core, kinds, clock="mono")
    for _ in range(6):
        values = data.draw(
            st.tuples(*(st.text(max_size=9) if k[0] == STRING else st.integers(-9, 9) for k in kinds))
        )
        if data.draw(st.booleans()):
            values = data.draw(st.tuples(*(VALUES for _ in kinds)))
        quick(*values)
        general(*values)
    assert [r for _, r in records(quick_buffer)] == [r for _, r in records(general_buffer)]
    assert quick.n_faults == general.n_faults
    c_core.clear_faults()


@pytest.mark.parametrize(
    "kinds",
    [
        [(INT, 8, 0)] * 3,
        [(INT, 4, 0), (STRING, 4, 0)],
        [(STRING, 4, 0), (INT, 1, 0)],
        [(STRING, 4, 0), (INT, 8, 0), (STRING, 4, 0)],
        [(INT, 1, 0)] * 2,
    ],
)
@pytest.mark.parametrize("clock", ["local", "mono", "x86-tsc", "boot"])
def test_many_pages(c_core, kinds, clock):
    """Over the ends of pages, with marks of the CPU and the last bytes of each."""
    if clock == "x86-tsc":
        try:
            c_core.Buffer(2, clock=clock)
        except ValueError:
            pytest.skip("this processor has no time stamp counter")
    (quick, quick_buffer), (general, general_buffer) = pair(c_core, kinds, clock=clock)
    dice = random.Random(7)
    for i in range(1500):
        text = "abcdefghij"[: dice.randrange(11)] * dice.randrange(12)
        values = [text if k[0] == STRING else i & 0xFF if k[1] == 1 else i for k in kinds]
        quick(*values)
        general(*values)
    ours, theirs = records(quick_buffer), records(general_buffer)
    assert [r for _, r in ours] == [r for _, r in theirs]
    assert len(ours) + quick_buffer.stats()["overrun"] == 1500
    assert [when for when, _ in ours] == sorted(when for when, _ in ours)


def test_a_filter_sees_the_record(c_core):
    layout = EventFormat("b", "e", (FieldFormat("b", "int", 12, 4, True),), "", n_common=0)
    program = c_core.Filter(compile_filter(parse_filter("b > 100", layout)).pack())
    kinds = [(INT, 4, SIGNED), (INT, 4, SIGNED)]
    both = pair(c_core, kinds, clock="mono", filter=program)
    for event, buffer in both:
        for b in (1, 101, -5, 200):
            event(0, b)
        assert [struct.unpack_from("<i", r, 12)[0] for _, r in records(buffer)] == [101, 200]


def test_more_and_fewer_arguments_and_names(c_core):
    (event, buffer), _ = pair(c_core, [(INT, 4, 0), (INT, 4, 0)], clock="mono")
    event(1, f1=2)
    event(f1=2, f0=1)
    event(1, 2)
    assert len({r for _, r in records(buffer)}) == 1
    event(1)
    event(1, 2, 3)
    assert event.n_faults == 2
    c_core.clear_faults()


def test_off_and_on(c_core):
    (event, buffer), _ = pair(c_core, [(INT, 4, 0)], clock="mono")
    event(1)
    buffer.is_on = False
    event(2)
    buffer.is_on = True
    event(3)
    event.set_entries(())
    assert not event
    event(4)
    assert [struct.unpack_from("<I", r, 8)[0] for _, r in records(buffer)] == [1, 3]


@pytest.mark.thorough
@pytest.mark.parametrize("kinds", [[(INT, 8, 0)], [(INT, 8, 0), (STRING, 4, 0)], [(STRING, 4, 0)] * 2])
def test_none_is_lost_while_entries_change(c_core, kinds):
    """Threads fire while what an event records into changes, and goes: without the GIL at the same time."""
    fields, size, dynamic = lay_out(kinds)
    event = c_core.Tracepoint(f"quick:e{next(NUMBERS)}", tuple(f[0] for f in fields), fields, size, dynamic)
    everything = c_core.Buffer(4_000, overwrite=False, clock="mono")
    layout = EventFormat("b", "e", (FieldFormat("common_pid", "int", 4, 4, True),), "", n_common=0)
    passes = c_core.Filter(compile_filter(parse_filter("common_pid != 0", layout)).pack())
    always, n_events, n_threads, n_probed = ("record", everything, 7, None), 50_000, 3, itertools.count()
    event.set_entries((always,))
    values = [n if k[0] == INT else "text" for n, k in enumerate(kinds, 1)]

    def fire():
        for _ in range(n_events):
            event(*values)

    threads = [threading.Thread(target=fire) for _ in range(n_threads)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        event.set_entries((always, ("record", c_core.Buffer(4), 8, None)))
        event.set_entries((("record", everything, 7, passes),))
        event.set_entries((always, ("probe", lambda *_: next(n_probed))))
        event.set_entries((always,))
        c_core.synchronize()
    for thread in threads:
        thread.join()
    found = [data for _, data in records(everything)]
    assert (len(found), everything.stats()["dropped"], event.n_faults) == (n_events * n_threads, 0, 0)
    assert len({data[:4] + data[8:] for data in found}) == 1


class TestLocalClock:
    """It tells CLOCK_MONOTONIC's time, whatever it is read from."""

    def test_it_follows_clock_monotonic(self, c_core):
        buffer = c_core.Buffer(2, clock="local")
        end = time.monotonic_ns() + 1_500_000_000
        worst, last = 0, 0
        while time.monotonic_ns() < end:
            # The least of some: who is interrupted between two readings has no say.
            off = 1 << 60
            for _ in range(5):
                before = time.monotonic_ns()
                told = buffer.now()
                after = time.monotonic_ns()
                assert told >= last - 1000
                last = told
                off = min(off, max(before - told, told - after, 0))
            worst = max(worst, off)
            time.sleep(0.002)
        assert worst < 1000

    @pytest.mark.thorough
    def test_it_never_goes_back_in_a_ring(self, c_core):
        fields = (("n", INT, 0, 8, 8, 1, 0),)
        event = c_core.Tracepoint("quick:back", ("n",), fields, 16, 16)
        buffer = c_core.Buffer(3000, clock="local")
        event.set_entries((("record", buffer, 7, None),))
        end = time.monotonic() + 0.2
        while time.monotonic() < end:
            for n in range(1000):
                event(n)
        stamps = [when for when, _ in records(buffer)]
        assert len(stamps) > 1000
        assert all(a <= b for a, b in itertools.pairwise(stamps))
