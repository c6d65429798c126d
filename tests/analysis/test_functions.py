"""Functions: totals, own time and paths of calls that are known, and what losses leave of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracepoint as tp
from analysis.making import Schedule
from analysis.test_sched import x1
from tracepoint.analysis.coverage import Gap, join_gaps
from tracepoint.analysis.functions.machine import UNKNOWN, Call, FunctionMachine
from tracepoint.analysis.functions.report import analyse_functions

A, B, C = 0xFFFF_FFFF_8100_0000, 0xFFFF_FFFF_8100_1000, 0xFFFF_FFFF_8100_2000


def calls(schedule, tree, us=0, depth=0, by=7, cpu=0):
    """Record calls (function, own us before, calls below, own us after); return when the last one ended."""
    for func, before, below, after in tree:
        schedule.add(us, cpu, "ftrace:funcgraph_entry", {"func": func, "depth": depth}, by)
        stop = calls(schedule, below, us + before, depth + 1, by, cpu) + after
        values = {"func": func, "depth": depth, "calltime": us * 1000, "rettime": stop * 1000}
        schedule.add(stop, cpu, "ftrace:funcgraph_exit", values, by)
        us = stop
    return us


@pytest.fixture
def analyse(made):
    def analyse_made(schedule):
        with tp.open_trace(made(schedule)) as trace:
            return analyse_functions(trace)

    return analyse_made


def uses(report):
    return {use.address: (use.own, use.total, list(use.calls.values)) for use in report.functions}


def test_own_time_is_without_the_calls_below(analyse):
    s = Schedule()
    calls(s, [(A, 1, [(B, 2, [(C, 3, [], 0)], 4), (C, 5, [], 0)], 6)])
    report = analyse(s)
    assert uses(report) == {
        A: (7000, 21000, [21000]),
        B: (6000, 9000, [9000]),
        C: (8000, 8000, [3000, 5000]),
    }
    stacks = {row["stack"]: (row["own_ns"], row["calls"]) for row in report.tables["folded_stacks"]}
    a, b, c = (f"{address:#x}" for address in (A, B, C))
    assert stacks == {
        f"<...>-7;{a}": (7000, 1),
        f"<...>-7;{a};{b}": (6000, 1),
        f"<...>-7;{a};{b};{c}": (3000, 1),
        f"<...>-7;{a};{c}": (5000, 1),
    }
    assert not any("entry" in note for note in report.notes())


def test_a_call_within_one_of_the_same_function_counts_once_in_the_total(analyse):
    s = Schedule()
    calls(s, [(A, 1, [(A, 2, [], 0)], 3)])
    assert uses(analyse(s)) == {A: (6000, 6000, [2000, 6000])}


def test_tasks_and_idle_tasks_of_cpus_are_apart(analyse):
    s = Schedule()
    for cpu in (0, 1):
        calls(s, [(A, 1, [(B, 2, [], 0)], 1)], us=cpu, by=0, cpu=cpu)
    assert uses(analyse(s)) == {A: (4000, 8000, [4000, 4000]), B: (4000, 4000, [2000, 2000])}


def test_without_entries_callers_are_not_known():
    machine = FunctionMachine(join_gaps([]))
    machine.leave(7, 7, Call(B, 1, 10, 30), 30)
    machine.leave(7, 7, Call(A, 0, 5, 50), 50)
    assert machine.paths == {(7, UNKNOWN, B): [20, 1], (7, UNKNOWN, A): [25, 1]}
    assert machine.n_without_entry == 2


def test_calls_of_a_caller_whose_exit_was_lost_are_not_below_the_next_one():
    machine = FunctionMachine(join_gaps([Gap(20, 40, 3)]))
    machine.leave(7, 7, Call(C, 1, 10, 20), 20)
    machine.leave(7, 7, Call(B, 0, 35, 60), 60)
    assert machine.functions[B].own == 25
    assert machine.functions[B].unsure == 25
    assert machine.functions[C].unsure == 0


def test_callers_from_before_a_loss_are_not_known():
    machine = FunctionMachine(join_gaps([Gap(20, 40, 3)]))
    machine.enter(7, A, 0, 5)
    machine.enter(7, B, 1, 10)
    machine.leave(7, 7, Call(B, 1, 10, 20), 20)
    machine.enter(7, C, 1, 50)
    machine.leave(7, 7, Call(C, 1, 50, 60), 60)
    machine.leave(7, 7, Call(A, 0, 5, 70), 70)
    assert machine.paths == {(7, A, B): [10, 1], (7, UNKNOWN, C): [10, 1], (7, UNKNOWN, A): [45, 1]}
    assert (machine.functions[A].unsure, machine.functions[C].unplaced) == (45, 10)


def test_damaged_depths_are_left_out(analyse):
    s = Schedule()
    for depth in (-1, 1 << 30):
        values = {"func": A, "depth": depth, "calltime": 1, "rettime": 2}
        s.add(1, 0, "ftrace:funcgraph_entry", values, 7)
        s.add(2, 0, "ftrace:funcgraph_exit", values, 7)
    assert analyse(s).functions == []


TREES = st.recursive(
    st.just([]),
    lambda below: st.lists(
        st.tuples(st.sampled_from([A, B, C]), st.integers(0, 5), below, st.integers(0, 5)), max_size=3
    ),
    max_leaves=8,
)


@given(TREES)
def test_own_times_add_up_to_the_whole(tree):
    machine = FunctionMachine(join_gaps([]))
    s = Schedule("ftrace:funcgraph_entry")
    s.add = lambda us, _cpu, event, values, _by: (
        machine.enter(7, values["func"], values["depth"], 0)
        if event == "ftrace:funcgraph_entry"
        else machine.leave(
            7, 7, Call(values["func"], values["depth"], values["calltime"], values["rettime"]), 0
        )
    )
    stop = calls(s, tree)
    assert sum(sums.own for sums in machine.functions.values()) == stop * 1000
    assert sum(own for own, _ in machine.paths.values()) == stop * 1000


def test_folded_stacks_of_the_command(run, made):
    s = Schedule()
    calls(s, [(A, 1, [(B, 2, [], 0)], 4)])
    path = made(s)
    status, out, _ = run("functions", path, "--format", "folded")
    assert status == 0
    assert sorted(out.splitlines()) == [f"<...>-7;{A:#x} 5000", f"<...>-7;{A:#x};{B:#x} 2000"]
    between = ("--begin", "sched_switch", "--end", "sched_switch")
    assert "no stacks" in run("latency", made(x1()), *between, "--format", "folded")[2]
