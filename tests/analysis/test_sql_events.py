"""All records and their fields as `ftrace_event` and `args`, sizes of processes, and what was lost."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracepoint as tp
from analysis.making import Schedule
from analysis.test_sql import made as intervals  # noqa: F401 - the fixture
from convert.test_perfetto import query
from effort import examples
from oracles import data_file
from tracefile.making import GOLDEN
from tracepoint.analysis.sql.database import AnalysisDatabase
from tracepoint.tracefile.compression import has_zstd

pytest.importorskip("duckdb", reason="no DuckDB: pip install duckdb")

SIZES = "select ts, dur, pid, anon_rss, file_rss, shmem_rss, rss, swap, anon_rss_and_swap, rss_and_swap"
SIZES += " from memory_rss_and_swap_per_process order by ts, pid"
FILE, ANON, SWAP, SHMEM = range(4)


@pytest.fixture
def opened(tmp_path):
    """The trace of a schedule."""
    traces = []

    def open_made(schedule):
        path = tmp_path / "made.dat"
        path.write_bytes(schedule.data())
        traces.append(tp.open_trace(path))
        return traces[-1]

    yield open_made
    for trace in traces:
        trace.close()


@pytest.fixture(scope="module")
def database():
    with tp.open_trace(GOLDEN / "cut.v6.dat") as trace:
        yield AnalysisDatabase(trace)


def test_each_record_is_a_row_with_its_thread(database):
    rows = database.run(
        "select e.id, ts, e.name, cpu, tid, common_flags from ftrace_event e join thread using (utid) order by ts"
    ).fetchall()
    records = list(database.trace.records())
    assert [row[0] for row in rows] == list(range(len(records)))
    assert [row[1:-1] for row in rows] == [
        (r.timestamp, r.event.partition(":")[2], r.cpu, r.pid) for r in records
    ]
    assert {(row[1], row[2], row[-1]) for row in rows} >= {
        (row["common_timestamp"], "sched_switch", row["common_flags"])
        for row in database.trace["sched_switch"]
    }


def test_arguments_are_the_fields_of_the_record(database):
    rows = database.run(
        "select ts, key, coalesce(int_value::varchar, string_value) from ftrace_event join args using (arg_set_id)"
        " where name = 'sched_switch' order by ts, args.id"
    ).fetchall()
    fields = ["prev_comm", "prev_pid", "prev_prio", "prev_state", "next_comm", "next_pid", "next_prio"]
    assert rows == [
        (row["common_timestamp"], key, str(row[key]))
        for row in database.trace["sched_switch"]
        for key in fields
    ]


def test_an_argument_is_a_number_or_a_text(database):
    values = "extract_arg(arg_set_id, 'next_comm'), extract_arg(arg_set_id, 'next_pid')"
    rows = database.run(
        f"select {values}, extract_arg(arg_set_id, 'no_such') from ftrace_event"
        " where extract_arg(arg_set_id, 'next_pid') > 0 order by ts"
    ).fetchall()
    switches = [row for row in database.trace["sched_switch"] if row["next_pid"]]
    assert rows == [(row["next_comm"], row["next_pid"], None) for row in switches]


def test_elements_of_arrays_and_numbers_of_64_bits(opened):
    schedule = Schedule("raw_syscalls:sys_enter", "kmem:kfree")
    schedule.add(1, 0, "raw_syscalls:sys_enter", {"id": 3}, 7)
    schedule.add(2, 0, "kmem:kfree", {"ptr": 2**64 - 8, "call_site": 5}, 7)
    database = AnalysisDatabase(opened(schedule))
    rows = database.run("select flat_key, key, int_value, value_type from args order by id").fetchall()
    expected = [("id", "id", 3, "int")] + [("args", f"args[{n}]", 0, "uint") for n in range(6)]
    assert rows == [("call_site", "call_site", 5, "uint"), ("ptr", "ptr", -8, "uint"), *expected]
    # Whose records they are is not known without the events of scheduling.
    assert database.run("select name, utid from ftrace_event").fetchall() == [
        ("sys_enter", None),
        ("kfree", None),
    ]


def sizes():
    """The sizes of two processes: one has two threads, the other's are changed by others."""
    schedule = Schedule("sched:sched_switch", "kmem:rss_stat")
    schedule.saved_cmdlines = "7 shop\n8 worker\n9 cat\n"
    schedule.saved_tgids = "7 7\n8 7\n9 9\n"
    schedule.switch(1, 0, 0, "R", 7)

    def size(us, by, mm, is_own, member, size):
        values = {"mm_id": mm, "curr": is_own, "member": member, "size": size}
        schedule.add(us, 0, "kmem:rss_stat", values, by)

    size(5, 7, 11, 0, ANON, 4096)  # whose it is, nobody has said yet
    size(10, 7, 11, 1, ANON, 8192)
    size(20, 8, 11, 1, FILE, 4096)
    size(20, 8, 11, 1, FILE, 12288)
    size(30, 9, 12, 1, ANON, 4096)
    size(40, 7, 11, 1, SHMEM, 4096)
    size(50, 9, 11, 0, SWAP, 8192)
    size(60, 7, 11, 1, ANON, 8192)
    size(70, 7, 12, 0, FILE, 4096)
    schedule.switch(90, 0, 7, "S", 0)
    return schedule


def test_sizes_of_processes_hold_until_they_change(opened):
    rows = AnalysisDatabase(opened(sizes())).run(SIZES).fetchall()
    assert rows == [
        (10_000, 10_000, 7, 8192, None, None, None, None, 8192, None),
        (20_000, 20_000, 7, 8192, 12288, None, 20480, None, 8192, 20480),
        (30_000, 40_000, 9, 4096, None, None, None, None, 4096, None),
        (40_000, 10_000, 7, 8192, 12288, 4096, 24576, None, 8192, 24576),
        (50_000, 10_000, 7, 8192, 12288, 4096, 24576, 8192, 16384, 32768),
        (60_000, 30_000, 7, 8192, 12288, 4096, 24576, 8192, 16384, 32768),
        (70_000, 20_000, 9, 4096, 4096, None, 8192, None, 4096, 8192),
    ]


@pytest.mark.programs
def test_sizes_of_processes_are_perfettos(opened, tmp_path):
    trace = opened(sizes())
    path = tmp_path / "out.pftrace"
    tp.write_perfetto(trace, path)
    _, found = query(path, "include perfetto module linux.memory.process", SIZES)
    stop = trace.span[1]
    # Its last row ends a nanosecond after the trace, and what is replaced at once has a row without length.
    theirs = [(ts, min(dur, stop - ts), *rest) for ts, dur, *rest in found if dur]
    assert AnalysisDatabase(trace).run(SIZES).fetchall() == theirs
    assert len(found) == len(theirs) + 1


def test_without_the_event_there_are_no_sizes(opened):
    schedule = Schedule("sched:sched_switch")
    schedule.switch(1, 0, 0, "R", 7)
    with pytest.raises(tp.TracepointError, match=r"memory_rss_and_swap_per_process: .*no kmem:rss_stat"):
        AnalysisDatabase(opened(schedule)).run(SIZES)


def lossy():
    schedule = Schedule("sched:sched_switch")
    schedule.switch(1, 0, 0, "R", 7)
    schedule.lose(0, 3)
    schedule.switch(5, 0, 7, "S", 0)
    schedule.switch(2, 1, 0, "R", 8)
    schedule.lose(1, -1)
    schedule.switch(6, 1, 8, "S", 0)
    return schedule


LOSSES = "select name, idx, severity, source, value from stats where value > 0 and name like 'ftrace%' order by 1, 2"


def test_what_was_lost_is_in_stats(opened):
    database = AnalysisDatabase(opened(lossy()))
    assert database.run(LOSSES).fetchall() == [
        ("ftrace_cpu_has_data_loss", 0, "data_loss", "trace", 1),
        ("ftrace_cpu_has_data_loss", 1, "data_loss", "trace", 1),
    ]
    # Of the other CPU nobody counted them.
    own = database.run("select idx, value from stats where name = 'lost_events' order by idx").fetchall()
    assert own == [(0, 3), (1, None)]


@pytest.mark.programs
def test_what_was_lost_is_perfettos(opened, tmp_path):
    trace = opened(lossy())
    path = tmp_path / "out.pftrace"
    tp.write_perfetto(trace, path)
    (theirs,) = query(path, LOSSES)
    assert AnalysisDatabase(trace).run(LOSSES).fetchall() == [tuple(row) for row in theirs]


def test_the_counts_of_each_cpu_are_in_stats(opened, tmp_path):
    source = GOLDEN / "cut.v6.dat"
    query = "select name, idx, value from stats where name like '%delta' order by idx, name"
    with tp.open_trace(source) as trace:
        rows = AnalysisDatabase(trace).run(query).fetchall()
        counted = tp.tracefile.recording.stats_by_cpu(trace.file.options)
    words = ("commit_overrun", "dropped_events", "overrun")
    assert counted
    assert rows == [
        (f"ftrace_cpu_{word}_delta", cpu, counts[word.replace("_", " ")])
        for cpu, counts in sorted(counted.items())
        for word in words
    ]


def test_the_common_parts_of_several_tables(intervals):  # noqa: F811 - the fixture
    run = intervals(
        a_rows=[(0, 10, 1), (10, 10, 1), (20, 0, 1), (30, 10, 2)],
        b_rows=[(5, 10, 1), (20, 5, 1), (25, 20, 2)],
        c_rows=[(7, 0, 1), (8, 5, 1), (20, 0, 1), (28, 5, 2)],
    )
    expected = [(7, 0, 0, 0, 0), (8, 2, 0, 0, 1), (10, 3, 1, 0, 1), (20, 0, 2, 1, 2), (30, 3, 3, 2, 3)]
    tables = "'a_rows', 'b_rows', 'c_rows'"
    assert run(f"from interval_intersect({tables})") == expected
    rows = run(f"from interval_intersect_by({tables}, 'key')")
    assert rows == [(*row, key) for row, key in zip(expected, [1, 1, 1, 1, 2], strict=True)]
    eight = ", ".join(["'a_rows'"] * 8)
    assert run(f"select ts, dur from interval_intersect({eight}) where id_0 = 0") == [(0, 10)]


@pytest.mark.programs
def test_the_common_parts_of_several_tables_are_perfettos(intervals, tmp_path):  # noqa: F811 - the fixture
    tables = {
        "a_rows": [(0, 10, 1), (10, 10, 1), (20, 0, 1), (30, 10, 2), (40, 0, 1), (50, 5, 2)],
        "b_rows": [(5, 10, 1), (20, 5, 1), (25, 20, 2), (40, 0, 1), (45, 5, 1)],
        "c_rows": [(7, 0, 1), (8, 5, 1), (20, 0, 1), (28, 5, 2), (40, 3, 1), (45, 10, 1)],
    }
    path = tmp_path / "out.pftrace"
    with tp.open_trace(GOLDEN / "cut.v6.dat") as trace:
        tp.write_perfetto(trace, path)
    made = [
        f"create perfetto table {name} as "
        + " union all ".join(
            f"select {n} id, {ts} ts, {dur} dur, {key} key" for n, (ts, dur, key) in enumerate(rows)
        )
        for name, rows in tables.items()
    ]
    wanted = "select ts, dur, id_0, id_1, id_2 from _interval_intersect!((a_rows, b_rows, c_rows), ("
    order = ") order by ts, dur, id_0, id_1, id_2"
    *_, plain, keyed = query(
        path,
        "include perfetto module intervals.intersect",
        *made,
        f"{wanted}){order}",
        f"{wanted}key){order}",
    )
    run = intervals(**tables)
    words, own = "'a_rows', 'b_rows', 'c_rows'", "select ts, dur, id_0, id_1, id_2 from interval_intersect"
    assert sorted(run(f"{own}({words})")) == [tuple(row) for row in plain]
    assert sorted(run(f"{own}_by({words}, 'key')")) == [tuple(row) for row in keyed]


def test_gaps_have_rows_of_their_own(intervals, database):  # noqa: F811 - the fixture
    ((start, stop),) = database.run("select start_ts, end_ts from trace_bounds").fetchall()
    run = intervals(
        spans=[(start + 100, 50, 1), (start + 300, 20, 1), (start + 310, 40, 1), (start + 120, 10, 2),
               ("null", "null", 3), (start + 400, -1, 1)]
    )  # fmt: skip
    rows = run("select ts, dur, id from intervals_fill_gaps_by('spans', 'key') order by key, ts")
    assert [(ts - start, dur, row) for ts, dur, row in rows] == [
        (0, 100, None),
        (100, 50, 0),
        (150, 150, None),
        (300, 20, 1),
        (310, 40, 2),
        (350, stop - start - 350, None),
        (0, 120, None),
        (120, 10, 3),
        (130, stop - start - 130, None),
        (0, stop - start, None),
    ]
    run = intervals(spans=[(start, 50)])
    assert run("select ts, dur, id from intervals_fill_gaps('spans')") == [
        (start, 50, 0),
        (start + 50, stop - start - 50, None),
    ]


def filled(rows, start, stop):
    """What `intervals_fill_gaps_by` gives, piece by piece: (key, ts, dur, id), and None where nothing is."""
    found = []
    for key in {key for *_, key in rows}:
        own = [
            (number, ts, ts + dur) for number, ts, dur, of in rows if of == key and ts is not None and dur > 0
        ]
        found += [(key, ts, end - ts, number) for number, ts, end in own]
        edges = sorted({start, stop, *(edge for _, *ends in own for edge in ends)})
        begin = None
        for a, b in pairwise([*edges, stop + 1]):
            is_empty = a < stop and not any(ts <= a and b <= end for _, ts, end in own)
            if is_empty and begin is None:
                begin = a
            elif not is_empty and begin is not None:
                found.append((key, begin, a - begin, None))
                begin = None
    return found


# Lengths: of none that is known, of points, and of others; some rows say only that there is a key.
TIMES = st.integers(0, 20) | st.integers(0, 90_000_000)
ROWS = st.tuples(TIMES, st.integers(-1, 6) | st.integers(-1, 5_000_000)) | st.just((None, None))


@settings(max_examples=examples(300))
@given(st.lists(st.tuples(ROWS, st.none() | st.integers(1, 3)), max_size=12))
def test_gaps_are_where_no_row_of_the_key_is(database, made):
    ((start, stop),) = database.run("select start_ts, end_ts from trace_bounds").fetchall()
    rows = [
        (number, None if ts is None else min(start + ts, stop), None if ts is None else dur, key)
        for number, ((ts, dur), key) in enumerate(made)
    ]
    rows = [(number, ts, dur if dur is None else min(dur, stop - ts), key) for number, ts, dur, key in rows]
    database.connection.execute("create or replace table drawn (id int, ts bigint, dur bigint, key int)")
    for row in rows:
        database.connection.execute("insert into drawn values (?, ?, ?, ?)", row)
    found = database.run("select key, ts, dur, id from intervals_fill_gaps_by('drawn', 'key')").fetchall()
    assert Counter(found) == Counter(filled(rows, start, stop))
    found = database.run("select key, ts, dur, id from intervals_fill_gaps('drawn')").fetchall()
    of_one = [(number, ts, dur, 0) for number, ts, dur, _ in rows]
    keys = {number: key for number, *_, key in rows}
    wanted = [(keys.get(number), ts, dur, number) for _, ts, dur, number in filled(of_one, start, stop)]
    assert Counter(found) == Counter(wanted)


@pytest.mark.oracle
@pytest.mark.skipif(not has_zstd(), reason="no library for zstd: pip install zstandard")
def test_all_events_and_arguments_are_perfettos_but_for_fields_that_its_messages_lack(tmp_path):
    path = tmp_path / "out.pftrace"
    # Its own form has no common_flags, and its types are those of its messages.
    events = "select e.ts, e.name, e.cpu, tid from ftrace_event e left join thread using (utid)"
    arguments = """select e.ts, e.name, e.cpu, flat_key, key, cast(int_value as text), string_value
 from ftrace_event e join args using (arg_set_id)"""
    with tp.open_trace(data_file("small.v7.zstd.dat")) as trace:
        tp.write_perfetto(trace, path)
        database = AnalysisDatabase(trace)
        own = [Counter(database.run(text).fetchall()) for text in (events, arguments)]
    theirs = [Counter(map(tuple, rows)) for rows in query(path, events, arguments)]
    assert own[0] == theirs[0]
    assert own[0].total() == 30_791
    more, less = own[1] - theirs[1], theirs[1] - own[1]
    # It has the last argument of a system call only, as if it were no array.
    assert Counter(row[1:5:3] for row in less) == {("sys_enter", "args"): 3084}
    calls = {(row[1], row[3]) for row in more if row[1] == "sys_enter"}
    assert calls == {("sys_enter", "args")}
    assert Counter(row[1:5:3] for row in more.elements() if row[1] != "sys_enter") == {
        ("signal_generate", "errno"): 46,
        ("signal_deliver", "errno"): 6,
        ("signal_deliver", "sa_handler"): 6,
        ("workqueue_queue_work", "workqueue"): 27,
    }
