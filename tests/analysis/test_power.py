"""Idle states and frequencies: the hand-made trace, losses, and the tables that SQL has."""

import pytest

import tracepoint as tp
from analysis.making import Schedule
from tracepoint.analysis.coverage import Gap
from tracepoint.analysis.growing import GrowingRows
from tracepoint.analysis.levels import LevelMachine, no_levels
from tracepoint.analysis.power.report import analyse_power
from tracepoint.analysis.sql.database import AnalysisDatabase
from tracepoint.errors import TracepointError

US, EXIT = 1000, 0xFFFF_FFFF


def idle(schedule, us, cpu, state):
    schedule.add(us, cpu, "power:cpu_idle", {"cpu_id": cpu, "state": state})


def frequency(schedule, us, cpu, khz, recorded_on):
    schedule.add(us, recorded_on, "power:cpu_frequency", {"cpu_id": cpu, "state": khz})


def trace_12(*events):
    """Trace 12 of the specification, with what ran between 61 and 95 us."""
    s = Schedule(*events)
    idle(s, 0, 0, 2)
    idle(s, 50, 0, EXIT)
    s.switch(61, 0, 0, "R", 10)
    s.switch(95, 0, 10, "S", 0)
    idle(s, 160, 0, 1)
    idle(s, 170, 0, 2)
    idle(s, 200, 0, EXIT)
    frequency(s, 60, 0, 1_200_000, recorded_on=1)
    frequency(s, 70, 0, 2_400_000, recorded_on=1)
    return s


@pytest.fixture
def opened(made):
    return lambda schedule: tp.open_trace(made(schedule))


def test_12_idle_states_and_cycles(opened):
    with opened(trace_12()) as trace:
        report = analyse_power(trace)
    (cpu,) = report.cpus
    assert (cpu.active, cpu.idle) == (110 * US, {2: 80 * US, 1: 10 * US})
    assert (cpu.entries, cpu.unknown) == ({2: 2, 1: 1}, 0)
    uses = {use.khz: (use.busy, use.cycles) for use in report.frequencies}
    assert uses == {1_200_000: (9 * US, 10_800), 2_400_000: (25 * US, 60_000)}
    assert sum(use.cycles for use in report.frequencies) == 70_800


def test_without_switches_there_are_no_cycles(opened):
    with opened(trace_12("power:cpu_idle", "power:cpu_frequency")) as trace:
        report = analyse_power(trace)
    assert {use.cycles for use in report.frequencies} == {None}
    assert "sched:sched_switch (cycles" in " ".join(report.notes())


def test_neither_event_is_an_error(opened):
    with (
        opened(trace_12("sched:sched_switch")) as trace,
        pytest.raises(TracepointError, match="no power:cpu_id"),
    ):
        analyse_power(trace)


def test_states_that_were_chosen_badly(opened):
    s = trace_12()
    s.add(50, 0, "power:cpu_idle_miss", {"cpu_id": 0, "state": 2, "below": 0})
    s.add(200, 0, "power:cpu_idle_miss", {"cpu_id": 0, "state": 2, "below": 1})
    s.add(201, 0, "power:cpu_idle_miss", {"cpu_id": 0, "state": 2, "below": 1})
    with opened(s) as trace:
        (cpu,) = analyse_power(trace).cpus
    assert (cpu.too_deep, cpu.too_shallow) == (1, 2)


def test_a_loss_hides_what_the_state_is(opened):
    s = Schedule()
    idle(s, 0, 0, 2)
    idle(s, 0, 1, 1)
    s.lose(0, 3)
    idle(s, 50, 0, 1)
    idle(s, 60, 0, EXIT)
    idle(s, 60, 1, EXIT)
    with opened(s) as trace:
        report = analyse_power(trace)
    first, second = report.cpus
    assert (first.idle, first.unknown) == ({2: 0, 1: 10 * US}, 50 * US)
    assert (second.idle, second.unknown) == ({1: 60 * US}, 0)
    (idle_times,) = [s for s in report.sections() if s.key == "idle_ns"]
    assert idle_times.groups["1"].count == (2, 2 + 4)


def test_a_frequency_may_change_on_any_cpu():
    growing = GrowingRows(no_levels())
    machine = LevelMachine(growing, {1: [Gap(10, 20, 1)]})
    machine.set(0, 5, 1200)
    machine.set(0, 30, 2400)
    machine.finish(40)
    rows = growing.columns
    assert (rows.dur.tolist(), rows.is_cut.tolist()) == ([5, 10], [1, 0])


def test_sql_has_counters(opened):
    pytest.importorskip("duckdb", reason="no DuckDB: pip install duckdb")
    with opened(trace_12()) as trace:
        database = AnalysisDatabase(trace)
        states = database.run("select state, count, dur from cpu_idle_stats").fetchall()
        values = database.run(
            "select name, value from counter c join cpu_counter_track t on t.id = c.track_id"
        )
        assert states == [(0, 2, 110 * US), (2, 1, 10 * US), (3, 2, 80 * US)]
        assert sorted(values.fetchall())[:2] == [("cpufreq", 1_200_000.0), ("cpufreq", 2_400_000.0)]
