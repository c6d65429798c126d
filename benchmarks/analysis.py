"""How fast a recorded trace is analysed: `big.v7.zstd.dat` of the folder TRACEPOINT_DATA."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.decode import cpu_of, recordings
from benchmarks.harness import Row

RUNS = 3


def sched_report() -> Row:
    """CPU seconds of a whole report of 7.4 M events, 0.66 M of them switches."""
    command = [sys.executable, "-m", "tracepoint", "analyse", "sched", "-q", str(recordings()[0].resolve())]
    seconds = statistics.median(cpu_of(command) for _ in range(RUNS))
    return Row("analyse sched, 7.4 M events", seconds, "s", 2, True)


def report_page() -> Row:
    """Megabytes of the page of a recording of 7.4 M events, which is to open anywhere."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        words = ["report", "-q", str(recordings()[0].resolve()), "sched", "-o", str(page)]
        subprocess.run([sys.executable, "-m", "tracepoint", *words], check=True)
        return Row("report sched, 7.4 M events: page", page.stat().st_size / 1e6, "MB", 5, True)


ROWS = (report_page, sched_report)
