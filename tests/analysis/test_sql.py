"""SQL over what analyses made: operators on intervals with known results, and Perfetto's names."""

import pytest

import tracepoint as tp
from analysis.making import Schedule
from analysis.test_power import trace_12
from tracefile.making import GOLDEN
from tracepoint.analysis import analyse_sched
from tracepoint.analysis.registry import ANALYSES, OPTIONS, analyse
from tracepoint.analysis.sql.database import AnalysisDatabase
from tracepoint.analysis.sql.macros import MACROS
from tracepoint.analysis.sql.views import TABLES, UNIONS, VIEWS

pytest.importorskip("duckdb", reason="no DuckDB: pip install duckdb")


@pytest.fixture(scope="module")
def database():
    with tp.open_trace(GOLDEN / "cut.v6.dat") as trace:
        yield AnalysisDatabase(trace)


@pytest.fixture
def made(database):
    """Make tables of intervals: (ts, dur), with `key` and `id`."""

    def make(**tables):
        for name, rows in tables.items():
            values = ", ".join(
                f"({n}, {ts}, {dur}, {(*key, 0)[0]}, '{name}{n}')" for n, (ts, dur, *key) in enumerate(rows)
            )
            database.connection.execute(
                f"create or replace table {name} as from (values {values}) t(id, ts, dur, key, {name}_name)"
            )
        return lambda query: database.run(query).fetchall()

    return make


def test_the_common_parts_of_intervals(made):
    run = made(left_rows=[(0, 10), (10, 10), (20, 0), (30, -1)], right_rows=[(5, 10), (20, 5)])
    assert run("select ts, dur, id_0, id_1 from interval_intersect('left_rows', 'right_rows')") == [
        (5, 5, 0, 0),
        (10, 5, 1, 0),
        (20, 0, 2, 1),
    ]


def test_only_equal_keys_meet(made):
    run = made(left_rows=[(0, 10, 1), (0, 10, 2)], right_rows=[(5, 10, 2)])
    assert run("select * from interval_intersect_by('left_rows', 'right_rows', 'key')") == [(5, 5, 1, 0, 2)]


SPANS = [
    ("span_join", [(30, 5, "a0", "b0"), (40, 0, "a0", "b1")]),
    ("span_left_join", [(30, 5, "a0", "b0"), (35, 5, "a0", None), (40, 0, "a0", "b1"), (40, 10, "a0", None)]),
    (
        "span_outer_join",
        [
            (20, 10, None, "b0"),
            (30, 5, "a0", "b0"),
            (35, 5, "a0", None),
            (40, 0, "a0", "b1"),
            (40, 10, "a0", None),
        ],
    ),
]


@pytest.mark.parametrize(("operator", "rows"), SPANS)
def test_spans_are_cut_where_either_begins_or_ends(made, operator, rows):
    run = made(a_rows=[(30, 20), (90, -1)], b_rows=[(20, 15), (40, 0)])
    columns = "replace(a_rows_name, '_rows', ''), replace(b_rows_name, '_rows', '')"
    query = f"select ts, dur, {columns} from {operator}('(select * exclude (id, key) from a_rows)', "
    assert run(query + "'(select * exclude (id, key) from b_rows)') order by ts, dur") == rows


def test_how_many_overlap(made):
    run = made(spans=[(0, 10), (10, 10), (5, 0), (30, -1)])
    assert run("from intervals_overlap_count('spans')") == [(0, 1), (5, 1), (10, 1), (20, 0), (30, 1)]
    run = made(spans=[(0, 10, 1), (5, 10, 1), (0, 2, 2)])
    assert run("select * from intervals_overlap_count_by('spans', 'key') where key = 1") == [
        (1, 0, 1),
        (1, 5, 2),
        (1, 10, 1),
        (1, 15, 0),
    ]


def test_counters_have_the_time_to_the_next_value(database):
    database.connection.execute(
        "create table levels as from (values (10, 1, 5.0), (30, 1, 7.0), (20, 2, 1.0)) t(ts, track_id, value)"
    )
    rows = database.run(
        "select ts, dur, next_value, delta_value from counter_leading_intervals('levels') where track_id = 1"
    ).fetchall()
    ((stop,),) = database.run("select end_ts from trace_bounds").fetchall()
    assert rows == [(10, 20, 7.0, None), (30, stop - 30, None, 2.0)]


def test_a_row_counts_in_each_period_for_its_part(database):
    parts = database.run("from cpu_utilization_per_period(10000000)").fetchall()
    whole = database.run("select sum(dur) from active_cpus where dur > 0").fetchall()[0]
    assert sum(unnormalized for _, _, unnormalized in parts) * 10_000_000 == pytest.approx(whole[0])
    assert all(0 <= share <= 1 for _, share, _ in parts)


def test_every_table_view_and_macro_works(tmp_path):
    path = tmp_path / "made.dat"
    path.write_bytes(trace_12().data())
    with tp.open_trace(path) as trace:
        own = AnalysisDatabase(trace)
        for name in (*TABLES, *VIEWS, *UNIONS, "trace_bounds", "task_process"):
            assert own.run(f"select * from {name}").columns, name
        for name in MACROS:
            own.define(name)


def test_an_event_with_its_system_does_not_run_an_analysis(tmp_path):
    schedule = Schedule("sched:sched_waking")
    schedule.waking(1, 0, 7)
    path = tmp_path / "made.dat"
    path.write_bytes(schedule.data())
    with tp.open_trace(path) as trace:
        own = AnalysisDatabase(trace)
        assert own.run('select count(*) from "sched".sched_waking').fetchall() == [(1,)]
        with pytest.raises(tp.TracepointError, match=r"sched_slice: .*made.dat: no sched:sched_switch"):
            own.run("select count(*) from sched_slice")


def test_the_name_of_a_column_does_not_run_an_analysis(monkeypatch):
    """Tables are called `cpu` and `process` too."""
    ran = []
    monkeypatch.setattr("tracepoint.analysis.sql.database.analyse", lambda _trace, name: ran.append(name))
    with tp.open_trace(GOLDEN / "cut.v6.dat") as trace:
        own = AnalysisDatabase(trace)
        query = "select common_cpu as cpu, 1 as process, count(*) from sched.sched_switch group by cpu"
        assert own.run(query).columns == ["cpu", "process", "count_star()"]
        assert list(own.results(query))
        own.run("with thread as (select 1 as slice) from thread")
    assert ran == []


def test_tables_are_made_when_a_later_statement_names_them():
    query = "create table counts as select cpu, count(*) as n from sched group by all; from counts join cpu using (cpu)"
    with tp.open_trace(GOLDEN / "cut.v6.dat") as trace:
        assert AnalysisDatabase(trace).run(query).fetchall()
        ((_, rows),) = AnalysisDatabase(trace).results(query)
        assert list(rows)


def test_latencies_are_those_of_the_report(database):
    rows = database.run("select latency_dur from sched_latency_for_running_interval").fetchall()
    with tp.open_trace(GOLDEN / "cut.v6.dat") as trace:
        assert sorted(ns for (ns,) in rows) == list(analyse_sched(trace).latency().values)


def test_begins_have_the_next_end(made):
    run = made(begins=[(10, 0), (12, 0), (30, 0)], ends=[(10, 0), (20, 0)])
    assert run("from interval_create('begins', 'ends')") == [(10, 10), (12, 8)]


def test_intervals_are_cut_where_others_begin_and_end(made):
    run = made(spans=[(0, 10), (5, 10), (10, 5), (90, -1)])
    assert run("select ts, dur, id from interval_self_intersect('spans')") == [
        (0, 5, 0),
        (5, 5, 0),
        (5, 5, 1),
        (10, 5, 1),
        (10, 5, 2),
    ]


def test_every_table_of_an_analysis_has_its_name_here():
    own = {"folded_stacks", "latency", "service_request", "service_part"}
    known = set(TABLES.values())
    with tp.open_trace(GOLDEN / "cut.v6.dat") as trace:
        for analysis in ANALYSES:
            if any(option.is_needed for option in OPTIONS.get(analysis, ())):
                continue
            try:
                tables = analyse(trace, analysis).tables
            except tp.TracepointError:
                continue
            assert {(analysis, name) for name in tables if name not in own} <= known


def test_slices_are_of_what_was_recorded(tmp_path):
    schedule = Schedule()
    schedule.switch(5, 0, 0, "R", 7)
    schedule.add(10, 0, "raw_syscalls:sys_enter", {"id": 0}, 7)
    schedule.add(30, 0, "raw_syscalls:sys_exit", {"id": 0}, 7)
    path = tmp_path / "made.dat"
    query = """select s.ts, s.dur, s.name, tid from slice s join thread_track k on s.track_id = k.id
     join thread using (utid)"""
    path.write_bytes(schedule.data())
    with tp.open_trace(path) as trace:
        assert AnalysisDatabase(trace).run(query).fetchall() == [(10_000, 20_000, "sys_read", 7)]
    schedule.add(40, 1, "irq:softirq_entry", {"vec": 1}, 7)
    schedule.add(45, 1, "irq:softirq_exit", {"vec": 1}, 7)
    path.write_bytes(schedule.data())
    with tp.open_trace(path) as trace:
        database = AnalysisDatabase(trace)
        assert database.run("select name, dur from slice order by ts").fetchall() == [
            ("sys_read", 20_000),
            ("TIMER", 5000),
        ]
        tracks = "select s.name, k.name, cpu from slice s join cpu_track k on s.track_id = k.id"
        assert database.run(tracks).fetchall() == [("TIMER", "SoftIrq Cpu 1", 1)]
    schedule = Schedule("sched:sched_switch")
    schedule.switch(5, 0, 0, "R", 7)
    path.write_bytes(schedule.data())
    with tp.open_trace(path) as trace, pytest.raises(tp.TracepointError, match=r"slice: .*sys_enter"):
        AnalysisDatabase(trace).run("from slice")


def test_cycles_are_those_of_trace_12(tmp_path):
    path = tmp_path / "made.dat"
    path.write_bytes(trace_12().data())
    with tp.open_trace(path) as trace:
        database = AnalysisDatabase(trace)
        query = "select cpu, millicycles, min_freq, max_freq, runtime from cpu_cycles_per_cpu"
        assert database.run(query).fetchall() == [(0, 70_800_000, 1_200_000, 2_400_000, 34_000)]
        (whole,) = database.run("select millicycles, avg_freq from cpu_cycles").fetchall()
        assert whole == (70_800_000, round(70_800_000 * 1000 / 34_000))


def test_what_threads_use_adds_up_to_what_cpus_do(database):
    query = """select sum(part.unnormalized_utilization) from (select utid from thread where is_idle = 0) t,
     lateral (select sum(dur) / 10000000 as unnormalized_utilization from busy_cpus b where b.utid = t.utid) part"""
    (whole,) = database.run("select sum(dur) from active_cpus where dur > 0").fetchall()[0]
    assert database.run(query).fetchall()[0][0] * 10_000_000 == pytest.approx(whole)
    utid, dur = database.run("select utid, sum(dur) from busy_cpus group by 1 order by 2 desc").fetchall()[0]
    rows = database.run(f"from cpu_thread_utilization_per_period(10000000, {utid})").fetchall()
    assert sum(busy for _, _, busy in rows) * 10_000_000 == pytest.approx(dur)
