"""One trace header in the index: what it declares, the layout of its records, what it includes.

A record is made of plain lists and strings, so that it can go between processes and to disk.
`head` is what every question needs; `more` is loaded for questions about fields or formats.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracepoint.errors import TracepointError
from tracepoint.layout.abi import Abi
from tracepoint.layout.compute import compute_layout
from tracepoint.model.field import (
    ArrayField,
    BitmaskField,
    DynamicArrayField,
    ScalarField,
    SockaddrField,
    StringField,
    StructField,
)
from tracepoint.tree.creators import Creators
from tracepoint.tree.headers import HeaderReader
from tracepoint.tree.index.rows import ClassRow, DetailRow, EventRow, LayoutRow, TracepointRow
from tracepoint.tree.opening import read_input

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracepoint.layout.format import EventFormat
    from tracepoint.model.event import BareTracepoint, Event, EventClass, TraceHeader
    from tracepoint.model.field import Field
    from tracepoint.model.origin import Origin

Record = dict[str, Any]
_STARS = re.compile(r"^[ \t]*\*+/?[ \t]?", re.MULTILINE)
_MAX_DOC = 4000
#: The system of all custom events, whatever their header says (include/trace/trace_custom_events.h).
_CUSTOM = "custom"


class HeaderIndexer:
    """Reads the trace headers of one tree into records.

    `creating` are the C files, relative to the tree, that define CREATE_TRACE_POINTS.
    """

    def __init__(self, root: str, creating: Iterable[str]) -> None:
        self.root = root
        self._reader = HeaderReader(
            creators=Creators(Path(root), [Path(root, name) for name in creating]),
        )
        makefile = Path(root, "Makefile")
        is_unsigned = makefile.is_file() and b"-funsigned-char" in read_input(makefile)
        self._is_char_signed = False if is_unsigned else None

    def record(self, path: str) -> Record:
        """Return the record of one header; a header that cannot be read has a `problem`."""
        self._reader.take_visited()
        try:
            header = self._reader.read(Path(self.root, path))
        except TracepointError as error:
            problem = str(error).replace(f"{self.root}/", "")
            return {
                "head": _empty_head(problem),
                "more": {"classes": [], "events": [], "layouts": []},
                "deps": [],
            }
        head, more = self._make(header)
        prefix = f"{self.root}/"
        asked = self._reader.take_visited()
        deps = sorted(name.removeprefix(prefix) for name in asked if name.startswith(prefix))
        return {"head": head, "more": more, "deps": deps}

    def _make(self, header: TraceHeader) -> tuple[Record, Record]:
        used = {id(event.event_class): event.event_class for event in header.events}
        used.update((id(c), c) for c in header.classes)
        numbers = {key: number for number, key in enumerate(used)}
        layouts = _Layouts(header, self._is_char_signed)
        events, details = [], []
        for event in header.events:
            line, column, via = _place(event.origin)
            number = numbers[id(event.event_class)]
            flags = event.is_nop | event.is_custom << 1
            file = self._part(header, event.origin)
            system = _CUSTOM if event.is_custom else event.system
            row = EventRow(system, event.name, number, line, column, event.macro, via, flags, file)
            events.append([*row])
            layout, problem = layouts.number(event)
            own = event.print_override.text if event.print_override else ""
            condition = event.condition.text if event.condition else ""
            doc = _doc(header, event.origin)
            details.append([*DetailRow(layout, problem, own, condition, event.reg, event.unreg, doc)])
        head = {
            "system": header.system,
            "systems": sorted({name for name, _ in header.form.systems} or {header.system}),
            "include_file": header.form.include_file,
            "problem": "",
            "events": events,
            "classes": [c.name for c in used.values()],
            "tracepoints": [_tracepoint_row(t) for t in header.tracepoints],
        }
        more = {"classes": [_class_row(header, c) for c in used.values()], "events": details}
        return head, {**more, "layouts": layouts.rows}

    def _part(self, header: TraceHeader, origin: Origin | None) -> str:
        """Return the included file that holds a declaration, empty when it is the header's own."""
        path = origin.span.path if origin is not None else header.path
        return "" if path == header.path else path.removeprefix(f"{self.root}/")


def _empty_head(problem: str) -> Record:
    return {
        "system": "",
        "systems": [],
        "include_file": "",
        "problem": problem,
        "events": [],
        "classes": [],
        "tracepoints": [],
    }


class _Layouts:
    """The distinct layouts of a header's events."""

    def __init__(self, header: TraceHeader, is_char_signed: bool | None) -> None:
        self.rows: list[list[Any]] = []
        self._header = header
        self._is_char_signed = is_char_signed
        self._numbers: dict[tuple[int, str, str], tuple[int, str]] = {}

    def number(self, event: Event) -> tuple[int, str]:
        """Return the number of an event's layout, or -1 and why there is none."""
        own = event.print_override.text if event.print_override else ""
        key = (id(event.event_class), event.system, own)
        if key not in self._numbers:
            self._numbers[key] = self._compute(event)
        return self._numbers[key]

    def _compute(self, event: Event) -> tuple[int, str]:
        if event.is_nop:
            return -1, "declared with a _NOP macro: no record in any kernel"
        try:
            layout = compute_layout(
                event,
                Abi.X86_64,
                environment=self._header.environment,
                is_char_signed=self._is_char_signed,
                enums=self._header.exported_enums,
            )
        except TracepointError as error:
            return -1, str(error)
        self.rows.append(layout_row(layout))
        return len(self.rows) - 1, ""


def layout_row(layout: EventFormat) -> list[Any]:
    """Return a layout as plain lists: its own fields, size in bytes, print format."""
    fields = [[f.name, f.ctype, f.offset, f.size, int(f.is_signed)] for f in layout.event_fields]
    return [*LayoutRow(fields, layout.size_bytes, layout.print_fmt)]


def _tracepoint_row(t: BareTracepoint) -> list[Any]:
    line, column, _ = _place(t.origin)
    return [*TracepointRow(t.name, t.call_name or t.name, line, column, t.macro, str(t.proto), list(t.args))]


def _class_row(header: TraceHeader, c: EventClass) -> list[Any]:
    params = [[p.ctype, p.name] for p in c.proto.params]
    fields = [[f.kind, f.ctype, f.name, _extra(f)] for f in c.fields]
    line, _, _ = _place(c.origin)
    doc = _doc(header, c.origin)
    return [*ClassRow(c.name, c.macro, params, list(c.args), fields, c.printk.text, line, doc)]


def _extra(item: Field) -> str:
    """The arguments of a field's macro after type and name, as text."""
    match item:
        case ArrayField() | DynamicArrayField() | SockaddrField():
            return item.length.text
        case StringField():
            more = (item.length, item.va_list)
            return ", ".join([item.source.text, *(code.text for code in more if code is not None)])
        case BitmaskField():
            return item.n_bits.text if item.n_bits is not None else ""
        case ScalarField() | StructField():
            return item.filter_type
    return ""


def _place(origin: Origin | None) -> tuple[int, int, list[str]]:
    """Return line and column in the source, and the macros it went through."""
    if origin is None:
        return 0, 0, []
    return origin.span.line, origin.span.column, [step.macro for step in origin.chain]


def _doc(header: TraceHeader, origin: Origin | None) -> str:
    """The comment right before a declaration, without its stars."""
    if origin is None or header.source is None or origin.span.path != header.source.path:
        return ""
    before = header.source.text[: origin.span.start].rstrip()
    start = before.rfind("/*") if before.endswith("*/") else -1
    # What follows something, as in `#endif /* CONFIG_X */`, is about that.
    if start < 0 or before[before.rfind("\n", 0, start) + 1 : start].strip():
        return ""
    text = _STARS.sub("", before[start + 2 : -2]).strip()
    return text if len(text) <= _MAX_DOC else ""
