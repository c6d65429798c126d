"""The records of one event as a table, with the stacks that were recorded with them."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from tracepoint.decode.fill import fill_slowly
from tracepoint.decode.plan import plan_columns
from tracepoint.decode.stacks import attach_stacks
from tracepoint.decode.symbols import symbol_column
from tracepoint.decode.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tracepoint.decode.column import Column
    from tracepoint.decode.stacks import Attached
    from tracepoint.layout.format import EventFormat
    from tracepoint.printk.kallsyms import Kallsyms
    from tracepoint.tracefile.cpudata import CpuData

_KERNEL, _SYMBOLS = "kernel_stack", "kernel_stack_symbols"


class StackTable(Table):
    """A table with columns of stacks: `whole` has all records of the CPUs whose `chosen` ones are rows.

    `kinds` are the formats of the stacks by the names of their columns.
    """

    def __init__(
        self,
        table: Table,
        whole: Sequence[CpuData],
        chosen: Sequence[CpuData],
        kinds: Mapping[str, EventFormat],
        kallsyms: Callable[[], Kallsyms],
    ) -> None:
        names = tuple(name for kind in kinds for name in ((kind, _SYMBOLS) if kind == _KERNEL else (kind,)))
        super().__init__(table.format, self._columns_of, names)
        self._table = table
        self._whole = whole
        self._chosen = chosen
        self._kinds = kinds
        self._kallsyms = kallsyms

    @cached_property
    def _attached(self) -> Attached:
        kinds = [form.id for form in self._kinds.values()]
        return attach_stacks(self._whole, self._chosen, self.format.id, kinds)

    @property
    def n_unattached(self) -> int:
        """How many stacks have no event before them: it was lost, or overwritten."""
        return self._attached.n_unattached

    def _columns_of(self) -> list[Column]:
        found = [self._table[name] for name in self._table.columns]
        for (kind, form), rows in zip(self._kinds.items(), self._attached.rows, strict=True):
            plan = next(column for column in plan_columns(form) if column.name == "caller")
            big = form.is_big_endian
            (stacks,) = fill_slowly(rows, [replace(plan, name=kind)], is_big_endian=big)
            names = symbol_column(stacks, self._kallsyms(), _SYMBOLS) if kind == _KERNEL else None
            found += [stacks] if names is None else [stacks, names]
        return found
