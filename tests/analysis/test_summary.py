"""Summaries of recordings: the figures of their analyses, put together and taken apart."""

import json

import pytest

import tracepoint as tp
from analysis.making import Schedule
from analysis.test_sched import A, B, C, lossy, x1
from tracefile.making import GOLDEN, content_of, written
from tracepoint.analysis import analyse_sched, summarise, summarise_by
from tracepoint.analysis.registry import analyse
from tracepoint.analysis.sections import DistributionSection
from tracepoint.analysis.summary import TraceSummary, merge_groups
from tracepoint.errors import TracepointError
from tracepoint.tracefile.recording import stats_options

US = 1000


@pytest.fixture
def opened(tmp_path):
    def run(data):
        path = tmp_path / "made.dat"
        path.write_bytes(data)
        return tp.open_trace(path)

    return run


def test_a_summary_of_sched_has_the_figures_of_the_report(opened):
    with opened(x1().data()) as trace:
        made, report = summarise(trace, "sched"), analyse_sched(trace)
    assert made["run_ns"] == (sum(t.run.low for t in report.tasks),) * 2
    assert made["switches"] == (9, 9)
    assert (made["cpus"].low, made["cpu_ns"].low) == (2, 2 * 600 * US)
    assert made["busy_ns"] == (470 * US, 470 * US + made["unknown_ns"].low)
    assert made["asleep_S_ns"].low == sum(t.asleep.get("S", 0) for t in report.tasks)
    assert made.histograms["latency_ns.preemption"].sum == (50 * US, 50 * US)
    assert made.histograms["latency_ns"].n == len(report.latency())
    assert made.tops["run_ns_by_comm"].count(f"t{A}") == (360 * US, 360 * US)
    assert made["lost_events"] == (0, 0)
    assert made.tops["missing_events"].count("task:task_rename").low == 1


def test_parts_by_name_add_up_to_the_whole(opened):
    with opened(x1().data()) as trace:
        whole, parts = summarise(trace, "sched"), summarise_by(trace, "sched", ["host", "comm"], "web1")
    assert set(parts) == {("web1", f"t{task}") for task in (A, B, C, 40)}
    assert parts["web1", f"t{A}"].histograms["latency_ns"].n == 3
    for name in ("run_ns", "tasks", "runs", "voluntary", "involuntary", "runnable_ns"):
        assert sum(part[name].low for part in parts.values()) == whole[name].low, name
    assert sum(part.histograms["latency_ns"].n for part in parts.values()) == whole.histograms["latency_ns"].n


def test_losses_give_bounds_and_stay_in_what_is_put_together(opened):
    with opened(lossy(3).data()) as trace:
        made, report = summarise(trace, "sched"), analyse_sched(trace)
    with opened(x1().data()) as trace:
        both = made.merge(summarise(trace, "sched"))
    # CPU 1 lost 180 us, in which any one task may have run.
    assert made["run_ns"].high - made["run_ns"].low == 180 * US
    assert made.histograms["latency_ns"].quantile(0.5) == report.latency().quantile(0.5)
    assert (both["traces"].low, both["traces_with_losses"].low, both["lost_events"]) == (2, 1, (3, 3))
    assert both.histograms["latency_ns"].n_hidden == report.n_hidden
    assert both.histograms["latency_ns"].count.high == 2 + report.n_hidden + 3


def test_a_loss_that_was_not_counted_leaves_lower_bounds(opened):
    with opened(lossy(-1).data()) as trace:
        sched, events = summarise(trace, "sched"), summarise(trace, "events")
    assert sched["lost_events"] == events["lost_events"] == (1, None)
    assert sched.histograms["latency_ns"].quantile(0.5) is None
    assert events["records"].high is None


def test_events_by_cpu_and_name_add_up_to_the_whole(opened):
    with opened(lossy(3).data()) as trace:
        whole = summarise(trace, "events")
        parts = {by: summarise_by(trace, "events", by) for by in (("cpu",), ("event",), ("event", "cpu"))}
        counted = dict(trace.events)
    assert whole["records"] == (sum(counted.values()), sum(counted.values()) + 3)
    assert {key[0]: part["records"].low for key, part in parts["event",].items()} == counted
    assert {key[0]: part["lost_events"].low for key, part in parts["cpu",].items()} == {"0": 0, "1": 3}
    # CPU 0 lost nothing, so what it has is exact.
    assert parts["event", "cpu"]["sched:sched_switch", "0"]["records"].is_exact
    assert parts["event", "cpu"]["sched:sched_switch", "1"]["records"] == (2, 5)
    assert sum(part["records"].low for part in parts["event", "cpu"].values()) == whole["records"].low
    assert whole.tops["lost_by_host"].count("unknown").low == 3


def test_what_no_page_says_the_place_of_any_cpu_may_have_lost(opened):
    stats = {0: "overrun: 0\ndropped events: 7\n", 1: "overrun: 0\ndropped events: 0\n"}
    with opened(written(content_of(options=stats_options(stats)))) as trace:
        whole, parts = summarise(trace, "events"), summarise_by(trace, "events", ["cpu"])
    assert whole["lost_events"] == (7, 7)
    assert {part["lost_events"] for part in parts.values()} == {(0, 7)}
    assert all(part["records"].high == part["records"].low + 7 for part in parts.values())


def test_json_holds_all_of_a_summary(opened):
    with opened(lossy(-1).data()) as trace:
        made = summarise(trace, "sched")
    again = TraceSummary.from_facts(json.loads(json.dumps(made.facts())))
    assert again == made
    assert again.merge(made) == made.merge(made)
    with pytest.raises(TracepointError, match="summary/2"):
        TraceSummary.from_facts(made.facts() | {"schema": "tracepoint.summary/2"})
    with pytest.raises(TracepointError, match="not a summary"):
        TraceSummary.from_facts({"schema": "tracepoint.summary/1"})


def test_groups_are_put_together_by_their_keys(opened):
    with opened(x1().data()) as trace:
        a, b = (summarise_by(trace, "sched", ["host", "comm"], host) for host in ("a", "b"))
    assert merge_groups([a, b]).keys() == a.keys() | b.keys()
    assert merge_groups([a, a])["a", f"t{B}"]["traces"].low == 2


def test_unknown_kinds_and_keys_are_refused_and_kinds_do_not_mix(opened):
    s = Schedule("sched:sched_waking")
    s.waking(1, 0, A)
    with opened(s.data()) as trace:
        with pytest.raises(KeyError, match="did you mean 'sched'"):
            summarise(trace, "shed")
        with pytest.raises(KeyError, match="there are: host, comm"):
            summarise_by(trace, "sched", ["cpu"])
        with pytest.raises(TracepointError, match="no sched:sched_switch"):
            summarise(trace, "sched")
    with pytest.raises(ValueError, match="do not add up"):
        TraceSummary("sched").merge(TraceSummary("events"))


SECTIONS = {
    "faults": ("kinds", "faults", "faults_by_kind"),
    "syscalls": ("calls", "calls", "calls_by_name"),
    "irq": ("soft_irqs", "soft_irqs", "soft_irqs_by_name"),
    "traps": ("vectors", "traps", "traps_by_vector"),
    "block": ("devices", "requests", "requests_by_device"),
}


def of_requests(folder):
    schedule = Schedule()
    for at in range(0, 400, 20):
        common = {"dev": 8388608, "sector": at, "nr_sector": 8}
        schedule.add(at, 0, "block:block_rq_issue", common | {"bytes": 4096, "rwbs": "R"}, 7)
        schedule.add(at + 5 + at // 100, 0, "block:block_rq_complete", common | {"error": 0, "rwbs": "R"}, 0)
    path = folder / "block.dat"
    path.write_bytes(schedule.data())
    return path


@pytest.mark.parametrize("analysis", SECTIONS)
def test_summaries_have_the_figures_of_the_analysis(analysis, tmp_path):
    path = of_requests(tmp_path) if analysis == "block" else GOLDEN / "cut.v6.dat"
    with tp.open_trace(path) as trace:
        report, made = analyse(trace, analysis), summarise(trace, analysis)
    key, figure, top = SECTIONS[analysis]
    sections = {section.key: section for section in report.sections()}
    counts = [int(getattr(row[0], "low", row[0])) for row in sections[key].rows]
    assert sum(counts)
    assert made[figure] == report.coverage.bound(sum(counts))
    assert sorted(bounds.low for _, bounds in made.tops[top].largest()) == sorted(counts)
    both = made.merge(TraceSummary.from_facts(made.facts()))
    assert both[figure].low == 2 * sum(counts)
    times = {
        f"{section.key}.{group}": samples
        for section in report.sections()
        if isinstance(section, DistributionSection)
        for group, samples in section.groups.items()
    }
    if analysis == "syscalls":
        times |= {f"call_ns.{name}": samples for name, samples in report.latency.items()}
    assert times.keys() <= made.histograms.keys()
    for name, samples in times.items():
        histogram = made.histograms[name]
        assert (len(histogram), histogram.total, histogram.count) == (
            len(samples),
            samples.total,
            samples.count,
        )
        for rank, value in enumerate(samples.values, 1):
            low, high = histogram.ranked(rank)
            assert low <= value <= high


def test_summaries_with_losses_have_bounds(tmp_path):
    schedule = Schedule()
    for at in range(9):
        schedule.add(at, 0, "exceptions:page_fault_user", {"address": 4096, "ip": 1, "error_code": 6}, 7)
    schedule.lose(0, 5)
    schedule.add(20, 0, "exceptions:page_fault_user", {"address": 4096, "ip": 1, "error_code": 7}, 7)
    path = tmp_path / "lost.dat"
    path.write_bytes(schedule.data())
    with tp.open_trace(path) as trace:
        made = summarise(trace, "faults")
    assert made["faults"] == (10, 15)
    assert [name for name, _ in made.tops["faults_by_kind"].largest()] == [
        "user, write, not present",
        "user, write, protection",
    ]
