"""Times between any two events: which belong together, in text and JSON, and what losses leave of them."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.losing import US, Record, analysed, held, schedule_of
from tracepoint.analysis import analyse_latency, needed_events
from tracepoint.analysis.distribution import Bounds
from tracepoint.errors import TracepointError

RAISE, ENTRY = "irq:softirq_raise", "irq:softirq_entry"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("latency")


def times(records, folder, *args, **options):
    report = analysed(schedule_of(records), folder, analyse_latency, *args, **options)
    return [(row["ts"] // US, row["dur"] // US if row["dur"] >= 0 else -1) for row in report.latency]


def softirqs(*steps):
    """Raises `r` and entries `e` of a softirq on CPU 0: what, time, vector."""
    return [Record(us, 0, RAISE if what == "r" else ENTRY, {"vec": vec}, 7) for what, us, vec in steps]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("last", [(10, -1), (12, 4)]),
        ("first", [(10, 6)]),
        ("stack", [(10, 15), (12, 4)]),
        ("queue", [(10, 6), (12, 13)]),
    ],
)
def test_the_order_says_which_begin_an_end_belongs_to(folder, order, expected):
    records = softirqs(("r", 10, 4), ("r", 12, 4), ("e", 16, 4), ("e", 25, 4))
    assert times(records, folder, RAISE, ENTRY, "vec", order) == expected


def test_trace_11(folder):
    records = softirqs(
        ("r", 100, 1), ("e", 110, 1), ("r", 200, 2), ("e", 220, 2), ("r", 300, 3), ("e", 330, 3),
        ("r", 400, 4), ("e", 440, 4),
    )  # fmt: skip
    schedule = schedule_of(records)
    schedule.lose(0, 1)
    schedule.add(500, 0, "irq:softirq_exit", {"vec": 4}, 7)
    report = analysed(schedule, folder, analyse_latency, RAISE, ENTRY, "vec")
    (all_of_it,) = (section.groups["all"] for section in report.sections() if section.key == "latency_ns")
    assert all_of_it.count == Bounds(4, 5)
    assert all_of_it.quantile(0.5) == Bounds(20 * US, 30 * US)
    longest, total = all_of_it.quantile(1.0), all_of_it.sum
    assert longest.low == 40 * US
    assert total.low == 100 * US
    # The hidden one is as long as the trace at most, where that is said.
    assert (longest.high is None) == (total.high is None)
    assert total.high is None or total.high - total.low >= 40 * US


def test_keys_keep_times_apart_and_can_have_two_names(folder):
    records = softirqs(("r", 10, 4), ("r", 11, 9), ("e", 15, 9), ("e", 17, 4))
    assert times(records, folder, RAISE, ENTRY, "vec:common_cpu") == [(10, 7), (11, 4)]
    assert times(records, folder, RAISE, ENTRY) == [(10, -1), (11, 4)]
    switch = {"prev_pid": 1, "next_pid": 5, "prev_comm": "a", "next_comm": "b"}
    back = {"prev_pid": 5, "next_pid": 1, "prev_comm": "b", "next_comm": "a"}
    records = [Record(20, 0, "sched:sched_switch", switch), Record(29, 0, "sched:sched_switch", back)]
    for key in ("next_pid=prev_pid:common_cpu", "next_comm=prev_comm"):
        assert times(records, folder, "sched_switch", "sched_switch", key) == [(20, 9), (29, -1)]


def test_text_and_json(run, made, folder):
    path = made(schedule_of(softirqs(("r", 10, 4), ("e", 16, 4), ("r", 20, 4), ("e", 22, 4), ("r", 30, 9))))
    words = ("--begin", RAISE, "--end", ENTRY, "--key", "vec")
    status, out, err = run("latency", path, *words)
    assert status == 0
    assert out.splitlines()[2].split() == "all 2 4.000 us 2.000 us 6.000 us 6.000 us".split()
    assert out.splitlines()[6].split() == "2 8.000 us 4.000 us 6.000 us 6.000 us vec=4".split()
    assert f"1 begin without an end ({RAISE})" in err
    facts = json.loads(run("latency", path, *words, "--format", "json")[1])
    assert [row["dur"] for row in facts["longest"]] == [6000, 2000]
    assert facts["longest"][0]["task"] == "<...>-7"
    assert run("latency", *words, "--events")[1].split() == [RAISE, ENTRY]


def test_options_are_of_one_analysis(run, made):
    path = made(schedule_of(softirqs(("r", 10, 4))))
    assert "latency needs --begin and --end" in run("latency", path)[2]
    assert "sched has no --key" in run("sched", path, "--key", "pid")[2]
    with pytest.raises(KeyError, match="no option of latency 'ende'; did you mean 'end'"):
        needed_events("latency", begin=RAISE, ende=ENTRY)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("softirq_raised", ENTRY), "did you mean 'softirq_raise'"),
        ((RAISE, ENTRY, "vector"), "irq:softirq_raise has no field vector"),
        ((RAISE, ENTRY, "vec="), "not FIELD or FIELD=FIELD"),
        ((RAISE, ENTRY, ":"), "not FIELD or FIELD=FIELD"),
        (("raw_syscalls:sys_enter", "raw_syscalls:sys_enter", "args"), "cannot be a key"),
    ],
)
def test_what_cannot_be_is_refused(folder, words, says):
    with pytest.raises(TracepointError, match=says):
        analysed(schedule_of(softirqs(("r", 10, 4))), folder, analyse_latency, *words)


def calls(rng, n_cpus, n):
    """Calls of tasks on CPUs, and how long each took; a task has one at a time."""
    records, lengths, busy = [], [], {}
    now = 0
    while len(records) < n:
        now += rng.randint(1, 20)
        task = rng.randint(1, 5)
        cpu = rng.randrange(n_cpus)
        if task in busy:
            lengths.append((now - busy.pop(task)) * US)
            records.append(Record(now, cpu, "raw_syscalls:sys_exit", {"id": 1}, task))
        else:
            busy[task] = now
            records.append(Record(now, cpu, "raw_syscalls:sys_enter", {"id": 1}, task))
    return records, lengths


def latencies(schedule, folder):
    report = analysed(
        schedule, folder, analyse_latency, "raw_syscalls:sys_enter", "raw_syscalls:sys_exit", "common_pid"
    )
    return report.sections()[0].groups


@pytest.mark.thorough
@settings(max_examples=40, deadline=None)
@given(rng=st.randoms(use_true_random=False), n_cpus=st.integers(1, 4), n=st.integers(1, 120))
def test_generated_calls_are_exact(folder, rng, n_cpus, n):
    records, lengths = calls(rng, n_cpus, n)
    found = analysed(schedule_of(records), folder, lambda trace: trace.events)
    if "raw_syscalls:sys_exit" in found:
        assert [list(s.values) for s in latencies(schedule_of(records), folder).values()] == [
            sorted(lengths)
        ] * bool(lengths)


@pytest.mark.parametrize("n_cpus", [1, 3])
def test_bounds_hold_where_pages_were_lost(folder, n_cpus):
    rng = random.Random(n_cpus)
    records, lengths = calls(rng, n_cpus, 600)
    share, n = held(records, {"all": lengths}, latencies, rng, folder)
    assert share >= 0.95
    assert n >= 40
