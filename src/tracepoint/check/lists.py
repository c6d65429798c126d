"""The `{ value, "name" }` lists of `__print_flags` and `__print_symbolic`, with their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.source.ast import InitList, String
from tracepoint.source.cwrite import write_expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.check.context import CheckContext, PrintView
    from tracepoint.source.ast import Call, Node

#: Where the list begins among the arguments.
_LIST_AT = {"__print_flags": 2, "__print_flags_u64": 2, "__print_symbolic": 1, "__print_symbolic_u64": 1}


@dataclass(frozen=True, slots=True)
class ListEntry:
    """One entry: its node, its value (None when not known), its name (None when not a literal)."""

    node: Node
    value: int | None
    name: str | None

    @property
    def text(self) -> str:
        """The value as the header spells it."""
        return write_expression(self.node)


def value_lists(context: CheckContext, view: PrintView) -> Iterator[tuple[Call, list[ListEntry]]]:
    """Yield every helper call with its list, values evaluated where they can be."""
    for call in view.calls:
        at = _LIST_AT.get(call.name)
        if at is None:
            continue
        items = []
        for argument in call.arguments[at:]:
            if isinstance(argument, InitList) and len(argument.items) == 2:
                value, name = argument.items
                text = name.value if isinstance(name, String) and not name.pieces else None
                items.append(ListEntry(value, context.constant(value), text))
        yield call, items


def repeated_items(context: CheckContext) -> Iterator[tuple[PrintView, ListEntry, ListEntry]]:
    """Yield each entry whose value is earlier in its list too, with the entry that wins."""
    for view in context.prints:
        for _, items in value_lists(context, view):
            seen: dict[int | str, ListEntry] = {}
            for item in items:
                first = seen.setdefault(item.value if item.value is not None else item.text, item)
                if first is not item:
                    yield view, item, first


def place_of(item: ListEntry) -> Node | None:
    """Return where an entry is, or None when a macro wrote it."""
    return item.node if item.node.first is not None and item.node.first.expansion is None else None
