"""Allocations of the kernel: hand-made traces with their exact numbers, and what losses leave of them."""

from functools import partial

import pytest

from analysis.making import Schedule
from tracepoint.analysis import analyse_memory
from tracepoint.analysis.distribution import Bounds
from tracepoint.analysis.memory.machine import Fate, no_allocations
from tracepoint.errors import TracepointError

A, B = 10, 20
SITE = 0xFFFFFFFF81000010
ONE, TWO = 0xFFFF888000001000, 0xFFFF888000002000
NO_PAGE = (1 << 64) - 1


class Memory(Schedule):
    """Allocations that a test writes line by line."""

    def __init__(self, *events):
        super().__init__(*events)
        self.kallsyms = f"{SITE - 16:x} T maker\n{SITE + 64:x} t end\n"

    def alloc(self, us, ptr, event="kmalloc", cpu=0, tid=A):
        values = {"call_site": SITE, "ptr": ptr, "bytes_req": 100, "bytes_alloc": 128}
        self.add(us, cpu, f"kmem:{event}", values, tid)

    def free(self, us, ptr, event="kfree", cpu=0):
        self.add(us, cpu, f"kmem:{event}", {"ptr": ptr}, B)

    def pages(self, us, pfn, order=0):
        self.add(us, 0, "kmem:mm_page_alloc", {"pfn": pfn, "order": order}, A)

    def free_pages(self, us, pfn, order=0):
        self.add(us, 0, "kmem:mm_page_free", {"pfn": pfn, "order": order}, B)


@pytest.fixture
def analyse(analyse_made):
    return partial(analyse_made, analyse_memory)


def fates(report):
    return list(report.parts.all_rows(no_allocations()).fate)


def lifetimes(report):
    return [row["dur"] // 1000 if row["dur"] >= 0 else -1 for row in report.allocation]


def test_objects_live_until_they_are_freed_on_any_cpu(analyse):
    made = Memory()
    made.alloc(10, ONE)
    made.alloc(11, TWO, "kmem_cache_alloc", cpu=1)
    made.free(15, ONE, cpu=1)
    made.alloc(16, ONE)
    report = analyse(made)
    assert lifetimes(report) == [5, -1, -1]
    assert {
        (row["kind"], row["function"]): (row["n"].low, row["given"].low, row["n_open"].low)
        for row in report.facts["sites"]
    } == {
        ("kmalloc", "maker"): (2, 256, 1),
        ("cache", "maker"): (1, 128, 1),
    }
    assert report.facts["tasks"][0]["open_bytes"].low == 128


def test_kfree_frees_objects_of_caches_and_ignores_nothing(analyse):
    made = Memory()
    made.alloc(10, ONE, "kmem_cache_alloc")
    made.free(12, ONE)
    made.free(13, 0)
    made.free(14, 16)
    made.alloc(15, 0)
    report = analyse(made)
    assert lifetimes(report) == [2]
    assert (report.machine.n_orphans, report.machine.n_failed) == (0, 1)


def test_an_address_that_is_given_out_again_was_freed(analyse):
    made = Memory()
    made.alloc(10, ONE)
    made.alloc(20, ONE)
    made.free(21, ONE)
    made.free(22, TWO)
    report = analyse(made)
    assert lifetimes(report) == [-1, 1]
    assert (report.not_freed, fates(report), report.machine.n_orphans) == ([], [Fate.REUSED, Fate.FREED], 1)


def test_an_address_that_is_given_out_again_twice_is_open_once(analyse):
    made = Memory()
    for us in (10, 20, 30):
        made.alloc(us, ONE)
    report = analyse(made)
    assert (report.not_freed, fates(report)) == ([2], [Fate.REUSED, Fate.REUSED, Fate.KEPT])


def test_a_loss_may_have_freed_what_was_open(analyse):
    made = Memory()
    made.alloc(10, ONE)
    made.lose(0, 2)
    made.alloc(20, TWO)
    made.free(21, ONE)
    report = analyse(made)
    assert lifetimes(report) == [-1, -1]
    assert report.not_freed == [1]
    assert report.facts["sites"][0]["n"] == Bounds(2, 4)
    assert fates(report) == [Fate.CUT, Fate.KEPT]
    made.alloc(22, TWO)
    made.free(23, TWO)
    # What may be hidden began at 10 us at the earliest, and the trace ends at 23 us.
    assert analyse(made).facts["lifetime_ns"]["kmalloc"]["max"] == Bounds(1000, 13000)


def test_pages_end_with_their_block(analyse):
    made = Memory()
    made.pages(10, 64, order=2)
    made.pages(11, 128)
    made.pages(12, NO_PAGE)
    made.free_pages(13, 66)
    made.free_pages(14, 64)
    made.free_pages(15, 128)
    made.free_pages(16, 300)
    report = analyse(made)
    assert lifetimes(report) == [4, 4]
    assert (report.machine.n_parts, report.machine.n_failed, report.machine.n_orphans) == (2, 1, 1)
    assert report.facts["sites"][0]["given"] == Bounds(5 * 4096, 5 * 4096)


def test_hostile_numbers_are_no_error(analyse):
    made = Memory()
    made.pages(1, 5, order=0xFFFFFFFF)
    made.free_pages(2, NO_PAGE, order=0xFFFFFFFF)
    made.add(3, 0, "kmem:kmalloc", {"ptr": NO_PAGE, "bytes_req": NO_PAGE, "bytes_alloc": NO_PAGE}, A)
    assert lifetimes(analyse(made)) == [-1]


def test_without_events_there_is_nothing(analyse):
    made = Schedule("sched:sched_switch")
    made.switch(1, 0, A, "S", B)
    with pytest.raises(TracepointError, match="no events of memory;"):
        analyse(made)
