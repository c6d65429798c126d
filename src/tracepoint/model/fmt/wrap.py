"""Break the lines of a declaration that are too long for the kernel's coding style."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.model.fmt.items import TAB, advance, next_stop, split_ranges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.model.fmt.items import TextItem
    from tracepoint.model.fmt.shape import DeclarationShape, Part

SOFT_WIDTH = 80  # where a list is broken that must be
HARD_WIDTH = 100  # the length from which on a line must be broken

_TABLES = frozenset(("__print_flags", "__print_symbolic", "__print_flags_u64", "__print_symbolic_u64"))


def wrap_lists(shape: DeclarationShape, lists: Sequence[tuple[Part, int]]) -> None:
    """Break the argument lists of a declaration that reach beyond column 100.

    Breaks come between arguments, at column 80 where possible; flag tables get one entry a line.
    A string or an argument that is itself too long stays whole, and print arguments that touch
    stay together, because tracefs shows their text.
    """
    columns = columns_of(shape.items)
    for part, continuation in lists:
        inside = part.inside
        if not inside or not any(columns[id(item)][1] > HARD_WIDTH for item in (*inside, part.close) if item):
            continue
        column = advance(0, inside[0].new_ws) if inside[0].new_nl else continuation
        if part.is_print:
            _break_tables(inside, columns, column)
            columns = columns_of(shape.items)
            _fill(inside, columns, column, only_long=True)
        elif all(item.is_code for item in inside):
            for at, item in enumerate(inside):
                if at and (item.new_nl or item.ws):
                    item.join("" if part.is_tight and item.text == "," else " ")
            columns = columns_of(shape.items)
            _fill(inside, columns, column, only_long=False)
        columns = columns_of(shape.items)


def columns_of(items: Sequence[TextItem]) -> dict[int, tuple[int, int]]:
    """Return for each item its column and that of the end of its line."""
    columns: dict[int, int] = {}
    out: dict[int, tuple[int, int]] = {}
    line: list[TextItem] = []
    column = 0

    def finish() -> None:
        out.update((id(item), (columns[id(item)], column)) for item in line)

    for item in items:
        if item.new_nl:
            finish()
            line, column = [], 0
        column = advance(column, item.new_ws)
        columns[id(item)] = column
        column += len(item.text)
        line.append(item)
    finish()
    return out


def _fill(
    inside: Sequence[TextItem], columns: dict[int, tuple[int, int]], continuation: int, *, only_long: bool
) -> None:
    """Break before arguments that end beyond column 80, in lines beyond column 100."""
    column = columns[id(inside[0])][0] if inside else 0
    for number, (begin, end) in enumerate(split_ranges(inside, 0, len(inside))):
        start = begin
        while start < end - 1 and not inside[start].is_code and not inside[start].new_nl:
            start += 1  # a comment after the comma stays there
        if start >= end:
            continue
        first = inside[start]
        column = _measure(inside[begin:start], column)
        last = start
        while last + 1 < end and not inside[last + 1].new_nl:
            last += 1
        touches = only_long and not first.ws and not first.nl
        is_fixed = number == 0 or first.new_nl or touches
        is_fixed = is_fixed or (only_long and columns[id(first)][1] <= HARD_WIDTH)
        if not is_fixed and _measure(inside[start : last + 1], column) + 1 > SOFT_WIDTH:
            first.break_line(continuation)
        column = _measure(inside[start : end + 1], column)


def _measure(items: Sequence[TextItem], column: int) -> int:
    """Return the column after items that begin at `column`."""
    for item in items:
        column = advance(0 if item.new_nl else column, item.new_ws) + len(item.text)
    return column


def _break_tables(inside: Sequence[TextItem], columns: dict[int, tuple[int, int]], continuation: int) -> None:
    """Put the entries of flag tables in lines that are too long on lines of their own."""

    def is_long(item: TextItem) -> bool:
        return not item.new_nl and bool(item.ws) and columns[id(item)][1] > HARD_WIDTH

    column = next_stop(continuation) + TAB
    depth = 0
    tables: list[int] = []
    before: TextItem | None = None
    for item in inside:
        if not item.is_code:
            continue
        if item.text == "(":
            depth += 1
            if before is not None and before.text in _TABLES:
                tables.append(depth)
        elif item.text == ")":
            if tables and tables[-1] == depth:
                tables.pop()
            depth -= 1
        elif item.text == "{" and tables and tables[-1] == depth and is_long(item):
            item.break_line(column)
        before = item
