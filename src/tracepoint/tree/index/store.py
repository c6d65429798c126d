"""How indexes are kept between runs: checksummed, compressed sections in one file.

The file is not trusted: sizes are bounded, every section has a checksum, the data
is JSON (never code), and rows must have the expected shape. Anything else is a `StoreError`, and the index is
rebuilt.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from dataclasses import dataclass, field
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_origin, get_type_hints

from tracepoint.errors import TracepointError
from tracepoint.tree.cache import cache_folder
from tracepoint.tree.callsites.calls import RawSite
from tracepoint.tree.callsites.text import Define
from tracepoint.tree.index.rows import (
    ClassRow,
    DetailRow,
    EventRow,
    ExportRow,
    FileRow,
    LayoutRow,
    SyscallRow,
    TracepointRow,
)
from tracepoint.tree.writing import write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: The system of the events that system calls make.
SYSCALLS = "syscalls"
_NAME = "tracepoint tree index "
#: The number changes whenever the contents of the sections change.
FORMAT = f"{_NAME}11\n"
_MAX_FILE = 1 << 29
_MAX_SECTION = 1 << 30
_MAX_HEADER = 4096
_SECTIONS = ("head", "more", "state")
_DIGEST_SIZE = 16
_HEADER_KEYS = {"root", "kind", "mark", "sections"}


@dataclass(slots=True)
class IndexData:
    """What is known about a tree.

    `kind` is `source`, `objects`, `formats` or `btf`.  `head` answers most queries: the declarations
    per header, and the call sites, exports and system calls per file. `more` holds fields and layouts by
    header; `state` is for updating; `mark` changes with any file.
    """

    root: str
    kind: str
    head: dict[str, Any]
    more: dict[str, Any]
    state: dict[str, Any] = field(default_factory=dict)
    mark: int = 0


class StoreError(TracepointError):
    """A saved index that cannot be used; the message says why."""


class OtherVersionError(StoreError):
    """A saved index of an older or newer tracepoint: it is not damaged, but does not have everything."""


def index_folder() -> Path:
    """Return where indexes are kept."""
    return cache_folder() / "trees"


def cache_path(root: str) -> Path:
    """Return the file that keeps the index of a tree."""
    name = Path(root).name or "root"
    digest = hashlib.blake2b(os.fsencode(root), digest_size=8).hexdigest()
    return index_folder() / f"{name[:60]}-{digest}.index"


def save_index(data: IndexData, path: Path) -> None:
    """Write an index so that a reader sees either the old file or the new one; raises OSError."""
    packed = {name: _pack(getattr(data, name)) for name in _SECTIONS}
    sections = {
        name: [len(blob), hashlib.blake2b(blob, digest_size=_DIGEST_SIZE).hexdigest()]
        for name, blob in packed.items()
    }
    header = {"root": data.root, "kind": data.kind, "mark": data.mark, "sections": sections}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, (FORMAT.encode(), json.dumps(header).encode() + b"\n", *packed.values()))


class StoredIndex:
    """An open saved index; the sections are read on demand.

    Raises FileNotFoundError when there is none, OtherVersionError when another version wrote it,
    and StoreError when it cannot be used.
    """

    def __init__(self, path: Path) -> None:
        if path.stat().st_size > _MAX_FILE:
            raise StoreError(f"{path}: too large for an index")
        try:
            self._bytes = path.read_bytes()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror or error}") from error
        self.path = path
        header, self._at = self._header()
        self.root: str = header["root"]
        self.kind: str = header["kind"]
        self.mark: int = header["mark"]
        self._sections: dict[str, list[Any]] = header["sections"]

    def _header(self) -> tuple[dict[str, Any], int]:
        start = len(FORMAT)
        if self._bytes[:start] != FORMAT.encode():
            if self._bytes.startswith(_NAME.encode()):
                raise OtherVersionError(f"{self.path}: written by another version")
            raise StoreError(f"{self.path}: no index")
        end = self._bytes.find(b"\n", start, start + _MAX_HEADER)
        header = _parse(self._bytes[start : max(end, start)], self.path)
        if not isinstance(header, dict) or set(header) != _HEADER_KEYS:
            raise StoreError(f"{self.path}: damaged")
        kinds = (("root", str), ("kind", str), ("mark", int), ("sections", dict))
        if not all(isinstance(header[key], kind) for key, kind in kinds):
            raise StoreError(f"{self.path}: damaged")
        sections = header["sections"]
        if tuple(sections) != _SECTIONS or not _are_rows(list(sections.values()), _SECTION):
            raise StoreError(f"{self.path}: damaged")
        return header, end + 1

    def section(self, name: str) -> dict[str, Any]:
        """Return one section: `head`, `more` or `state`; raises StoreError when it is damaged."""
        at = self._at
        for section in _SECTIONS[: _SECTIONS.index(name)]:
            at += max(0, self._sections[section][0])
        size, digest = self._sections[name]
        blob = self._bytes[at : at + max(0, size)]
        if hashlib.blake2b(blob, digest_size=_DIGEST_SIZE).hexdigest() != digest:
            raise StoreError(f"{self.path}: damaged ({name})")
        unpacker = zlib.decompressobj()
        try:
            text = unpacker.decompress(blob, _MAX_SECTION)
        except zlib.error as error:
            raise StoreError(f"{self.path}: damaged ({name}: {error})") from error
        data = _parse(text, self.path)
        if not isinstance(data, dict) or not _CHECKS[name](data):
            raise StoreError(f"{self.path}: damaged ({name})")
        return data

    def whole(self) -> IndexData:
        """Return everything."""
        head, more, state = (self.section(name) for name in _SECTIONS)
        return IndexData(self.root, self.kind, head, more, state, self.mark)


def _pack(data: Mapping[str, Any]) -> bytes:
    return zlib.compress(json.dumps(data, separators=(",", ":")).encode(), 6)


def _parse(data: bytes, path: Path) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path}: damaged ({error})") from error


# Checks of the shape that users of the data rely on.


def _types_of(row: type) -> tuple[type, ...]:
    """Return the types that JSON has for the items of a named tuple; a truth value may be a number."""
    types = (get_origin(hint) or hint for hint in get_type_hints(row).values())
    return tuple(int if kind is bool else kind for kind in types)


_EVENT, _TRACEPOINT, _CLASS = _types_of(EventRow), _types_of(TracepointRow), _types_of(ClassRow)
_DETAIL, _LAYOUT, _FILE = _types_of(DetailRow), _types_of(LayoutRow), _types_of(FileRow)
_SITE, _EXPORT, _SYSCALL = _types_of(RawSite), _types_of(ExportRow), _types_of(SyscallRow)
_DEFINE = _types_of(Define)
_SECTION, _PARAM, _FIELD, _MEMBER, _COPIED = (
    (int, str),
    (str, str),
    (str, str, str, str),
    (str, str, int, int, int),
    (int, int),
)


def _are_rows(rows: object, kinds: Sequence[type]) -> bool:
    if not isinstance(rows, list) or set(map(type, rows)) - {list}:
        return False
    # Tens of thousands of rows have a handful of shapes: these are checked, not every row.
    return all(
        len(types) == len(kinds) and all(map(issubclass, types, kinds))
        for types in {tuple(map(type, row)) for row in rows}
    )


def _are_texts(values: object) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _by_file(table: object, kinds: Sequence[type]) -> bool:
    return isinstance(table, dict) and all(_are_rows(rows, kinds) for rows in table.values())


def _lists(table: object) -> bool:
    return isinstance(table, dict) and all(_are_texts(rows) for rows in table.values())


def _is_head(head: dict[str, Any]) -> bool:
    headers = head.get("headers")
    return (
        isinstance(headers, dict)
        and all(_is_header(record) for record in headers.values())
        and all(_by_file(head.get(key), _SITE) for key in ("sites", "hidden", "pasted"))
        and _by_file(head.get("exports"), _EXPORT)
        and _lists(head.get("creators"))
        and _by_file(head.get("syscalls"), _SYSCALL)
        and isinstance(head.get("copied"), dict)
        and _are_rows(list(head["copied"].values()), _COPIED)
        and _are_texts(head.get("unreadable"))
    )


def _is_header(record: object) -> bool:
    return (
        isinstance(record, dict)
        and all(isinstance(record.get(key), str) for key in ("system", "include_file", "problem"))
        and _are_texts(record.get("systems"))
        and _are_texts(record.get("classes"))
        and _are_rows(record.get("events"), _EVENT)
        and all(0 <= EventRow(*row).class_number < len(record["classes"]) for row in record["events"])
        and _are_rows(record.get("tracepoints"), _TRACEPOINT)
    )


def _is_more(more: dict[str, Any]) -> bool:
    return all(
        isinstance(record, dict)
        and _are_rows(record.get("classes"), _CLASS)
        and all(
            _are_rows(row.params, _PARAM) and _are_texts(row.args) and _are_rows(row.fields, _FIELD)
            for row in starmap(ClassRow, record["classes"])
        )
        and _are_rows(record.get("layouts"), _LAYOUT)
        and all(_are_rows(LayoutRow(*row).fields, _MEMBER) for row in record["layouts"])
        and _are_rows(record.get("events"), _DETAIL)
        and all(DetailRow(*row).layout < len(record["layouts"]) for row in record["events"])
        for record in more.values()
    )


def _is_state(state: dict[str, Any]) -> bool:
    if not state:
        return True
    files = state.get("files")
    return (
        isinstance(files, dict)
        and _are_rows(list(files.values()), _FILE)
        and _lists(state.get("deps"))
        and _lists(state.get("words"))
        and _by_file(state.get("defines"), _DEFINE)
        and _are_texts(state.get("names"))
    )


_CHECKS = {"head": _is_head, "more": _is_more, "state": _is_state}
