"""System calls: pairs and chains, the kernel's exceptions, errors, and what losses leave of them."""

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.losing import US, Record, analysed, held, schedule_of
from tracepoint.analysis import analyse_syscalls
from tracepoint.analysis.spans import OPEN
from tracepoint.analysis.syscalls.calls import Restart
from tracepoint.analysis.syscalls.numbers import names_on
from tracepoint.errors import TracepointError

NUMBERS = {name: number for number, name in names_on("x86_64").items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("syscalls")


def enter(us, number, tid=7, cpu=0):
    return Record(us, cpu, "raw_syscalls:sys_enter", {"id": NUMBERS.get(number, number)}, tid)


def leave(us, number, ret=0, tid=7, cpu=0):
    return Record(us, cpu, "raw_syscalls:sys_exit", {"id": NUMBERS.get(number, number), "ret": ret}, tid)


def calls_of(records, folder):
    report = analysed(schedule_of(records), folder, analyse_syscalls)
    return report, [
        (row["ts"] // US, row["dur"] // US if row["dur"] != OPEN else OPEN, row["name"], row["n_parts"])
        for row in report.syscall
    ]


def test_trace_9(folder):
    records = [
        leave(5, 0), enter(10, 1), leave(20, 1), enter(30, 59), leave(40, 59), enter(45, 35), leave(50, 35, -516),
        enter(52, 219), leave(60, 219), enter(62, 15), leave(64, -1), enter(90, 231),
    ]  # fmt: skip
    report, calls = calls_of(records, folder)
    assert calls == [
        (10, 10, "write", 1), (30, 10, "execve", 1), (45, 15, "nanosleep", 2), (62, 2, "rt_sigreturn", 1),
        (90, OPEN, "exit_group", 1),
    ]  # fmt: skip
    assert report.n_calls == 5
    assert report.syscall["ret"].tolist() == [0, 0, 0, 0, None]
    assert [note for note in report.notes() if "call" in note or "end" in note][-2:] == [
        "1 end without a begin (raw_syscalls:sys_exit)",
        "1 call without an end that never have one, such as exit",
    ]


@pytest.mark.parametrize("code", [Restart.ERESTARTSYS, Restart.ERESTARTNOINTR])
def test_a_call_goes_on_after_the_handler_of_a_signal(folder, code):
    records = [
        enter(10, "read"), leave(20, "read", code), enter(22, "getpid"), leave(23, "getpid", 7),
        enter(25, "rt_sigreturn"), leave(26, -1, code), enter(27, "read"), leave(40, "read", 3),
    ]  # fmt: skip
    calls = calls_of(records, folder)[1]
    assert calls == [(10, 30, "read", 2), (22, 1, "getpid", 1), (25, 1, "rt_sigreturn", 1)]


def test_a_call_that_a_handler_ends_is_not_entered_again(folder):
    records = [
        enter(10, "pause"), leave(20, "pause", Restart.ERESTARTNOHAND), enter(22, "getpid"), leave(23, "getpid"),
        enter(25, "rt_sigreturn"), leave(26, -1, -4), enter(27, "pause"), leave(40, "pause", -4),
    ]  # fmt: skip
    report, calls = calls_of(records, folder)
    assert [call[:3] for call in calls if call[2] == "pause"] == [(10, 10, "pause"), (27, 13, "pause")]
    errors = next(section for section in report.sections() if section.key == "errors")
    assert errors.rows == [(1, "pause", "ERESTARTNOHAND"), (1, "pause", "EINTR")]


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([enter(1, "fork"), leave(4, "fork", 0, 8), leave(5, "fork", 8)], [(1, 4, "fork", 1)]),
        (
            [enter(1, "read"), enter(5, "write"), leave(9, "write")],
            [(1, OPEN, "read", 1), (5, 4, "write", 1)],
        ),
        ([enter(1, "read"), leave(5, "write")], [(1, OPEN, "read", 1)]),
        ([enter(1, "exit"), enter(9, "read", cpu=1)], [(1, OPEN, "exit", 1), (9, OPEN, "read", 1)]),
        ([enter(1, 1 << 30), leave(3, 1 << 30)], [(1, 2, "x32 read", 1)]),
        ([enter(1, 9999), leave(3, 9999)], [(1, 2, "syscall 9999", 1)]),
        ([enter(1, "restart_syscall"), leave(3, "restart_syscall")], [(1, OPEN, "restart_syscall", 1)]),
        (
            [
                enter(1, "execve", 8),
                enter(2, "futex", 7),
                Record(3, 0, "sched:sched_process_exec", {"pid": 7, "old_pid": 8}, 7),
                leave(9, "execve", 0, 7),
            ],
            [(1, 8, "execve", 1), (2, OPEN, "futex", 1)],
        ),
    ],
)
def test_the_exceptions_of_the_kernel(folder, records, expected):
    assert calls_of(records, folder)[1] == expected


def single(us, event, values, tid=7):
    return Record(us, 0, f"syscalls:{event}", values, tid)


def test_events_of_single_calls_do_where_there_are_no_others(folder):
    read, futex = {"__syscall_nr": 0, "ret": -11}, {"__syscall_nr": 202, "ret": -512}
    records = [
        single(1, "sys_enter_read", read), single(4, "sys_exit_read", read), single(5, "sys_enter_futex", futex),
        single(6, "sys_exit_futex", futex), single(7, "sys_enter_futex", futex),
        single(9, "sys_exit_futex", futex | {"ret": 0}), single(10, "sys_enter_exit_group", {"__syscall_nr": 231}),
    ]  # fmt: skip
    report, calls = calls_of(records, folder)
    assert calls == [(1, 3, "read", 1), (5, 4, "futex", 2), (10, OPEN, "exit_group", 1)]
    assert next(s for s in report.sections() if s.key == "errors").rows == [(1, "read", "EAGAIN")]


def test_a_recording_without_calls_says_what_to_record(folder):
    raised = Record(1, 0, "irq:softirq_raise", {"vec": 1})
    with pytest.raises(
        TracepointError, match="no raw_syscalls:sys_enter; tracepoint analyse syscalls --events"
    ):
        analysed(schedule_of([raised], frozenset(), raised.event), folder, analyse_syscalls)


def test_numbers_are_those_of_the_headers():
    header = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
    if not header.exists():
        pytest.skip(f"no {header}: apt-get install linux-libc-dev")
    words = (line.split() for line in header.read_text().splitlines() if line.startswith("#define __NR_"))
    expected = {int(number): name.removeprefix("__NR_") for _, name, number in words}
    assert len(expected) > 300
    assert expected.items() <= names_on("x86_64").items()


NAMES = ("read", "nanosleep", "futex")


def generated(rng, n_cpus, n):
    """Calls of tasks that signals interrupt at times, and how long each took by name in ns."""
    records, truth, open_calls = [], {}, {}
    now = 0
    while len(records) < n:
        now += rng.randint(1, 20)
        tid, cpu = rng.randint(1, 6), rng.randrange(n_cpus)
        if tid not in open_calls:
            name = rng.choice(NAMES)
            open_calls[tid] = (name, name, now)
            records.append(enter(now, name, tid, cpu))
            continue
        name, entered, since = open_calls[tid]
        if rng.random() < 0.2:
            code, again = rng.choice([(-512, name), (-516, "restart_syscall")])
            records.append(leave(now, entered, code, tid, cpu))
            now += 1
            # Only a plain restart has the number of the call again.
            entered = again if entered != "restart_syscall" or code == -516 else entered
            records.append(enter(now, entered, tid, cpu))
            open_calls[tid] = (name, entered, since)
        else:
            records.append(leave(now, entered, 0, tid, cpu))
            truth.setdefault(name, []).append((now - since) * US)
            del open_calls[tid]
    return records, truth


def by_name(schedule, folder):
    """The figures of calls by name, from the rows of the table and the section."""
    report = analysed(schedule, folder, analyse_syscalls)
    return report.latency


@pytest.mark.thorough
@settings(max_examples=40, deadline=None)
@given(rng=st.randoms(use_true_random=False), n_cpus=st.integers(1, 4), n=st.integers(2, 120))
def test_generated_calls_are_exact(folder, rng, n_cpus, n):
    records, truth = generated(rng, n_cpus, n)
    found = by_name(schedule_of(records), folder)
    assert {name: list(samples.values) for name, samples in found.items()} == {
        name: sorted(values) for name, values in truth.items()
    }


@pytest.mark.parametrize("n_cpus", [1, 3])
def test_bounds_hold_where_pages_were_lost(folder, n_cpus):
    rng = random.Random(n_cpus)
    records, truth = generated(rng, n_cpus, 1500)
    share, n = held(records, truth, by_name, rng, folder)
    assert share >= 0.95
    assert n >= 100
