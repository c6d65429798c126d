"""Interrupts as tables with the names and columns of Perfetto's SQL library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.irq.build import HARD, NO_PARENT, SOFT
from tracepoint.analysis.spans import OPEN, span_columns
from tracepoint.decode.column import names_column, number_column
from tracepoint.decode.table import ColumnTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tracepoint.analysis.irq.build import Irqs, IrqWork
    from tracepoint.decode.column import Column


def irq_table(name: str, work: IrqWork, chosen: Callable[[str], bool]) -> ColumnTable:
    """Return the interrupts and softirqs of the chosen kinds; ids are those of all."""
    irqs = work.irqs

    def columns() -> list[Column]:
        rows = [at for at, kind in enumerate(irqs.kind) if chosen(kind)]
        found = [
            number_column("id", rows, "q"),
            number_column("ts", (irqs.ts[at] for at in rows), "q"),
            number_column("dur", (irqs.dur[at] for at in rows), "q"),
            names_column("name", (_name(work, at) for at in rows)),
            number_column("parent_id", (irqs.parent[at] for at in rows), "q", NO_PARENT),
            number_column("is_soft_irq", (irqs.kind[at] == SOFT for at in rows), "b"),
            number_column("cpu", (irqs.cpu[at] for at in rows), "i"),
            number_column("net_dur", (irqs.net[at] for at in rows), "q"),
        ]
        left_out = {"linux_hard_irqs": ("is_soft_irq",), "linux_soft_irqs": ("is_soft_irq", "parent_id")}
        return [column for column in found if column.name not in left_out.get(name, ())]

    return ColumnTable(name, columns)


def _name(work: IrqWork, at: int) -> str:
    """Return the name that Perfetto gives a row: `IRQ (disk)` for a handler of line 24."""
    name = work.names[at]
    return f"IRQ ({name.partition(' ')[2]})" if work.irqs.kind[at] == HARD else name


def wait_table(name: str, ts: Sequence[int], dur: Sequence[int], what: Sequence[str]) -> ColumnTable:
    """Return what waited: since when, how long in ns (-1: it never ran), and its name."""
    return ColumnTable(name, lambda: [*span_columns(ts, dur), names_column("name", what)])


def net_by(irqs: Irqs, groups: Sequence[str], chosen: Sequence[bool]) -> Mapping[str, int]:
    """Return the time in ns without interrupts by group, of those that are chosen."""
    found: dict[str, int] = {}
    for group, dur, net, is_chosen in zip(groups, irqs.dur, irqs.net, chosen, strict=True):
        if is_chosen and dur != OPEN:
            found[group] = found.get(group, 0) + net
    return found
