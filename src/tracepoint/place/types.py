"""The types that a declaration needs, and whether the header or its includes declare them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracepoint.errors import PlaceError
from tracepoint.model.field import ArrayField, DynamicArrayField, ScalarField, StructField
from tracepoint.source.closure import IncludeClosure
from tracepoint.source.ctype import BASIC_WORDS, QUALIFIERS, TAG_WORDS
from tracepoint.source.lexer import Kind, lex
from tracepoint.source.text import SourceFile
from tracepoint.source.types import COMMON_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tracepoint.model.event import Event, TraceHeader
    from tracepoint.source.preprocess import Loader

_STRUCT = re.compile(r"\b(?:struct|union)\s+[A-Za-z_]\w*")


def missing_structs(events: Iterable[Event], header: str, body: str) -> list[str]:
    """Return the structs of new prototypes that must be declared because the header does not mention them."""
    wanted = dict.fromkeys(
        " ".join(found.split())
        for event in events
        for param in event.proto.params
        for found in _STRUCT.findall(param.ctype)
    )
    return [
        name
        for name in wanted
        if not re.search(rf"\b{name}\b", header) and not re.search(rf"\b{name}\s*[;{{]", body)
    ]


def unknown_types(
    events: Iterable[Event], path: str, text: str, includes: Iterable[tuple[str, bool]], loader: Loader
) -> list[str]:
    """Return typedefs and enums of events that neither a header nor what it includes declares.

    `path` and `text` are those of the header without the events, `includes` the files that it will
    include, as name and whether it is quoted.
    """
    known = set(re.findall(r"[A-Za-z_]\w*", text))
    wanted = [name for name in dict.fromkeys(_named_types(events)) if name not in known]
    wanted = [name for name in wanted if name not in COMMON_TYPES]
    if not wanted:
        return []
    closure = IncludeClosure(loader, [(name, quoted, path) for name, quoted in includes])
    return [name for name in wanted if not _is_declared(name, closure)]


def unmet_types(header: TraceHeader, loader: Loader, path: str = "") -> list[str]:
    """Return the types that neither a trace header nor a C file that shall include it declares.

    Many trace headers only compile after the includes of their own subsystem.
    """
    wanted: list[str] = []
    protos = [cls.proto for cls in header.classes] + [point.proto for point in header.tracepoints]
    for param in (param for proto in protos for param in proto.params):
        wanted += _names(param.ctype, has_tags=True)
    for closure_path in filter(None, (header.path, path)):
        wanted = [name for name in dict.fromkeys(wanted) if name not in COMMON_TYPES]
        if wanted:
            closure = IncludeClosure(loader, [(closure_path.rpartition("/")[2], True, closure_path)])
            wanted = [name for name in wanted if not _is_declared(name, closure)]
    return wanted


def _is_declared(name: str, closure: IncludeClosure) -> bool:
    if any(closure.holding(name)):
        return True
    # A typedef of a struct with its members, of a function; a struct, or a member that points to one.
    declared = re.compile(
        rf"\}}[^;{{}}]*\b{name}\s*;|\(\s*\*?\s*{name}\s*\)\s*\("
        rf"|\b(?:struct|union)\s+{name}\s*(?:[;{{]|\*+\s*\w+\s*;)"
    )
    return any(name in file.text and declared.search(file.text) for file in closure.files)


def _named_types(events: Iterable[Event]) -> Iterator[str]:
    for event in events:
        for param in event.proto.params:
            yield from _names(param.ctype)
        for field in event.fields:
            if isinstance(field, (ScalarField, StructField, ArrayField, DynamicArrayField)):
                yield from _names(field.ctype)


def _names(ctype: str, *, has_tags: bool = False) -> Iterator[str]:
    """Yield the names in a type that need a declaration; with `has_tags` also those of structs."""
    before = ""
    for token in lex(SourceFile("", ctype)):
        is_word = token.kind is Kind.NAME and token.text not in BASIC_WORDS | QUALIFIERS | TAG_WORDS
        if is_word and (has_tags or before not in ("struct", "union")):
            yield token.text
        before = token.text


def check_includes(includes: Iterable[str], path: str, loader: Loader) -> None:
    """Raise PlaceError when a declaration includes a header that declares events of its own.

    The file that creates our events would create those a second time.
    """
    for word in includes:
        name, is_quoted = word[1:-1], word.startswith('"')
        file = loader.load(name, is_quoted=is_quoted, includer=path)
        if file is not None and "<trace/define_trace.h>" in file.text:
            raise PlaceError(
                f"{word} declares events of its own, which the file that creates those of {path} would "
                "create a second time: include something else"
            )
