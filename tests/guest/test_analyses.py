"""Analyses of recordings of a guest, against what its programs and its kernel counted themselves."""

from __future__ import annotations

import re
from collections import Counter

import pytest

import tracepoint as tp
from control.packing import python_files
from guest.conftest import kernel_or_skip
from guest.pages import bring
from tracepoint.analysis import analyse_faults, analyse_memory, analyse_swap, analyse_traps
from tracepoint.analysis.faults.machine import FaultOutcome, no_faults
from tracepoint.analysis.report import ALL
from tracepoint.analysis.swap.sums import ChosenMoves
from tracepoint.analysis.traps.vectors import code_name, signal_name
from tracepoint.lab.guest import machine as lab_guest

pytestmark = pytest.mark.guest

PROBE = "r:fault_done handle_mm_fault ret=$retval:x32"
KINDS = "anon zero cow kernel efault file-disk swap"
MAPS = "syscalls:sys_enter_mmap syscalls:sys_exit_mmap"


@pytest.fixture(scope="module")
def guest():
    """A guest with our programs, a swap area in compressed memory, and a small disk."""
    kernel_or_skip("6.1")
    with lab_guest.boot("6.1", files=python_files(), memory_mb=512) as made:
        for name in ("lzo_rle", "zram", "loop"):
            if name in made.tree:
                made.insmod(name)
        for name in ("faults", "hog", "traps"):
            bring(made, name)
        made.run(
            "echo 320M >/sys/block/zram0/disksize && mkswap /dev/zram0 && swapon /dev/zram0\n"
            "dd if=/dev/zero of=/tmp/disk bs=1M count=8 2>/dev/null && losetup /dev/loop0 /tmp/disk\n"
            "mke2fs /dev/loop0 && mount -t ext4 /dev/loop0 /mnt\n"
            f"echo '{PROBE}' >/sys/kernel/tracing/kprobe_events"
        )
        made.run("echo 'p:error_trap do_error_trap trapnr=%cx' >>/sys/kernel/tracing/kprobe_events")
        yield made


@pytest.fixture
def record(guest, tmp_path):
    """Record events while a command runs; returns the trace, what it printed, and what /proc/vmstat counted."""
    opened = []

    def run(events, command, buffer_kb=16384):
        said = guest.run(
            "cat /proc/vmstat >/tmp/before\n"
            f"tracepoint record -q {events} --buffer-kb {buffer_kb} -o /tmp/a.dat --force -- {command}\n"
            "cat /proc/vmstat >/tmp/after",
            timeout=300,
        ).text
        before, after = (_counters(guest.read(f"/tmp/{name}")) for name in ("before", "after"))
        path = tmp_path / "a.dat"
        path.write_bytes(guest.get("/tmp/a.dat"))
        opened.append(tp.open_trace(path))
        return opened[-1], said, {name: after[name] - before[name] for name in after}

    yield run
    for trace in opened:
        trace.close()


def _counters(text):
    return {name: int(value) for name, value in re.findall(r"^(\w+) (\d+)$", text, re.MULTILINE)}


def programs(said):
    """The lines of a program of ours: its first word, and the numbers by name."""
    found = {}
    for line in said.splitlines():
        numbers = {word: int(value) for word, value in re.findall(r"([\w-]+)=(-?\d+)(?:\s|$)", line)}
        if "pid" in numbers:
            found[line.split()[0]] = numbers
    return found


def test_faults_are_those_that_processes_count(record, show_figure):
    events = f"exceptions kprobes:fault_done {MAPS}"
    trace, said, _ = record(events, f"faults -n 64 -f /mnt/file {KINDS}")
    report = analyse_faults(trace)
    assert report.coverage.is_complete
    rows, counted = report.parts.all_rows(no_faults()), programs(said)
    regions = [report.machine.known_regions[at] for at in rows.region]
    assert set(counted) == set(KINDS.split())
    pids = {own["pid"] for own in counted.values()}
    for kind, own in counted.items():
        # The child begins and ends with faults that it does not count: only those of its mapping are compared.
        found = [(regions[row], rows.outcome[row]) for row, tid in enumerate(rows.tid) if tid == own["pid"]]
        sizes = Counter(region for region, _ in found if _is_target(region.kind, kind))
        region = max(sizes, key=sizes.get)
        if kind == "cow":
            # The parent, which is not counted, made the mapping.  It may lie on two of the regions that are all
            # that is known of the child's.
            (region,) = {
                where
                for where, tid in zip(regions, rows.tid, strict=True)
                if tid not in pids and where.kind == "anonymous" and _overlap(where, region)
            }
        inside = [outcome for where, outcome in found if _overlap(where, region)]
        found = (
            inside.count(FaultOutcome.MINOR),
            inside.count(FaultOutcome.MAJOR),
            inside.count(FaultOutcome.UNKNOWN),
        )
        show_figure(f"{kind}: minor, major", (own["minflt"], own["majflt"]), found[:2])
        assert found == (own["minflt"], own["majflt"], own["errors"]) or kind == "swap", kind
        if kind == "swap":
            # The pages are written first, which the program does not count.
            assert found == (64, own["majflt"], 0)
    assert all(ns > 0 for ns in report.latency().values)


def _overlap(one, other):
    return one.start < other.stop and other.start < one.stop


def _is_target(region, kind):
    if kind == "efault":
        return region == "first 64 KiB"
    if kind == "cow":
        return region == "2 MiB"
    return region.startswith("file" if kind == "file-disk" else "anonymous")


def test_signals_are_those_that_programs_get(record, show_figure):
    trace, said, _ = record("exceptions signal kprobes:error_trap", "traps")
    report = analyse_traps(trace)
    assert report.coverage.is_complete
    got = {}
    for line in said.splitlines():
        words = re.match(r"(\d+) +\S+ +pid=(\d+) +(SIG\w+) +(\w+) ", line)
        if words:
            got[int(words[2])] = (int(words[1]), words[3], words[4])
    assert len(got) > 15
    found = {signal.tid: signal for signal in report.signals}
    assert {
        tid: (signal_name(signal.number), code_name(signal.number, signal.code))
        for tid, signal in found.items()
    } == {tid: (name, code) for tid, (_, name, code) in got.items()}
    show_figure("signals of traps", len(got), len(found))
    # Vectors that pass do_error_trap(), and page faults: each has its trap; QEMU raises #UD for int1.
    of_rows = report.trap["vector"].tolist()
    known = {tid: of_rows[signal.trap] for tid, signal in found.items() if signal.trap != -1}
    assert {vector for tid, vector in known.items()} == {0, 4, 6, 11, 12, 14}
    wrong = {tid for tid, vector in known.items() if vector != got[tid][0]}
    assert all(known[tid] == 6 and got[tid][0] == 1 for tid in wrong)


def test_reclaim_is_what_the_kernel_counts(record, show_figure):
    trace, _, counted = record("vmscan kmem:rss_stat", "hog -m 520 -r 1", 32768)
    report = analyse_swap(trace)
    assert report.coverage.is_complete
    machine = report.machine
    found = {
        "pswpout": ChosenMoves(machine.writes, ALL, {}).n_pages,
        "allocstall": report.reclaim["kind"].tolist().count("direct"),
        "pgscan": machine.n_scanned,
        "pgsteal": machine.n_reclaimed,
    }
    kernel = {
        "pswpout": counted["pswpout"],
        "allocstall": sum(n for name, n in counted.items() if name.startswith("allocstall_")),
        "pgscan": counted["pgscan_kswapd"] + counted["pgscan_direct"],
        "pgsteal": counted["pgsteal_kswapd"] + counted["pgsteal_direct"],
    }
    assert kernel["pswpout"] > 1000
    for name, n in found.items():
        show_figure(name, kernel[name], n)
        # Reclaim goes on between the first counters and the recording, and after it.
        assert abs(n - kernel[name]) <= 0.02 * kernel[name] + 32, name


def test_pages_of_a_program_are_those_that_it_touches(record):
    trace, said, _ = record("kmem:mm_page_alloc kmem:mm_page_free", "hog -m 20 -r 1")
    report = analyse_memory(trace)
    assert report.coverage.is_complete
    (hog,) = programs(said).values()
    rows = [row for row in report.allocation if row["tid"] == hog["pid"]]
    n_pages = sum(row["bytes_alloc"] for row in rows) // 4096
    n_open = len({row["id"] for row in rows} & {*report.not_freed})
    assert hog["pages"] == 5120
    assert hog["pages"] <= n_pages <= hog["pages"] * 1.05, n_pages
    assert n_open <= 0.01 * hog["pages"], n_open
