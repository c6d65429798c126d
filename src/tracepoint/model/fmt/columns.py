"""The ways in which kernel headers set fields and assignments in columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.model.fmt.items import TAB, advance, next_stop, tabs_between

if TYPE_CHECKING:
    from collections.abc import Sequence

_FAR_EQUALS = 40  # the column of `=` in headers that set them alike in all events
_TYPE_COLUMN = 16  # the type begins two tab stops after the macro: `__field(` ends at the first


@dataclass(frozen=True, slots=True)
class FieldStyle:
    r"""How the brackets and commas of a field are spaced.

    `opening` comes after the bracket, `between` after a comma ("\t" means in columns), `ending`
    before the closing bracket, which is at column `close_at` or further right.
    """

    name: str
    opening: str
    between: str
    ending: str
    close_at: int = 0


# The first is the one to use when nothing else is known; measured over linux 6.1 and 6.12.
FIELD_STYLES = (
    FieldStyle("columns", "\t", "\t", "\t"),
    FieldStyle("columns, bracket far", "\t", "\t", "\t", 64),
    FieldStyle("columns, bracket close", "\t", "\t", ""),
    FieldStyle("columns after a space", " ", "\t", "\t"),
    FieldStyle("columns after a space, bracket close", " ", "\t", ""),
    FieldStyle("columns after a space, bracket far", " ", "\t", "\t", 56),
    FieldStyle("columns after two spaces", "  ", "\t", "\t"),
    FieldStyle("columns without a gap", "", "\t", ""),
    FieldStyle("columns without a gap, tab before the bracket", "", "\t", "\t"),
    FieldStyle("columns without a gap, bracket far", "", "\t", "\t", 56),
    FieldStyle("compact", "", " ", ""),
    FieldStyle("compact, spaced", " ", " ", " "),
)


def field_gaps(
    calls: Sequence[tuple[str, Sequence[str]]], style: FieldStyle, base: int = 16
) -> list[list[str]]:
    r"""Return the blanks before each argument and before the closing bracket of field macros.

    `calls` are macro name and argument texts of fields in consecutive lines at column
    `base`.

    >>> field_gaps([("__field", ["int", "a"])], FIELD_STYLES[0])
    [['\t', '\t', '\t']]
    """
    if style.between == " ":
        return [[style.opening, *[" "] * (len(args) - 1), style.ending if args else ""] for _, args in calls]
    gaps: list[list[str]] = []
    columns: list[int] = []
    for macro, args in calls:
        column = base + len(macro) + 1
        gap = style.opening
        if gap == "\t":
            gap = tabs_between(column, max(base + _TYPE_COLUMN, next_stop(column)))
        gaps.append([gap])
        columns.append(advance(column, gap + args[0]) if args else column)
    for place in (1, 2):
        _next_column(calls, place, gaps, columns)
    _close(calls, style, gaps, columns)
    return gaps


def _next_column(
    calls: Sequence[tuple[str, Sequence[str]]], place: int, gaps: list[list[str]], columns: list[int]
) -> None:
    """Set argument number `place` of each call that has one at the same tab stop."""
    having = [i for i, (_, args) in enumerate(calls) if len(args) > place]
    if not having:
        return
    stop = max(next_stop(columns[i] + 1) for i in having)
    for i in having:
        gap = tabs_between(columns[i] + 1, stop)
        gaps[i].append(gap)
        columns[i] = advance(columns[i] + 1, gap + calls[i][1][place])


def _close(
    calls: Sequence[tuple[str, Sequence[str]]], style: FieldStyle, gaps: list[list[str]], columns: list[int]
) -> None:
    for i, (_, args) in enumerate(calls):
        gaps[i] += [" "] * (len(args) - 3)
        columns[i] += sum(2 + len(arg) for arg in args[3:])
    stop = max(((column + TAB - 1) // TAB * TAB for column in columns), default=0)
    stop = max(stop, style.close_at)
    for gap, column in zip(gaps, columns, strict=True):
        gap.append(tabs_between(column, stop) if style.ending and column < stop else "")


ASSIGN_STYLES = ("tabs", "tabs, far", "tabs in runs", "space", "spaces in runs", "spaces")


def assign_gaps(ends: Sequence[int], runs: Sequence[int], style: str) -> list[str]:
    r"""Return the blanks before `=` of assignments whose left sides end at columns `ends`.

    `runs[i]` is the number of the run of neighbouring lines to which assignment i belongs.

    >>> assign_gaps([20, 28], [0, 0], "tabs")
    ['\t\t', '\t']
    """
    if style == "space":
        return [" "] * len(ends)
    groups = runs if style.endswith("runs") else [0] * len(ends)
    widest: dict[int, int] = {}
    for end, group in zip(ends, groups, strict=True):
        widest[group] = max(end, widest.get(group, 0))
    if style == "tabs, far":
        widest = {group: max(end, _FAR_EQUALS - 1) for group, end in widest.items()}
    if style.startswith("tabs"):
        return [tabs_between(e, next_stop(widest[g])) for e, g in zip(ends, groups, strict=True)]
    return [" " * (widest[g] + 1 - e) for e, g in zip(ends, groups, strict=True)]
