"""Interrupts as tables with the names and columns of Perfetto's SQL library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.irq.build import HARD, IRQS, NUMBERS, SOFT
from tracepoint.analysis.irq.rows import NO_PARENT
from tracepoint.analysis.spans import span_columns
from tracepoint.decode.column import names_column, number_column
from tracepoint.decode.table import ColumnTable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from tracepoint.analysis.irq.rows import IrqRows
    from tracepoint.decode.column import Column

_HARD, _SOFT = NUMBERS[HARD], NUMBERS[SOFT]
_CHOSEN = {
    "linux_irqs": frozenset(NUMBERS[kind] for kind in IRQS),
    "linux_hard_irqs": frozenset(NUMBERS[kind] for kind in IRQS if kind != SOFT),
    "linux_soft_irqs": frozenset([NUMBERS[SOFT]]),
}
_LEFT_OUT: dict[str, Collection[str]] = {
    "linux_hard_irqs": ("is_soft_irq",),
    "linux_soft_irqs": ("is_soft_irq", "parent_id"),
}


def irq_tables(rows: Callable[[], IrqRows], names: Sequence[str]) -> list[ColumnTable]:
    """Return the interrupts and softirqs among rows, together and apart; ids are those of all."""
    return [
        ColumnTable(name, lambda name=name: _irq_columns(name, rows(), names))  # type: ignore[misc]
        for name in _CHOSEN
    ]


def _irq_columns(name: str, irqs: IrqRows, names: Sequence[str]) -> list[Column]:
    chosen = _CHOSEN[name]
    rows = [at for at, kind in enumerate(irqs.kind) if kind in chosen]
    found = [
        number_column("id", (irqs.id[at] for at in rows), "q"),
        number_column("ts", (irqs.ts[at] for at in rows), "q"),
        number_column("dur", (irqs.dur[at] for at in rows), "q"),
        names_column("name", (_name(irqs, at, names) for at in rows)),
        number_column("parent_id", (irqs.parent[at] for at in rows), "q", NO_PARENT),
        number_column("is_soft_irq", (irqs.kind[at] == _SOFT for at in rows), "b"),
        number_column("cpu", (irqs.cpu[at] for at in rows), "i"),
        number_column("net_dur", (irqs.net[at] for at in rows), "q"),
    ]
    return [column for column in found if column.name not in _LEFT_OUT.get(name, ())]


def _name(irqs: IrqRows, at: int, names: Sequence[str]) -> str:
    """Return the name that Perfetto gives a row: `IRQ (disk)` for a handler of line 24."""
    name = names[irqs.what[at]]
    return f"IRQ ({name.partition(' ')[2]})" if irqs.kind[at] == _HARD else name


def wait_table(name: str, rows: Callable[[], IrqRows], kind: str, names: Sequence[str]) -> ColumnTable:
    """Return what waited among rows: since when, how long in ns (-1: it never ran), and its name."""

    def columns() -> list[Column]:
        irqs, number = rows(), NUMBERS[kind]
        places = [at for at, own in enumerate(irqs.kind) if own == number]
        ts, dur = ([column[at] for at in places] for column in (irqs.ts, irqs.dur))
        return [*span_columns(ts, dur), names_column("name", (names[irqs.what[at]] for at in places))]

    return ColumnTable(name, columns)
