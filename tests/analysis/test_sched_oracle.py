"""Scheduling against Perfetto's own result for our export: the same rows, but for what it loses, counted."""

from collections import Counter

import pytest

import tracepoint as tp
from analysis.perfetto import compare, named
from convert.test_perfetto import query
from oracles import data_file, unpacked
from tracepoint.analysis import analyse_sched
from tracepoint.analysis.sql.database import AnalysisDatabase
from tracepoint.tracefile.compression import has_zstd

SECOND = 1_000_000_000
pytestmark = [
    pytest.mark.usefixtures("form"),
    pytest.mark.oracle,
    pytest.mark.skipif(not has_zstd(), reason="no library for zstd: pip install zstandard"),
]


def exported(trace, tmp_path):
    """What Perfetto reads of a trace."""
    path = tmp_path / "out.pftrace"
    tp.write_perfetto(trace.select("sched", "task"), path)
    return path


def kernel_text(_trace, tmp_path):
    """The text of the same buffer, by the kernel."""
    path = tmp_path / "trace.txt"
    path.write_bytes(unpacked("small.trace.txt.zst"))
    return path


@pytest.mark.parametrize(("form_of", "unit_ns"), [(exported, 1), (kernel_text, 1000)])
def test_all_rows_of_a_recording_are_perfettos_but_for_new_tasks_and_zombies(tmp_path, form_of, unit_ns):
    def rounded(ns):
        return (ns + unit_ns // 2) // unit_ns * unit_ns

    with tp.open_trace(data_file("small.v7.zstd.dat")) as trace:
        new = {(rounded(row["common_timestamp"]), row["pid"]) for row in trace["sched_wakeup_new"]}
        freed = {row["pid"]: rounded(row["common_timestamp"]) for row in trace["sched_process_free"]}
        ours, theirs, own, spurious = compare(analyse_sched(trace), form_of(trace, tmp_path), unit_ns)
    assert own == spurious
    # It takes new tasks from task_newtask only, which was not recorded: 45 latencies.
    assert {(ts, tid) for ts, _, _, tid, state, _ in ours if state == "R"} == new
    # It does not end a zombie when the task is freed.
    zombies = {(ts, tid) for ts, _, _, tid, state, _ in theirs if state == "Z"}
    assert {
        (ts, tid) for ts, dur, _, tid, state, _ in ours if state == "Z" and ts + dur == freed[tid]
    } == zombies
    assert (len(new), len(zombies)) == (45, 44)
    assert (ours.total(), theirs.total()) == (45 + 44, 44)
    assert named(ours, theirs, own, spurious) == {"new": 45, "dead": 44}


def test_latencies_that_perfetto_loses_are_those_of_wakings_before_the_switch(tmp_path):
    with tp.open_trace(data_file("big.v7.zstd.dat")) as whole:
        trace = whole.between(20 * SECOND, 24 * SECOND)
        cpus_at = {}
        for row in trace.joined({"sched_switch": [], "sched_waking": [], "sched_wakeup": []}):
            cpus_at.setdefault(row["common_timestamp"], set()).add(row["common_cpu"])
        wakings = {}
        for row in trace["sched_waking"]:
            wakings.setdefault(row["pid"], []).append(row["common_timestamp"])
        report = analyse_sched(trace)
        ours, theirs, own, spurious = compare(report, exported(trace, tmp_path))
    tids = {row["utid"]: row["tid"] for row in report.thread}
    ran = {(tids[row["utid"]], row["ts_end"]): row["ts"] for row in report.sched}
    asleep = {(ts, dur, tid) for ts, dur, _, tid, state, _ in theirs if state == "S"}
    found = {row for row in ours if row[4] == "R" and (row[0], row[1], row[3]) in asleep}
    assert len(found) == 91
    # A waking came while the task still ran, before the switch that put it to sleep.
    assert all(any(ran[tid, ts] <= at <= ts for at in wakings[tid]) for ts, _, _, tid, _, _ in found)
    # The guest's clock stood still now and then: of records of several CPUs with one time nobody knows which
    # was first, and what follows from that is all else that differs.
    same = {(row[0], row[1], row[3]) for row in found}
    rest = [row for row in [*ours, *theirs] if (row[0], row[1], row[3]) not in same]
    first = {}
    for row in sorted(rest, key=lambda row: (row[3], row[0])):
        first.setdefault(row[3], row[0])
    assert len(rest) == 154
    assert all(len(cpus_at[ts]) > 1 for ts in first.values())
    assert (own.total(), spurious.total()) == (118, 187)


def test_views_are_perfettos(tmp_path):
    latencies = """select s.ts, t.tid, l.latency_dur from sched_latency_for_running_interval l
     join sched s on s.id = l.sched_id join thread t on t.utid = l.utid"""
    active = "select * from sched_active_cpu_count"
    with tp.open_trace(data_file("small.v7.zstd.dat")) as trace:
        path = exported(trace, tmp_path)
        database = AnalysisDatabase(trace)
        own = Counter(database.run(latencies).fetchall())
        own_active = database.run(active).fetchall()
        still = set(
            database.run("select ts, tid from sched join thread using (utid) where dur < 0").fetchall()
        )
        new = {(row["common_timestamp"], row["pid"]) for row in trace["sched_wakeup_new"]}
    includes = (
        "include perfetto module sched.latency; include perfetto module sched.thread_level_parallelism;"
    )
    found = query(path, includes + latencies, includes + active)
    theirs = Counter(map(tuple, found[0]))
    assert not theirs - own
    # It has no latencies of new tasks, as task_newtask was not recorded, and none of threads that run to the end.
    more = own - theirs
    assert {(ts - ns, tid) for ts, tid, ns in more if (ts, tid) not in still} == new
    assert more.total() == len(new) + len(still & {(ts, tid) for ts, tid, _ in more})
    assert own_active == [tuple(row) for row in found[1]]
