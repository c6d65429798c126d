"""Type stubs of a trace header: what `tracepoint.load()` returns, for type checkers and editors."""

from __future__ import annotations

import keyword
import re
from typing import TYPE_CHECKING

from tracepoint.errors import GenerateError
from tracepoint.generate.fileset import FileSet
from tracepoint.generate.writer import check_name
from tracepoint.source.types import INTEGER_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.model.event import Proto, TraceHeader

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_WORDS = re.compile(r"\w+")
_NUMBER_WORDS = INTEGER_WORDS | {"const", "volatile"}
_HEAD = '''\
"""The tracepoints of {path}: made by `tracepoint generate stubs`, for `tracepoint.load()`."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, Protocol, SupportsIndex, overload

from tracepoint import TraceHeader
from tracepoint.runtime.declare.event import EventMethods, HookMethods
'''
# Not a subclass of LoadedHeader, to which every attribute is known.
_HEADER = """\
class Header:
    header: TraceHeader
    events: Mapping[str, Any]
    problems: Mapping[str, str]
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ..."""


def type_stubs(header: TraceHeader, *, name: str = "events") -> FileSet:
    """Return `NAME.pyi`, which declares every `trace_x` with its parameters, and `Header` for all of them.

    Numbers are what has `__index__`, `char *` is text or bytes, and other pointers are untyped,
    since attributes and items are read.  Raises GenerateError for a name that is not a module's,
    and for a header that declares nothing.
    """
    if not _IDENTIFIER.fullmatch(name) or keyword.iskeyword(name):
        raise GenerateError("", f"{name!r} is not a valid Python module name; give another with --name")
    protos = {event.name: (event.proto, event.is_nop) for event in header.events}
    protos |= {bare.call_name or bare.name: (bare.proto, True) for bare in header.tracepoints}
    if not protos:
        raise GenerateError("", "the header declares no tracepoints")
    lines = [_HEAD.format(path=header.path.rpartition("/")[2].replace("\\", "") or "a header")]
    for event, (proto, is_hook) in protos.items():
        lines += _protocol(event, proto, is_hook=is_hook)
    lines += [_HEADER]
    lines += [f"    trace_{event}: _{event}" for event in protos]
    for event in protos:
        lines += ["    @overload", f'    def __getitem__(self, name: Literal["{event}"]) -> _{event}: ...']
    lines += ["    @overload", "    def __getitem__(self, name: str) -> Any: ..."]
    lines += ["", *(f"trace_{event}: _{event}" for event in protos)]
    return FileSet({f"{check_name(name, 'stub')}.pyi": "\n".join(lines) + "\n"})


def _protocol(event: str, proto: Proto, *, is_hook: bool) -> Iterator[str]:
    """Yield the class of one tracepoint."""
    names = [f"{n}_" if keyword.iskeyword(n) else n for n in proto.names]
    parameters = [f"{n}: {python_type(p.ctype)}" for n, p in zip(names, proto.params, strict=True)]
    # A parameter whose name is not valid in Python can only be passed by position.
    end = ["/"] if any(map(keyword.iskeyword, proto.names)) else []
    yield f"class _{event}({'HookMethods' if is_hook else 'EventMethods'}, Protocol):"
    yield f"    def __call__({', '.join(['self', *parameters, *end])}) -> None: ..."
    yield ""


def python_type(ctype: str) -> str:
    """Return the annotation of a parameter of a C type.

    >>> [python_type(t) for t in ("unsigned long", "const char *", "struct page *", "enum migrate_mode")]
    ['SupportsIndex', 'str | bytes | None', 'Any', 'SupportsIndex']
    """
    words = _WORDS.findall(ctype)
    if "*" in ctype or "[" in ctype:
        is_text = set(words) <= {"char", "const", "unsigned", "signed"} and "char" in words
        return "str | bytes | None" if is_text and ctype.count("*") + ctype.count("[") == 1 else "Any"
    is_number = words and (words[0] == "enum" or set(words) <= _NUMBER_WORDS)
    return "SupportsIndex" if is_number else "Any"
