"""The declarations from the user, extracted from whatever form they have.

A text may be just a few TRACE_EVENT() or a whole trace header; what counts is what is inside
its include guard, the files it includes and its TRACE_SYSTEM.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tracepoint.diagnostics import Edit, Severity
from tracepoint.errors import PlaceError, SourceError
from tracepoint.model.read import read_header_text
from tracepoint.place.outline import find_guard, read_directives
from tracepoint.source.text import SourceFile, apply_edits

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracepoint.diagnostics import Diagnostic
    from tracepoint.model.event import Event, EventClass, TraceHeader
    from tracepoint.place.outline import ScopedDirective
    from tracepoint.source.preprocess import Loader

#: The maximum number of characters of a declaration file; the longest header of the kernel has 100,000.
MAX_CHARS = 1 << 20
_LICENCE = re.compile(r"\A\s*(?:/\*\s*SPDX-License-Identifier:.*?\*/|//\s*SPDX-License-Identifier:.*)\n?")
_DEFINE_TRACE = "trace/define_trace.h"
_HEADER_MACROS = frozenset(
    ("TRACE_SYSTEM", "TRACE_INCLUDE_PATH", "TRACE_INCLUDE_FILE", "TRACE_SYSTEM_VAR", "TRACE_SYSTEM_STRING")
)
_NAME = re.compile(r"[A-Za-z_]\w*\Z")


@dataclass(frozen=True, slots=True)
class EventText:
    """Declarations from the user.

    `origin` is the name of the text in messages.  `system` and `header` (a path in the tree) are found
    when they are empty; `is_new` allows a header that the tree does not have.  `class_name` is for
    the class that events of one layout share; `creator` is the C file that creates the events of a new
    header, chosen when empty.
    """

    text: str
    origin: str = "<event>"
    system: str = ""
    header: str = ""
    class_name: str = ""
    is_new: bool = False
    creator: str = ""


@dataclass(frozen=True, slots=True)
class Fragment:
    """The contents of a text: the part that goes into a header, its includes, its TRACE_SYSTEM.

    `includes` include their brackets or quotes.
    """

    body: str
    includes: tuple[str, ...]
    system: str


def read_fragment(given: EventText) -> Fragment:
    """Return what a text declares; raises PlaceError when it cannot be part of a header."""
    text = given.text.replace("\r\n", "\n")
    if len(text) > MAX_CHARS:
        raise PlaceError(f"{given.origin}: {len(text)} characters are too many for declarations of events")
    odd = next((c for c in text if not c.isprintable() and c not in "\n\t\f"), "")
    if odd and not 0xDC80 <= ord(odd) <= 0xDCFF:
        raise PlaceError(f"{given.origin}: contains the character {odd!r}")
    directives = read_directives(text)
    _check_balance(directives, given.origin)
    guard = find_guard(directives)
    start, end = (guard.inner_start, guard.inner_end) if guard else (0, len(text))
    gone = [d for d in directives if _is_frame(d)]
    body = apply_edits(
        text,
        [
            Edit("", 0, start, ""),
            *(Edit("", d.start, d.end, "") for d in gone if start <= d.start and d.end <= end),
            Edit("", end, len(text), ""),
        ],
    )
    systems = [
        d.rest.partition(" ")[2].strip() for d in gone if d.keyword == "define" and d.word == "TRACE_SYSTEM"
    ]
    if len(set(systems)) > 1:
        raise PlaceError(f"{given.origin}: several TRACE_SYSTEM; use one text for each system")
    includes = [d.rest for d in directives if d.included and d.included != _DEFINE_TRACE]
    return Fragment(
        _LICENCE.sub("", body).strip("\n") + "\n",
        tuple(dict.fromkeys(includes)),
        given.system or (systems[0] if systems else ""),
    )


def merge_texts(texts: Sequence[EventText]) -> list[EventText]:
    r"""Merge the texts of one system, so that no two are for the same header.

    >>> one, two = EventText("A(x);", "a.h", "mm"), EventText("B(y);", "b.h", "mm")
    >>> [(t.text, t.origin) for t in merge_texts([one, two])]
    [('A(x);\n\nB(y);\n', 'a.h, b.h')]
    """
    groups: dict[tuple[str, str], list[EventText]] = {}
    fragments = {id(given): read_fragment(given) for given in texts}
    for given in texts:
        groups.setdefault((fragments[id(given)].system, given.header), []).append(given)
    return [
        group[0] if len(group) == 1 else _merged(group, [fragments[id(given)] for given in group])
        for group in groups.values()
    ]


def _merged(group: Sequence[EventText], fragments: Sequence[Fragment]) -> EventText:
    for name in ("class_name", "creator"):
        if len({getattr(given, name) for given in group} - {""}) > 1:
            raise PlaceError(
                f"{', '.join(g.origin for g in group)}: two different values of {name} for one header"
            )
    includes = dict.fromkeys(name for fragment in fragments for name in fragment.includes)
    head = "".join(f"#include {name}\n" for name in includes)
    return EventText(
        head + "\n".join(fragment.body for fragment in fragments),
        ", ".join(given.origin for given in group),
        fragments[0].system,
        group[0].header,
        next((given.class_name for given in group if given.class_name), ""),
        any(given.is_new for given in group),
        next((given.creator for given in group if given.creator), ""),
    )


def _check_balance(directives: Iterable[ScopedDirective], origin: str) -> None:
    depth = 0
    for directive in directives:
        depth += directive.keyword in ("if", "ifdef", "ifndef")
        depth -= directive.keyword == "endif"
        if depth < 0:
            break
    if depth:
        raise PlaceError(f"{origin}: an #if without #endif, or the other way round")


def _is_frame(directive: ScopedDirective) -> bool:
    """Return whether a directive belongs to the header as a whole, so that the target already has it."""
    if directive.keyword == "include":
        return True
    return directive.keyword in ("define", "undef") and directive.word in _HEADER_MACROS


def read_events(
    given: EventText, system: str, classes: Iterable[EventClass], loader: Loader | None = None
) -> tuple[Event, ...]:
    """Return the events that a text declares, as events of `system`.

    `classes` are those that its target has.  Raises PlaceError for the first error in the text and for
    events that cannot be called.
    """
    header = read_checked(SourceFile(given.origin, given.text.replace("\r\n", "\n")), classes, loader)
    if header.tracepoints:
        name = header.tracepoints[0].name
        raise PlaceError(
            f"{given.origin}: {name} is a tracepoint without a trace event; declare a TRACE_EVENT"
        )
    if not header.events:
        raise PlaceError(f"{given.origin}: declares no event")
    for event in header.events:
        if not _NAME.match(event.name):
            raise PlaceError(f"{given.origin}: {event.name!r} is not a valid event name")
        if event.is_nop or event.is_syscall or event.is_custom:
            raise PlaceError(
                f"{given.origin}: {event.macro} {event.name} has no trace_{event.name}() to call"
            )
    return tuple(replace(event, system=system) for event in header.events)


def read_checked(
    file: SourceFile,
    classes: Iterable[EventClass] = (),
    loader: Loader | None = None,
    known: Iterable[Diagnostic] = (),
) -> TraceHeader:
    """Read a header and raise PlaceError for the first error in it that is not one of `known`."""
    try:
        header = read_header_text(file.text, file.path, loader=loader, foreign_classes=classes)
    except SourceError as error:
        raise PlaceError(str(error)) from None
    passed = {(found.code, found.message) for found in known}
    for found in header.diagnostics:
        if found.severity is Severity.ERROR and (found.code, found.message) not in passed:
            raise PlaceError(f"{found.text} ({found.code})", found.span)
    return header
