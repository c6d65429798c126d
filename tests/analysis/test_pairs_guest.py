"""Interrupts, softirqs, system calls, requests and locks of a real kernel under load, against its own counters."""

from __future__ import annotations

import re
import tarfile
from collections import Counter
from typing import TYPE_CHECKING

import pytest

import tracepoint as tp
from guest.conftest import kernel_or_skip
from guest.rings import drain
from tracepoint import analysis
from tracepoint.lab.guest import machine as lab_guest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.guest

N_BYTES, N_READS = 1500, 60
EVENTS = "irq irq_vectors timer workqueue raw_syscalls block lock"
# On a busy machine the CPUs of a guest take turns, and files are made until one waits for the lock of the folder.
# Everything is read into files, so that a counter and the switch of the recording lie close together.
SCRIPT = f"""
T=/sys/kernel/tracing; mkdir -p /tmp/r; cd $T; echo 0 >tracing_on; echo mono >trace_clock; echo 16384 >buffer_size_kb
echo 4096 >saved_cmdlines_size; for s in {EVENTS}; do echo 1 >events/$s/enable; done; echo >trace
count() {{ cat /proc/interrupts >/tmp/r/interrupts.$1; cat /proc/softirqs >/tmp/r/softirqs.$1; cat /proc/diskstats >/tmp/r/diskstats.$1; }}
count a; echo 1 >tracing_on; count b
dd if=/dev/zero of=/tmp/zero bs=1 count={N_BYTES} 2>/dev/null
for n in 1 2 3; do dd if=/dev/zero of=/dev/nullb0 bs=64k count=20 oflag=direct 2>/dev/null; done
dd if=/dev/nullb0 of=/dev/null bs=4k count={N_READS} iflag=direct 2>/dev/null
for n in 1 2; do (for m in 1 2 3 4 5 6 7 8; do cat /proc/interrupts; done >/dev/null) & done; wait
echo hist:keys=flags >events/lock/contention_begin/trigger; k=0
while [ $k -lt 20 ] && grep -q 'Hits: 0' events/lock/contention_begin/hist; do
    mkdir /tmp/d$k; k=$((k+1))
    for n in 1 2 3 4; do (m=0; while [ $m -lt 150 ]; do : >/tmp/d$((k-1))/$n.$m; m=$((m+1)); done) & done; wait
done
count c; echo 0 >tracing_on; count d
for c in 0 1; do {drain("per_cpu/cpu$c/trace_pipe_raw", "/tmp/r/cpu$c.raw")}; cat per_cpu/cpu$c/stats >/tmp/r/cpu$c.stats; done
cat saved_cmdlines >/tmp/r/saved_cmdlines; cat /proc/kallsyms >/tmp/r/kallsyms; echo mono >/tmp/r/trace_clock
for f in events/header_page $(for s in {EVENTS}; do echo events/$s/*/format; done); do
    mkdir -p /tmp/r/${{f%/*}}; cat $f >/tmp/r/$f; done
cd /tmp/r; tar c -f /tmp/r.tar .
"""


@pytest.fixture(scope="module", params=["6.1", pytest.param("6.12", marks=pytest.mark.slow)])
def recording(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a recording, with counters of before (a, b) and after (c, d)."""
    kernel_or_skip(request.param)
    folder = tmp_path_factory.mktemp("pairs")
    with lab_guest.boot(request.param) as guest:
        guest.insmod("null_blk", "nr_devices=1 queue_mode=2 irqmode=2 completion_nsec=200000 gb=1")
        guest.run("echo none >/sys/block/nullb0/queue/scheduler")
        guest.run(SCRIPT, timeout=240)
        (folder / "r.tar").write_bytes(guest.get("/tmp/r.tar"))
    with tarfile.open(folder / "r.tar") as archive:
        archive.extractall(folder / "r", filter="data")
    return folder / "r"


def within(n: float, counts: list[int]) -> bool:
    """Whether a number that was recorded between b and c can be: at least those between, at most around."""
    a, b, c, d = counts
    return c - b <= n <= d - a


def table(folder: Path, name: str) -> dict[str, list[int]]:
    """What a file of /proc counts on all CPUs by name, at the four times."""
    found: dict[str, list[int]] = {}
    for at, when in enumerate("abcd"):
        for line in (folder / f"{name}.{when}").read_text().splitlines()[1:]:
            label, _, rest = line.partition(":")
            counts = [int(word) for word in rest.split()[:2] if word.isdigit()]
            found.setdefault(label.strip(), [0, 0, 0, 0])[at] = sum(counts)
    return found


def test_softirqs_and_interrupts_are_those_that_proc_counts(recording):
    with tp.open_trace(recording) as trace:
        report = analysis.analyse_irq(trace)
    assert report.coverage.is_complete
    counted = table(recording, "softirqs")
    found = {name: made.count.low for name, made in report.softirqs().items()}
    assert found.keys() >= {"TIMER", "SCHED"}
    wrong = {
        name: (found.get(name, 0), counts)
        for name, counts in counted.items()
        if not within(found.get(name, 0), counts)
    }
    assert wrong == {}
    counted = table(recording, "interrupts")
    found = Counter({name.split()[0]: made.count.low for name, made in report.irqs().items()})
    assert within(found["local_timer"], counted["LOC"])
    assert within(found["reschedule"], counted["RES"])
    assert within(found["call_function"] + found["call_function_single"], counted["CAL"])
    lines = {name: counts for name, counts in counted.items() if name.isdigit()}
    assert {name: found[name] for name, counts in lines.items() if not within(found[name], counts)} == {}
    assert report.lateness.count.low > 100
    assert sum(made.count.low for made in report.work_latency.values()) > 0


def test_calls_are_those_that_the_program_makes(recording):
    with tp.open_trace(recording) as trace:
        report = analysis.analyse_syscalls(trace)
        names = dict(re.findall(r"(?m)^(\d+) (\S+)$", trace.file.saved_cmdlines))
    assert report.coverage.is_complete
    rows = [row for row in report.syscall if names.get(str(row["tid"])) == "dd"]
    one_byte = Counter((row["tid"], row["name"]) for row in rows if row["ret"] == 1)
    (reads, n_reads), (writes, n_writes) = one_byte.most_common(2)
    assert {reads[1], writes[1]} == {"read", "write"}
    assert (n_reads, n_writes, reads[0]) == (N_BYTES, N_BYTES, writes[0])
    assert all(row["dur"] >= 0 for row in rows if row["name"] != "exit_group")


def test_requests_are_those_that_diskstats_counts(recording):
    with tp.open_trace(recording) as trace:
        report = analysis.analyse_block(trace)
    rows = {when: _disk(recording / f"diskstats.{when}") for when in "abcd"}
    done = [request for request in report.requests if request.is_whole]
    for at, kind in ((0, "R"), (4, "W")):
        own = [request for request in done if request.rwbs.startswith(kind)]
        assert within(len(own), [rows[when][at] for when in "abcd"])
        assert within(sum(request.n_sectors for request in own), [rows[when][at + 2] for when in "abcd"])
    assert sum(request.rwbs.startswith("R") for request in done) >= N_READS
    # The device answers after 200 us.
    assert all(made.quantile(0).low >= 200_000 for made in report.service().values())


def _disk(path: Path) -> list[int]:
    """Reads completed, merged, sectors, ms, then those of writes: Documentation/admin-guide/iostats.rst."""
    line = next(line for line in path.read_text().splitlines() if "nullb0" in line)
    return [int(word) for word in line.split()[3:]]


def test_waits_for_locks_end(recording):
    with tp.open_trace(recording) as trace:
        report = analysis.analyse_locks(trace)
    rows = report.lock_contention.to_dicts()
    assert rows
    assert sum(row["dur"] < 0 for row in rows) <= 2
    assert {row["kind"] for row in rows} <= {
        "spinlock",
        "mutex",
        "rwsem read",
        "rwsem write",
        "rwlock read",
        "rwlock write",
    }
