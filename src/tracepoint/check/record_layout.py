"""The record of a class as the rules about its size need it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracepoint.check.members import RecordLayout, RecordMember
from tracepoint.errors import TracepointError
from tracepoint.model.field import ArrayField, UnknownField

if TYPE_CHECKING:
    from tracepoint.check.context import CheckContext, ClassView
    from tracepoint.layout.sizes import TypeSizes

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_ABI = re.compile(r"\bABI\b")

#: struct trace_entry, and the word of a dynamic field.
_COMMON_BYTES = 8
_LOC_BYTES = 4


def lay_out(context: CheckContext, view: ClassView) -> RecordLayout | None:
    """Return the layout of a class's record, None when a type or a length is not known."""
    if view not in context.layouts:
        context.layouts[view] = _measure(view, context.sizes)
    return context.layouts[view]


def is_bound(context: CheckContext, view: ClassView) -> bool:
    """Return whether the order of the fields must stay: a macro writes them, or a comment says ABI."""
    if any(field.origin is not None and field.origin.chain for field in view.event_class.fields):
        return True
    source, origin = context.header.source, view.event_class.origin
    if source is None or origin is None or origin.span.start < 0:
        return False
    before = source.text.rfind("\n\n", 0, origin.span.start)
    return any(
        _ABI.search(comment) for comment in _COMMENT.findall(source.text, max(before, 0), origin.span.end)
    )


def _measure(view: ClassView, sizes: TypeSizes) -> RecordLayout | None:
    members = []
    for field in view.event_class.fields:
        if isinstance(field, UnknownField):
            return None
        if field.is_dynamic:
            members.append(RecordMember(field, _LOC_BYTES, _LOC_BYTES))
            continue
        try:
            size, align, _ = sizes.of(field.ctype, field.name)
            if isinstance(field, ArrayField):
                size *= sizes.length(field.length, field.name)
        except TracepointError:
            return None
        members.append(RecordMember(field, size, max(align, 1)))
    return place(members)


def place(members: list[RecordMember]) -> RecordLayout:
    """Compute the offsets of members in this order."""
    end = _COMMON_BYTES
    placed = []
    most = 4
    for member in members:
        begin = -(-end // member.align) * member.align
        placed.append(RecordMember(member.field, member.size, member.align, begin - end))
        end = begin + member.size
        most = max(most, member.align)
    return RecordLayout(tuple(placed), -(-end // most) * most)


def best_order(layout: RecordLayout) -> RecordLayout:
    """Return the layout with the same members, widest alignment first: no order is smaller."""
    return place(sorted(layout.members, key=lambda m: -m.align))
