"""An LTTng probe for the trace events of a header: what goes into a tree of lttng-modules.

LTTng has no record that TP_fast_assign could fill and no print format: each field is an expression
over the tracepoint's arguments.  `assign` finds those; here they become the text that
lttng-modules 2.13 and later read (include/lttng/tracepoint-event-impl.h there).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from tracepoint.errors import GenerateError
from tracepoint.generate.fileset import FileSet
from tracepoint.generate.lttng.assign import AssignmentPlan, plan_assignment
from tracepoint.generate.lttng.fields import field_call, field_notes
from tracepoint.generate.lttng.header_macros import private_helpers
from tracepoint.generate.lttng.layout_2013 import write_2013
from tracepoint.generate.lttng.print_names import Shown, read_shown
from tracepoint.generate.lttng.types import LttngKind, kind_of
from tracepoint.generate.writer import CodeWriter, check_include, fill_template
from tracepoint.model.field import ScalarField
from tracepoint.model.write import declare_param

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracepoint.model.event import Event, EventClass, TraceHeader

LAYOUTS = ("2.13", "2013")
#: A variable of LTTng's own in every probe.
_LOCAL = "tp_locvar"
_NO_PRINT = "LTTng records fields only: no TP_printk is part of a trace"


def lttng_probe(
    header: TraceHeader,
    *,
    name: str = "",
    include: str = "",
    includes: Sequence[str] = (),
    events: Iterable[str] = (),
    layout: str = "2.13",
) -> FileSet:
    """Make the files that let LTTng record the events of `header`, or those named in `events`.

    `name` is that of the probe (default: the header's file name without `.h`); `include` how the
    probe finds the header (`<trace/events/NAME.h>` by default); `includes` what it has to
    include before, for types that the header uses.  `layout` is "2.13" for lttng-modules 2.13 to today:
    an instrumentation header, a probe and the line for src/probes/Kbuild; or "2013" for trees up to
    2.5.  The notes say, field by field, what LTTng cannot record.  Raises GenerateError when there is
    nothing to record, or for a name that C does not take.

    >>> from tracepoint.model.read import read_header_text
    >>> header = read_header_text('''#define TRACE_SYSTEM demo
    ... TRACE_EVENT(tick, TP_PROTO(int n), TP_ARGS(n), TP_STRUCT__entry(__field(int, n)),
    ...     TP_fast_assign(__entry->n = n;), TP_printk("n=%d", __entry->n));''')
    >>> files = lttng_probe(header, name="demo")
    >>> list(files)
    ['include/instrumentation/events/demo.h', 'src/probes/lttng-probe-demo.c', 'src/probes/Kbuild.demo']
    >>> print(files["src/probes/Kbuild.demo"].strip())
    obj-$(CONFIG_LTTNG) += lttng-probe-demo.o
    """
    if layout not in LAYOUTS:
        raise GenerateError("", f"no layout {layout!r} is known: use {' or '.join(LAYOUTS)}")
    stem = name or PurePosixPath(header.path).stem or header.system
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", stem):
        raise GenerateError(
            "", f"{stem[:60]!r} is not a valid name for a probe: use letters, digits, _ and -, at most 40"
        )
    wanted = frozenset(events)
    chosen = [e for e in header.events if not wanted or e.name in wanted or e.full_name in wanted]
    notes, usable = _usable(header, chosen)
    if not usable:
        raise GenerateError("", f"{header.path or stem}: no event that LTTng could record")
    file = PurePosixPath(header.path).name
    if not re.fullmatch(r"[\w+-]+\.h", file):
        file = f"{stem}.h"  # a text without a file
    include = include or f"<trace/events/{file}>"
    for one in (include, *includes):
        check_include(one)
    if layout == "2013":
        return write_2013(header, usable, name=stem, include=include, notes=notes)
    return _write_today(header, usable, name=stem, include=include, includes=includes, notes=notes)


def _write_today(
    header: TraceHeader,
    events: Sequence[Event],
    *,
    name: str,
    include: str,
    includes: Sequence[str],
    notes: Sequence[str],
) -> FileSet:
    writer = _Writer(_identifier(header.form.system_var or events[0].system))
    text = writer.write(events)
    guard = f"LTTNG_TRACE_{_identifier(name.upper())}_H"
    own = "\n".join(f"#include {one}" for one in includes)
    helpers = private_helpers(header.source.text) if header.source is not None else ""
    if helpers:
        helpers = f"/*\n * What the header defines for the kernel's own probes only.\n */\n{helpers}"
    files = {
        f"include/instrumentation/events/{name}.h": fill_template(
            "lttng_events.h", system=writer.system, guard=guard, events=text
        ),
        f"src/probes/lttng-probe-{name}.c": fill_template(
            "lttng_probe.c", name=name, header=include, system=writer.system, includes=own, helpers=helpers
        ),
        f"src/probes/Kbuild.{name}": kbuild_line(name) + "\n",
    }
    return FileSet(files, [*notes, *writer.notes])


def kbuild_line(name: str) -> str:
    """Return the line by which src/probes/Kbuild builds a probe."""
    return f"obj-$(CONFIG_LTTNG) += lttng-probe-{name}.o"


def add_to_kbuild(text: str, name: str) -> str:
    r"""Return the text of a src/probes/Kbuild with the probe's line in it, once.

    It goes after the last line that builds a probe without a condition, so that it does not fall into
    the `ifneq` of another one.

    >>> add_to_kbuild("obj-$(CONFIG_LTTNG) += lttng-probe-irq.o\n", "demo").split("\n")[1]
    'obj-$(CONFIG_LTTNG) += lttng-probe-demo.o'
    """
    line = kbuild_line(name)
    lines = text.splitlines()
    if line in (old.strip() for old in lines):
        return text
    plain = [
        at for at, old in enumerate(lines) if re.match(r"obj-\$\(CONFIG_LTTNG\) \+= lttng-probe-\S+\.o$", old)
    ]
    at = plain[-1] + 1 if plain else len(lines)
    return "\n".join([*lines[:at], line, *lines[at:]]) + "\n"


def _usable(header: TraceHeader, events: Sequence[Event]) -> tuple[list[str], list[Event]]:
    notes = [_NO_PRINT]
    usable = []
    for event in events:
        if event.is_nop:
            notes.append(f"{event.name}: has no record in any kernel, and is left out")
        elif event.is_custom:
            notes.append(f"{event.name}: is a custom event of another tracepoint, and is left out")
        elif not event.proto.params:
            notes.append(f"{event.name}: has no parameters, which no kernel compiles, and is left out")
        elif _LOCAL in event.proto.names:
            notes.append(f"{event.name}: is left out, as {_LOCAL} is LTTng's own name for a variable")
        else:
            usable.append(event)
    if header.tracepoints:
        names = ", ".join(one.name for one in header.tracepoints)
        notes.append(f"tracepoints without a record are left out: {names}")
    return notes, usable


def _identifier(text: str) -> str:
    return re.sub(r"\W", "_", text, flags=re.ASCII)


@dataclass(slots=True)
class _Writer:
    """Writes the declarations of one instrumentation header."""

    system: str
    notes: list[str] = field(default_factory=list)
    code: CodeWriter = field(default_factory=CodeWriter)
    enums: dict[tuple[tuple[str, str], ...], str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def write(self, events: Sequence[Event]) -> str:
        groups: dict[str, list[Event]] = {}
        for event in events:
            groups.setdefault(event.event_class.name, []).append(event)
        self.taken = {self._mapped(event) for event in events}
        for group in groups.values():
            self._write_group(group)
        return self.code.text

    @staticmethod
    def _mapped(event: Event) -> str:
        """Return the name in LTTng, where events have no systems: the system goes in front, once."""
        system = _identifier(event.system)
        is_named = event.name == system or event.name.startswith(f"{system}_")
        return event.name if is_named else f"{system}_{event.name}"

    def _write_group(self, events: list[Event]) -> None:
        event_class = events[0].event_class
        shown = read_shown(event_class)
        plan = plan_assignment(events[0])
        enums = self._write_enums(event_class, shown, plan)
        self._note(event_class, plan, shown, enums)
        if len(events) == 1 and not events[0].is_instance:
            mapped = self._mapped(events[0])
            names = [events[0].name] + [mapped] * (mapped != events[0].name)
            self._open("LTTNG_TRACEPOINT_EVENT", names, plan)
            self._write_parts(event_class, plan, shown, enums)
            return
        name = event_class.name
        while name in self.taken:
            name += "_class"
        self._open("LTTNG_TRACEPOINT_EVENT_CLASS", [name], plan)
        self._write_parts(event_class, plan, shown, enums)
        for event in events:
            self._write_instance(name, event)

    def _open(self, macro: str, names: list[str], plan: AssignmentPlan) -> None:
        macro += "_CODE" if plan.code else ""
        macro += "_MAP" if len(names) == 2 else ""
        self.code.line(f"{macro}({', '.join(names)},")

    def _write_parts(
        self, event_class: EventClass, plan: AssignmentPlan, shown: Shown, enums: dict[str, str]
    ) -> None:
        code = self.code
        with code.block("", ")\n"):
            self._write_proto(event_class, tail=",")
            if plan.code:
                with code.block("TP_locvar(", "),\n"):
                    code.lines(plan.members)
                with code.block("TP_code_pre(", "),\n"):
                    for line in plan.code:
                        code.line(line)
            with code.block("TP_FIELDS(", ")," if plan.code else ")"):
                for one in event_class.fields:
                    if one.name in plan.sources:
                        macro, arguments = field_call(one, plan.sources[one.name], shown, enums)
                        code.call(macro, arguments, ")")
            if plan.code:
                code.line()
                code.line("TP_code_post()")

    def _write_proto(self, owner: EventClass | Event, tail: str) -> None:
        params = [declare_param(p.ctype, p.name) for p in owner.proto.params]
        self.code.call("TP_PROTO", params, "),")
        self.code.line()
        # Not `owner.args`: perf has marks such as __perf_task(p) there.
        self.code.call("TP_ARGS", owner.proto.names, f"){tail}")
        if tail:
            self.code.line()

    def _write_instance(self, template: str, event: Event) -> None:
        mapped = self._mapped(event)
        names = [template, event.name] + [mapped] * (mapped != event.name)
        macro = "LTTNG_TRACEPOINT_EVENT_INSTANCE" + "_MAP" * (len(names) == 3)
        self.code.line(f"{macro}({', '.join(names)},")
        with self.code.block("", ")\n"):
            self._write_proto(event, tail="")

    def _write_enums(self, event_class: EventClass, shown: Shown, plan: AssignmentPlan) -> dict[str, str]:
        """Write an enum for each field whose values have names; return field name -> enum name."""
        enums: dict[str, str] = {}
        for one in event_class.fields:
            pairs = shown.names.get(one.name, ())
            is_number = isinstance(one, ScalarField) and kind_of(one.ctype) is LttngKind.INTEGER
            if not pairs or not is_number or one.name not in plan.sources:
                continue
            if pairs not in self.enums:
                self.enums[pairs] = f"{self.system}_{event_class.name}_{one.name}"
                head = f"LTTNG_TRACEPOINT_ENUM({self.enums[pairs]},"
                with self.code.block(head, ")\n"), self.code.block("TP_ENUM_VALUES(", ")"):
                    self.code.lines(f"ctf_enum_value({label}, {value})" for label, value in pairs)
            enums[one.name] = self.enums[pairs]
        return enums

    def _note(
        self, event_class: EventClass, plan: AssignmentPlan, shown: Shown, enums: dict[str, str]
    ) -> None:
        for one in event_class.fields:
            where = f"{event_class.name}.{one.name}"
            if one.name in plan.lost:
                self.notes.append(f"{where}: is left out: {plan.lost[one.name]}")
                continue
            if one.name in plan.remarks:
                self.notes.append(f"{where}: {plan.remarks[one.name]}")
            self.notes += [f"{where}: {note}" for note in field_notes(one, shown, enums)]
