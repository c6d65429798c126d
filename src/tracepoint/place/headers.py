"""Trace headers: where to add an event to one, and the text of a new one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from tracepoint.diagnostics import Edit
from tracepoint.errors import PlaceError, SourceError
from tracepoint.model.read import read_header_text
from tracepoint.place.outline import Guard, ScopedDirective, find_guard, read_directives
from tracepoint.source.types import COMMON_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracepoint.model.event import EventClass, TraceHeader
    from tracepoint.place.loader import KernelLoader
    from tracepoint.source.text import SourceFile

_EVENTS = "include/trace/events"
_FORWARD = re.compile(r"(?:[ \t]*\n)*(?:(?:struct|union)\s+\w+;[ \t]*\n)+")


@dataclass(frozen=True, slots=True)
class TargetHeader:
    """A trace header that events can be added to.

    `at` is the offset for a declaration; `shareable` are the classes that it may use; `names`
    are those in use.
    """

    source: SourceFile
    header: TraceHeader
    directives: tuple[ScopedDirective, ...]
    guard: Guard
    at: int
    shareable: tuple[EventClass, ...]
    names: frozenset[str]

    def insertion(self, body: str) -> Edit:
        """Return the edit that adds declarations."""
        text = self.source.text
        before = "" if text[: self.at].endswith("\n\n") else "\n"
        after = "" if text[self.at :].startswith("\n") or not text[self.at :] else "\n"
        return Edit(self.source.path, self.at, self.at, f"{before}{body}{after}")

    def include_edits(self, wanted: Iterable[str]) -> list[Edit]:
        """Return the edit that adds missing includes."""
        have = {d.included for d in self.directives if d.included}
        missing = [name for name in wanted if name[1:-1] not in have]
        if not missing:
            return []
        lines = "".join(f"#include {name}\n" for name in missing)
        at = self._after_includes()
        blank = "" if self._includes() else "\n"
        return [Edit(self.source.path, at, at, blank + lines)]

    def forward_edits(self, names: Sequence[str]) -> list[Edit]:
        """Return the edit that declares structs by name."""
        if not names:
            return []
        lines = "".join(f"{name};\n" for name in names)
        at = self._after_includes()
        there = _FORWARD.match(self.source.text, at)
        if there is not None:
            return [Edit(self.source.path, there.end(), there.end(), lines)]
        return [Edit(self.source.path, at, at, "\n" + lines)]

    def _includes(self) -> list[ScopedDirective]:
        inside = (d for d in self.directives if self.guard.inner_start <= d.start < self.guard.inner_end)
        return [d for d in inside if d.included and d.depth == 1]

    def _after_includes(self) -> int:
        """Return the end of the consecutive includes at the header's top."""
        found = self._includes()
        return found[-1].end if found else self.guard.inner_start


def read_target(source: SourceFile, system: str, loader: KernelLoader) -> TargetHeader:
    """Return where to add an event of `system`; raises PlaceError with the reason if there is no place."""
    path = source.path
    directives = tuple(read_directives(source.text))
    guard = find_guard(directives)
    if guard is None:
        raise PlaceError(f"{path}: no complete include guard, so there is no place for an event")
    if guard.outer:
        raise PlaceError(f"{path}: all of it is under {guard.outer}, so other kernels would lack the event")
    try:
        header = read_header_text(source.text, path, loader=loader)
    except SourceError as error:
        raise PlaceError(str(error)) from None
    for found in header.diagnostics:
        if found.code in ("TP001", "TP002"):
            raise PlaceError(f"cannot be read: {found.text} ({found.code})", found.span)
    if header.form.define_trace is None:
        raise PlaceError(f"{path}: does not include <trace/define_trace.h>, so nothing creates its events")
    if not guard.is_reread:
        raise PlaceError(f"{path}: its guard does not let it be read again (TRACE_HEADER_MULTI_READ)")
    conditions = [d for d in directives if d.keyword in ("if", "ifdef", "ifndef", "endif")]
    at = _place_for(header, system, directives, conditions, guard)
    shareable = tuple(
        cls
        for cls in header.classes
        if cls.origin is not None
        and not cls.origin.chain
        and cls.origin.span.path == path
        and cls.origin.span.end <= at
        and _depth_at(conditions, cls.origin.span.start) == 1
        and cls.macro in ("DECLARE_EVENT_CLASS", "TRACE_EVENT")
    )
    return TargetHeader(source, header, directives, guard, at, shareable, _names(header, directives))


def _place_for(
    header: TraceHeader,
    system: str,
    directives: Sequence[ScopedDirective],
    conditions: Sequence[ScopedDirective],
    guard: Guard,
) -> int:
    """Before the guard's #endif if the system is in effect there, else after the system's last event."""
    defines = [d for d in directives if d.keyword == "define" and d.word == "TRACE_SYSTEM"]
    before = [d for d in defines if d.start < guard.inner_end]
    if before and before[-1].rest.partition("TRACE_SYSTEM")[2].strip() == system:
        return _before_where(directives, guard, header.source.text if header.source is not None else "")
    assert header.source is not None  # noqa: S101 - read from a text
    text = header.source.text
    ends = [
        event.origin.span.end
        for event in header.events
        if event.system == system
        and event.origin is not None
        and not event.origin.chain
        and event.origin.span.path == header.path
        and _depth_at(conditions, event.origin.span.start) == 1
    ]
    if not ends:
        raise PlaceError(f"{header.path}: TRACE_SYSTEM {system} is not in effect anywhere in it")
    newline = text.find("\n", max(ends))
    return newline + 1 if newline >= 0 else len(text)


def _before_where(directives: Sequence[ScopedDirective], guard: Guard, text: str) -> int:
    """Return the end of the guard, or the start of the directives there that set the header's path."""
    at = guard.inner_end
    for directive in reversed([d for d in directives if guard.inner_start <= d.start < at]):
        is_about = directive.keyword in {"define", "undef"} and directive.word.startswith("TRACE_INCLUDE_")
        if not is_about or text[directive.end : at].strip():
            break
        at = directive.start
    return at


def _depth_at(conditions: Sequence[ScopedDirective], offset: int) -> int:
    before = [d for d in conditions if d.start < offset]
    return sum(-1 if d.keyword == "endif" else 1 for d in before)


def _names(header: TraceHeader, directives: Iterable[ScopedDirective]) -> frozenset[str]:
    names = {d.word for d in directives if d.keyword == "define"}
    names.update(cls.name for cls in header.classes)
    names.update(event.name for event in header.events)
    names.update(point.name for point in header.tracepoints)
    own = header.environment.own if header.environment is not None else None
    if own is not None:
        names.update(own.enumerators)
    return frozenset(names)


def new_header(path: str, system: str, body: str, includes: Iterable[str], structs: Iterable[str]) -> str:
    """Return the text of a trace header for a new system, in the kernel's style."""
    guard = f"_TRACE_{re.sub('[^A-Z0-9]', '_', system.upper())}_H"
    wanted = dict.fromkeys(
        ("<linux/types.h>",) if not COMMON_TYPES.isdisjoint(re.findall(r"\w+", body)) else ()
    )
    wanted |= dict.fromkeys((*includes, "<linux/tracepoint.h>"))
    lines = [
        "/* SPDX-License-Identifier: GPL-2.0 */",
        "#undef TRACE_SYSTEM",
        f"#define TRACE_SYSTEM {system}",
        "",
        f"#if !defined({guard}) || defined(TRACE_HEADER_MULTI_READ)",
        f"#define {guard}",
        "",
        *(f"#include {name}" for name in wanted),
        "",
        *_with_blank([f"{name};" for name in structs]),
        body.strip("\n"),
        "",
        f"#endif /* {guard} */",
        "",
        *_where(path, system),
        "/* This part must be outside protection */",
        "#include <trace/define_trace.h>",
    ]
    return "\n".join(lines) + "\n"


def _with_blank(lines: list[str]) -> list[str]:
    return [*lines, ""] if lines else []


def _where(path: str, system: str) -> list[str]:
    """Return the lines that define the header's path for define_trace.h, if it is not in the usual place."""
    where = PurePosixPath(path)
    lines = []
    if str(where.parent) != _EVENTS:
        lines += ["#undef TRACE_INCLUDE_PATH", f"#define TRACE_INCLUDE_PATH ../../{where.parent}"]
    if where.stem != system:
        lines += ["#undef TRACE_INCLUDE_FILE", f"#define TRACE_INCLUDE_FILE {where.stem}"]
    return _with_blank(lines)
