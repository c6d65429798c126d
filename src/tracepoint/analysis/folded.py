"""Stacks with what was spent in them: the table that flame graphs are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.decode.column import names_column, number_column
from tracepoint.decode.table import ColumnTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracepoint.decode.column import Column

#: The table of an analysis that has stacks.
FOLDED = "folded_stacks"


def folded_table(
    paths: Sequence[Sequence[str]], own_ns: Iterable[int], counts: tuple[str, Iterable[int]]
) -> ColumnTable:
    """Return the table `folded_stacks`: each path as `task;caller;function` with its own time in ns.

    `counts` is one more column, its name first.  A `;` in a part would begin another: it becomes a comma.

    >>> folded_table([("sh-7", "read")], [5], ("calls", [1])).to_dicts()
    [{'stack': 'sh-7;read', 'own_ns': 5, 'calls': 1}]
    """
    return ColumnTable(FOLDED, lambda: folded_columns(paths, own_ns, counts))


def folded_columns(
    paths: Sequence[Sequence[str]], own_ns: Iterable[int], counts: tuple[str, Iterable[int]]
) -> list[Column]:
    """Return the columns of `folded_table`.

    >>> [column.name for column in folded_columns([("sh-7", "read")], [5], ("calls", [1]))]
    ['stack', 'own_ns', 'calls']
    """
    stacks = [";".join(part.replace(";", ",") for part in path) for path in paths]
    return [
        names_column("stack", stacks),
        number_column("own_ns", own_ns, "q"),
        number_column(counts[0], counts[1], "q"),
    ]
