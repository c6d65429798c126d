"""Where time off the CPUs went: a tree of states, names and threads, or of the stacks that slept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracepoint.report.lanes import thread_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tracepoint.analysis.report import Report
    from tracepoint.decode.trace import Trace

    Stacks = Mapping[tuple[int, int], Sequence[str]]

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
    "X": "X: dead",
    "Z": "Z: zombie",
}
_SWITCH, _STACK = "sched:sched_switch", "ftrace:kernel_stack"


def off_cpu(report: Report, trace: Trace) -> dict[str, Any] | None:
    """Return the tree of the time that threads were off the CPUs; None without such an analysis.

    A node has `n` (name), `v` (ns) and `c` (children, the largest first).
    """
    tables = report.tables
    if not {"thread_state", "thread"} <= tables.keys():
        return None
    names, threads = thread_names(tables), tables["thread"]
    comms = dict(zip(threads["utid"].tolist(), threads["name"].tolist(), strict=True))
    tids = dict(zip(threads["utid"].numbers, threads["tid"].numbers, strict=True))
    stacks = switch_stacks(trace)
    states = tables["thread_state"]
    labels, columns = states["state"].words, (states[name].numbers for name in ("ts", "dur", "utid", "state"))
    sums: dict[tuple[str, ...], int] = {}
    for ts, dur, utid, state in zip(*columns, strict=True):
        if dur <= 0 or labels[state] == "Running":
            continue
        stack = stacks.get((ts, tids[utid]), ()) if stacks else ()
        path = (_STATES.get(labels[state], labels[state]), str(comms[utid]), *stack, names[utid])
        sums[path] = sums.get(path, 0) + dur
    return tree_of("off the CPUs", sums.items())


def switch_stacks(trace: Trace) -> dict[tuple[int, int], Sequence[str]]:
    """Return the stacks that were recorded with switches by time and the id of the task that left."""
    if not trace.events.get(_STACK) or _SWITCH not in trace:
        return {}
    table = trace.with_stacks(_SWITCH)
    rows = (table[name].tolist() for name in ("common_timestamp", "prev_pid", "kernel_stack_symbols"))
    return {(ts, pid): tuple(reversed(stack)) for ts, pid, stack in zip(*rows, strict=True) if stack}


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
