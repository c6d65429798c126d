"""Where a header uses a field: its macro, `__entry->x` and helpers, to show and to rename all of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracepoint.errors import TracepointError
from tracepoint.lsp.outline import Word, class_of, declared, field_at, word_at
from tracepoint.model.vocabulary import FIELD_MACROS
from tracepoint.source.brackets import read_macro_arguments
from tracepoint.source.lexer import lex

if TYPE_CHECKING:
    from tracepoint.model.event import TraceHeader
    from tracepoint.model.field import Field

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
#: What begins every record: trace_define_common_fields() of kernel/trace/trace_events.c.
_COMMON = "common_"


def field_uses(header: TraceHeader, offset: int) -> list[Word]:
    """Return the places of the field that the word at an offset names, in the order of the text.

    Events of a class are looked at too, as their print formats use its fields.
    """
    found = field_at(header, offset)
    owner = class_of(found[0]) if found is not None else None
    if found is None or owner is None or header.source is None:
        return []
    text, places = header.source.text, list[Word]()
    own, name_at = found[1].origin.span if found[1].origin is not None else None, _name_at(header, found[1])
    of_name = re.compile(rf"\b{re.escape(found[1].name)}\b")
    for thing in declared(header):
        if class_of(thing) is not owner or thing.origin is None:
            continue
        for match in of_name.finditer(text, thing.origin.span.start, thing.origin.span.end):
            here = field_at(header, match.start())
            # Its macro may have a parameter of the same name: __string(name, name).
            is_other = own is not None and own.start <= match.start() < own.end and match.start() != name_at
            if here is not None and here[1] is found[1] and not is_other:
                places.append(Word(match[0], *match.span()))
    return places


def _name_at(header: TraceHeader, field: Field) -> int:
    """Return where the macro of a field has its name; -1 where it is not in the text of the header."""
    origin = field.origin
    if origin is None or origin.chain or header.source is None or origin.span.path != header.path:
        return -1
    tokens = lex(header.source, origin.span.start, origin.span.end)
    roles = FIELD_MACROS.get(tokens[0].text.removeprefix("__"), ())
    arguments = read_macro_arguments(tokens, 1)
    if "name" not in roles or arguments is None or len(arguments[0]) <= roles.index("name"):
        return -1
    name = arguments[0][roles.index("name")]
    return name[0].span.start if name else -1


def renamable(header: TraceHeader, offset: int) -> Word | None:
    """Return the name at an offset where it is that of a field, else None."""
    word = word_at(header.source.text if header.source is not None else "", offset)
    is_use = word is not None and any(use.start == word.start for use in field_uses(header, offset))
    return word if is_use else None


def rename_field(header: TraceHeader, offset: int, name: str) -> list[Word]:
    """Return the places to write another name of a field to.

    Raises TracepointError for a name that no field of its event can have, and where a macro of the header
    uses the field, as other declarations may use that macro.
    """
    found = field_at(header, offset)
    owner = class_of(found[0]) if found is not None else None
    if found is None or owner is None:
        raise TracepointError("there is no field here: rename fields in their macro or after __entry->")
    old = found[1].name
    if not _NAME.fullmatch(name):
        raise TracepointError(f"{name!r} is not a valid name of a field: use letters, digits and _")
    if name.startswith(_COMMON):
        raise TracepointError(f"{name}: {_COMMON} begins the names of the fields that all events have")
    if name != old and name in {field.name for field in owner.fields}:
        raise TracepointError(f"{owner.name} has a field {name} already")
    uses = field_uses(header, offset)
    if outside := _use_outside(header, old):
        raise TracepointError(
            f"line {outside} uses __entry->{old} outside of its declaration: rename it by hand"
        )
    return uses


def _use_outside(header: TraceHeader, name: str) -> int:
    """Return the line of a use that no declaration holds, such as in a macro; 0 without one."""
    if header.source is None:
        return 0
    spans = [thing.origin.span for thing in declared(header) if thing.origin is not None]
    for match in re.finditer(rf"__entry\s*->\s*{re.escape(name)}\b", header.source.text):
        if not any(span.start <= match.start() < span.end for span in spans):
            return header.source.span(*match.span()).line
    return 0
