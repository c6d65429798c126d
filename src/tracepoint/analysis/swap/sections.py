"""Swapping as sections: pages in and out, what reclaim wrote, who did it, and how long reclaim took."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tracepoint.analysis.sections import RATE, TASK, Heading, N, Unit
from tracepoint.analysis.swap.machine import UNKNOWN, WriteFlag
from tracepoint.analysis.swap.needs import RECLAIM, SHRINK, SWAP_IN, SWAP_OUT, WRITE_NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.analysis.distribution import Bounds
    from tracepoint.analysis.grouping import Grouping
    from tracepoint.analysis.sections import TableSection, Value
    from tracepoint.analysis.swap.machine import Moves, Reclaims

_PAGES = (Heading("n", "pages"), RATE, Heading("what", "what", Unit.WORD))
_WRITES = (Heading("n", "folios"), RATE, Heading("flags", "written", Unit.WORD))
_TASKS = (
    Heading("n_in", "in"), Heading("n_major", "major"), Heading("n_out", "out"),
    Heading("n_written", "written"), Heading("n_reclaims", "reclaims"),
    Heading("reclaim_ns", "reclaiming", Unit.TIME), *TASK,
)  # fmt: skip
_RECLAIMS = (
    N, Heading("n_freed", "pages"), Heading("time_ns", "time", Unit.TIME),
    Heading("kind", "kind", Unit.WORD),
)  # fmt: skip
_SCANS = (Heading("scanned", "scanned"), Heading("freed", "freed"), Heading("share", "of it", Unit.SHARE))
_ALL_RECLAIM = tuple(name for names in RECLAIM.values() for name in names)


def pages_of(group: Grouping, moves: Moves) -> int:
    """Return how many pages the chosen rows moved."""
    return sum(moves.n_pages[row] for row in group.rows)


def page_section(ins: Grouping, outs: Grouping, in_rows: Moves, out_rows: Moves) -> TableSection:
    """Return how many pages came and went, as a patched kernel says it."""
    rows: list[tuple[Value, ...]] = []
    recorded = ins.records.recorded
    if SWAP_IN in recorded:
        rows.append(_figures(ins, len(ins.rows), "in"))
        kinds = Counter(in_rows.kind[row] for row in ins.rows)
        for kind, name in ((1, "in, major"), (0, "in, minor")):
            if UNKNOWN not in kinds:
                rows.append(_figures(ins, kinds[kind], name))
    if SWAP_OUT in recorded:
        n = pages_of(outs, out_rows)
        rows.append((_pages(outs, n), outs.rate(n), "out"))
    return ins.choice.table("pages", "Swapping", _PAGES, rows, (SWAP_IN, SWAP_OUT))


def _pages(group: Grouping, n: int) -> Bounds:
    """Return the bounds of a number of pages that left, of which one event can have many."""
    has_number = "nr_pages" in group.records.fields.get(SWAP_OUT, ())
    return group.at_least(n) if has_number else group.bound(n)


def _figures(group: Grouping, n: int, what: str) -> tuple[Value, ...]:
    return group.bound(n), group.rate(n), what


def write_section(group: Grouping, writes: Moves) -> TableSection:
    """Return what reclaim began to write, by memory and whether it waited."""
    found = group.by(lambda row: WriteFlag.text(writes.kind[row]))
    rows = [(group.bound(n), group.rate(n), flags) for flags, n in found]
    return group.choice.table("writes", "Written by reclaim", _WRITES, rows, WRITE_NAMES)


def task_section(
    groups: Mapping[str, Grouping], moves: Mapping[str, Moves], reclaims: Reclaims
) -> TableSection:
    """Return which tasks swapped and reclaimed: those that ran when it happened."""
    sums: dict[int, Counter[str]] = {}
    for name, own in moves.items():
        for row in groups[name].rows:
            counts = sums.setdefault(own.tid[row], Counter())
            counts[name] += own.n_pages[row]
            counts["major"] += name == "in" and own.kind[row] == 1
    group = groups["reclaim"]
    for row in group.rows:
        counts = sums.setdefault(reclaims.tid[row], Counter())
        counts["reclaims"] += 1
        counts["ns"] += max(reclaims.dur[row], 0)
    order = sorted(sums.items(), key=lambda one: (-one[1]["in"] - one[1]["out"], -one[1]["ns"], one[0]))
    rows: list[tuple[Value, ...]] = [
        (
            group.bound(counts["in"]), group.bound(counts["major"]), _pages(group, counts["out"]),
            group.bound(counts["written"]), group.bound(counts["reclaims"]),
            group.at_least(counts["ns"]), group.records.task(tid), tid,
        )
        for tid, counts in order
    ]  # fmt: skip
    events = (SWAP_IN, SWAP_OUT, *WRITE_NAMES, *_ALL_RECLAIM)
    return group.choice.table("tasks", "Tasks", _TASKS, rows, events)


def reclaim_section(group: Grouping, reclaims: Reclaims) -> TableSection:
    """Return how often each kind of reclaim ran, and what it freed."""
    rows: list[tuple[Value, ...]] = []
    for kind, n in group.by(lambda row: reclaims.kind[row]):
        own = [row for row in group.rows if reclaims.kind[row] == kind]
        freed = [reclaims.n_freed[row] for row in own if reclaims.n_freed[row] != UNKNOWN]
        time = sum(max(reclaims.dur[row], 0) for row in own)
        pages = group.at_least(sum(freed)) if freed else None
        rows.append((group.bound(n), pages, group.at_least(time), kind))
    return group.choice.table("reclaim", "Reclaim", _RECLAIMS, rows, _ALL_RECLAIM)


def scan_section(group: Grouping, n_scanned: int, n_freed: int) -> TableSection:
    """Return how many pages of inactive lists reclaim looked at, and freed."""
    bounds = group.at_least(n_scanned), group.at_least(n_freed)
    rows: Sequence[Sequence[Value]] = [(*bounds, n_freed / n_scanned)] if n_scanned else []
    return group.choice.table("scans", "Pages looked at by reclaim", _SCANS, rows, (SHRINK,))
