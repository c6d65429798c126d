"""The rows of an index, one class for each kind: what is written, what a saved file must hold, what is read.

They are kept as lists, as JSON has them: `[*EventRow(...)]` makes one, `EventRow(*row)` names its items.
"""

from __future__ import annotations

from typing import Any

from tracepoint.named import NamedTuple


class EventRow(NamedTuple):
    """An event of a header; `file` is the included file that declares it, empty for the header itself."""

    system: str
    name: str
    class_number: int
    line: int
    column: int
    macro: str
    via: list[str]
    flags: int
    file: str


class TracepointRow(NamedTuple):
    """A tracepoint without an event."""

    name: str
    call_name: str
    line: int
    column: int
    macro: str
    proto: str
    args: list[str]


class ClassRow(NamedTuple):
    """An event class: `params` are (type, name), `fields` (kind, type, name, further arguments)."""

    name: str
    macro: str
    params: list[list[str]]
    args: list[str]
    fields: list[list[str]]
    print_text: str
    line: int
    doc: str


class DetailRow(NamedTuple):
    """What only one event has; `layout` is the number of its layout, or -1 and `problem` says why."""

    layout: int
    problem: str = ""
    print_text: str = ""
    condition: str = ""
    reg: str = ""
    unreg: str = ""
    doc: str = ""


class LayoutRow(NamedTuple):
    """A record: `fields` of its own are (name, type, offset, size, whether signed)."""

    fields: list[list[Any]]
    size_bytes: int
    print_fmt: str


class ExportRow(NamedTuple):
    """Where a tracepoint is exported to modules."""

    name: str
    line: int
    is_gpl: bool


class SyscallRow(NamedTuple):
    """A system call; `params` are (type, name)."""

    name: str
    params: list[list[str]]
    line: int


class FileRow(NamedTuple):
    """A file that was searched: its size and time, and the flags of what it holds."""

    size: int
    mtime_ns: int
    holds: int
