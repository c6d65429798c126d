"""The layout of lttng-modules up to 2.5, for reading old trees and what was written for them.

Its instrumentation headers had the kernel's own five parts, with `tp_assign(field, source)` and its
like in place of C statements and no semicolon after a declaration; a verbatim copy of the kernel's
header was kept next to them (probes/lttng-events.h and instrumentation/ of those trees).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracepoint.generate.fileset import FileSet
from tracepoint.generate.lttng.assign import AssignmentPlan, plan_assignment
from tracepoint.generate.lttng.types import LttngKind, is_text, kind_of
from tracepoint.generate.writer import CodeWriter, fill_template
from tracepoint.model.field import (
    ArrayField,
    BitmaskField,
    DynamicArrayField,
    Field,
    SockaddrField,
    StringField,
)
from tracepoint.model.rewrite import break_print
from tracepoint.model.write import declare_param, write_header

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.generate.lttng.assign import FieldSource
    from tracepoint.model.event import Event, TraceHeader


def write_2013(
    header: TraceHeader, events: Sequence[Event], *, name: str, include: str, notes: Sequence[str] = ()
) -> FileSet:
    """Make the three files of 2013 and the line for probes/Makefile.

    Fields that only statements can fill are omitted, with a note.
    """
    writer = _Writer()
    for event in events:
        writer.write(event)
    system = re.sub(r"\W", "_", events[0].system, flags=re.ASCII)
    own = [
        one for one in header.form.includes if one not in ("<linux/tracepoint.h>", "<trace/define_trace.h>")
    ]
    lttng = fill_template(
        "lttng_events_2013.h",
        system=system,
        # The kernel's own guard: its header comes first, and must not be declared a second time.
        guard=header.form.guard or re.sub(r"\W", "_", f"_TRACE_{name.upper()}_H", flags=re.ASCII),
        includes="\n".join(f"#include {one}" for one in own),
        events=writer.code.text,
    )
    mainline = header.source.text if header.source is not None else write_header(header)
    return FileSet(
        {
            f"probes/lttng-probe-{name}.c": fill_template(
                "lttng_probe_2013.c", name=name, header=include, system=system
            ),
            f"instrumentation/events/lttng-module/{name}.h": lttng,
            f"instrumentation/events/mainline/{name}.h": mainline,
            f"probes/Makefile.{name}": f"obj-m += lttng-probe-{name}.o\n",
        },
        [*notes, *writer.notes],
    )


class _Writer:
    def __init__(self) -> None:
        self.code = CodeWriter()
        self.notes: list[str] = []
        self.classes: set[str] = set()

    def write(self, event: Event) -> None:
        event_class = event.event_class
        if not event.is_instance:
            self._write_parts(f"TRACE_EVENT({event.name},", event)
            return
        if event_class.name not in self.classes:
            self.classes.add(event_class.name)
            self._write_parts(f"DECLARE_EVENT_CLASS({event_class.name},", event)
        with self.code.block(f"DEFINE_EVENT({event_class.name}, {event.name},\n", ")\n"):
            self._write_proto(event, "")

    def _write_proto(self, event: Event, tail: str) -> None:
        params = [declare_param(p.ctype, p.name) for p in event.proto.params] or ["void"]
        self.code.call("TP_PROTO", params, "),")
        self.code.line()
        self.code.call("TP_ARGS", event.proto.names, f"){tail}")

    def _write_parts(self, head: str, event: Event) -> None:
        plan = plan_assignment(event)
        fields = [(one, plan.sources[one.name]) for one in event.fields if _is_kept(one, plan)]
        self._note(event, plan)
        code = self.code
        with code.block(head + "\n", ")\n"):
            self._write_proto(event, ",")
            code.line()
            with code.block("TP_STRUCT__entry(", "),\n"):
                code.lines(_declare(one, source) for one, source in fields)
            with code.block("TP_fast_assign(", "),\n"):
                code.lines(_assign(one, source) for one, source in fields)
            lines = f"TP_printk({break_print(event.event_class.printk.text)})".split("\n")
            code.line(lines[0])
            code.lines("\t" + line for line in lines[1:])

    def _note(self, event: Event, plan: AssignmentPlan) -> None:
        for one in event.fields:
            if _is_kept(one, plan):
                continue
            why = plan.lost.get(one.name, "statements compute it, and the layout of 2013 has none")
            self.notes.append(f"{event.event_class.name}.{one.name}: is left out: {why}")


def _is_kept(one: Field, plan: AssignmentPlan) -> bool:
    source = plan.sources.get(one.name)
    return source is not None and "tp_locvar" not in source.text


def _declare(one: Field, source: FieldSource) -> str:
    match one:
        case StringField() if source.length:
            return f"__dynamic_array_text(char, {one.name}, {source.length})"
        case StringField():
            return f"__string({one.name}, {source.text})"
        case BitmaskField():
            return f"__dynamic_array_hex(unsigned long, {one.name}, {source.length})"
        case SockaddrField():
            return f"__dynamic_array_hex(u8, {one.name}, {source.length})"
        case ArrayField() | DynamicArrayField():
            macro = "__array" if isinstance(one, ArrayField) else "__dynamic_array"
            suffix = "_text" if is_text(one.ctype) else ""
            return f"{macro}{suffix}({one.ctype}, {one.name}, {source.length})"
    match kind_of(one.ctype):
        case LttngKind.BYTES:
            return f"__array_hex(u8, {one.name}, sizeof({one.ctype}))"
        case LttngKind.NETWORK:
            return f"__field_network({one.ctype}, {one.name})"
        case LttngKind.POINTER:
            return f"__field_hex({one.ctype}, {one.name})"
    return f"__field({one.ctype}, {one.name})"


def _assign(one: Field, source: FieldSource) -> str:
    match one:
        case StringField() if not source.length:
            return f"tp_strcpy({one.name}, {source.text})"
        case ArrayField():
            return f"tp_memcpy({one.name}, {source.text}, {source.length} * sizeof({one.ctype}))"
        case DynamicArrayField() | StringField() | BitmaskField() | SockaddrField():
            return f"tp_memcpy_dyn({one.name}, {source.text})"
    if kind_of(one.ctype) is LttngKind.BYTES:
        return f"tp_memcpy({one.name}, {source.text}, sizeof({one.ctype}))"
    return f"tp_assign({one.name}, {source.text})"
