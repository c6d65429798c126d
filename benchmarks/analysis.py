"""How fast a recorded trace is analysed: `big.v7.zstd.dat` of the folder TRACEPOINT_DATA."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from tests.generate.chromium import Chromium

from benchmarks.decode import cpu_of, large, lengthened, recordings, use_of
from benchmarks.harness import MissingError, Row

RUNS = 3
# The pages of the recording are a little more than half of it.
TWICE = 700_000_000
#: The analyses whose memory does not grow with the recording, with their words.
IN_PARTS = {
    "faults": ["faults"],
    "memory": ["memory"],
    "syscalls": ["syscalls"],
    "traps": ["traps"],
    "irq": ["irq"],
    "latency": "latency --begin sched_waking --end sched_switch --key pid=next_pid".split(),
}


def sched_report() -> Row:
    """CPU seconds of a whole report of 7.4 M events, 0.66 M of them switches."""
    command = [sys.executable, "-m", "tracepoint", "analyse", "sched", "-q", str(recordings()[0].resolve())]
    seconds = statistics.median(cpu_of(command) for _ in range(RUNS))
    return Row("analyse sched, 7.4 M events", seconds, "s", 2, True)


@cache
def use_by_length() -> tuple[float, tuple[float, float], tuple[float, float]]:
    """How many times longer a recording of 5 GB is, and CPU seconds and MB of reports of the short and the long."""
    short, long = recordings()[1], large()
    n_times = long.stat().st_size / short.stat().st_size
    once, all_of_it = (
        use_of([sys.executable, "-m", "tracepoint", "analyse", "sched", "-q", str(path)])
        for path in (short, long)
    )
    return n_times, once, all_of_it


def sched_report_of_large() -> Row:
    """CPU of a report of a recording of 5 GB against that of its first part, as often as that is in it."""
    n_times, (once, _), (seconds, _) = use_by_length()
    detail = f"{seconds:.1f} s, {n_times:.1f} times the length of one of {once:.2f} s"
    return Row("analyse sched of 5 GB, CPU by length", seconds / once / n_times, "times", 1.1, True, detail)


def sched_memory_of_large() -> Row:
    """The most memory that it takes: that of one of its parts, not of the recording."""
    n_times, (_, before), (_, peak) = use_by_length()
    detail = f"{before:.0f} MB with 1/{n_times:.1f} of it"
    return Row("analyse sched of 5 GB: memory", peak, "MB", 512, True, detail)


def memory_by_length(words: list[str]) -> tuple[float, float]:
    """The most memory in MB that a command takes with big.v6, and with a recording four times as long."""
    short = recordings()[1]
    long = lengthened("fourfold", 3 * short.stat().st_size)
    command = [sys.executable, "-m", "tracepoint"]
    once, fourfold = (use_of([*command, *words, str(path)])[1] for path in (short, long))
    return once, fourfold


def by_waker_memory() -> Row:
    """The most memory of the time off the CPUs by waker and the chains of the longest waits, by length."""
    once, fourfold = memory_by_length(["analyse", "sched", "-q", "--by", "waker"])
    detail = f"{once:.0f} MB with a quarter of it"
    return Row("analyse sched --by waker, 29.7 M events: memory", fourfold, "MB", 768, True, detail)


def by_call_memory() -> Row:
    """The most memory of the time off the CPUs by system call, whose calls are read in step, by length."""
    once, fourfold = memory_by_length(["analyse", "sched", "-q", "--by", "call"])
    detail = f"{once:.0f} MB with a quarter of it"
    return Row("analyse sched --by call, 29.7 M events: memory", fourfold, "MB", 896, True, detail)


def report_page_memory() -> Row:
    """The most memory that a page of scheduling takes to make, by length."""
    with tempfile.TemporaryDirectory() as folder:
        once, fourfold = memory_by_length(["report", "-q", "-o", str(Path(folder, "sched.html"))])
    detail = f"{once:.0f} MB with a quarter of it"
    return Row("report of sched, 29.7 M events: memory", fourfold, "MB", 768, True, detail)


def parts_memory() -> Row:
    """The most memory of analyses that read in parts and sum up what they find, by length."""
    found = {name: memory_by_length(["analyse", "-q", *words]) for name, words in IN_PARTS.items()}
    detail = ", ".join(
        f"{name} {fourfold:.0f} ({once:.0f} with a quarter)" for name, (once, fourfold) in found.items()
    )
    most = max(fourfold for _, fourfold in found.values())
    return Row("analyses in parts, 29.7 M events: memory", most, "MB", 512, True, detail)


@cache
def pages() -> tuple[tempfile.TemporaryDirectory[str], list[Path]]:
    """The pages of a recording of 14.9 M events, by what it has events of, and the folder that they are in."""
    folder = tempfile.TemporaryDirectory()
    recording = lengthened("pages", TWICE)
    found = []
    for name in ("sched", "syscalls", "faults", "traps", "memory", "irq"):
        found.append(Path(folder.name, f"{name}.html"))
        words = ["report", "-q", str(recording), name, "-o", str(found[-1])]
        subprocess.run([sys.executable, "-m", "tracepoint", *words], check=True)
    return folder, found


def report_page() -> Row:
    """Megabytes of the largest page, which is to open anywhere."""
    sizes = {page.stem: page.stat().st_size / 1e6 for page in pages()[1]}
    detail = ", ".join(f"{name} {size:.2f}" for name, size in sizes.items())
    return Row("report, 14.9 M events: largest page", max(sizes.values()), "MB", 5, True, detail)


def report_first_paint() -> Row:
    """Milliseconds until the browser paints text of a page for the first time, of the slowest page."""
    if shutil.which("chromium") is None:
        raise MissingError("no chromium: apt-get install chromium")
    slowest: dict[str, float] = {}
    with Chromium() as browser:
        for path in pages()[1]:
            page = browser.page()
            page.go(path.as_uri())
            page.wait("Report.timing.isReady && performance.getEntriesByType('paint').length")
            slowest[path.stem] = page.run(
                "performance.getEntriesByName('first-contentful-paint')[0].startTime"
            )
            page.close()
    detail = ", ".join(f"{name} {ms:.0f}" for name, ms in slowest.items())
    return Row("report, 14.9 M events: first paint", max(slowest.values()), "ms", 1000, True, detail)


ROWS = (
    by_waker_memory,
    by_call_memory,
    parts_memory,
    report_first_paint,
    report_page,
    report_page_memory,
    sched_memory_of_large,
    sched_report,
    sched_report_of_large,
)
