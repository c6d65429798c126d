"""Waits for locks: by CPU and by task, mutexes by turns, and what losses leave of them."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.losing import US, Record, analysed, held, schedule_of
from tracepoint.analysis import analyse_locks
from tracepoint.analysis.locks.build import LockFlag

A, B = 0xFFFF888001000000, 0xFFFF888002000000
MUTEX, SPIN = LockFlag.MUTEX, LockFlag.SPIN


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("locks")


def begin(us, lock, flags, tid=7, cpu=0):
    return Record(us, cpu, "lock:contention_begin", {"lock_addr": lock, "flags": int(flags)}, tid)


def end(us, lock, tid=7, cpu=0, ret=0):
    return Record(us, cpu, "lock:contention_end", {"lock_addr": lock, "ret": ret}, tid)


def waits(records, folder):
    found = analysed(schedule_of(records), folder, analyse_locks).lock_contention.to_dicts()
    return [(row["ts"] // US, row["dur"] // US if row["dur"] >= 0 else -1, row["kind"]) for row in found]


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([begin(1, A, MUTEX | SPIN), begin(3, A, MUTEX), begin(5, A, MUTEX | SPIN), end(9, A)], [(1, 8, "mutex")]),
        ([begin(1, A, SPIN), end(4, A, tid=9)], [(1, 3, "spinlock")]),
        ([begin(1, A, SPIN), end(4, A, cpu=1)], [(1, -1, "spinlock")]),
        ([begin(1, A, LockFlag.WRITE), end(4, A, cpu=1)], [(1, 3, "rwsem write")]),
        (
            [begin(1, A, MUTEX), begin(2, B, SPIN), end(3, B), end(8, A)],
            [(1, 7, "mutex"), (2, 1, "spinlock")],
        ),
        ([begin(1, A, SPIN, 0), begin(2, A, SPIN, 0, 1), end(5, A, 0), end(9, A, 0, 1)],
         [(1, 4, "spinlock"), (2, 7, "spinlock")]),
        ([end(1, A), begin(2, A, LockFlag.PERCPU | LockFlag.READ)], [(2, -1, "percpu rwsem read")]),
    ],
)  # fmt: skip
def test_which_end_belongs_to_a_begin(folder, records, expected):
    assert waits(records, folder) == expected


def test_sections_have_locks_tasks_and_failures(folder):
    records = [
        begin(1, A, MUTEX),
        end(4, A, ret=-4),
        begin(5, A, MUTEX),
        end(6, A),
        begin(7, B, SPIN),
        end(17, B),
    ]
    report = analysed(schedule_of(records), folder, analyse_locks)
    kinds, locks, tasks, longest = report.sections()
    assert list(kinds.groups) == ["spinlock", "mutex"]
    assert [(row[0].low, row[1], row[2].low, row[-1]) for row in locks.rows] == [
        (1, 0, 10 * US, f"{B:#x}"),
        (2, 1, 4 * US, f"{A:#x}"),
    ]
    assert tasks.rows[0][1].low == 14 * US
    assert longest.rows[0][:3] == (10 * US, 7 * US, 0)
    assert report.lock_contention["flags"].tolist() == ["MUTEX", "MUTEX", "SPIN"]


def generated(rng, n_cpus, n):
    """Waits of tasks for a mutex by turns and for a semaphore, and how long, in ns."""
    records, truth, waiting = [], {}, {}
    now = 0
    while len(records) < n:
        now += rng.randint(1, 20)
        tid, cpu = rng.randint(1, 5), rng.randrange(n_cpus)
        if tid not in waiting:
            lock, flags, kind = rng.choice([(A, MUTEX | SPIN, "mutex"), (B, LockFlag.READ, "rwsem read")])
            waiting[tid] = (lock, kind, now)
            records.append(begin(now, lock, flags, tid, cpu))
            continue
        lock, kind, since = waiting[tid]
        if kind == "mutex" and rng.random() < 0.4:
            records.append(begin(now, lock, MUTEX, tid, cpu))
            continue
        records.append(end(now, lock, tid, cpu))
        truth.setdefault(kind, []).append((now - since) * US)
        del waiting[tid]
    return records, truth


def figures(schedule, folder):
    return analysed(schedule, folder, analyse_locks).waits()


@pytest.mark.thorough
@settings(max_examples=30, deadline=None)
@given(rng=st.randoms(use_true_random=False), n_cpus=st.integers(1, 4), n=st.integers(2, 120))
def test_generated_waits_are_exact(folder, rng, n_cpus, n):
    records, truth = generated(rng, n_cpus, n)
    found = figures(schedule_of(records), folder)
    assert {kind: list(made.values) for kind, made in found.items()} == {
        kind: sorted(values) for kind, values in truth.items()
    }


@pytest.mark.parametrize("n_cpus", [1, 3])
def test_bounds_hold_where_pages_were_lost(folder, n_cpus):
    rng = random.Random(n_cpus)
    records, truth = generated(rng, n_cpus, 900)
    share, n = held(records, truth, figures, rng, folder)
    assert share >= 0.95
    assert n >= 80
