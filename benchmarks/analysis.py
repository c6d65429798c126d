"""How fast a recorded trace is analysed: `big.v7.zstd.dat` of the folder TRACEPOINT_DATA."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from benchmarks.decode import cpu_of, large, recordings, use_of
from benchmarks.harness import Row

RUNS = 3


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


def report_page() -> Row:
    """Megabytes of the page of a recording of 7.4 M events, which is to open anywhere."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        words = ["report", "-q", str(recordings()[0].resolve()), "sched", "-o", str(page)]
        subprocess.run([sys.executable, "-m", "tracepoint", *words], check=True)
        return Row("report sched, 7.4 M events: page", page.stat().st_size / 1e6, "MB", 5, True)


ROWS = (report_page, sched_memory_of_large, sched_report, sched_report_of_large)
