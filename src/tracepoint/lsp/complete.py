"""Names that may stand at a place: fields after `__entry->`, macros and helpers after `__`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracepoint.lsp.outline import class_of, declared_at
from tracepoint.model.vocabulary import ASSIGN_HELPERS, FIELD_MACROS, PRINT_HELPERS

if TYPE_CHECKING:
    from tracepoint.model.event import TraceHeader

_AFTER_ENTRY = re.compile(r"\b__entry\s*->\s*\w{0,80}\Z")
_AFTER_UNDERSCORES = re.compile(r"(?<!\w)__\w{0,80}\Z")
_MAX_BEFORE = 200


def completions_at(header: TraceHeader, offset: int) -> list[tuple[str, str]]:
    """Return names that may stand at an offset, each with what it is: a field's type, a macro's arguments."""
    text = header.source.text if header.source is not None else ""
    start = max(0, offset - _MAX_BEFORE)
    thing = declared_at(header, offset)
    owner = class_of(thing) if thing is not None else None
    if owner is None:
        return []
    if _AFTER_ENTRY.search(text, start, offset):
        return [(field.name, field.ctype) for field in owner.fields]
    if _AFTER_UNDERSCORES.search(text, start, offset):
        macros = [(f"__{kind}", f"({', '.join(roles)})") for kind, roles in FIELD_MACROS.items()]
        return [*macros, *((name, "") for name in sorted(PRINT_HELPERS | ASSIGN_HELPERS)), ("__entry", "")]
    return []
