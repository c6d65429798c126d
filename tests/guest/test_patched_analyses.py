"""Analyses of what the swap and trap events of our kernel record, against what it and its programs count."""

from __future__ import annotations

import re
import tarfile

import pytest

import tracepoint as tp
from guest.pages import bring
from guest.rings import drain
from guest.test_stories_swap import make_swap, vmstat
from tracepoint.analysis import analyse_swap, analyse_traps
from tracepoint.analysis.traps.vectors import code_name, signal_name

pytestmark = pytest.mark.guest

EVENTS = "kmem/mm_page_swap_in kmem/mm_page_swap_out traps/trap_entry traps/trap_exit signal/signal_generate"
# The guest has no Python: its pages and formats become a folder, which opens like any recording.
BEGIN = "cd /sys/kernel/tracing; echo 0 >tracing_on; echo >trace; echo 8192 >buffer_size_kb"
SAVE = f"""cd /sys/kernel/tracing; echo 0 >tracing_on; for e in {EVENTS}; do echo 0 >events/$e/enable; done
rm -rf /tmp/r; mkdir /tmp/r
for c in per_cpu/cpu*; do {drain("$c/trace_pipe_raw", "/tmp/r/${c##*/}.raw")}; cat $c/stats >/tmp/r/${{c##*/}}.stats; done
cat saved_cmdlines >/tmp/r/saved_cmdlines
for f in events/header_page $(for e in {EVENTS}; do echo events/$e/format; done); do mkdir -p /tmp/r/${{f%/*}}; cat $f >/tmp/r/$f; done
cd /tmp/r; tar c -f /tmp/r.tar .; echo 1408 >/sys/kernel/tracing/buffer_size_kb; echo 1 >/sys/kernel/tracing/tracing_on
"""


@pytest.fixture
def record(patched, tmp_path):
    """Record events of our kernel while a command runs: the trace, what it printed, what /proc/vmstat counted."""
    opened = []

    def run(command, *events):
        patched.run("\n".join([BEGIN, *(f"echo 1 >events/{event}/enable" for event in events)]))
        before = vmstat(patched)
        said = patched.run(
            f"echo 1 >/sys/kernel/tracing/tracing_on; {command}; echo 0 >/sys/kernel/tracing/tracing_on",
            timeout=300,
        ).text
        after = vmstat(patched)
        patched.run(SAVE, timeout=120)
        (tmp_path / "r.tar").write_bytes(patched.get("/tmp/r.tar"))
        with tarfile.open(tmp_path / "r.tar") as archive:
            archive.extractall(tmp_path / "r", filter="data")
        opened.append(tp.open_trace(tmp_path / "r"))
        return opened[-1], said, {name: after[name] - before[name] for name in after}

    yield run
    for trace in opened:
        trace.close()


@pytest.fixture
def swapping(patched):
    bring(patched, "hog")
    make_swap(patched)
    yield patched
    patched.run("swapoff /dev/zram0; echo 1 >/sys/block/zram0/reset; rm -rf /tmp/r /tmp/r.tar")


def test_pages_in_and_out_are_those_that_the_kernel_counts(swapping, record, show_figure):
    trace, _, counted = record("hog -m 80 -r 3", "kmem/mm_page_swap_in", "kmem/mm_page_swap_out")
    report = analyse_swap(trace)
    assert report.coverage.is_complete
    found = {
        row[-1]: row[0].low for section in report.sections() if section.key == "pages" for row in section.rows
    }
    assert counted["pswpin"] > 20_000
    for name, what in (("pswpin", "in"), ("pswpout", "out"), ("pgmajfault", "in, major")):
        show_figure(name, counted[name], found[what])
        assert found[what] == pytest.approx(counted[name], rel=0.01)
    # Each page that came back had left, and was away for a time.
    (away,) = (section for section in report.sections() if section.key == "away_ns")
    assert sum(map(len, away.groups.values())) > 0.9 * found["in"]


def test_major_ones_of_a_task_are_those_that_it_counts(swapping, record, show_figure):
    trace, said, _ = record("hog -m 8 -p 3 -o", "kmem/mm_page_swap_in", "kmem/mm_page_swap_out")
    report = analyse_swap(trace)
    assert report.coverage.is_complete
    lines = [
        {word: int(value) for word, value in re.findall(r"(\w+)=(\d+)(?:\s)", line)}
        for line in said.splitlines()
        if "majflt" in line
    ]
    children = {line["pid"]: (line["minflt"] + line["majflt"], line["majflt"]) for line in lines[1:]}
    (tasks,) = (section for section in report.sections() if section.key == "tasks")
    keys = [heading.key for heading in tasks.headings]
    rows = [dict(zip(keys, row, strict=True)) for row in tasks.rows]
    found = {row["tid"]: (row["n_in"].low, row["n_major"].low) for row in rows if row["tid"] in children}
    for pid, own in children.items():
        show_figure(f"process {pid}, faults on swapped pages and major ones", own, found[pid])
    assert len(children) == 3
    assert found == children


def test_every_signal_has_the_trap_that_made_it(patched, record, show_figure):
    bring(patched, "traps")
    trace, said, _ = record("traps", "traps/trap_entry", "traps/trap_exit", "signal/signal_generate")
    report = analyse_traps(trace)
    assert report.coverage.is_complete
    raised = {}
    for line in said.splitlines():
        words = re.match(r"(\d+) +\S+ +pid=(\d+) +(SIG\w+) +(\w+) ", line)
        if words:
            raised[int(words[2])] = (int(words[1]), words[3], words[4])
    found = {signal.tid: signal for signal in report.signals}
    assert len(raised) > 15
    assert {
        tid: (signal_name(signal.number), code_name(signal.number, signal.code))
        for tid, signal in found.items()
    } == {tid: (name, code) for tid, (_, name, code) in raised.items()}
    # With its own events every trap is there, not only those that have a probe.
    of_rows = report.trap["vector"].tolist()
    vectors = {tid: of_rows[signal.trap] for tid, signal in found.items() if signal.trap >= 0}
    right = sum(vector == raised[tid][0] for tid, vector in vectors.items())
    show_figure("signals, and those whose trap has the vector that was raised", len(raised), right)
    assert vectors.keys() == found.keys()
    assert set(vectors.values()) >= {0, 3, 4, 6, 11, 12, 13, 14, 16}
    # QEMU raises others for int1 and for a stack address that is not canonical.
    wrong = {(raised[tid][0], vector) for tid, vector in vectors.items() if vector != raised[tid][0]}
    assert wrong <= {(1, 6), (12, 13)}
    ended = [row for row in report.trap if row["dur"] >= 0]
    assert len(ended) > 0.95 * len(report.trap)
