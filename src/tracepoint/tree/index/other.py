"""Indexes of other things than source trees: folders of modules or of format files, BTF, single objects.

They have events, fields and prototypes, but no callers.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracepoint.errors import LayoutError, SourceError, TreeError
from tracepoint.layout.btf import BtfKind, read_btf
from tracepoint.layout.compressed import OBJECT_ENDS, OBJECT_STARTS, decompress
from tracepoint.layout.format import read_format
from tracepoint.layout.objects import read_object
from tracepoint.source.text import decode
from tracepoint.tree.index.headers import layout_row
from tracepoint.tree.index.rows import ClassRow, DetailRow, EventRow
from tracepoint.tree.index.store import IndexData
from tracepoint.tree.opening import read_input

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tracepoint.layout.btf import Btf
    from tracepoint.layout.format import EventFormat

_BTF_STARTS = (b"\x9f\xeb", b"\xeb\x9f")
_NOT_OWN = ("ent", "__data")
_TYPEDEF_PREFIX = "btf_trace_"
_STRUCT_PREFIX = "trace_event_raw_"


def read_other(path: str) -> IndexData:
    """Index a folder of `format` files, a folder of modules, a BTF file or one object.

    Raises TreeError for anything else.
    """
    if os.path.isdir(path):  # noqa: PTH112 - real paths of this room are strings
        return _read_folder(path)
    try:
        data = read_input(path, (*_BTF_STARTS, *OBJECT_STARTS))
        if data.startswith(_BTF_STARTS):
            return index_of_btf(data, path)
        return index_of(path, "objects", [(os.path.basename(path), _object_events(data))])  # noqa: PTH119
    except OSError as error:
        raise TreeError(path, error.strerror or str(error)) from error
    except SourceError as error:
        raise TreeError(path, str(error).removeprefix(f"{path}: ")) from None
    except LayoutError as error:
        raise TreeError(path, f"no kernel tree, no BTF, no kernel object: {error}") from error


def _read_folder(path: str) -> IndexData:
    formats: list[tuple[str, list[EventFormat]]] = []
    objects: list[tuple[str, list[EventFormat]]] = []
    problems: list[str] = []
    for name in _files_below(path):
        try:
            if name.endswith(OBJECT_ENDS):
                data = read_input(Path(path, name), OBJECT_STARTS)
                events = _object_events(data)
                if events:
                    objects.append((name, events))
            else:
                text = decode(read_input(Path(path, name)))
                parts = name.split("/")
                system = (
                    parts[-3] if parts[-1] == "format" and len(parts) > 2 else parts[-2] if parts[1:] else ""
                )
                formats.append((name, [read_format(text, system)]))
        except (OSError, LayoutError, SourceError) as error:
            problems.append(f"{name}: {error}")
    if formats:
        return index_of(path, "formats", formats, problems)
    if objects:
        return index_of(path, "objects", objects, problems)
    reason = "no kernel source tree (include/linux/tracepoint.h is missing), no format files, no modules"
    raise TreeError(path, f"{reason}; {problems[0]}" if problems else reason)


def _files_below(path: str) -> Iterator[str]:
    for top, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            if name == "format" or name.endswith((".format", *OBJECT_ENDS)):
                yield os.path.relpath(f"{top}/{name}", path)


def _object_events(data: bytes) -> list[EventFormat]:
    return read_object(decompress(data))


def index_of(
    root: str, kind: str, files: Iterable[tuple[str, list[EventFormat]]], problems: Iterable[str] = ()
) -> IndexData:
    """Make an index of formats, which are by the file that they come from."""
    headers: dict[str, Any] = {}
    more: dict[str, Any] = {}
    for path, formats in files:
        rows, classes, layouts = [], [], []
        for number, event in enumerate(formats):
            rows.append([*EventRow(event.system, event.name, number, 0, 0, kind, [], 0, "")])
            fields = [["field", f.ctype, f.name, ""] for f in event.event_fields]
            classes.append([*ClassRow(event.name, kind, [], [], fields, event.print_fmt, 0, "")])
            layouts.append(layout_row(event))
        details = [[*DetailRow(number)] for number in range(len(rows))]
        headers[path] = _head(rows, [event.name for event in formats], formats[0].system if formats else "")
        more[path] = {"classes": classes, "events": details, "layouts": layouts}
    return IndexData(root, kind, {**_EMPTY, "headers": headers, "unreadable": list(problems)}, more)


def index_of_btf(data: bytes, root: str = "", base: Btf | None = None) -> IndexData:
    """Make an index of BTF: every tracepoint's prototype, and the records with a tracepoint's name.

    BTF does not say which class an event belongs to, nor its system.  Raises LayoutError for damaged
    BTF.
    """
    btf = read_btf(data, base)
    structs: dict[str, int] = {}
    typedefs: list[tuple[str, int]] = []
    for type_id in range(1, btf.n_types):
        kind = btf.kind(type_id)
        if kind is BtfKind.STRUCT:
            name = btf.name(type_id)
            if name.startswith(_STRUCT_PREFIX):
                structs.setdefault(name.removeprefix(_STRUCT_PREFIX), type_id)
        elif kind is BtfKind.TYPEDEF and btf.name(type_id).startswith(_TYPEDEF_PREFIX):
            typedefs.append((btf.name(type_id).removeprefix(_TYPEDEF_PREFIX), type_id))
    rows: list[list[Any]] = []
    classes: list[list[Any]] = []
    names: list[str] = []
    for number, (name, type_id) in enumerate(sorted(dict(typedefs).items())):
        # The first parameter is the probe's own data.
        params = [[btf.spell(p.type_id), p.name] for p in btf.prototype(type_id)[1:]]
        members = btf.members(structs[name]) if name in structs else []
        fields = [["field", btf.spell(m.type_id), m.name, ""] for m in members if m.name not in _NOT_OWN]
        rows.append([*EventRow("", name, number, 0, 0, "btf", [], 0, "")])
        classes.append([*ClassRow(name, "btf", params, [], fields, "", 0, "")])
        names.append(name)
    details = [[*DetailRow(-1, "BTF has no print format")] for _ in rows]
    head = {**_EMPTY, "headers": {"BTF": _head(rows, names)}}
    return IndexData(root, "btf", head, {"BTF": {"classes": classes, "events": details, "layouts": []}})


_EMPTY: dict[str, Any] = {
    "sites": {},
    "hidden": {},
    "pasted": {},
    "exports": {},
    "creators": {},
    "syscalls": {},
    "copied": {},
    "unreadable": [],
}


def _head(rows: list[list[Any]], classes: list[str], system: str = "") -> dict[str, Any]:
    return {
        "system": system,
        "systems": [],
        "include_file": "",
        "problem": "",
        "events": rows,
        "classes": classes,
        "tracepoints": [],
    }
