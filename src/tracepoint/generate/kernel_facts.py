"""What decides how a declaration is spelt for one kernel: the facts that its tracing headers state."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from tracepoint.errors import GenerateError
from tracepoint.model.origin import Code
from tracepoint.tree.tracing_macros import FACT_FILES, facts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tracepoint.model.event import Event, EventClass, TraceHeader
    from tracepoint.tree.tracing_macros import TreeFacts

_HELPER = re.compile(r"\b(__(?:assign|print|get)_\w+)\s*\(")
# Arguments with calls in calls do not occur there.
_ARGUMENT = r"(?:[^(),;]|\((?:[^();]|\([^();]*\))*\))*"
_LENGTH_CALL = re.compile(rf"\b__assign_(rel_)?str_len\s*\(\s*(\w+)\s*,{_ARGUMENT},{_ARGUMENT}\)")


def read_facts(files: Mapping[str, str]) -> TreeFacts:
    """Return the facts of a kernel from the texts of its headers.

    `files` maps paths such as `include/linux/tracepoint.h` to texts; those of `FACT_FILES` are looked
    at, missing ones are skipped. Raises GenerateError when none of them exists.
    """
    if files.keys().isdisjoint(FACT_FILES):
        raise GenerateError("", "no tracing headers (include/linux/tracepoint.h) in the kernel folder given")
    return facts_of(files)


def check_vocabulary(header: TraceHeader, facts: TreeFacts) -> None:
    """Raise GenerateError, naming event and macro, when the kernel lacks what a declaration uses."""
    for event in header.events:
        for macro in _used(event):
            if not facts.has_macro(macro):
                raise GenerateError(
                    event.full_name,
                    f"{macro}() is not in the tracing headers of this kernel; declare the event without it, "
                    "or take a newer kernel",
                )
    for point in header.tracepoints:
        if point.macro != "DEFINE_TRACE" and not facts.has_macro(point.macro):
            raise GenerateError(
                point.name, f"{point.macro}() is not in the tracing headers of this kernel; take a newer one"
            )


def _used(event: Event) -> Iterable[str]:
    yield event.macro
    for field in event.fields:
        yield field.macro
    yield from _HELPER.findall(f"{event.assign} {event.printk}")


def adapt_assignments(header: TraceHeader, facts: TreeFacts) -> TraceHeader:
    """Return the header as the kernel spells it where the meaning stays the same.

    Since 6.10 `__string_len` keeps the length, and `__assign_str_len` is gone.
    """
    if facts.has_macro("__assign_str_len") and facts.macros is not None:
        return header
    classes: dict[int, EventClass] = {}

    def adapted(cls: EventClass) -> EventClass:
        if id(cls) not in classes:
            text = _LENGTH_CALL.sub(r"__assign_\1str(\2)", cls.assign.text)
            changed = text != cls.assign.text
            classes[id(cls)] = replace(cls, assign=Code(text)) if changed else cls
        return classes[id(cls)]

    events = tuple(replace(e, event_class=adapted(e.event_class)) for e in header.events)
    return replace(header, events=events, classes=tuple(adapted(cls) for cls in header.classes))
