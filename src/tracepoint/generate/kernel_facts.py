"""What a kernel at hand understands, read from the texts of its headers and from nothing else.

Distributions backport: two kernels of one version number can differ, so no number is looked at.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tracepoint.errors import GenerateError
from tracepoint.model.origin import Code

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tracepoint.model.event import Event, EventClass, TraceHeader

STAGES = tuple(
    f"include/trace/stages/{name}.h"
    for name in (
        "stage1_struct_define",
        "stage2_data_offsets",
        "stage3_trace_output",
        "stage4_event_fields",
        "stage5_get_offsets",
        "stage6_event_callback",
        "stage7_class_define",
    )
)
# Newest form first: stages since 5.19, one file before, another name before 4.2.
FACT_FILES = (
    *STAGES,
    "include/linux/tracepoint.h",
    "include/trace/define_trace.h",
    "include/trace/trace_events.h",
    "include/trace/ftrace.h",
)
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(\([^)]*\))?", re.MULTILINE)
_HELPER = re.compile(r"\b(__(?:assign|print|get)_\w+)\s*\(")
# Arguments with calls in calls do not occur there.
_ARGUMENT = r"(?:[^(),;]|\((?:[^();]|\([^();]*\))*\))*"
_LENGTH_CALL = re.compile(rf"\b__assign_(rel_)?str_len\s*\(\s*(\w+)\s*,{_ARGUMENT},{_ARGUMENT}\)")
_SUFFIX = re.compile(r"#define\s+DECLARE_TRACE\(name[^)]*\)(?:[^\n]*\\\n)*[^\n]*\bname\s*##\s*_tp\b")


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """What decides how a declaration is spelt for one kernel.

    `assign_str_arity` is the number of arguments of `__assign_str` (None when not known);
    `has_tp_suffix` tells that DECLARE_TRACE makes `trace_<name>_tp()`; `macros` are all macros that
    the tracing headers define, None when no headers were given, which stands for today's kernel.
    """

    assign_str_arity: int | None = 1
    has_tp_suffix: bool = False
    macros: frozenset[str] | None = None

    def has_macro(self, name: str) -> bool:
        """Return whether the kernel has a macro; True when no headers were given."""
        return self.macros is None or name in self.macros


def read_facts(files: Mapping[str, str]) -> KernelFacts:
    """Return the facts of a kernel from the texts of its headers.

    `files` maps paths such as `include/linux/tracepoint.h` to texts; those of `FACT_FILES` are looked
    at, missing ones are passed over.  Raises GenerateError when none of them is there.

    >>> read_facts({"include/linux/tracepoint.h": "#define __assign_str(dst)"}).assign_str_arity
    1
    """
    texts = [files[name] for name in FACT_FILES if name in files]
    if not texts:
        raise GenerateError("", "no tracing headers (include/linux/tracepoint.h) in the kernel folder given")
    macros: set[str] = set()
    arities: set[int] = set()
    for text in texts:
        for name, parameters in _DEFINE.findall(text):
            macros.add(name)
            if name == "__assign_str" and parameters:
                arities.add(parameters.count(",") + 1)
    has_suffix = any(_SUFFIX.search(text) for text in texts)
    return KernelFacts(min(arities, default=None), has_suffix, frozenset(macros))


def check_vocabulary(header: TraceHeader, facts: KernelFacts) -> None:
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


def adapt_assignments(header: TraceHeader, facts: KernelFacts) -> TraceHeader:
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


__all__ = ["FACT_FILES", "KernelFacts", "adapt_assignments", "check_vocabulary", "read_facts"]
