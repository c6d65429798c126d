"""Swapping as sections: pages in and out, what reclaim wrote, who did it, and how long reclaim took."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.grouping import most_common
from tracepoint.analysis.sections import RATE, TASK, Heading, N, Unit
from tracepoint.analysis.swap.machine import UNKNOWN, WriteFlag
from tracepoint.analysis.swap.needs import RECLAIM, SHRINK, SWAP_IN, SWAP_OUT, WRITE_NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.analysis.distribution import Bounds
    from tracepoint.analysis.grouping import ChosenFigures
    from tracepoint.analysis.sections import TableSection, Value
    from tracepoint.analysis.swap.sums import ChosenMoves, ReclaimSums

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


def page_section(ins: ChosenMoves, outs: ChosenMoves, group: ChosenFigures) -> TableSection:
    """Return how many pages came and went, as a patched kernel says it."""
    rows: list[tuple[Value, ...]] = []
    recorded = group.records.recorded
    if SWAP_IN in recorded:
        rows.append(_figures(group, ins.n, "in"))
        for kind, name in ((1, "in, major"), (0, "in, minor")):
            if UNKNOWN not in ins.kinds:
                rows.append(_figures(group, ins.kinds[kind], name))
    if SWAP_OUT in recorded:
        rows.append((_pages(group, outs.n_pages), group.rate(outs.n_pages), "out"))
    return group.choice.table("pages", "Swapping", _PAGES, rows, (SWAP_IN, SWAP_OUT))


def _pages(group: ChosenFigures, n: int) -> Bounds:
    """Return the bounds of a number of pages that left, of which one event can have many."""
    has_number = "nr_pages" in group.records.fields.get(SWAP_OUT, ())
    return group.at_least(n) if has_number else group.bound(n)


def _figures(group: ChosenFigures, n: int, what: str) -> tuple[Value, ...]:
    return group.bound(n), group.rate(n), what


def write_section(writes: ChosenMoves, group: ChosenFigures) -> TableSection:
    """Return what reclaim began to write, by memory and whether it waited."""
    found = most_common(writes.kinds, WriteFlag.text)
    rows = [(group.bound(n), group.rate(n), flags) for flags, n in found]
    return group.choice.table("writes", "Written by reclaim", _WRITES, rows, WRITE_NAMES)


def task_section(
    ins: ChosenMoves, outs: ChosenMoves, writes: ChosenMoves, reclaims: ReclaimSums, group: ChosenFigures
) -> TableSection:
    """Return which tasks swapped and reclaimed: those that ran when it happened."""
    came, left, ns = ins.pages_of_task, outs.pages_of_task, reclaims.ns_of_task
    tids = {*came, *left, *writes.pages_of_task, *reclaims.n_of_task}
    rows: list[tuple[Value, ...]] = [
        (
            group.bound(came[tid]), group.bound(ins.n_major[tid]), _pages(group, left[tid]),
            group.bound(writes.pages_of_task[tid]), group.bound(reclaims.n_of_task[tid]),
            group.at_least(ns[tid]), group.records.task(tid), tid,
        )
        for tid in sorted(tids, key=lambda tid: (-came[tid] - left[tid], -ns[tid], tid))
    ]  # fmt: skip
    events = (SWAP_IN, SWAP_OUT, *WRITE_NAMES, *_ALL_RECLAIM)
    return group.choice.table("tasks", "Tasks", _TASKS, rows, events)


def reclaim_section(reclaims: ReclaimSums, group: ChosenFigures) -> TableSection:
    """Return how often each kind of reclaim ran, and what it freed."""
    names = list(RECLAIM)
    rows: list[tuple[Value, ...]] = [
        (
            group.bound(n),
            group.at_least(reclaims.n_freed[kind]) if kind in reclaims.n_freed else None,
            group.at_least(reclaims.ns[kind]),
            names[kind],
        )
        for kind, n in reclaims.kinds.most_common()
    ]
    return group.choice.table("reclaim", "Reclaim", _RECLAIMS, rows, _ALL_RECLAIM)


def scan_section(group: ChosenFigures, n_scanned: int, n_freed: int) -> TableSection:
    """Return how many pages of inactive lists reclaim looked at, and freed."""
    bounds = group.at_least(n_scanned), group.at_least(n_freed)
    rows: Sequence[Sequence[Value]] = [(*bounds, n_freed / n_scanned)] if n_scanned else []
    return group.choice.table("scans", "Pages looked at by reclaim", _SCANS, rows, (SHRINK,))
