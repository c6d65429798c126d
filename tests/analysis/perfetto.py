"""Our rows of scheduling beside those of Perfetto's trace_processor for the same records."""

from collections import Counter

from convert.test_perfetto import query

SCHED = """select ts, dur, cpu, tid, end_state, priority from sched join thread using (utid)"""
STATES = """select s.ts, s.dur, s.cpu, t.tid, s.state, w.tid from thread_state s join thread t using (utid)
 left join thread w on w.utid = s.waker_utid where t.tid > 0"""
SPURIOUS = "select ts, tid from spurious_sched_wakeup join thread using (utid)"


def compare(report, path, unit_ns=1):
    """Our rows of states that Perfetto does not have, its that we do not have, and wakings for nothing of both.

    All rows of `sched` are the same.  `path` is what it reads; times are rounded to `unit_ns`, as those of the
    kernel's text to microseconds, which it reads as a floating point number of seconds.
    """

    def times(ts, dur, *rest):
        start = (ts + unit_ns // 2) // unit_ns * unit_ns
        return start, dur if dur < 0 else (ts + dur + unit_ns // 2) // unit_ns * unit_ns - start, *rest

    found = query(path, SCHED, STATES, SPURIOUS)
    sched, states = (Counter(times(*row) for row in rows) for rows in found[:2])
    spurious = Counter((times(ts, 0)[0], tid) for ts, tid in found[2])
    tids = {row["utid"]: row["tid"] for row in report.thread}
    assert sched == Counter(
        times(r["ts"], r["dur"], r["cpu"], tids[r["utid"]], r["end_state"], r["priority"])
        for r in report.sched
    )
    ours = Counter(
        times(r["ts"], r["dur"], r["cpu"], tids[r["utid"]], r["state"], tids.get(r["waker_utid"]))
        for r in report.thread_state
    )
    own = Counter((times(r["ts"], 0)[0], tids[r["utid"]]) for r in report.spurious_sched_wakeup)
    return ours - states, states - ours, own, spurious


def named(ours, theirs, own, spurious):
    """How many differences there are by name; raises AssertionError where one has none.

    `new`: it begins a new task at task_newtask, and of text, which has none for it, not at all.  `dead`: it does
    not end a zombie when the task is freed.  `early`: the waking came before the switch to sleep, of any
    kind, and it loses the latency.  `preempted`: it takes a waking of a preempted task for the begin of another row.
    """
    found = Counter()
    left = {(ts, tid): (dur, state) for ts, dur, _, tid, state, _ in theirs}
    splits = {(ts, tid) for ts, tid in own - spurious}
    for ts, dur, _, tid, state, _ in sorted(ours, key=lambda row: row[0]):
        other, its = left.pop((ts, tid), (0, ""))
        if state in "XZ" and (other, its) == (-1, state):
            found["dead"] += 1
        elif state == "R" and its in ("S", "D", "I") and other == dur:
            found["early"] += 1
        elif state == its == "R+" and left.pop((ts + other, tid)) == (dur - other, "R"):
            assert (ts + other, tid) in splits
            found["preempted"] += 1
        else:
            assert (state, its) == ("R", "")
            begun = [at for at, task in left if task == tid and left[at, task] == (ts + dur - at, "R")]
            assert len(begun) <= 1
            for at in begun:
                del left[at, tid]
            found["new"] += 1
    assert not left
    assert len(splits) == found["preempted"]
    assert (spurious - own).total() == found["early"]
    return found
