"""Time off the CPUs: by state, waker, system call and stack, in tables, folded stacks and flame graphs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracepoint as tp
from analysis.making import FORMATS, Schedule
from analysis.test_sched import US, A, B, x1
from analysis.test_sched_generated import world_of
from tracepoint.analysis import analyse_sched
from tracepoint.analysis.sections import Choice
from tracepoint.analysis.text import folded_lines
from tracepoint.errors import TracepointError
from tracepoint.layout.format import write_format
from tracepoint.layout.process_events import OWN_BY_NAME
from tracepoint.report.flame import off_cpu

READ, FUTEX = 0, 202
KERNEL_STACK = {"ftrace:kernel_stack": write_format(OWN_BY_NAME["kernel_stack"])}


def analysed(schedule, folder, by="", look=lambda report, _: report):
    path = folder / "made.dat"
    path.write_bytes(schedule.data())
    with tp.open_trace(str(path)) as trace:
        return look(analyse_sched(trace, by), trace)


def times(report):
    """The rows: task, state, where and waker, with the time in us and how often."""
    names = dict(enumerate(report.thread["tid"].tolist()))
    return {
        (names[time.utid], time.state, time.where, time.waker): (time.ns // US, time.n)
        for time in report.off_cpu()
    }


def test_1_time_off_the_cpus_by_state_and_waker(tmp_path):
    report = analysed(x1(), tmp_path, "waker")
    assert times(report) == {
        (A, "S", (), "t20-20"): (100, 1),
        (A, "R", (), ""): (90, 2),
        (A, "R+", (), ""): (50, 1),
    }


def test_folded_stacks_have_the_same_time(tmp_path):
    lines = analysed(x1(), tmp_path, look=lambda report, _: list(folded_lines(report)))
    assert lines == ["t10-10;S;woken by t20-20 100000", "t10-10;R 90000", "t10-10;R+ 50000"]


def called():
    """A blocks in a read that an interrupt ends, in a futex that B ends, and outside of any call."""
    s = Schedule()
    s.switch(0, 0, 0, "R", A)
    s.switch(0, 1, 0, "R", B)
    at = 0
    for number, flags in ((READ, 0x08), (FUTEX, 0), (None, 0)):
        if number is not None:
            s.add(at + 5, 0, "raw_syscalls:sys_enter", {"id": number}, A)
        s.switch(at + 10, 0, A, "S" if number is not None else "D", 0)
        s.waking(at + 30, 1, A, by=B, flags=flags)
        s.switch(at + 31, 0, 0, "R", A)
        if number is not None:
            s.add(at + 40, 0, "raw_syscalls:sys_exit", {"id": number, "ret": 0}, A)
        at += 100
    return s


def test_time_by_system_call(tmp_path):
    report = analysed(called(), tmp_path, "call")
    assert times(report) == {
        (A, "S", ("read",), "interrupt"): (20, 1),
        (A, "S", ("futex",), "t20-20"): (20, 1),
        (A, "D", ("no system call",), "t20-20"): (20, 1),
        (A, "R", (), ""): (3, 3),
    }
    section = report.sections(Choice(tasks=[A]))[-2]
    assert (section.key, len(section.rows)) == ("off_cpu", 4)
    assert not report.sections(Choice(tasks=[B]))[-2].rows


def test_time_by_stack_and_its_flame_graph(tmp_path):
    s = Schedule(formats=FORMATS | KERNEL_STACK)
    s.kallsyms = "0000000000000100 t schedule\n0000000000000200 t do_wait\n0000000000000300 t end\n"
    s.switch(0, 0, 0, "R", A)
    s.switch(10, 0, A, "S", 0)
    s.stack(10, 0, A, (0x104, 0x204))
    s.waking(30, 0, A)
    s.switch(35, 0, 0, "R", A)
    s.switch(40, 0, A, "S", 0)
    report, tree = analysed(s, tmp_path, "stack", lambda report, trace: (report, off_cpu(report, trace)))
    assert times(report) == {
        (A, "S", ("do_wait", "schedule"), "swapper/0"): (20, 1),
        (A, "R", (), ""): (5, 1),
    }
    asleep = tree["c"][0]
    path = []
    while asleep["c"]:
        (asleep,) = asleep["c"]
        path.append(asleep["n"])
    assert path == ["t10", "do_wait", "schedule", "t10-10", "woken by swapper/0"]
    assert asleep["v"] == 20 * US


@pytest.mark.parametrize(
    ("by", "message"), [("call", "no system calls here"), ("stack", "no stacks of sched:sched_switch")]
)
def test_what_was_not_recorded_is_an_error(tmp_path, by, message):
    with pytest.raises(TracepointError, match=message):
        analysed(x1(), tmp_path, by)


def test_a_name_with_the_separator_makes_no_frame(tmp_path):
    s = Schedule()
    values = {"prev_pid": A, "next_pid": 0, "next_prio": 120, "prev_state": 1}
    s.add(0, 0, "sched:sched_switch", values | {"prev_comm": "a;b", "next_comm": "swapper"}, A)
    s.add(10, 0, "sched:sched_waking", {"pid": A, "comm": "a;b"})
    lines = analysed(s, tmp_path, look=lambda report, _: list(folded_lines(report)))
    assert [line.split(";")[0] for line in lines] == ["a,b-10"]


def test_a_sleep_without_a_wake_up_is_neither_sleep_nor_waiting(tmp_path):
    s = Schedule()
    s.switch(0, 0, 0, "R", A)
    s.waking(1, 0, B)
    s.switch(100, 0, A, "S", B)
    s.switch(140, 0, B, "S", A)
    assert times(analysed(s, tmp_path)) == {(A, "S or R", (), ""): (40, 1), (B, "R", (), ""): (99, 1)}


@pytest.mark.thorough
@settings(max_examples=30, deadline=None)
@given(rng=st.randoms(use_true_random=False), n_cpus=st.integers(1, 4), n_steps=st.integers(20, 150))
def test_sums_are_those_of_the_states(tmp_path_factory, rng, n_cpus, n_steps):
    world = world_of(rng, n_cpus, n_steps)
    truth = {}
    for task, rows in world.rows.items():
        for _, dur, state in rows:
            if state != "Running":
                ns, n = truth.get((task, state), (0, 0))
                truth[task, state] = ns + dur, n + 1
    lost = {number for number in range(len(world.lines)) if rng.random() < 0.05}
    folder = tmp_path_factory.mktemp("sums")
    assert summed(analysed(world.schedule(), folder)) == truth
    # A loss hides time, it adds none.
    left = summed(analysed(world.schedule(lambda number: number not in lost), folder))
    assert sum(ns for ns, _ in left.values()) <= world.now * len(world.state)


def summed(report):
    found = {}
    for (task, state, _, _), (us, n) in times(report).items():
        own = found.get((task, state), (0, 0))
        found[task, state] = own[0] + us, own[1] + n
    return found
