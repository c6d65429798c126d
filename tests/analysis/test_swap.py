"""Swapping and reclaim: hand-made traces with their exact numbers, and what losses leave of them."""

from functools import partial

import pytest

from analysis.making import Schedule
from tracepoint.analysis import analyse_swap
from tracepoint.analysis.distribution import Bounds
from tracepoint.errors import TracepointError

A, B, KSWAPD = 10, 20, 42
IN, OUT = "kmem:mm_page_swap_in", "kmem:mm_page_swap_out"
BEGIN, END = (f"vmscan:mm_vmscan_direct_reclaim_{end}" for end in ("begin", "end"))
WAKE, SLEEP = (f"vmscan:mm_vmscan_kswapd_{end}" for end in ("wake", "sleep"))
DELETE, ADD = (f"filemap:mm_filemap_{end}_page_cache" for end in ("delete_from", "add_to"))
WRITE = "vmscan:mm_vmscan_write_folio"
HUGE = (1 << 64) - 1


@pytest.fixture
def analyse(analyse_made):
    return partial(analyse_made, analyse_swap)


def counts(report, section, key):
    return {row[key]: row["n"].low for row in report.facts[section]}


def test_pages_come_back_from_the_slots_that_they_got(analyse):
    made = Schedule()
    made.add(10, 0, OUT, {"nr_pages": 4, "entry": 100}, KSWAPD)
    made.add(15, 0, IN, {"entry": 102, "major": 1}, A)
    made.add(16, 0, IN, {"entry": 100, "major": 0}, B)
    made.add(17, 0, IN, {"entry": 7, "major": 1}, A)
    report = analyse(made)
    assert counts(report, "pages", "what") == {"in": 3, "in, major": 2, "in, minor": 1, "out": 4}
    assert report.facts["away_ns"]["in"]["sum"] == Bounds(11_000, 11_000)
    assert [(row["tid"], row["n_in"].low, row["n_major"].low, row["n_out"].low) for row in report.facts["tasks"]] == [
        (KSWAPD, 0, 0, 4), (A, 2, 2, 0), (B, 1, 0, 0),
    ]  # fmt: skip


def test_reclaim_is_of_a_task_wherever_it_runs(analyse):
    made = Schedule()
    made.add(10, 0, BEGIN, {"order": 0}, A)
    made.add(11, 1, BEGIN, {"order": 0}, B)
    made.add(14, 1, END, {"nr_reclaimed": 32}, A)
    made.add(20, 1, END, {"nr_reclaimed": 8}, B)
    made.add(30, 0, WAKE, {"nid": 0}, KSWAPD)
    made.add(35, 0, WAKE, {"nid": 0}, KSWAPD)
    made.add(50, 0, SLEEP, {"nid": 0}, KSWAPD)
    made.add(60, 0, BEGIN, {"order": 0}, A)
    report = analyse(made)
    assert [row["dur"] for row in report.reclaim] == [4000, 9000, 20_000, -1]
    assert {row["kind"]: (row["n_freed"], row["time_ns"].low) for row in report.facts["reclaim"]} == {
        "direct": (Bounds(40, 40), 13_000),
        "kswapd": (None, 20_000),
    }


def test_a_loss_hides_ends_of_reclaim(analyse):
    made = Schedule()
    made.add(10, 0, BEGIN, {}, A)
    made.add(12, 0, END, {"nr_reclaimed": 1}, A)
    made.add(20, 0, BEGIN, {}, A)
    made.lose(0, 3)
    made.add(40, 0, END, {"nr_reclaimed": 1}, A)
    report = analyse(made)
    assert [row["dur"] for row in report.reclaim] == [2000, -1]
    assert report.facts["reclaim_ns"]["direct"]["n"] == Bounds(1, 5)
    assert report.facts["reclaim"][0]["n"] == Bounds(2, 5)


def test_what_is_written_is_told_by_its_flags(analyse):
    made = Schedule()
    for n, flags in enumerate((1 | 8, 1 | 8, 2 | 4, 16 | 8, 0)):
        made.add(n, 0, WRITE, {"pfn": n, "reclaim_flags": flags}, A)
    found = counts(analyse(made), "writes", "flags")
    assert found == {"ANON|ASYNC": 2, "FILE|SYNC": 1, "MIXED|ASYNC": 1, "none": 1}


def test_a_page_of_a_file_that_comes_back_has_a_distance(analyse):
    made = Schedule()
    for n, index in enumerate((1, 2, 3)):
        made.add(n, 0, DELETE, {"i_ino": 5, "s_dev": 8, "index": index}, KSWAPD)
    made.add(5, 0, ADD, {"i_ino": 5, "s_dev": 8, "index": 1}, A)
    made.add(6, 0, ADD, {"i_ino": 5, "s_dev": 8, "index": 1}, A)
    made.add(7, 0, ADD, {"i_ino": 5, "s_dev": 9, "index": 2}, A)
    report = analyse(made)
    assert list(report.distances.values) == [2]


def test_a_loss_hides_distances_and_when_pages_left(analyse):
    made = Schedule()
    made.add(1, 0, DELETE, {"i_ino": 5, "s_dev": 8, "index": 1}, KSWAPD)
    made.add(2, 0, OUT, {"nr_pages": 1, "entry": 9}, KSWAPD)
    made.lose(0, 1)
    made.add(5, 0, ADD, {"i_ino": 5, "s_dev": 8, "index": 1}, A)
    for n, slot in enumerate((9, 100, 101)):
        made.add(6 + n, 0, IN, {"entry": slot, "major": 1}, A)
    facts = analyse(made).facts
    file, away = facts["refault_pages"]["file"], facts["away_ns"]["in"]
    # Others may have left in the loss, between the page and its return: two samples of at most 1 + 2^20 pages,
    # as an event can be of a large folio.
    assert (file["n"], file["sum"]) == (Bounds(0, 2), Bounds(0, 2 * (1 + (1 << 20))))
    # Each page may have got its slot in the loss, also that which had another before, and one more may be back.
    assert away["n"] == Bounds(0, 4)


def test_sizes_say_what_programs_have_swapped_out(analyse):
    made = Schedule()
    for n, (member, size) in enumerate(((2, 4096), (2, 16384), (1, 999), (2, 8192))):
        made.add(n, 0, "kmem:rss_stat", {"mm_id": 7, "member": member, "size": size}, A)
    report = analyse(made)
    assert (report.machine.grown, report.machine.shrunk) == (12288, 8192)
    assert any("at least 12.0 KiB" in note for note in report.notes())


def test_hostile_numbers_are_no_error(analyse):
    made = Schedule()
    made.add(1, 0, OUT, {"nr_pages": HUGE, "entry": HUGE}, A)
    made.add(2, 0, IN, {"entry": HUGE, "major": 255}, A)
    made.add(3, 0, BEGIN, {}, A)
    made.add(4, 0, END, {"nr_reclaimed": HUGE}, A)
    made.add(5, 0, DELETE, {"i_ino": HUGE, "s_dev": -1, "index": HUGE, "order": 255}, A)
    report = analyse(made)
    assert counts(report, "pages", "what")["in"] == 1


def test_without_events_there_is_nothing(analyse):
    made = Schedule("sched:sched_switch")
    made.switch(1, 0, A, "S", B)
    with pytest.raises(TracepointError, match="no events of swap;"):
        analyse(made)
