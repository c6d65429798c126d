"""Which span of the same thread another one is part of."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tracepoint.analysis.otel.span import FoundSpan

# A queue of one thread may hold any number of open spans: only so many are looked at for each.
_MAX_DEPTH = 64


def link_parents(spans: Sequence[FoundSpan], parents: Sequence[FoundSpan]) -> None:
    """Give each of `spans` the innermost span of its thread that holds all of its time as parent.

    It may be one of `parents`, or another of `spans`; a span has the trace id of its parent.
    """
    free = {id(span) for span in spans}
    by_tid: dict[int, list[FoundSpan]] = {}
    for span in (*parents, *spans):
        by_tid.setdefault(span.tid, []).append(span)
    for own in by_tid.values():
        # An outer one first; of equal times the one that was there first.
        own.sort(key=lambda span: (span.begin, -span.end))
        _link(own, free)


def _link(spans: list[FoundSpan], free: Collection[int]) -> None:
    """Link the spans of one thread, which come by their begins."""
    stack: list[FoundSpan] = []
    for span in spans:
        while stack and stack[-1].end <= span.begin:
            stack.pop()
        parent = next((one for one in stack[: -_MAX_DEPTH - 1 : -1] if one.end >= span.end), None)
        if parent is not None and id(span) in free:
            span.trace_id, span.parent_id = parent.trace_id, parent.span_id
        stack.append(span)
