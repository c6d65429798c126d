"""The names that a print format gives the values of a field: of flags, of enums, of states."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from tracepoint.decode.column import text_column
from tracepoint.decode.plan import ColumnKind, plan_columns
from tracepoint.printk.program import compile_labels
from tracepoint.printk.render import render_record

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.decode.column import Column
    from tracepoint.layout.format import EventFormat


@lru_cache(maxsize=256)
def value_labels(form: EventFormat, name: str) -> Callable[[int], str] | None:
    """Return what gives a value of a field the name that the print format has for it.

    None when the print format names no values of the field.  Raises KeyError for an unknown field.
    """
    plan = {column.name: column for column in plan_columns(form)}[name]
    is_whole = plan.kind is ColumnKind.NUMBER and plan.code not in "fd"
    program = compile_labels(form, plan.name) if is_whole else None
    if program is None:
        return None
    order: Literal["big", "little"] = "big" if form.is_big_endian else "little"

    def label(value: int) -> str:
        record = bytes(plan.offset) + value.to_bytes(plan.size, order, signed=plan.code.islower())
        return str(render_record(program, record.ljust(form.end, b"\0")).text)

    return label


def label_column(form: EventFormat, column: Column) -> Column | None:
    """Return the names of a column of numbers as a column of texts; None when the print format has none.

    A value is rendered once, however many rows have it.
    """
    plan = column.plan
    label = value_labels(form, plan.name)
    if label is None:
        return None
    numbers: Any = memoryview(column.values)
    values: list[int] = numbers.cast("B").cast(plan.code).tolist()
    indices: dict[int, int] = {}
    words: dict[bytes, int] = {}
    for value in dict.fromkeys(values):
        text = label(value).encode("utf-8", "surrogateescape")
        indices[value] = words.setdefault(text, len(words))
    rows = map(indices.__getitem__, values)
    return text_column(plan.name, rows, words, column.n_nulls, column.validity)
