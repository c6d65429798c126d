"""Columns of addresses as the names of what they lead to, as `trace` shows them in a stack."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tracepoint.decode.column import Column, text_column
from tracepoint.decode.plan import ColumnKind

if TYPE_CHECKING:
    from tracepoint.printk.kallsyms import Kallsyms

_ADDRESSES = "IQ"
# kernel/trace/trace.h, FTRACE_TRAMPOLINE_MARKER: what a stack has for an address of ftrace itself.
_TRAMPOLINE_MARK, _TRAMPOLINE = 0x7FFFFFFF, "[FTRACE TRAMPOLINE]"


def symbol_column(column: Column, kallsyms: Kallsyms, name: str) -> Column | None:
    """Return a column of addresses, or of lists of them, as names: a dictionary of texts, or lists of such.

    An address without a name is hex digits.  None for a column of something else.
    """
    plan = column.plan
    if plan.kind not in (ColumnKind.NUMBER, ColumnKind.LIST) or plan.code not in _ADDRESSES:
        return None
    is_list = plan.kind is ColumnKind.LIST
    data: Any = memoryview(column.bytes_ or b"" if is_list else column.values).cast("B")
    addresses: memoryview[int] = data.cast(plan.code)
    # Many addresses, few places.
    texts: dict[str, int] = {}
    number_of = {
        address: texts.setdefault(symbol_name(kallsyms, address), len(texts))
        for address in dict.fromkeys(addresses)
    }
    words = [text.encode("utf-8", "surrogateescape") for text in texts]
    indices = map(number_of.__getitem__, addresses)
    if not is_list:
        return text_column(name, indices, words, column.n_nulls, column.validity)
    made = replace(plan, name=name, kind=ColumnKind.WORDS, code="")
    items = text_column(name, indices, words)
    return Column(made, column.n_rows, column.n_nulls, column.validity, column.values, items=items)


def symbol_name(kallsyms: Kallsyms, address: int) -> str:
    """Return the name that `trace` shows: trace_seq_print_sym() in kernel/trace/trace_output.c."""
    if address == _TRAMPOLINE_MARK:
        return _TRAMPOLINE
    symbol = kallsyms.lookup(address)
    return f"{address:#010x}" if symbol is None else symbol.name
