"""Interrupts and softirqs with what interrupted them, what they deferred, and what losses leave of them."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.losing import US, Record, analysed, held, schedule_of
from tracepoint.analysis import analyse_irq
from tracepoint.analysis.sections import Choice
from tracepoint.errors import TracepointError

BLOCK, SCHED = 4, 7
A = 10
# When a softirq begins and ends on CPU 0 and on CPU 1.
BOTH = (
    ((10, "softirq_entry"), (20, "softirq_exit")),
    ((12, "softirq_entry"), (15, "softirq_exit")),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("irq")


def irq(us, event, cpu=0, by=A, **values):
    return Record(us, cpu, f"irq:{event}", values, by)


def handler(begin, end, line, name="disk"):
    return [
        irq(begin, "irq_handler_entry", irq=line, name=name),
        irq(end, "irq_handler_exit", irq=line, ret=1),
    ]


def by_time(*parts):
    return sorted((record for part in parts for record in part), key=lambda record: record.us)


def trace_8():
    return by_time(
        handler(10, 15, 24),
        [irq(12, "softirq_raise", vec=BLOCK)],
        [irq(16, "softirq_entry", vec=BLOCK), irq(26, "softirq_exit", vec=BLOCK)],
        handler(18, 20, 25, "net"),
    )


def section(report, key):
    return next(found for found in report.sections() if found.key == key)


def test_trace_8(folder):
    report = analysed(schedule_of(trace_8()), folder, analyse_irq)
    assert {name: list(made.values) for name, made in report.irqs().items()} == {
        "24 disk": [5 * US],
        "25 net": [2 * US],
    }
    soft = section(report, "soft_irqs").rows
    assert [(row[-1], row[1].low, row[2]) for row in soft] == [("BLOCK", 10 * US, 8 * US)]
    assert list(report.raise_latency["BLOCK"].values) == [4 * US]
    hard, soft, *_ = section(report, "tasks").rows[0]
    assert (hard, soft) == (7 * US, 8 * US)
    assert 100 * US - hard - soft == 85 * US


def test_net_time_is_that_of_the_chosen_cpus(folder):
    records = [irq(begin, event, cpu, vec=BLOCK) for cpu in (0, 1) for begin, event in BOTH[cpu]]
    report = analysed(schedule_of(by_time(records)), folder, analyse_irq)
    for cpus, net in (({0}, 10), ({1}, 3), (None, 13)):
        sections = {found.key: found for found in report.sections(Choice(cpus))}
        assert [row[2] for row in sections["soft_irqs"].rows] == [net * US]


def test_tables_have_the_columns_of_perfetto(folder):
    tables = analysed(schedule_of(trace_8()), folder, analyse_irq).tables
    assert tables["linux_irqs"].columns[:6] == ("id", "ts", "dur", "name", "parent_id", "is_soft_irq")
    assert tables["linux_hard_irqs"].to_dicts()[1] == {
        "id": 2, "ts": 18 * US, "dur": 2 * US, "name": "IRQ (net)", "parent_id": None, "cpu": 0, "net_dur": 2 * US
    }  # fmt: skip
    assert tables["linux_soft_irqs"].to_dicts() == [
        {"id": 1, "ts": 16 * US, "dur": 10 * US, "name": "BLOCK", "cpu": 0, "net_dur": 8 * US}
    ]
    assert tables["softirq_wait"]["dur"].tolist() == [4 * US]


def test_the_first_raise_since_the_last_entry_counts(folder):
    records = [
        irq(10, "softirq_raise", vec=BLOCK), irq(12, "softirq_raise", vec=BLOCK), irq(13, "softirq_raise", vec=SCHED),
        irq(16, "softirq_entry", vec=BLOCK), irq(17, "softirq_raise", vec=BLOCK), irq(18, "softirq_exit", vec=BLOCK),
        irq(19, "softirq_entry", vec=BLOCK), irq(21, "softirq_exit", vec=BLOCK),
        irq(20, "softirq_entry", cpu=1, vec=SCHED), irq(22, "softirq_entry", vec=SCHED),
    ]  # fmt: skip
    report = analysed(schedule_of(records), folder, analyse_irq)
    found = {name: list(made.values) for name, made in report.raise_latency.items()}
    assert found == {"BLOCK": [2 * US, 6 * US], "SCHED": [9 * US]}


def test_two_actions_of_a_shared_line_are_two_handlers(folder):
    records = handler(10, 12, 9, "acpi") + handler(12, 13, 9, "usb")
    report = analysed(schedule_of(records), folder, analyse_irq)
    assert {name: list(made.values) for name, made in report.irqs().items()} == {
        "9 acpi": [2 * US],
        "9 usb": [1 * US],
    }


def timer(us, event, cpu=0, **values):
    return Record(us, cpu, f"timer:{event}", {"hrtimer": 0xFFFF888000000040} | values, A)


def vector(us, name, cpu=0):
    return Record(us, cpu, f"irq_vectors:{name}", {"vector": 236}, A)


def test_a_timer_is_as_late_as_its_last_start_says(folder):
    records = [
        timer(1, "hrtimer_start", softexpires=90 * US, function=0x10),
        timer(2, "hrtimer_start", softexpires=50 * US, function=0x10, was_armed=1),
        vector(52, "local_timer_entry", 1),
        timer(53, "hrtimer_expire_entry", 1, now=52 * US, function=0x10),
        timer(56, "hrtimer_expire_exit", 1),
        timer(57, "hrtimer_start", 1, softexpires=100 * US, function=0x10),
        vector(59, "local_timer_exit", 1),
        timer(61, "hrtimer_cancel", 1),
    ]
    report = analysed(schedule_of(records), folder, analyse_irq)
    assert list(report.lateness.values) == [2 * US]
    assert {name: list(made.values) for name, made in report.irqs().items()} == {"local_timer": [7 * US]}
    assert section(report, "functions").rows[0][1:3] == ((3 * US, 3 * US), 3 * US)


def test_timers_of_the_wheel_are_late_in_ticks(folder):
    started, expired = {"timer": 7, "expires": 1000, "now": 990}, {"timer": 7, "now": 1003}
    records = [
        Record(1, 0, "timer:timer_start", started), Record(9, 0, "timer:timer_expire_entry", expired),
        Record(11, 0, "timer:timer_expire_exit", expired),
    ]  # fmt: skip
    assert analysed(schedule_of(records), folder, analyse_irq).lateness_ticks.values.tolist() == [3]


def work(us, event, by, **values):
    return Record(us, 0, f"workqueue:workqueue_{event}", values, by)


def test_work_waits_until_it_starts_and_ends_with_its_worker(folder):
    records = [
        work(1, "queue_work", A, work=5, function=64, workqueue="events"),
        work(4, "execute_start", 70, work=5, function=64),
        work(5, "queue_work", A, work=5, function=64, workqueue="events"),
        work(6, "execute_start", 71, work=6, function=65),
        work(8, "execute_end", 70, work=5, function=64),
        work(9, "execute_start", 70, work=5, function=64),
        work(10, "execute_end", 71, work=0, function=0),
    ]
    report = analysed(schedule_of(records), folder, analyse_irq)
    assert list(report.work_latency["events"].values) == [3 * US, 4 * US]
    functions = {row[-1]: (row[0].low, row[1].low) for row in section(report, "functions").rows}
    assert functions == {"0x40": (1, 4 * US), "0x41": (1, 4 * US)}


def test_a_recording_without_interrupts_says_what_to_record(folder):
    made = schedule_of([Record(1, 0, "raw_syscalls:sys_enter", {})], frozenset(), "raw_syscalls:sys_enter")
    with pytest.raises(TracepointError, match="tracepoint analyse irq --events"):
        analysed(made, folder, analyse_irq)


def generated(rng, n_cpus, n):
    """Softirqs that interrupts interrupt on CPUs; the waits, and the lengths of softirqs, in ns."""
    records, waits, lengths = [], [], []
    now = dict.fromkeys(range(n_cpus), 0)
    while len(records) < n:
        cpu = rng.randrange(n_cpus)
        start = now[cpu] = now[cpu] + rng.randint(1, 30)
        raised = [start, *sorted(rng.randint(start, start + 5) for _ in range(rng.randint(0, 2)))]
        records += (irq(us, "softirq_raise", cpu, vec=BLOCK) for us in raised)
        entry = raised[-1] + rng.randint(1, 5)
        leave = entry + rng.randint(6, 20)
        records.append(irq(entry, "softirq_entry", cpu, vec=BLOCK))
        if rng.random() < 0.5:
            records.append(irq(entry + 1, "irq_handler_entry", cpu, irq=9, name="x"))
            records.append(irq(entry + 4, "irq_handler_exit", cpu, irq=9))
        records.append(irq(leave, "softirq_exit", cpu, vec=BLOCK))
        now[cpu] = leave
        waits.append((entry - start) * US)
        lengths.append((leave - entry) * US)
    return by_time(records), {"wait": waits, "run": lengths}


def figures(schedule, folder):
    report = analysed(schedule, folder, analyse_irq)
    found = {"wait": report.raise_latency.get("BLOCK"), "run": report.softirqs().get("BLOCK")}
    return {name: made for name, made in found.items() if made is not None}


@settings(max_examples=30, deadline=None)
@given(rng=st.randoms(use_true_random=False), n_cpus=st.integers(1, 4), n=st.integers(2, 120))
def test_generated_softirqs_are_exact(folder, rng, n_cpus, n):
    records, truth = generated(rng, n_cpus, n)
    found = figures(schedule_of(records), folder)
    assert {name: list(made.values) for name, made in found.items()} == {
        name: sorted(values) for name, values in truth.items()
    }


@pytest.mark.parametrize("n_cpus", [1, 3])
def test_bounds_hold_where_pages_were_lost(folder, n_cpus):
    rng = random.Random(n_cpus)
    records, truth = generated(rng, n_cpus, 800)
    share, n = held(records, truth, figures, rng, folder)
    assert share >= 0.95
    assert n >= 80
