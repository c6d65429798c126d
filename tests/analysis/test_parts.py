"""Analyses of a recording that is read in parts: all that they find is what they find of the whole."""

import random
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracepoint as tp
from analysis import test_faults, test_latency, test_losses, test_swap, test_syscalls
from analysis.losing import US, Record, schedule_of
from effort import examples
from tracepoint.analysis import parts, sums
from tracepoint.analysis.registry import analyse
from tracepoint.analysis.sections import MAX_ROWS, Choice
from tracepoint.analysis.spans import Hiding
from tracepoint.analysis.swap.needs import RECLAIM
from tracepoint.analysis.text import report_facts
from tracepoint.decode import engine
from tracepoint.decode.trace import Trace
from tracepoint.tracefile.sieve import MAX_TIME, MIN_TIME, Window

CHOICES = (Choice(), Choice(most=None), Choice(cpus=[0]), Choice(tasks=[1, 2, 3, 10, 11]), Choice(most=1))


def syscalls(rng, n_cpus, n):
    """Calls, of which some go on after a signal, and tasks that take over the id of their process."""
    for record in test_syscalls.generated(rng, n_cpus, n)[0]:
        yield record
        if rng.random() < 0.05:
            pids = {"pid": rng.randint(1, 6), "old_pid": rng.randint(1, 6)}
            yield record._replace(event="sched:sched_process_exec", values=pids)
        if rng.random() < 0.05:
            yield record._replace(
                event="raw_syscalls:sys_enter", values={"id": test_syscalls.NUMBERS["exit_group"]}
            )


def memory(rng, _n_cpus, n):
    """Allocations, some of which are freed without an event, and of pages some in parts."""
    for record in test_losses.memory(rng, n):
        if not record.event.endswith("free") or rng.random() < 0.9:
            yield record
        if rng.random() < 0.05:
            values = {"pfn": 64 * rng.randrange(30) + rng.randrange(4), "order": rng.randrange(2)}
            yield record._replace(event="kmem:mm_page_free", values=values)


def faults(rng, _n_cpus, n):
    """Faults of programs and of the kernel, with mappings, some of which children and programs get."""
    for record in test_losses.faults(rng, n):
        is_of_kernel = record.event == test_faults.USER and rng.random() < 0.2
        yield record._replace(event=test_faults.KERNEL) if is_of_kernel else record
        if rng.random() < 0.05:
            parent, child = rng.sample(test_losses.TASKS, 2)
            values = {"parent_pid": parent, "child_pid": child, "pid": child}
            event = rng.choice(["sched:sched_process_fork", "sched:sched_process_exec"])
            yield record._replace(event=event, values=values)


def faults_alone(rng, n_cpus, n):
    """Faults without anything else."""
    return (one for one in faults(rng, n_cpus, n) if one.event in (test_faults.USER, test_faults.KERNEL))


def traps(rng, _n_cpus, n):
    """Traps, signals and interrupts, some within others."""
    for record in test_losses.traps(rng, n):
        yield record
        if rng.random() < 0.1:
            event = f"irq_vectors:{rng.choice(['reschedule', 'local_timer'])}_{rng.choice(['entry', 'exit'])}"
            yield record._replace(event=event, values={"vector": 253})


def softirqs(rng, n_cpus, n):
    """Raises and entries of a few vectors in any order, by any task."""
    now = 0
    for _ in range(n):
        now += rng.randint(0, 9)
        event = rng.choice([test_latency.RAISE, test_latency.ENTRY])
        yield Record(now, rng.randrange(n_cpus), event, {"vec": rng.randint(1, 4)}, rng.randint(1, 5))


def functions(rng, n_cpus, n):
    """Entries and exits of functions by tasks on any CPU, of which some have no entry or no exit."""
    now, inside = 0, {}
    for _ in range(n):
        now += rng.randint(0, 9)
        cpu, tid = rng.randrange(n_cpus), rng.randint(0, 3)
        stack = inside.setdefault(tid or ~cpu, [])
        if len(stack) < 4 and rng.random() < 0.5:
            func = rng.choice([0x1000, 0x2000, 0x3000])
            stack.append((func, now * US))
            yield Record(now, cpu, "ftrace:funcgraph_entry", {"func": func, "depth": len(stack) - 1}, tid)
        elif stack:
            func, begin = stack.pop()
            values = {"func": func, "depth": len(stack), "calltime": begin, "rettime": now * US}
            if rng.random() < 0.9:
                yield Record(now, cpu, "ftrace:funcgraph_exit", values, tid)


def locks(rng, n_cpus, n):
    """Begins and ends of waits for a few locks of each kind."""
    now = 0
    for _ in range(n):
        now += rng.randint(0, 9)
        values = {"lock_addr": rng.choice([0x10, 0x20, 0x30]), "flags": rng.choice([0, 1, 2, 5, 32, 33])}
        event = rng.choice(["lock:contention_begin", "lock:contention_end"])
        values["ret"] = rng.choice([0, 0, -11])
        yield Record(now, rng.randrange(n_cpus), event, values, rng.randint(1, 4))


def power(rng, n_cpus, n):
    """Idle states and frequencies of CPUs, which another CPU may record, and switches."""
    now = 0
    for _ in range(n):
        now += rng.randint(0, 9)
        cpu = rng.randrange(n_cpus)
        event, values, on = rng.choice(
            [("power:cpu_idle", {"cpu_id": cpu, "state": rng.choice([0, 1, 2, 0xFFFF_FFFF])}, cpu),
             ("power:cpu_frequency", {"cpu_id": cpu, "state": rng.choice([1200, 2400])}, rng.randrange(n_cpus)),
             ("power:cpu_idle_miss", {"cpu_id": cpu, "below": rng.randrange(2)}, cpu),
             ("sched:sched_switch", {"next_pid": rng.choice([0, 7])}, cpu)]
        )  # fmt: skip
        yield Record(now, on, event, values, 0)


def swapping(rng, n_cpus, n):
    """Pages that are swapped and written by tasks that reclaim, and pages of files, of a few places each."""
    now = 0
    for _ in range(n):
        now += rng.randint(0, 9)
        kind = rng.choice(["direct", "kswapd", "node"])
        page = {"i_ino": 5, "s_dev": 8, "index": rng.randint(1, 4)}
        event, values = rng.choice(
            [(test_swap.IN, {"entry": rng.randint(1, 6), "major": rng.randrange(2)}),
             (test_swap.OUT, {"entry": rng.randint(1, 6), "nr_pages": rng.randint(1, 3)}),
             (test_swap.WRITE, {"pfn": 1, "reclaim_flags": rng.choice([9, 6, 24, 0])}),
             (test_swap.DELETE, page), (test_swap.ADD, page),
             *((name, {"nr_reclaimed": rng.randint(0, 9)}) for name in RECLAIM[kind])]
        )  # fmt: skip
        yield Record(now, rng.randrange(n_cpus), event, values, rng.randint(1, 4))


def requests(rng, n_cpus, n):
    """Events of requests for a few places of two devices, of which one has a queue."""
    now = 0
    for _ in range(n):
        now += rng.randint(0, 9)
        dev, rwbs = rng.choice([8 << 20, 9 << 20]), rng.choice(["R", "WS", "FF", "D"])
        names = [
            "rq_issue",
            "rq_issue",
            "rq_complete",
            "rq_complete",
            "rq_requeue",
            "rq_merge",
            "bio_backmerge",
        ]
        event = rng.choice(names if dev == 9 << 20 else [*names, "rq_insert", "rq_insert", "bio_frontmerge"])
        values = {
            "dev": dev,
            "sector": 8 * rng.randint(1, 6),
            "nr_sector": rng.choice([8, 8, 16]),
            "rwbs": rwbs,
        }
        values["error"] = rng.choice([0, 0, 0, -5])
        yield Record(now, rng.randrange(n_cpus), f"block:block_{event}", values, rng.randint(1, 4))


def interrupts(rng, n_cpus, n):
    """Interrupts and softirqs in one another, timers and work, of which some begin or end without the other."""
    now, inside = 0, {cpu: [] for cpu in range(n_cpus)}
    for _ in range(n):
        now += rng.randint(0, 9)
        cpu, tid, roll = rng.randrange(n_cpus), rng.randint(1, 5), rng.random()
        if inside[cpu] and roll < 0.4:
            event, values = inside[cpu].pop()
            yield Record(now, cpu, event, values, tid)
        elif roll < 0.7 and len(inside[cpu]) < 4:
            what, values = rng.choice(
                [("irq:irq_handler", {"irq": 9, "name": "disk"}), ("irq:irq_handler", {"irq": 3, "name": "net"}),
                 ("irq:softirq", {"vec": 1}), ("irq:softirq", {"vec": 4}), ("irq_vectors:local_timer", {"vector": 236})]
            )  # fmt: skip
            yield Record(now, cpu, f"{what}_entry", values, tid)
            if rng.random() < 0.95:
                inside[cpu].append((f"{what}_exit", values))
        else:
            event, values = rng.choice(
                [("irq:softirq_raise", {"vec": 4}), ("irq:irq_handler_exit", {"irq": 9}),
                 ("timer:hrtimer_start", {"softexpires": now * US, "function": 64}),
                 ("timer:hrtimer_expire_entry", {"now": now * US, "function": 64}), ("timer:hrtimer_expire_exit", {}),
                 ("timer:timer_start", {"expires": 5}), ("timer:timer_expire_entry", {"now": 7, "function": 65}),
                 ("workqueue:workqueue_queue_work", {"work": 5, "function": 66, "workqueue": "events"}),
                 ("workqueue:workqueue_execute_start", {"work": 5, "function": 66}),
                 ("workqueue:workqueue_execute_end", {"work": 5, "function": 66})]
            )  # fmt: skip
            yield Record(now, cpu, event, {"hrtimer": 8, "timer": 8} | values, tid)


def between(begin, end, key, order):
    return softirqs, {"begin": begin, "end": end, "key": key, "order": order}


#: What makes records of each analysis that reads in parts, and the options that it needs; the name of the
#: analysis is the first word.
MAKERS = {
    "faults": (faults, {}),
    "faults alone": (faults_alone, {}),
    "memory": (memory, {}),
    "traps": (traps, {}),
    "syscalls": (syscalls, {}),
    "irq": (interrupts, {}),
    "functions": (functions, {}),
    "locks": (locks, {}),
    "power": (power, {}),
    "swap": (swapping, {}),
    "block": (requests, {}),
    "latency": between(test_latency.RAISE, test_latency.ENTRY, "vec:common_cpu", "last"),
    "latency first": between(test_latency.RAISE, test_latency.ENTRY, "vec", "first"),
    "latency queue": between(test_latency.RAISE, test_latency.ENTRY, "vec", "queue"),
    "latency stack": between(test_latency.RAISE, test_latency.ENTRY, "", "stack"),
    "latency of one event": between(test_latency.RAISE, test_latency.RAISE, "vec", "last"),
}


def analysed(trace, name):
    return analyse(trace, name.split()[0], **MAKERS[name][1])


def made_of(rng, analysis, n_cpus, n):
    """A recording of which records are lost, and its last time in us."""
    records = list(MAKERS[analysis][0](rng, n_cpus, n))
    # What a CPU loses at its end no page says.
    last = {record.cpu: place for place, record in enumerate(records)}.values()
    lost = {place for place in range(len(records)) if place not in last and rng.random() < 0.05}
    made = schedule_of(records, lost if rng.random() < 0.8 else frozenset())
    made.kallsyms, made.saved_tgids = test_faults.SYMBOLS, "10 10\n11 10\n12 12\n"
    return made, records[-1].us


def windows_at(rng, stop):
    """Parts that end at any times, some of them without records."""
    borders = sorted({rng.randint(0, stop * US + 1) for _ in range(rng.randint(1, 12))})
    return [Window(*pair) for pair in zip([MIN_TIME, *borders], [*borders, MAX_TIME], strict=True)]


def everything(report):
    """All that a report says, its tables as they are and in parts."""
    by_part = {name: [] for name in report.tables}

    def take(tables):
        for name, table in tables.items():
            by_part[name] += [{key: value for key, value in row.items() if key != "id"} for row in table]

    report.read_tables(take)
    whole = {name: table.to_dicts() for name, table in report.tables.items()}
    for name, rows in by_part.items():
        by_part[name] = sorted(rows, key=repr)
        assert by_part[name] == sorted(
            ({key: value for key, value in row.items() if key != "id"} for row in whole[name]), key=repr
        )
    facts = [report_facts(report, choice) for choice in CHOICES]
    return facts, whole, repr(report), report.has_figures


@pytest.mark.thorough
@pytest.mark.parametrize("analysis", MAKERS)
@settings(max_examples=examples(100), deadline=None)
@given(rng=st.randoms(use_true_random=False), n_cpus=st.integers(1, 4), n=st.integers(10, 150))
def test_any_parts_give_all_that_the_whole_does(tmp_path_factory, analysis, rng, n_cpus, n):
    schedule, stop = made_of(rng, analysis, n_cpus, n)
    path = tmp_path_factory.mktemp("any") / "made.dat"
    path.write_bytes(schedule.data())
    windows = windows_at(rng, stop)
    with tp.open_trace(path) as trace:
        whole = everything(analysed(trace, analysis))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Trace, "windows", lambda _: windows)
            assert everything(analysed(trace, analysis)) == whole
            # What does not stay is read again.
            patch.setattr(parts, "MAX_KEPT", rng.choice([-1, n // 4]))
            assert everything(analysed(trace, analysis)) == whole


@pytest.mark.parametrize("analysis", MAKERS)
def test_small_slices_are_parts(tmp_path, monkeypatch, analysis):
    schedule, _ = made_of(random.Random(5), analysis, 3, 4000)
    path = tmp_path / "made.dat"
    path.write_bytes(schedule.data())
    with tp.open_trace(path) as trace:
        whole = everything(analysed(trace, analysis))
    monkeypatch.setattr(engine, "_SLICE_BYTES", 4096)
    monkeypatch.setattr(engine, "_MIN_SLICES", 2)
    with tp.open_trace(path) as trace:
        assert len(trace.windows()) > 2
        assert everything(analysed(trace, analysis)) == whole


@pytest.mark.parametrize("analysis", MAKERS)
def test_figures_of_what_was_not_kept_outlive_the_recording(tmp_path, monkeypatch, analysis):
    schedule, stop = made_of(random.Random(3), analysis, 2, 400)
    path = tmp_path / "made.dat"
    path.write_bytes(schedule.data())
    windows = windows_at(random.Random(3), stop)
    monkeypatch.setattr(Trace, "windows", lambda _: windows)
    monkeypatch.setattr(parts, "MAX_KEPT", -1)
    with tp.open_trace(path) as trace:
        report = analysed(trace, analysis)
        shown = report_facts(report, Choice(most=MAX_ROWS))
    assert report_facts(report, Choice(most=MAX_ROWS)) == shown
    assert report.has_figures


@pytest.mark.parametrize("seed", range(3))
def test_many_times_are_folded_into_histograms(tmp_path, monkeypatch, seed):
    schedule, stop = made_of(random.Random(seed), "syscalls", 2, 400)
    path = tmp_path / "made.dat"
    path.write_bytes(schedule.data())
    with tp.open_trace(path) as trace:
        whole = analyse(trace, "syscalls").latency
        monkeypatch.setattr(Trace, "windows", lambda _: windows_at(random.Random(seed), stop))
        monkeypatch.setattr(sums, "MAX_EXACT", 20)
        monkeypatch.setattr(sums, "_FEW", 3)
        folded = analyse(trace, "syscalls").latency
    assert list(folded) == list(whole)
    for name, samples in whole.items():
        own = folded[name]
        assert (own.count, own.sum, own.mean) == (samples.count, samples.sum, samples.mean)
        for exact, found in zip(
            samples.quantiles(0.5, 0.99, 1.0), own.quantiles(0.5, 0.99, 1.0), strict=True
        ):
            if exact is None:
                assert found is None
                continue
            assert found.low <= exact.low
            assert (exact.high is None) == (found.high is None)
            assert found.high is None or exact.high <= found.high <= exact.high * (1 + 2**-7) + 1


def test_groups_of_few_times_are_put_together_with_folded_ones(monkeypatch):
    monkeypatch.setattr(sums, "MAX_EXACT", 20)
    monkeypatch.setattr(sums, "_FEW", 3)
    found = sums.SampleSums()
    found.add_values({"many": array("q", range(100, 200)), "few": array("q", [7])})
    every, few = found.joined(Hiding(0, None)), found.joined(Hiding(0, None), ["few"])
    assert (every.count.low, every.sum.low, every.quantile(0.001).low) == (101, sum(range(100, 200)) + 7, 7)
    assert list(few.values) == [7]
