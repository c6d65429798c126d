"""Traps: hand-made traces with their exact numbers, and what losses leave of them."""

from functools import partial

import pytest

from analysis.making import Schedule
from tracepoint.analysis import analyse_traps
from tracepoint.analysis.distribution import Bounds
from tracepoint.errors import TracepointError

A, B = 10, 20
USER, SIGNAL = "exceptions:page_fault_user", "signal:signal_generate"
TIMER = "irq_vectors:local_timer"
SIGFPE, SIGSEGV, SIGTERM, MAPERR, INTDIV = 8, 11, 15, 1, 1


@pytest.fixture
def analyse(analyse_made):
    return partial(analyse_made, analyse_traps)


def send(made, us, tid, number, code, by=None):
    made.add(us, 0, SIGNAL, {"sig": number, "code": code, "pid": tid}, tid if by is None else by)


def test_a_signal_belongs_to_the_last_trap_that_can_make_it(analyse):
    made = Schedule()
    made.add(10, 0, USER, {}, A)
    made.add(11, 0, USER, {}, B)
    made.add(12, 0, USER, {}, A)
    send(made, 13, A, SIGSEGV, MAPERR)
    report = analyse(made)
    assert [row["trap_id"] for row in report.signal] == [2]
    (row,) = report.facts["signals"]
    assert (row["signal"], row["code"], row["trap"], row["likely"]) == (
        "SIGSEGV", "SEGV_MAPERR", "PF page fault, user", "PF",
    )  # fmt: skip


def test_a_trap_without_an_event_is_not_another_one(analyse):
    made = Schedule()
    made.add(10, 0, USER, {}, A)
    send(made, 11, A, SIGFPE, INTDIV)
    report = analyse(made)
    assert [row["trap_id"] for row in report.signal] == [None]
    assert report.facts["signals"][0]["likely"] == "DE"


def test_signals_of_others_are_no_traps(analyse):
    made = Schedule()
    made.add(10, 0, USER, {}, A)
    send(made, 11, A, SIGSEGV, 0)
    send(made, 12, A, SIGSEGV, MAPERR, by=B)
    send(made, 13, A, SIGTERM, 0x80)
    assert analyse(made).signals == []


def test_a_loss_may_hide_the_trap(analyse):
    made = Schedule()
    made.add(10, 0, USER, {}, A)
    made.lose(0, 2)
    send(made, 11, A, SIGSEGV, MAPERR)
    report = analyse(made)
    assert [row["trap_id"] for row in report.signal] == [None]
    assert report.facts["vectors"][0]["n"] == Bounds(1, 3)


def test_interrupts_end_on_their_cpu(analyse):
    made = Schedule()
    made.add(10, 0, f"{TIMER}_entry", {"vector": 236}, A)
    made.add(11, 1, f"{TIMER}_entry", {"vector": 236}, A)
    made.add(13, 0, f"{TIMER}_exit", {"vector": 236}, A)
    made.add(19, 1, f"{TIMER}_exit", {"vector": 236}, A)
    report = analyse(made)
    assert [row["dur"] for row in report.trap] == [3000, 8000]
    assert {row["what"]: row["vector"] for row in report.facts["vectors"]} == {"local_timer": 236}


def test_without_events_there_is_nothing(analyse):
    made = Schedule("sched:sched_switch")
    made.switch(1, 0, A, "S", B)
    with pytest.raises(TracepointError, match="no events of traps"):
        analyse(made)
