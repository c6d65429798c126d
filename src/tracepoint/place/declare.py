"""Add declarations to the right trace header, or create the header."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from tracepoint.diagnostics import Edit
from tracepoint.errors import PlaceError
from tracepoint.model.fmt.columns import FIELD_STYLES
from tracepoint.model.fmt.text import Style, format_text
from tracepoint.model.rewrite import break_statements, set_assign_str_arity, set_declarations_apart
from tracepoint.place.fragment import EventText, Fragment, read_checked, read_events, read_fragment
from tracepoint.place.headers import new_header, read_target
from tracepoint.place.kernel import check_path
from tracepoint.place.loader import KernelLoader
from tracepoint.place.outline import read_directives
from tracepoint.place.sharing import share_classes
from tracepoint.place.types import check_includes, missing_structs, unknown_types
from tracepoint.source.text import SourceFile, apply_edits

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from tracepoint.diagnostics import Diagnostic
    from tracepoint.model.event import Event, EventClass
    from tracepoint.place.headers import TargetHeader
    from tracepoint.place.kernel import KernelTree

# scripts/checkpatch.pl rejects blanks inside brackets, which columns need.
STYLE = Style(
    fields=next(style for style in FIELD_STYLES if style.name == "compact"), assign="space", adds_blanks=False
)
#: The end of a declaration that is directly followed by something.
_CLOSE = re.compile(r"^\);\n(?=\S)", re.MULTILINE)
_SYSTEM = re.compile(r"\w[\w-]*\Z")


@dataclass(frozen=True, slots=True)
class Declaration:
    """The changes that declare events.

    `header` is the path of the trace header; `edits` change it, or `new_text` is its whole text, and
    `creator` the C file that shall create its events, empty to choose one.  `events` are the new ones;
    `notes` say what was decided.
    """

    header: str
    events: tuple[Event, ...]
    edits: tuple[Edit, ...] = ()
    new_text: str = ""
    creator: str = ""
    notes: tuple[str, ...] = ()


def declare(kernel: KernelTree, given: EventText) -> Declaration:
    """Return the changes that declare events in the header of their system.

    Raises PlaceError with the reason: text that cannot be read, a system or header that is not
    known, a name that is in use, a header that no event can be added to.
    """
    fragment = read_fragment(given)
    if not fragment.system or not _SYSTEM.match(fragment.system):
        raise PlaceError(
            f"{given.origin}: {fragment.system!r} is not a TRACE_SYSTEM; name the system of the events"
        )
    path, is_new = _find_header(kernel, given, fragment.system)
    if is_new:
        return _new(kernel, given, fragment, path)
    return _existing(kernel, given, fragment, path)


def _find_header(kernel: KernelTree, given: EventText, system: str) -> tuple[str, bool]:
    """Return the header for a system, and whether it has to be created."""
    usual = f"include/trace/events/{system}.h"
    if given.header:
        check_path(given.header)
        if kernel.text(given.header) is not None:
            return given.header, False
        if not given.is_new:
            raise PlaceError(f"{given.header}: no such file in the tree; use --new-header to create it")
        return given.header, True
    found = sorted({event.header for event in kernel.tree.events(f"{system}:")})
    if usual in found or (not found and kernel.text(usual) is not None):
        return usual, False
    if len(found) == 1:
        return found[0], False
    if found:
        raise PlaceError(
            f"{len(found)} headers declare events of {system}: {', '.join(found)}: name one with --header "
            "(`header` in a plan)"
        )
    if given.is_new:
        return usual, True
    close = get_close_matches(system, kernel.tree.systems(), n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise PlaceError(
        f"no header of the tree declares events of {system}{hint} (--new-header makes one, `new = true` in "
        "a plan)"
    )


def _existing(kernel: KernelTree, given: EventText, fragment: Fragment, path: str) -> Declaration:
    loader = KernelLoader(kernel)
    target = read_target(kernel.source(path), fragment.system, loader)
    events = read_events(given, fragment.system, target.header.classes, loader)
    _check_names(kernel, events, target)
    check_includes(fragment.includes, path, loader)
    body, notes = _body(kernel, given, fragment, target.shareable, target.names)
    edits = [
        *target.include_edits(fragment.includes),
        *target.forward_edits(missing_structs(events, _with_included(target.source, loader), body)),
        target.insertion(body),
    ]
    changed = SourceFile(path, apply_edits(target.source.text, edits))
    _check_result(changed, events, fragment.system, loader, target.header.diagnostics)
    more = _type_notes(events, target.source, fragment.includes, loader)
    return Declaration(path, events, tuple(edits), notes=(*notes, *more))


def _new(kernel: KernelTree, given: EventText, fragment: Fragment, path: str) -> Declaration:
    if not fragment.system.isidentifier():
        raise PlaceError(f"{fragment.system}: the name of a new system must be a C identifier")
    loader = KernelLoader(kernel)
    events = read_events(given, fragment.system, (), loader)
    _check_names(kernel, events, None)
    check_includes(fragment.includes, path, loader)
    body, notes = _body(kernel, given, fragment, (), ())
    text = new_header(path, fragment.system, body, fragment.includes, missing_structs(events, "", body))
    _check_result(SourceFile(path, text), events, fragment.system, loader)
    bare = SourceFile(path, new_header(path, fragment.system, "", fragment.includes, ()))
    more = _type_notes(events, bare, (), loader)
    return Declaration(
        path, events, new_text=text, creator=given.creator, notes=(f"{path} is new", *notes, *more)
    )


def _body(
    kernel: KernelTree,
    given: EventText,
    fragment: Fragment,
    existing: Sequence[EventClass],
    taken: Collection[str],
) -> tuple[str, tuple[str, ...]]:
    """Return the declarations in the form for the header, and notes about decisions."""
    text = _adapt(fragment.body, given.origin, existing, kernel.assign_str_arity)
    events = read_checked(SourceFile(given.origin, text), existing).events
    sharing = share_classes(text, events, existing, taken, given.class_name)
    text = format_text(apply_edits(text, sharing.edits), style=STYLE).text
    text = _CLOSE.sub(");\n\n", set_declarations_apart(text))
    return text.strip("\n") + "\n", sharing.notes


def _adapt(text: str, origin: str, existing: Iterable[EventClass], arity: int | None) -> str:
    """Spell `__assign_str` as the tree does (one argument since 6.10), and each statement on its own line."""
    edits = []
    for cls in read_checked(SourceFile(origin, text), existing).classes:
        tokens = cls.assign.tokens
        if not tokens or cls.origin is None or cls.origin.chain or any(token.expansion for token in tokens):
            continue
        start, end = tokens[0].start, tokens[-1].end
        old = text[start:end]
        new = set_assign_str_arity(old, cls.fields, arity)
        if "\n" not in new:
            new = break_statements(new)
        edits.append(Edit("", start, end, new))
    return apply_edits(text, edits)


def _check_names(kernel: KernelTree, events: Sequence[Event], target: TargetHeader | None) -> None:
    names: set[str] = set()
    for event in events:
        if event.name in names:
            raise PlaceError(f"{event.name} is declared twice")
        names.add(event.name)
        for other in kernel.tree.events(event.name):
            raise PlaceError(
                f"{event.full_name}: {other.header}:{other.line} already declares {other.full_name}"
            )
        if target is not None and event.name in target.names:
            raise PlaceError(
                f"{event.full_name}: the name {event.name} is already used in {target.source.path}"
            )
    for name in sorted(names):
        for _, header, line in kernel.tree.tracepoints(name):
            raise PlaceError(f"{name}: {header}:{line} already declares a tracepoint of that name")


def _with_included(source: SourceFile, loader: KernelLoader) -> str:
    """Return the text of a header with the definitions of structs in its direct includes."""
    texts = [source.text]
    for directive in read_directives(source.text):
        is_quoted = directive.rest.startswith('"')
        file = (
            loader.load(directive.included, is_quoted=is_quoted, includer=source.path)
            if directive.included
            else None
        )
        texts += re.findall(r"^(?:struct|union)[ \t]+\w+(?=\s*\{)", file.text, re.MULTILINE) if file else []
    return "\n".join(texts)


def _type_notes(
    events: Sequence[Event], source: SourceFile, wanted: Iterable[str], loader: KernelLoader
) -> Iterator[str]:
    """Report types that the header will not know; `source` is the header without the events."""
    there = (d for d in read_directives(source.text) if d.included)
    includes = [*wanted, *(d.rest for d in there)]
    names = [(word[1:-1], word.startswith('"')) for word in includes]
    for name in unknown_types(events, source.path, source.text, names, loader):
        yield (
            f"{name} is not declared by what {source.path} includes: add the #include to the event, or "
            "not every file that includes the header will compile"
        )


def _check_result(
    changed: SourceFile,
    events: Sequence[Event],
    system: str,
    loader: KernelLoader,
    known: Iterable[Diagnostic] = (),
) -> None:
    """Read the changed header: every new event must be in it, under its system, without new errors."""
    header = read_checked(changed, (), loader, known)
    found = {event.name: event.system for event in header.events}
    for event in events:
        if found.get(event.name) != system:
            raise PlaceError(f"{event.name} would not be an event of {system} in {changed.path}")
