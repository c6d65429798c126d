"""How fast a recorded trace is analysed: `big.v7.zstd.dat` of the folder TRACEPOINT_DATA."""

from __future__ import annotations

import statistics
import sys

from benchmarks.decode import cpu_of, recordings
from benchmarks.harness import Row

RUNS = 3


def sched_report() -> Row:
    """CPU seconds of a whole report of 7.4 M events, 0.66 M of them switches."""
    command = [sys.executable, "-m", "tracepoint", "analyse", "sched", "-q", str(recordings()[0].resolve())]
    seconds = statistics.median(cpu_of(command) for _ in range(RUNS))
    return Row("analyse sched, 7.4 M events", seconds, "s", 2, True)


ROWS = (sched_report,)
