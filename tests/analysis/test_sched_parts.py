"""A large recording is read in parts: the figures are those of the whole."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracepoint as tp
from analysis.making import FORMATS, Schedule
from analysis.test_sched import US
from analysis.test_sched_generated import world_of
from analysis.test_sched_offcpu import KERNEL_STACK
from effort import examples
from oracles import data_file
from tracepoint.analysis import analyse_sched
from tracepoint.analysis.sched import report as report_module
from tracepoint.analysis.sched.events import SchedEvents
from tracepoint.analysis.sched.rows import RowFlag
from tracepoint.analysis.sections import Choice
from tracepoint.analysis.text import report_facts
from tracepoint.decode import engine
from tracepoint.decode.trace import Trace
from tracepoint.errors import DecodeError, TracepointError
from tracepoint.report import lanes, make_report
from tracepoint.tracefile.sieve import MAX_TIME, MIN_TIME, Window


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """A recording of some ten pages for each CPU, with a loss."""
    schedule = world_of(random.Random(7), 3, 6000).schedule(lambda number: number != 2000)
    path = tmp_path_factory.mktemp("parts") / "made.dat"
    path.write_bytes(schedule.data())
    return path


def facts(report):
    return report_facts(report, Choice(most=None))


def tables(report):
    return {name: table.to_dicts() for name, table in report.tables.items()}


@pytest.fixture
def small_slices(monkeypatch):
    """Let a page be worth a part."""
    monkeypatch.setattr(engine, "_SLICE_BYTES", 4096)
    monkeypatch.setattr(engine, "_MIN_SLICES", 2)


def in_parts(path, **options):
    with tp.open_trace(path) as trace:
        assert SchedEvents(trace).n_parts > 1
        return analyse_sched(trace, **options)


def test_parts_give_the_figures_of_the_whole(generated, small_slices, monkeypatch):
    found = in_parts(generated)
    monkeypatch.undo()
    with tp.open_trace(generated) as trace:
        whole = analyse_sched(trace)
        assert SchedEvents(trace).n_parts == 1
    assert facts(found) == facts(whole)
    assert list(found.notes()) == list(whole.notes())
    assert repr(found) == repr(whole)
    with pytest.raises(DecodeError, match="closed"):
        _ = found.sched["ts"]


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["small.v7.zstd.dat", "small.v6.dat.zst"])
def test_tables_and_paths_are_read_again(name, small_slices, monkeypatch):
    path = data_file(name)
    with tp.open_trace(path) as trace:
        found = analyse_sched(trace, by="waker")
        assert SchedEvents(trace).n_parts > 1
        of_parts = facts(found), tables(found), found.wake_chains(5)
    monkeypatch.undo()
    with tp.open_trace(path) as trace:
        whole = analyse_sched(trace, by="waker")
        assert of_parts == (facts(whole), tables(whole), whole.wake_chains(5))


def test_pages_that_go_back_are_read_at_once(generated, small_slices, monkeypatch):
    """Windows of time would not find their records."""
    with tp.open_trace(generated) as trace:
        assert SchedEvents(trace).n_parts > 1
        monkeypatch.setattr(type(trace), "in_order", property(lambda self: None))
        assert SchedEvents(trace).n_parts == 1
        assert isinstance(analyse_sched(trace), report_module.SchedReport)


def with_losses(rng, n_cpus, n_steps):
    """A schedule of which records are lost, with the stacks of some switches, and its last time."""
    world = world_of(rng, n_cpus, n_steps)
    # What a CPU loses at its end no page says.
    last = {line[2][0]: number for number, line in enumerate(world.lines)}
    made = Schedule(formats=FORMATS | KERNEL_STACK)
    made.kallsyms = "0000000000000100 t schedule\n0000000000000200 t do_wait\n0000000000000300 t end\n"
    for number, (us, name, (cpu, *values)) in enumerate(world.lines):
        if rng.random() < 0.05 and number not in last.values():
            made.lose(cpu, 1)
            continue
        getattr(made, name)(us, cpu, *values)
        if name == "switch" and (number < 5 or rng.random() < 0.5):
            made.stack(us, cpu, values[0], (0x104, 0x204)[: rng.randint(1, 2)])
    return made, world.now


def with_calls(rng, n_cpus, n_steps):
    """A schedule in which tasks enter calls before they leave a CPU and leave them later, and its last time."""
    world, made = world_of(rng, n_cpus, n_steps), Schedule(formats=FORMATS)
    entered = {}
    last = {line[2][0]: number for number, line in enumerate(world.lines)}

    def call(us, cpu, event, by, **values):
        if rng.random() < 0.03:
            made.lose(cpu, 1)
        else:
            made.add(us, cpu, f"raw_syscalls:{event}", values, by)

    for number, (us, name, (cpu, *values)) in enumerate(world.lines):
        if name == "switch" and values[0] and values[0] not in entered and rng.random() < 0.6:
            entered[values[0]] = rng.choice([0, 35, 202])
            call(us, cpu, "sys_enter", values[0], id=entered[values[0]])
        if rng.random() < 0.03 and number not in last.values():
            made.lose(cpu, 1)
        else:
            getattr(made, name)(us, cpu, *values)
        if name == "switch" and values[2] in entered and rng.random() < 0.6:
            nr = entered.pop(values[2])
            ret = rng.choice([0, 0, -512, -516])
            call(us, cpu, "sys_exit", values[2], id=nr, ret=ret)
            if ret and rng.random() < 0.8:
                again = entered[values[2]] = nr if ret == -512 else 219
                call(us, cpu, "sys_enter", values[2], id=again)
    return made, world.now


@pytest.mark.thorough
@settings(max_examples=examples(100), deadline=None)
@given(rng=st.randoms(use_true_random=False), n_cpus=st.integers(1, 4), n_steps=st.integers(20, 150))
def test_parts_tell_in_which_calls_tasks_were(tmp_path_factory, rng, n_cpus, n_steps):
    schedule, stop = with_calls(rng, n_cpus, n_steps)
    path = tmp_path_factory.mktemp("calls") / "made.dat"
    path.write_bytes(schedule.data())
    windows = windows_at(rng, stop)
    with tp.open_trace(path) as trace:
        if not {"raw_syscalls:sys_enter", "raw_syscalls:sys_exit"} <= set(trace.events):
            return
        whole = analyse_sched(trace, by="call")
        expected = facts(whole), whole.off_cpu()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Trace, "windows", lambda _: windows)
            found = analyse_sched(trace, by="call")
            assert (facts(found), found.off_cpu()) == expected
            # Read once more, from the first part.
            assert found.off_cpu() == expected[1]


def windows_at(rng, stop):
    """Parts that end at any times, some of them without records."""
    borders = sorted({rng.randint(0, stop * US + 1) for _ in range(rng.randint(1, 12))})
    return [Window(*pair) for pair in zip([MIN_TIME, *borders], [*borders, MAX_TIME], strict=True)]


def everything(trace, rng, stop):
    """All that is read again of a recording in parts, but for its page."""
    has_stacks = trace.events.get("ftrace:kernel_stack")
    report = analyse_sched(trace, by="stack" if has_stacks else "waker")
    found = [facts(report), tables(report), report.wake_chains(), report.wake_chains(2), report.off_cpu()]
    for tid in sorted({task.tid for task in report.tasks}):
        start, end = sorted(rng.randint(0, stop) * US for _ in "ab")
        found += [path_or_error(report, tid), path_or_error(report, tid, start, end)]
    return found


def path_or_error(report, *span):
    """A critical path; of a task that was woken and of which nothing else is recorded, why there is none."""
    try:
        return report.critical_path(*span)
    except TracepointError as error:
        return str(error)


@pytest.mark.thorough
@settings(max_examples=examples(100), deadline=None)
@given(rng=st.randoms(use_true_random=False), n_cpus=st.integers(1, 4), n_steps=st.integers(20, 150))
def test_any_parts_give_all_that_the_whole_does(tmp_path_factory, rng, n_cpus, n_steps):
    schedule, stop = with_losses(rng, n_cpus, n_steps)
    path = tmp_path_factory.mktemp("any") / "made.dat"
    path.write_bytes(schedule.data())
    seed, windows = rng.random(), windows_at(rng, stop)
    with tp.open_trace(path) as trace:
        whole = everything(trace, random.Random(seed), stop)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Trace, "windows", lambda _: windows)
            assert everything(trace, random.Random(seed), stop) == whole


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(3))
def test_a_page_of_parts_is_that_of_the_whole(tmp_path, monkeypatch, seed):
    rng = random.Random(seed)
    schedule, stop = with_losses(rng, 3, 400)
    path = tmp_path / "made.dat"
    path.write_bytes(schedule.data())
    windows = windows_at(rng, stop)
    with tp.open_trace(path) as trace:
        whole = make_report(trace, ["sched"]).html
        monkeypatch.setattr(Trace, "windows", lambda _: windows)
        # Slices of lanes go through a file too.
        monkeypatch.setattr(lanes, "_BLOCK", 4)
        assert make_report(trace, ["sched"]).html == whole


def naive_wakes(rows, row):
    """Who woke the thread of a row, who had woken that one, and so on, walked back over all rows."""
    row = rows[row]
    for _ in range(16):
        yield row["waker_utid"], row["ts"], row["irq_context"] == 1
        before = [one for one in rows if one["utid"] == row["waker_utid"] and one["ts"] < row["ts"]]
        if row["irq_context"] == 1 or not before or before[-1]["state"] != "Running":
            return
        if 0 <= before[-1]["dur"] < row["ts"] - before[-1]["ts"] or (
            before[-1]["dur"] < 0 and before[-1]["flags"] & 1
        ):
            return
        begin, *before = reversed(before)
        for one in before:
            if one["ts"] + one["dur"] != begin["ts"] or one["state"][0] != "R":
                return
            begin = one
            if one["flags"] & (RowFlag.WOKEN | RowFlag.NEW) and one["waker_utid"] is not None:
                break
        else:
            return
        row = begin


@pytest.mark.thorough
@settings(max_examples=examples(100), deadline=None)
@given(rng=st.randoms(use_true_random=False), n_cpus=st.integers(1, 4), n_steps=st.integers(20, 150))
def test_chains_are_those_of_a_walk_back(tmp_path_factory, rng, n_cpus, n_steps):
    path = tmp_path_factory.mktemp("chains") / "made.dat"
    path.write_bytes(with_losses(rng, n_cpus, n_steps)[0].data())
    with tp.open_trace(path) as trace:
        report = analyse_sched(trace)
        rows = report.thread_state.to_dicts()
        idle = {row["utid"] for row in report.thread.to_dicts() if row["is_idle"]}
        found = {(chain.utid, chain.ts, chain.wait): chain.wakes for chain in report.wake_chains()}
    wanted = {}
    for number, row in enumerate(rows):
        if row["flags"] & 29 == RowFlag.RAN | RowFlag.WOKEN:
            wakes = []
            for wake in naive_wakes(rows, number):
                wakes.append(wake)
                if wake[0] in idle:
                    break
            wanted[row["utid"], row["ts"], row["dur"]] = tuple(wakes)
    assert found == wanted
