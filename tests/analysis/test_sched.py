"""Scheduling: hand-made traces with their exact numbers, and what losses leave of them."""

from functools import partial

import pytest

import tracepoint as tp
from analysis.making import FORMATS, Schedule
from tracepoint.analysis import analyse_sched
from tracepoint.analysis.sched.rows import RowFlag
from tracepoint.errors import TracepointError

A, B, C, D, P = 10, 20, 30, 40, 5
US = 1000

pytestmark = pytest.mark.usefixtures("form")


@pytest.fixture
def analyse(analyse_made):
    return partial(analyse_made, analyse_sched)


def states(report, tid, generation=0):
    """The rows of a thread: start, length and state, times in us; -1 for a row without an end."""
    (utid,) = [row["utid"] for row in report.thread if (row["tid"], row["generation"]) == (tid, generation)]
    return [
        (row["ts"] // US, row["dur"] // US if row["dur"] >= 0 else -1, row["state"])
        for row in report.thread_state
        if row["utid"] == utid
    ]


def runs(report, cpu=0):
    """What a CPU ran: start, length, task and state at the end; -1 for a row without an end."""
    tids = {row["utid"]: row["tid"] for row in report.thread}
    return [
        (row["ts"] // US, row["dur"] // US if row["dur"] >= 0 else -1, tids[row["utid"]], row["end_state"])
        for row in report.sched
        if row["cpu"] == cpu
    ]


def waits(report, *causes):
    """Latencies in us, in the order of their lengths."""
    return [ns // US for ns in report.latency(*causes).values]


def total(report, tid, state, generation=0):
    return sum(dur for _, dur, s in states(report, tid, generation) if s == state and dur > 0)


def task(report, tid, generation=0):
    (found,) = [t for t in report.tasks if (t.tid, t.generation) == (tid, generation)]
    return found


def x1(*events, **options):
    s = Schedule(*events, **options)
    s.switch(0, 0, 0, "R", A)
    s.switch(0, 1, 0, "R", B)
    s.switch(100, 0, A, "S", 0)
    s.waking(200, 1, A, by=B)
    s.wakeup(210, 1, A, by=B)
    s.switch(230, 0, 0, "R", A)
    s.switch(330, 0, A, "R+", C)
    s.switch(380, 0, C, "S", A)
    s.switch(480, 0, A, "R", D)
    s.switch(540, 0, D, "D", A)
    s.switch(600, 0, A, "X", 0)
    return s


@pytest.mark.parametrize("is_big_endian", [False, True])
def test_1_wake_up_preemption_and_yield(analyse, is_big_endian):
    report = analyse(x1(is_big_endian=is_big_endian))
    assert states(report, A) == [
        (0, 100, "Running"),
        (100, 100, "S"),
        (200, 30, "R"),
        (230, 100, "Running"),
        (330, 50, "R+"),
        (380, 100, "Running"),
        (480, 60, "R"),
        (540, 60, "Running"),
        (600, -1, "X"),
    ]
    assert [waits(report, cause) for cause in ("wake-up", "preemption", "yield")] == [[30], [50], [60]]
    used = task(report, A)
    assert used.run == (360 * US, 360 * US)
    assert (used.runnable, used.asleep) == (140 * US, {"S": 100 * US})
    assert (used.voluntary, used.involuntary) == (2, 2)
    assert (report.cpus[0].idle, report.cpus[0].busy) == (130 * US, 470 * US)
    (waker,) = [row["waker_utid"] for row in report.thread_state if row["waker_utid"] is not None]
    assert report.thread.to_dicts(waker, waker + 1)[0]["tid"] == B
    assert runs(report)[:3] == [(0, 100, A, "S"), (100, 130, 0, "R"), (230, 100, A, "R+")]


def test_1_without_waking_begins_at_the_wake_up(analyse):
    report = analyse(x1("sched:sched_switch", "sched:sched_wakeup"))
    assert total(report, A, "S") == 110
    assert waits(report, "wake-up") == [20]
    assert "sched:sched_waking" in [event.name for event in report.missing]


def test_1_with_switches_only_has_no_wake_up_latency(analyse):
    report = analyse(x1("sched:sched_switch"))
    assert total(report, A, "S") == 130
    assert waits(report) == [50, 60]
    assert report.n_unseen_wakes == 0


def test_2_a_waking_before_the_switch_to_sleep(analyse):
    s = Schedule()
    s.switch(0, 0, 0, "R", A)
    s.waking(98, 1, A, by=B)
    s.switch(100, 0, A, "S", 0)
    s.wakeup(101, 1, A, by=B)
    s.switch(130, 0, 0, "R", A)
    s.switch(200, 0, A, "S", 0)
    report = analyse(s)
    assert waits(report, "wake-up") == [30]
    assert states(report, A)[:3] == [(0, 100, "Running"), (100, 30, "R"), (130, 70, "Running")]
    assert len(report.spurious_sched_wakeup) == 0
    (row,) = [row for row in report.thread_state if row["state"] == "R"]
    assert report.thread.to_dicts()[row["waker_utid"]]["tid"] == B


def test_3_spurious_wakings(analyse):
    s = Schedule()
    s.switch(0, 0, 0, "R", A)
    s.waking(50, 1, A)
    s.wakeup(51, 1, A)
    s.switch(100, 0, A, "S", 0)
    s.waking(200, 1, A)
    s.waking(205, 1, A)
    s.switch(230, 0, 0, "R", A)
    s.switch(300, 0, A, "S", 0)
    report = analyse(s)
    assert waits(report) == [30]
    assert total(report, A, "S") == 100
    assert task(report, A).run == (170 * US, 170 * US)
    assert [ts // US for ts in report.spurious_sched_wakeup["ts"].tolist()] == [50, 205]


def test_4_a_sleep_that_ends_without_a_wake_up(analyse):
    s = Schedule()
    s.switch(0, 0, 0, "R", A)
    s.waking(1, 0, C)
    s.switch(100, 0, A, "S", C)
    s.switch(140, 0, C, "S", A)
    s.switch(200, 0, A, "S", 0)
    report = analyse(s)
    assert (100, 40, "S") in states(report, A)
    (flags,) = [row["flags"] for row in report.thread_state if row["dur"] == 40 * US and row["state"] == "S"]
    assert flags == RowFlag.UNSEEN_WAKE
    assert waits(report) == [99]
    assert report.n_unseen_wakes == 1
    # The latency of A is somewhere from 0 to 40 us.
    latency = report.latency()
    assert latency.count == (1, 2)
    assert latency.sum == (99 * US, 139 * US)
    assert "S" not in task(report, A).asleep


def test_5_a_switch_is_missing(analyse):
    s = Schedule()
    s.switch(0, 0, 0, "R", A)
    s.switch(200, 0, C, "S", A)
    s.switch(300, 0, A, "S", 0)
    report = analyse(s)
    assert runs(report)[:2] == [(0, -1, A, None), (200, 100, A, "S")]
    assert states(report, A)[:2] == [(0, -1, "Running"), (200, 100, "Running")]
    assert report.n_lost_switches == 1
    # In the first 200 us A and C ran, and nobody knows how long each.
    assert task(report, A).run == (100 * US, 300 * US)
    assert task(report, C).run == (0, 200 * US)


def test_6_a_task_on_two_cpus_at_once(analyse):
    s = Schedule()
    s.switch(61, 0, 0, "R", A)
    s.switch(90, 1, 0, "R", A)
    s.switch(95, 0, A, "S", 0)
    s.switch(150, 1, A, "S", 0)
    report = analyse(s)
    assert report.overlap_ns == 5 * US
    assert [use.busy // US for use in report.cpus] == [34, 60]
    assert task(report, A).run == (89 * US, 89 * US)
    assert states(report, A) == [(61, 29, "Running"), (90, 60, "Running"), (150, -1, "S")]


def test_7_an_id_is_used_again(analyse):
    s = Schedule()
    s.switch(0, 0, 0, "R", A)
    s.add(50, 0, "sched:sched_process_exit", {"pid": A}, A)
    s.switch(100, 0, A, "Z", P)
    s.add(120, 0, "sched:sched_process_free", {"pid": A}, P)
    s.add(150, 0, "task:task_newtask", {"pid": A, "comm": "new"}, P)
    s.wakeup_new(160, 0, A, by=P)
    s.switch(200, 0, P, "S", A)
    s.switch(300, 0, A, "S", 0)
    report = analyse(s)
    assert states(report, A, 0) == [(0, 100, "Running"), (100, 20, "Z")]
    assert states(report, A, 1) == [(160, 40, "R"), (200, 100, "Running"), (300, -1, "S")]
    assert waits(report, "new task") == [40]
    first, second = (row for row in report.thread if row["tid"] == A)
    assert first["end_ts"] == 120 * US
    assert second["start_ts"] == 150 * US


def test_an_id_is_used_again_without_a_fork(analyse):
    s = Schedule()
    s.switch(0, 0, 0, "R", A)
    s.switch(100, 0, A, "X", 0)
    s.waking(200, 0, A)
    s.switch(220, 0, 0, "R", A)
    s.switch(300, 0, A, "S", 0)
    report = analyse(s)
    assert states(report, A, 0)[-1] == (100, -1, "X")
    assert states(report, A, 1)[0] == (200, 20, "R")


def test_an_exec_in_another_thread_goes_on_under_the_id_of_the_process(analyse):
    s = Schedule()
    s.switch(0, 0, 0, "R", B)
    s.switch(10, 0, B, "S", A)
    s.add(50, 0, "sched:sched_process_exec", {"pid": B, "old_pid": A}, A)
    s.switch(100, 0, B, "S", 0)
    report = analyse(s)
    assert runs(report)[1] == (10, 90, B, "S")
    assert states(report, B, 1) == [(10, 90, "Running"), (100, -1, "S")]
    assert report.n_lost_switches == 0


def test_no_exec_makes_a_task_an_idle_one(analyse):
    s = Schedule()
    s.switch(10, 0, 0, "R", A)
    s.add(50, 0, "sched:sched_process_exec", {"pid": 0, "old_pid": A}, A)
    s.switch(100, 0, A, "S", 0)
    report = analyse(s)
    assert runs(report)[0] == (10, 90, A, "S")
    assert (report.cpus[0].busy, report.tasks[0].tid) == (90 * US, A)


def test_idle_tasks_of_cpus_are_threads_of_their_own(analyse):
    report = analyse(x1())
    assert [row["name"] for row in report.thread if row["is_idle"]] == ["swapper/0", "swapper/1"]


def test_migrations_and_changes_of_cpu_are_counted_apart(analyse):
    s = Schedule()
    s.switch(0, 0, 0, "R", A)
    s.switch(10, 0, A, "R+", 0)
    for at in (11, 12, 13):
        s.add(at, 0, "sched:sched_migrate_task", {"pid": A, "orig_cpu": 0, "dest_cpu": 1})
    s.switch(20, 1, 0, "R", A)
    s.switch(30, 1, A, "S", 0)
    found = task(analyse(s), A)
    assert (found.migrations, found.cpu_changes) == (3, 1)


def test_wakings_in_interrupts_say_so(analyse):
    s = Schedule()
    s.switch(0, 0, 0, "R", A)
    for at, flags in ((20, 0x08), (60, 0x10), (100, 0x01)):
        s.switch(at - 10, 0, A, "S", 0)
        s.waking(at, 1, A, flags=flags)
        s.switch(at + 10, 0, 0, "R", A)
    report = analyse(s)
    found = [row["irq_context"] for row in report.thread_state if row["state"] == "R"]
    assert found == [1, 1, 0]


def test_a_waking_of_a_task_that_runs_since_before_the_trace_is_spurious(analyse):
    s = Schedule()
    s.waking(10, 1, A)
    s.switch(50, 0, A, "S", 0)
    s.wakeup(51, 1, A)
    s.switch(60, 0, 0, "R", A)
    s.switch(90, 0, A, "S", 0)
    report = analyse(s)
    assert waits(report) == [10]
    assert states(report, A)[0] == (10, -1, "R")


def lossy(n_lost):
    """Samples of 10, 20 and 40 us on CPU 0, between them a loss of CPU 1 while A sleeps and B waits."""
    s = Schedule()
    s.switch(0, 0, 0, "R", A)
    s.switch(1, 1, 0, "R", B)
    s.switch(10, 0, A, "S", 0)
    s.waking(20, 1, A, by=B)
    s.switch(30, 0, 0, "R", A)
    s.switch(100, 0, A, "R+", C)
    s.lose(1, n_lost)
    s.switch(200, 1, D, "S", 0)
    s.switch(220, 0, C, "R", A)
    s.switch(300, 0, A, "R", C)
    s.switch(340, 0, C, "S", A)
    s.switch(400, 0, A, "S", 0)
    return s


def test_a_loss_ends_what_it_can_have_changed(analyse):
    report = analyse(lossy(3))
    assert report.coverage.gaps == {1: [(20 * US, 200 * US, 3)]}
    # B may have left its CPU at any time after the last record before the gap.
    assert runs(report, 1)[:2] == [(1, 19, B, None), (200, -1, 0, None)]
    assert states(report, B) == [(1, 19, "Running")]
    # A was woken in the gap, and left its CPU in it: what is known ends there, and begins when it runs.
    assert states(report, A) == [
        (0, 10, "Running"),
        (10, 10, "S"),
        (20, 0, "R"),
        (30, 70, "Running"),
        (100, 0, "R+"),
        (220, 80, "Running"),
        (300, 40, "R"),
        (340, 60, "Running"),
        (400, -1, "S"),
    ]
    assert waits(report) == [40, 80]
    latency = report.latency()
    # Two for each lost event, and the two of A that the gap hides a part of.
    assert latency.count == (2, 2 + 2 * 3 + 2)
    assert latency.quantile(0.5).low == 0
    assert task(report, B).run == (19 * US, (19 + 180) * US)


def test_a_loss_of_unknown_size_leaves_lower_bounds(analyse):
    latency = analyse(lossy(-1)).latency()
    assert latency.count == (2, None)
    assert latency.sum == (120 * US, None)
    assert latency.quantile(0.5) is None


def test_without_sched_switch_there_is_nothing_to_say(analyse):
    s = Schedule("sched:sched_waking")
    s.waking(1, 0, A)
    with pytest.raises(TracepointError, match="no sched:sched_switch"):
        analyse(s)


def test_records_of_some_tasks_are_not_enough(tmp_path):
    path = tmp_path / "made.dat"
    path.write_bytes(x1().data())
    with tp.open_trace(path) as trace, pytest.raises(TracepointError, match="all tasks and CPUs"):
        analyse_sched(trace.on_cpus(0))


def test_a_window_has_the_states_that_begin_in_it(tmp_path):
    path = tmp_path / "made.dat"
    path.write_bytes(x1().data())
    with tp.open_trace(path) as trace:
        report = analyse_sched(trace.between(205 * US, 400 * US))
    assert waits(report) == [50]


def test_a_task_that_no_record_names_has_the_name_that_was_saved():
    with tp.open_trace("tests/tracefile/golden/cut.v6.dat") as trace:
        start, stop = trace.span
        # The shell only wakes others here.
        report = analyse_sched(trace.between(start + (stop - start) // 20, start + (stop - start) // 10))
    assert {row["name"] for row in report.thread if row["tid"] == 104} == {"sh"}


def test_waits_are_told_apart_by_the_priority_that_a_task_runs_with(analyse):
    s = Schedule()
    s.switch(0, 0, 0, "R", D, prio=120)
    for at, task, prio in ((10, A, -1), (20, B, 50), (30, C, 110), (40, P, 139), (50, A, 500)):
        s.waking(at, 0, task)
        s.switch(at + prio % 7, 0, D, "R+", task, prio=prio)
        s.switch(at + 8, 0, task, "S", D, prio=120)
    report = analyse(s)
    found = {name: [ns // US for ns in own.values] for name, own in report.latency_by_class().items()}
    assert found == {
        "deadline": [6],
        "real-time": [50 % 7],
        "nice -20..-1": [110 % 7],
        "nice 0": sorted(8 - prio % 7 for prio in (-1, 50, 110, 139, 500)),
        "nice 1..19": [139 % 7],
        "unknown": [500 % 7],
    }
    assert sum(map(len, found.values())) == len(report.latency())
    (chosen,) = [task.utid for task in report.tasks if task.tid == B]
    assert list(report.latency_by_class([chosen])) == ["real-time"]


def test_without_priorities_there_are_no_classes(analyse):
    cut = {name: text.replace("next_prio", "other") for name, text in FORMATS.items()}
    s = Schedule(formats=cut)
    s.waking(10, 0, A)
    s.switch(20, 0, 0, "R", A)
    report = analyse(s)
    assert waits(report) == [10]
    assert report.latency_by_class() == {}
    assert "latency_by_class_ns" not in [section.key for section in report.sections()]
