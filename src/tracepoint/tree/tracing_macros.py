"""What the tracing macros of a kernel are like, as its own headers say: one test for each fact.

Distributions backport: two kernels of one version number can differ, so no number is looked at.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.source.text import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_STAGES = tuple(
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
CALLBACK_FILES = (_STAGES[5], "include/trace/trace_events.h", "include/trace/ftrace.h")
SUFFIX_FILE = "include/linux/tracepoint.h"
FACT_FILES = (*_STAGES, SUFFIX_FILE, "include/trace/define_trace.h", *CALLBACK_FILES[1:])
_ASSIGN_STR = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+__assign_str\(([^)]*)\)", re.MULTILINE)
_SUFFIX = re.compile(rb"#define\s+DECLARE_TRACE\(name[^)]*\)(?:[^\n]*\\\n)*[^\n]*\bname\s*##\s*_tp\b")
_DEFINE = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)


def _unrelated(_one: str, _other: str) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class TreeFacts:
    """What is known about the kernel tree that a header belongs to; None where nothing is.

    `assign_str_arity` is the number of arguments of `__assign_str` (2 up to 6.9, 1 after);
    `has_tp_suffix` says whether `DECLARE_TRACE` adds `_tp` to the name (6.16 and later);
    `macros` are all macros that the tracing headers define; `string_callers` is what `StringCallers`
    knows; `are_alternatives` says whether two headers, by path, never have their events in one kernel.
    """

    assign_str_arity: int | None = None
    has_tp_suffix: bool | None = None
    macros: frozenset[str] | None = None
    string_callers: Mapping[str, bool] = field(default_factory=dict, hash=False)
    are_alternatives: Callable[[str, str], bool] = field(default=_unrelated, compare=False)

    def has_macro(self, name: str) -> bool:
        """Return whether the kernel has a macro; True where its macros are not known."""
        return self.macros is None or name in self.macros


#: Of the newest kernel, for which is written where no headers are at hand.
NEWEST = TreeFacts(assign_str_arity=1, has_tp_suffix=False)


def assign_str_arity(data: bytes | None) -> int | None:
    """Return how many arguments `__assign_str` takes in a file that defines it."""
    found = _ASSIGN_STR.search(data or b"")
    return found[1].count(b",") + 1 if found else None


def has_tp_suffix(data: bytes | None) -> bool | None:
    """Return whether `DECLARE_TRACE` adds a suffix in a `tracepoint.h`, None for an empty one."""
    return bool(_SUFFIX.search(data)) if data else None


def facts_of(texts: Mapping[str, str]) -> TreeFacts:
    """Return the facts of a kernel from the texts of its headers, by path; those of `FACT_FILES` count.

    >>> facts_of({"include/trace/trace_events.h": "#define __assign_str(dst)"}).assign_str_arity
    1
    """
    files = {name: encode(texts[name]) for name in FACT_FILES if name in texts}
    arities = (assign_str_arity(files.get(name)) for name in CALLBACK_FILES)
    return TreeFacts(
        next((arity for arity in arities if arity is not None), None),
        bool(has_tp_suffix(files.get(SUFFIX_FILE))),
        frozenset(name.decode() for data in files.values() for name in _DEFINE.findall(data)),
    )
