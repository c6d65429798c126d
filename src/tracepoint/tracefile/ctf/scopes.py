"""Which field a length or a tag refers to.

A path is looked for next to the field that names it, then in the structs around it, then in what was read
before: `event.fields`, `event.context`, `stream.event.context` and so on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.errors import DecodeError
from tracepoint.tracefile.ctf.types import CtfArray, CtfEnum, CtfInteger, CtfStruct, CtfVariant

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracepoint.tracefile.ctf.types import CtfType

    Path = tuple[str, ...]

HEADER = ("trace", "packet", "header")
PACKET_CONTEXT = ("stream", "packet", "context")
EVENT_HEADER = ("stream", "event", "header")
STREAM_CONTEXT = ("stream", "event", "context")
EVENT_CONTEXT = ("event", "context")
FIELDS = ("event", "fields")
_ROOTS = (FIELDS, EVENT_CONTEXT, STREAM_CONTEXT, EVENT_HEADER, PACKET_CONTEXT, HEADER)
#: The last word of the path of an element of an array.
ELEMENT = "[]"


class CtfScope:
    """The integers of some structs by their paths, and which of them a reader keeps.

    These are the ones that lengths and tags refer to, and `needed`.
    """

    def __init__(self, roots: dict[Path, CtfType], needed: Iterable[Path] = ()) -> None:
        self.integers: dict[Path, CtfInteger | CtfEnum] = {}
        #: The paths of lengths and tags by that of the array or variant that names them.
        self.targets: dict[Path, Path] = {}
        for root, kind in roots.items():
            self._walk(root, kind)
        self.needed = {*self.targets.values(), *needed}

    def _walk(self, path: Path, kind: CtfType) -> None:
        match kind:
            case CtfInteger() | CtfEnum():
                self.integers[path] = kind
            case CtfStruct():
                for name, member in kind.fields:
                    self._walk((*path, name), member)
            case CtfArray():
                if isinstance(kind.length, tuple):
                    self.targets[path] = self._resolve(path, kind.length)
                self._walk((*path, ELEMENT), kind.element)
            case CtfVariant():
                if not kind.tag:
                    raise DecodeError(f"a variant without a tag: {path[-1]}")
                self.targets[path] = self._resolve(path, kind.tag)
                if not isinstance(self.integers[self.targets[path]], CtfEnum):
                    raise DecodeError(f"the tag of {path[-1]} is not an enumeration")
                for name, option in kind.options:
                    self._walk((*path, name), option)

    def _resolve(self, path: Path, reference: Path) -> Path:
        for end in range(len(path) - 1, 1, -1):
            if (found := (*path[:end], *reference)) in self.integers:
                return found
        if reference in self.integers:
            return reference
        for root in _ROOTS:
            if (found := (*root, *reference)) in self.integers:
                return found
        raise DecodeError(f"no integer before {path[-1]} has the name {'.'.join(reference)[:80]}")
