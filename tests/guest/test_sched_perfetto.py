"""Scheduling of a guest: the same rows as Perfetto has, for our export and for the kernel's own text, and as perf."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

import pytest

import tracepoint as tp
from analysis.perfetto import compare, named
from analysis.test_sched_perf import EVENTS, US, counted, shown
from control.packing import libraries
from guest.conftest import kernel_or_skip
from guest.rings import drain
from tracepoint.analysis import analyse_sched
from tracepoint.lab.guest import machine as lab_guest

pytestmark = pytest.mark.guest

# Names of events that Perfetto reads, and of those that begin and end tasks.
NAMES = """sched/sched_switch sched/sched_waking sched/sched_wakeup sched/sched_wakeup_new sched/sched_process_free
sched/sched_process_exec sched/sched_process_fork task/task_newtask""".split()
# TASK_REPORT_MAX: the task would go on running.
PREEMPTED = 0x100
LOAD = "for n in 1 2 3; do (m=0; while [ $m -lt 40 ]; do cat /proc/stat | grep -c cpu; m=$((m+1)); done >/dev/null; sleep 0.01) & done; wait"
# Processes that come and go, pipes that wake each other, and sleeps on more tasks than there are CPUs.
SCRIPT = f"""
T=/sys/kernel/tracing; cd $T; echo 0 >tracing_on; echo mono >trace_clock; echo 8192 >buffer_size_kb; echo >trace
for e in {" ".join(NAMES)}; do echo 1 >events/$e/enable; done; mkdir -p /tmp/r
echo 1 >tracing_on
{LOAD}
echo 0 >tracing_on; cat trace >/tmp/r/trace.txt
for c in 0 1; do {drain("per_cpu/cpu$c/trace_pipe_raw", "/tmp/r/cpu$c.raw")}; cat per_cpu/cpu$c/stats >/tmp/r/cpu$c.stats; done
cat saved_cmdlines >/tmp/r/saved_cmdlines; echo mono >/tmp/r/trace_clock
for f in events/header_page {" ".join(f"events/{name}/format" for name in NAMES)}; do
    mkdir -p /tmp/r/${{f%/*}}; cat $f >/tmp/r/$f; done
cd /tmp/r; tar c -f /tmp/r.tar .
"""
PERF = f"""
echo '{LOAD}' >/tmp/load
perf record -q -a -m 4096 -o /tmp/perf.data -e {",".join(f"sched:{name}" for name in EVENTS)} -- sh /tmp/load
perf sched -i /tmp/perf.data latency -p >/tmp/latency.txt
"""


@pytest.fixture(scope="module", params=["6.1", pytest.param("6.12", marks=pytest.mark.slow)])
def recording(request, tmp_path_factory):
    """The folder of a recording, and the kernel's text of the same buffer beside it; where there is perf, its own."""
    kernel_or_skip(request.param)
    folder = tmp_path_factory.mktemp("sched")
    perf = shutil.which("perf")
    files = {path: Path(path).read_bytes() for path in (perf, *libraries([perf]))} if perf else {}
    with lab_guest.boot(request.param, files=files) as guest:
        guest.run(SCRIPT, timeout=240)
        (folder / "r.tar").write_bytes(guest.get("/tmp/r.tar"))
        if perf:
            guest.run(PERF, timeout=240)
            for name in ("perf.data", "latency.txt"):
                (folder / name).write_bytes(guest.get(f"/tmp/{name}"))
    with tarfile.open(folder / "r.tar") as archive:
        archive.extractall(folder / "r", filter="data")
    (folder / "r/trace.txt").rename(folder / "trace.txt")
    return folder


@pytest.mark.parametrize("form", ["export", "text"])
def test_rows_are_perfettos_but_for_differences_with_a_name(recording, tmp_path, form, show_figure):
    with tp.open_trace(recording / "r") as trace:
        report = analyse_sched(trace)
        assert report.coverage.is_complete
        new = trace["sched_wakeup_new"]["pid"].tolist()
        path, unit_ns = recording / "trace.txt", 1000
        if form == "export":
            path, unit_ns = tmp_path / "out.pftrace", 1
            tp.write_perfetto(trace, path)
    ours, theirs, own, spurious = compare(report, path, unit_ns)
    n = len(report.thread_state)
    assert n > 1000
    found = named(ours, theirs, own, spurious)
    show_figure(f"rows of thread_state by {form}", n - ours.total() + theirs.total(), n)
    show_figure("differences by name", theirs.total(), dict(found))
    assert found["new"] == len(new)
    assert found["dead"] > 20


def only_perfs(trace):
    """The waits of each task, in us, that perf alone counts.

    Of a task that is woken while it is preempted: perf, which knows no R+, takes it for asleep.  And of one whose
    first record is that it runs, which was on another CPU before the record of its waking was made: 0.
    """
    found, known, preempted, woken = {}, {0}, set(), {}
    for record in trace.records():
        fields, name = record.fields, record.event.partition(":")[2]
        if name == "sched_switch":
            old, new = fields["prev_pid"], fields["next_pid"]
            since = woken.pop(new, None if new in known else record.timestamp)
            if since is not None:
                found.setdefault(new, []).append((record.timestamp - since) / US)
            preempted -= {old, new}
            if fields["prev_state"] == PREEMPTED:
                preempted.add(old)
            known |= {old, new}
        elif name in ("sched_wakeup", "sched_wakeup_new"):
            known.add(fields["pid"])
            if fields["pid"] in preempted:
                woken.setdefault(fields["pid"], record.timestamp)
    return found


def test_latencies_are_those_of_perf_in_the_same_guest(recording, show_figure):
    """Of what perf recorded there, by the text of its own `perf sched latency`."""
    if not (recording / "perf.data").exists():
        pytest.skip("perf is not installed: apt-get install linux-perf")
    with tp.open_trace(recording / "perf.data") as trace:
        report = analyse_sched(trace)
        assert report.coverage.is_complete
        others = only_perfs(trace)
    ours, theirs = counted(report), shown((recording / "latency.txt").read_text())
    n_others = sum(map(len, others.values()))
    show_figure("tasks", len(theirs), len(ours))
    show_figure(
        "waits", sum(n for n, _, _ in theirs.values()), f"{sum(map(len, ours.values()))} + {n_others}"
    )
    for tid, waits in others.items():
        ours.setdefault(tid, []).extend(waits)
    assert {tid: len(waits) for tid, waits in ours.items()} == {tid: n for tid, (n, _, _) in theirs.items()}
    for tid, (n, total, most) in theirs.items():
        assert sum(ours[tid]) == pytest.approx(total, abs=0.51 * n)
        assert max(ours[tid]) == pytest.approx(most, abs=0.51)
    assert len(theirs) > 100
