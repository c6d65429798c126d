"""Columns as Apache Arrow arrays: what `csrc/decode/arrow.c` gives away through the Arrow C data interface.

The formats are those of https://arrow.apache.org/docs/format/CDataInterface.html.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.decode.plan import ColumnKind
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Buffer

    from tracepoint.decode.column import Column

_FORMATS = dict(zip("bBhHiIqQfd", "cCsSiIlLfg", strict=True))
_NULLABLE = 2


class ArrowNode(NamedTuple):
    """One array: the members of struct ArrowSchema and struct ArrowArray; a buffer of None is not there."""

    format: str
    name: str
    flags: int
    length: int
    n_nulls: int
    buffers: tuple[Buffer | None, ...]
    children: tuple[ArrowNode, ...] = ()
    dictionary: ArrowNode | None = None


def table_node(columns: Sequence[Column]) -> ArrowNode:
    """Return a struct of columns, which is what a table is."""
    n_rows = len(columns[0]) if columns else 0
    return ArrowNode("+s", "", 0, n_rows, 0, (None,), tuple(map(column_node, columns)))


def arrow_format(column: Column) -> str:
    """Return the format of a column: `i` for int32, `dictionary<i, U>` for texts, `+L<I>` for lists."""
    plan = column.plan
    match plan.kind:
        case ColumnKind.TEXT:
            return "dictionary<i, U>"
        case ColumnKind.LIST | ColumnKind.BITS:
            return f"+L<{_FORMATS[plan.code]}>"
        case ColumnKind.WORDS:
            return "+L<dictionary<i, U>>"
        case ColumnKind.BYTES:
            return "Z"
    return _FORMATS[plan.code]


def column_node(column: Column) -> ArrowNode:
    """Return the array of one column; in words, bytes that are not UTF-8 become U+FFFD.

    So do NULs in the name of a damaged format: Arrow's names are C strings.
    """
    column = column.in_utf8
    plan, n_rows, n_nulls = column.plan, column.n_rows, column.n_nulls
    name = plan.name.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
    validity, values, data = column.validity, column.values, column.bytes_
    if plan.kind is ColumnKind.TEXT:
        words = _words_node(column)
        return ArrowNode("i", name, _NULLABLE, n_rows, n_nulls, (validity, values), (), words)
    if plan.kind in (ColumnKind.LIST, ColumnKind.BITS):
        n_items = len(memoryview(data or b"")) // plan.item_size
        items = ArrowNode(_FORMATS[plan.code], "item", 0, n_items, 0, (None, data or b""))
        return ArrowNode("+L", name, _NULLABLE, n_rows, n_nulls, (validity, values), (items,))
    if plan.kind is ColumnKind.WORDS and column.items is not None:
        words = column_node(column.items)._replace(name="item", flags=0)
        return ArrowNode("+L", name, _NULLABLE, n_rows, n_nulls, (validity, values), (words,))
    if plan.kind is ColumnKind.BYTES:
        return ArrowNode("Z", name, _NULLABLE, n_rows, n_nulls, (validity, values, data or b""))
    return ArrowNode(_FORMATS[plan.code], name, _NULLABLE, n_rows, n_nulls, (validity, values))


def _words_node(column: Column) -> ArrowNode:
    data, ends = column.bytes_ or b"", column.ends or bytes(8)
    n_words = len(memoryview(ends)) // 8 - 1
    return ArrowNode("U", "", 0, n_words, 0, (None, ends, data))
