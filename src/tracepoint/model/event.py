"""What a trace header declares: `TraceHeader`, `EventClass`, `Event`, `BareTracepoint`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.model.origin import Code
from tracepoint.wording import counted, html_table, one_line, tail

if TYPE_CHECKING:
    from tracepoint.diagnostics import Diagnostic
    from tracepoint.model.field import Field
    from tracepoint.model.origin import Origin
    from tracepoint.source.environment import Environment
    from tracepoint.source.text import SourceFile

NO_CODE = Code("")


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of `TP_PROTO`: its type as spelt, and its name (empty for `void`)."""

    ctype: str
    name: str
    origin: Origin | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Proto:
    """`TP_PROTO`: the parameters in order; none for `TP_PROTO(void)`."""

    params: tuple[Param, ...]
    origin: Origin | None = field(default=None, compare=False, repr=False, kw_only=True)

    @property
    def names(self) -> tuple[str, ...]:
        """The parameter names in order."""
        return tuple(p.name for p in self.params)

    def __str__(self) -> str:
        if not self.params:
            return "void"
        return ", ".join(f"{p.ctype}{'' if p.ctype.endswith('*') else ' '}{p.name}" for p in self.params)

    def __repr__(self) -> str:
        return f"<Proto {one_line(str(self))}>"


@dataclass(frozen=True, slots=True)
class EventClass:
    """The five parts that one or more events share.

    `macro` is the macro that declared it: `DECLARE_EVENT_CLASS`, or `TRACE_EVENT` and its
    variants when class and event are one.  `args` are the names of `TP_ARGS`.
    """

    name: str
    proto: Proto
    args: tuple[str, ...]
    fields: tuple[Field, ...]
    assign: Code
    printk: Code
    macro: str = field(default="DECLARE_EVENT_CLASS", compare=False)
    perf_perm: str = ""
    origin: Origin | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __repr__(self) -> str:
        return f"<EventClass {one_line(self.name)}, {counted(len(self.fields), 'field')}>"


@dataclass(frozen=True, slots=True)
class Event:
    """One trace event: an instance of a class under a system.

    `macro` is what declared it (`TRACE_EVENT_CONDITION`, `DEFINE_EVENT_PRINT`, ...).
    `print_override` is the own TP_printk of `DEFINE_EVENT_PRINT`; `condition` the expression of
    `TP_CONDITION`; `reg` and `unreg` the functions of `_FN`; `writable_size` the size argument
    of `_WRITABLE`.  `is_nop` events have no record in any kernel (`TRACE_EVENT_NOP`).
    """

    name: str
    system: str
    event_class: EventClass
    macro: str = "TRACE_EVENT"
    print_override: Code | None = None
    condition: Code | None = None
    reg: str = ""
    unreg: str = ""
    writable_size: str = ""
    flags: str = ""
    perf_perm: str = ""
    is_nop: bool = False
    is_syscall: bool = False
    is_custom: bool = False
    proto_override: Proto | None = field(default=None, compare=False)
    args_override: tuple[str, ...] = field(default=(), compare=False)
    origin: Origin | None = field(default=None, compare=False, repr=False, kw_only=True)

    @property
    def full_name(self) -> str:
        """`system:name`, as in set_event."""
        return f"{self.system}:{self.name}"

    def __repr__(self) -> str:
        return f"<Event {one_line(self.full_name)}, {counted(len(self.fields), 'field')}>"

    @property
    def proto(self) -> Proto:
        """The prototype of `trace_<name>()` and of its probes."""
        return self.event_class.proto

    @property
    def args(self) -> tuple[str, ...]:
        """The argument names of TP_ARGS."""
        return self.event_class.args

    @property
    def fields(self) -> tuple[Field, ...]:
        """The members of the record, without the common ones."""
        return self.event_class.fields

    @property
    def assign(self) -> Code:
        """The statements of TP_fast_assign."""
        return self.event_class.assign

    @property
    def printk(self) -> Code:
        """The print format: its own if it has one, else the class's."""
        return self.print_override or self.event_class.printk

    @property
    def is_instance(self) -> bool:
        """Whether it was made from a class declared elsewhere (`DEFINE_EVENT` and variants)."""
        return self.macro.startswith("DEFINE_")


@dataclass(frozen=True, slots=True)
class BareTracepoint:
    """A tracepoint without an event: `DECLARE_TRACE` and its family.

    `call_name` is what follows `trace_` at a call site: with `DECLARE_TRACE` of 6.16 and later
    it is the name plus `_tp`, before that the name itself.
    """

    name: str
    proto: Proto
    args: tuple[str, ...]
    macro: str = "DECLARE_TRACE"
    condition: Code | None = None
    writable_size: str = ""
    call_name: str = ""
    origin: Origin | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __repr__(self) -> str:
        return f"<BareTracepoint {one_line(f'{self.name}({self.proto})')}>"


@dataclass(frozen=True, slots=True)
class EnumDef:
    """`TRACE_DEFINE_ENUM(name)` or `TRACE_DEFINE_SIZEOF(type)`: exported to user space."""

    name: str
    is_sizeof: bool = False
    system: str = ""
    origin: Origin | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class HeaderForm:
    """The parts of a trace header that are not declarations.

    `guard` is the include-guard macro; `define_trace` where `<trace/define_trace.h>` is
    included; `systems` every value of TRACE_SYSTEM with where it was set; `built_with` the macros that the
    Makefile beside the header defines with `-D`.
    """

    guard: str = ""
    has_multi_read: bool = False
    guard_origin: Origin | None = field(default=None, compare=False)
    include_path: str = ""
    include_file: str = ""
    system_var: str = ""
    system_string: str = ""
    is_notrace: bool = False
    systems: tuple[tuple[str, Origin | None], ...] = field(default=(), compare=False)
    define_trace: Origin | None = field(default=None, compare=False)
    is_define_trace_guarded: bool = field(default=False, compare=False)
    includes: tuple[str, ...] = field(default=(), compare=False)
    built_with: frozenset[str] = field(default=frozenset(), compare=False)

    def __repr__(self) -> str:
        return f"<HeaderForm {one_line(self.guard) or 'without a guard'}>"


@dataclass(frozen=True, slots=True)
class TraceHeader:
    """Everything one trace header declares, in the order of the text.

    `environment` answers for macros and constants of the header and of what it includes;
    `diagnostics` are what reading found wrong; `source` is the text itself; `included_enums` are
    exported by headers that it includes (trace/events/mmflags.h).
    """

    system: str
    events: tuple[Event, ...]
    classes: tuple[EventClass, ...] = ()
    tracepoints: tuple[BareTracepoint, ...] = ()
    enums: tuple[EnumDef, ...] = ()
    form: HeaderForm = field(default_factory=HeaderForm)
    path: str = field(default="", compare=False)
    source: SourceFile | None = field(default=None, compare=False, repr=False)
    environment: Environment | None = field(default=None, compare=False, repr=False)
    diagnostics: tuple[Diagnostic, ...] = field(default=(), compare=False, repr=False)
    included_enums: tuple[EnumDef, ...] = field(default=(), compare=False, repr=False)

    def __getitem__(self, name: str) -> Event:
        """Return the event called `name` or `system:name`; KeyError when there is none."""
        for event in self.events:
            if name in (event.name, event.full_name):
                return event
        raise KeyError(name)

    @property
    def exported_enums(self) -> tuple[EnumDef, ...]:
        """Every enum and size that the print formats of the header's events may name."""
        return self.included_enums + self.enums

    @property
    def is_trace_header(self) -> bool:
        """Whether anything of a trace header was read: a declaration, a TRACE_SYSTEM, or a damaged one."""
        read = (self.events, self.classes, self.tracepoints, self.enums, self.form.systems, self.diagnostics)
        return any(read)

    def __contains__(self, name: object) -> bool:
        return any(name in (event.name, event.full_name) for event in self.events)

    def __repr__(self) -> str:
        name = tail(self.path) or one_line(self.system)
        bare = f", {counted(len(self.tracepoints), 'tracepoint')}" if self.tracepoints else ""
        return f"<TraceHeader {name}, {counted(len(self.events), 'event')}{bare}>"

    def _repr_html_(self) -> str:
        """Return a table of the events for a notebook."""
        rows = ((e.full_name, str(e.proto), ", ".join(f.name for f in e.fields)) for e in self.events)
        return html_table(("event", "parameters", "fields"), rows)
