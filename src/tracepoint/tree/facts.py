"""What a kernel tree says about its tracing macros, read from the tree itself.

Never from a version number: distributions backport.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.tree.loader import find_kernel_root

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import PurePath

# Newest form first: the stages came with 5.19, before them everything stood in one file.
_CALLBACK = (
    "include/trace/stages/stage6_event_callback.h",
    "include/trace/trace_events.h",
    "include/trace/ftrace.h",
)
_ASSIGN_STR = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+__assign_str\(([^)]*)\)", re.MULTILINE)
_DECLARES_EVENT = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+DECLARE_TRACE_EVENT\(", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TreeFacts:
    """What is known about the kernel tree that a header belongs to; None where nothing is.

    `assign_str_arity` is the number of arguments of `__assign_str` (2 up to 6.9, 1 after);
    `has_tp_suffix` says whether `DECLARE_TRACE` adds `_tp` to the name (6.16 and later).
    """

    assign_str_arity: int | None = None
    has_tp_suffix: bool | None = None


def read_facts(root: Path | None) -> TreeFacts:
    """Return what a kernel tree (or headers package) says about itself; nothing without one."""
    if root is None:
        return TreeFacts()
    tracepoint_h = _read(root, ["include/linux/tracepoint.h"])
    return TreeFacts(
        assign_str_arity=_arity(_read(root, _CALLBACK)),
        # DECLARE_TRACE_EVENT came together with the suffix, to keep the old meaning.
        has_tp_suffix=bool(_DECLARES_EVENT.search(tracepoint_h)) if tracepoint_h else None,
    )


def read_facts_around(path: PurePath | str) -> TreeFacts:
    """Return the facts of the tree that a header lies in."""
    return read_facts(find_kernel_root(Path(path).resolve().parent))


def _arity(text: bytes) -> int | None:
    found = _ASSIGN_STR.search(text)
    return found[1].count(b",") + 1 if found else None


def _read(root: Path, names: Iterable[str]) -> bytes:
    return b"".join(path.read_bytes() for name in names if (path := root / name).is_file())
