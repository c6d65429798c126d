"""Where time off the CPUs went: a tree of states, names and threads, or of the stacks that slept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracepoint.analysis.sched.offcpu import stack_places
from tracepoint.analysis.sched.report import SchedReport
from tracepoint.report.lanes import thread_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracepoint.analysis.report import Report
    from tracepoint.decode.trace import Trace

# Parts below this share of the whole are put together: no screen shows them.
_SMALLEST = 1 / 4000
_STATES = {
    "R": "runnable: woken, waiting for a CPU",
    "R+": "runnable: preempted",
    "S": "S: asleep, interruptible",
    "D": "D: asleep, uninterruptible (mostly I/O)",
    "I": "I: idle kernel thread",
    "T": "T: stopped",
    "t": "t: traced",
    "P": "P: parked",
    "S or R": "S, and then runnable: woken unseen",
    "D or R": "D, and then runnable: woken unseen",
}


def off_cpu(report: Report, trace: Trace) -> dict[str, Any] | None:
    """Return the tree of the time that threads were off the CPUs; None without such an analysis.

    A node has `n` (name), `v` (ns) and `c` (children, the largest first).
    """
    if not isinstance(report, SchedReport):
        return None
    names = dict(enumerate(report.thread["name"].tolist()))
    texts = thread_names(report.thread)
    paths = (
        (
            (
                _STATES.get(time.state, time.state), str(names[time.utid]), *time.where, texts[time.utid],
                *((f"woken by {time.waker}",) if time.waker else ()),
            ),
            time.ns,
        )
        for time in report.off_cpu(stack_places(trace))
        if time.ns > 0
    )  # fmt: skip
    return tree_of("off the CPUs", paths)


def tree_of(name: str, paths: Iterable[tuple[tuple[str, ...], int]]) -> dict[str, Any]:
    """Return sums by path as a tree.

    >>> tree_of("all", [(("S", "sh"), 3)])
    {'n': 'all', 'v': 3, 'c': [{'n': 'S', 'v': 3, 'c': [{'n': 'sh', 'v': 3, 'c': []}]}]}
    """
    root: dict[str, Any] = {"v": 0, "c": {}}
    for path, value in paths:
        root["v"] += value
        node = root
        for part in path:
            node = node["c"].setdefault(part, {"v": 0, "c": {}})
            node["v"] += value
    return _cut(name, root, root["v"] * _SMALLEST)


def _cut(name: str, node: dict[str, Any], smallest: float) -> dict[str, Any]:
    children = sorted(node["c"].items(), key=lambda item: (-item[1]["v"], item[0]))
    shown = [_cut(part, child, smallest) for part, child in children if child["v"] >= smallest]
    rest = [child["v"] for _, child in children if child["v"] < smallest]
    if rest:
        shown.append({"n": f"{len(rest):,} smaller", "v": sum(rest), "c": []})
    return {"n": name, "v": node["v"], "c": shown}
