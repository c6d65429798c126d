"""What one CPU and one thread did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from tracepoint.analysis.distribution import Bounds


class CpuUse(NamedTuple):
    """What one CPU did, in ns: `unknown` are the ends of the trace, and what losses hide."""

    cpu: int
    busy: int
    idle: int
    unknown: int
    n_switches: int


class TaskUse(NamedTuple):
    """What one thread did, in ns; `asleep` is the time by the letters of the state.

    `run` are bounds: what lost events hide may have been its time.  `voluntary` and `involuntary` are the
    switches that the kernel counts as such in /proc/PID/status.  `text` is the thread as reports show it.
    """

    utid: int
    tid: int
    generation: int
    name: str
    text: str
    run: Bounds
    n_runs: int
    runnable: int
    asleep: dict[str, int]
    voluntary: int
    involuntary: int
    migrations: int
    cpu_changes: int
