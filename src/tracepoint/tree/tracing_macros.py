"""What the tracing macros of a kernel tree are like, as its own headers say."""

from __future__ import annotations

import re

# Newest form first: the stages came with 5.19, before them everything stood in one file.
CALLBACK_FILES = (
    "include/trace/stages/stage6_event_callback.h",
    "include/trace/trace_events.h",
    "include/trace/ftrace.h",
)
_ASSIGN_STR = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+__assign_str\(([^)]*)\)", re.MULTILINE)
_DECLARES_EVENT = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+DECLARE_TRACE_EVENT\(", re.MULTILINE)


def assign_str_arity(data: bytes | None) -> int | None:
    """Return how many arguments `__assign_str` takes in a file that defines it."""
    found = _ASSIGN_STR.search(data or b"")
    return found[1].count(b",") + 1 if found else None


def has_tp_suffix(data: bytes | None) -> bool | None:
    """Return whether a `tracepoint.h` lets `DECLARE_TRACE` add a suffix, None for an empty one."""
    # DECLARE_TRACE_EVENT came together with the suffix, to keep the old meaning.
    return bool(_DECLARES_EVENT.search(data)) if data else None
