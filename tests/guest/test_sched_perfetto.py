"""Scheduling of a guest: the same rows as Perfetto has, for our export and for the kernel's own text."""

from __future__ import annotations

import tarfile

import pytest

import tracepoint as tp
from analysis.perfetto import compare, named
from guest.conftest import kernel_or_skip
from tracepoint.analysis import analyse_sched
from tracepoint.lab.guest import machine as lab_guest

pytestmark = pytest.mark.guest

# Names of events that Perfetto reads, and of those that begin and end tasks.
NAMES = """sched/sched_switch sched/sched_waking sched/sched_wakeup sched/sched_wakeup_new sched/sched_process_free
sched/sched_process_exec sched/sched_process_fork task/task_newtask""".split()
# Processes that come and go, pipes that wake each other, and sleeps on more tasks than there are CPUs.
SCRIPT = f"""
T=/sys/kernel/tracing; cd $T; echo 0 >tracing_on; echo mono >trace_clock; echo 8192 >buffer_size_kb; echo >trace
for e in {" ".join(NAMES)}; do echo 1 >events/$e/enable; done; mkdir -p /tmp/r
echo 1 >tracing_on
for n in 1 2 3; do (m=0; while [ $m -lt 40 ]; do cat /proc/stat | grep -c cpu; m=$((m+1)); done >/dev/null; sleep 0.01) & done; wait
echo 0 >tracing_on; cat trace >/tmp/r/trace.txt
for c in 0 1; do timeout 5 cat per_cpu/cpu$c/trace_pipe_raw >/tmp/r/cpu$c.raw; cat per_cpu/cpu$c/stats >/tmp/r/cpu$c.stats; done
cat saved_cmdlines >/tmp/r/saved_cmdlines; echo mono >/tmp/r/trace_clock
for f in events/header_page {" ".join(f"events/{name}/format" for name in NAMES)}; do
    mkdir -p /tmp/r/${{f%/*}}; cat $f >/tmp/r/$f; done
cd /tmp/r; tar c -f /tmp/r.tar .
"""


@pytest.fixture(scope="module", params=["6.1", pytest.param("6.12", marks=pytest.mark.slow)])
def recording(request, tmp_path_factory):
    """The folder of a recording, and the kernel's text of the same buffer beside it."""
    kernel_or_skip(request.param)
    folder = tmp_path_factory.mktemp("sched")
    with lab_guest.boot(request.param) as guest:
        guest.run(SCRIPT, timeout=240)
        (folder / "r.tar").write_bytes(guest.get("/tmp/r.tar"))
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
