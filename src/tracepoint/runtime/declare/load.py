"""The events of a TRACE_EVENT header, to be fired in this process with Python objects.

`load("kmem.h")` reads the header and gives a callable `trace_NAME` for every event and every
tracepoint without a record; what TP_fast_assign reads is read from the arguments.
"""

from __future__ import annotations

import errno
import functools
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracepoint.assign.inputs import param_types
from tracepoint.assign.program import Inputs, Program, read_program, run_program
from tracepoint.errors import TracepointError
from tracepoint.layout.abi import Abi
from tracepoint.layout.compute import compute_layout
from tracepoint.layout.sizes import TypeSizes
from tracepoint.model.event import BareTracepoint, TraceHeader
from tracepoint.runtime.declare.compiled import compile_assignment, compile_condition
from tracepoint.runtime.declare.control import add_event
from tracepoint.runtime.declare.objects import AssignError, ObjectReader
from tracepoint.runtime.declare.plan import RecordPlan
from tracepoint.runtime.declare.unsuitable import check_folder, check_size
from tracepoint.runtime.event_control import EventControl
from tracepoint.runtime.fire.hook import HookControl
from tracepoint.runtime.fire.probes import EventError
from tracepoint.runtime.hierarchy import tracing
from tracepoint.source.statements import Block
from tracepoint.tree.headers import HeaderReader
from tracepoint.tree.loader import find_kernel_root
from tracepoint.wording import counted, tail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tracepoint.layout.format import EventFormat
    from tracepoint.model.event import Event
    from tracepoint.model.origin import Code, Origin
    from tracepoint.runtime.declare.event import LoadedEvent
    from tracepoint.runtime.hierarchy import Tracing


@dataclass(frozen=True)
class LoadedHeader:
    """The tracepoints of a header: `loaded.trace_NAME(...)` fires one, `loaded["NAME"]` is the same object.

    `problems` maps those that cannot be fired in this process to the reason.
    """

    header: TraceHeader
    events: Mapping[str, LoadedEvent]
    problems: Mapping[str, str]

    def __post_init__(self) -> None:
        # Plain attributes: what is fired all the time is found fast, and by static keys too.
        self.__dict__.update({f"trace_{name}": event for name, event in self.events.items()})

    def __getattr__(self, name: str) -> LoadedEvent:
        plain = name.removeprefix("trace_")
        if plain == name or plain not in {*self.events, *self.problems}:
            raise AttributeError(f"{self.header.path or 'the header'} declares no {name}()")
        return self[plain]

    def __getitem__(self, name: str) -> LoadedEvent:
        """Return the tracepoint called `name`; KeyError without one, TracepointError if it has a problem."""
        if name in self.problems:
            raise TracepointError(f"{name}: {self.problems[name]}")
        return self.events[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)

    def __repr__(self) -> str:
        name = tail(self.header.path) or self.header.system
        problems = f", {counted(len(self.problems), 'problem')}" if self.problems else ""
        return f"<LoadedHeader {name}, {counted(len(self), 'event')}{problems}>"


def load(
    header: TraceHeader | Path | str,
    *,
    functions: Mapping[str, Any] | None = None,
    include: Iterable[Path] = (),
    is_char_signed: bool = True,
    tracing: Tracing = tracing,
) -> LoadedHeader:
    """Declare everything in a trace header in this process.

    `functions` says what names of the kernel mean that assignments, conditions and
    TRACE_EVENT_FN use: functions such as `page_to_pfn`, objects such as `current`, constants.
    `include` are include paths.  What the headers of a kernel tree include is read once in a
    process.  `is_char_signed` is how `format` shows plain char: signed as in
    kernels before 6.2, or not; `tracing` is the hierarchy that gets the events.  Raises SourceError when
    the header cannot be read and EventError when an event exists that was declared elsewhere.
    """
    read = header if isinstance(header, TraceHeader) else _reader(header, tuple(include)).read(header)
    known = dict(functions or {})
    made: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for event in read.events:
        try:
            if event.is_nop:
                made[event.name] = _hook(event.name, event, known, tracing)
            else:
                made[event.name] = _declare(event, read, known, tracing, is_char_signed)
        except EventError:
            raise
        except TracepointError as error:
            problems[event.name] = str(error)
    for bare in read.tracepoints:
        made[bare.call_name or bare.name] = _hook(bare.name, bare, known, tracing)
    return LoadedHeader(read, made, problems)


def _reader(header: Path | str, include: tuple[Path, ...]) -> HeaderReader:
    """Return who reads a header: for all of one kernel tree, which is large, the same."""
    root = find_kernel_root(Path(header).resolve().parent)
    return HeaderReader(include) if root is None else _tree_reader(root, include)


@functools.lru_cache(maxsize=1)
def _tree_reader(root: Path, include: tuple[Path, ...]) -> HeaderReader:
    del root
    return HeaderReader(include)


def _declare(
    event: Event,
    header: TraceHeader,
    functions: Mapping[str, Any],
    tracing: Tracing,
    is_char_signed: bool,
) -> Any:
    where = _place(event.origin, header.path)
    again = tracing.same_declaration(event, where)
    if again is not None:
        return again.tracepoint
    check_folder(event.system, event.name)
    layout = compute_layout(
        event,
        Abi.X86_64,
        environment=header.environment,
        is_char_signed=is_char_signed,
        enums=header.exported_enums,
    )
    check_size(event.full_name, len(event.proto.names), layout)
    stage = _Stage(event, layout, TypeSizes(Abi.X86_64, environment=header.environment), functions)
    plan = RecordPlan(layout, ())
    reg, unreg = _given(event.reg, functions), _given(event.unreg, functions)
    control = EventControl(event, plan, tracing, hints={}, where=where, reg=reg, unreg=unreg)
    control.tracepoint = tracing.mechanism.core.Tracepoint(
        event.full_name,
        tuple(event.proto.names),
        (),
        max(layout.size_bytes, 8),
        8,
        assign=stage.assign,
        condition=stage.holds if event.condition is not None else None,
        control=control,
    )
    return add_event(control, tracing)


def _given(name: str, functions: Mapping[str, Any]) -> Callable[[], object] | None:
    found = functions.get(name)
    return found if callable(found) else None


def _place(origin: Origin | None, path: str) -> str:
    return f"{path}:{origin.span.line}" if origin is not None and origin.span is not None else path


class _Stage:
    """One event's assignment over Python objects."""

    def __init__(
        self, event: Event, layout: EventFormat, sizes: TypeSizes, functions: Mapping[str, Any]
    ) -> None:
        whole = read_program(event)
        if whole.condition_error:
            raise TracepointError(f"TP_CONDITION could not be read: {whole.condition_error}")
        self._statements = replace(whole, condition=None)
        self._condition = Program(Block(()), whole.condition)
        self._names = tuple(event.proto.names)
        self._functions = functions
        self._layout = layout
        self._fields = event.fields
        self._params = param_types(event.proto)
        self._sizes = sizes
        compiled = (self._inputs((None,) * len(self._names)), self._names, functions)
        self._quick_assign = compile_assignment(self._statements, *compiled)
        self._quick_holds = compile_condition(self._condition, *compiled)

    def _inputs(self, args: tuple[Any, ...]) -> Inputs:
        reader = ObjectReader(dict(zip(self._names, args, strict=True)), self._functions, self._constant)
        return Inputs(
            self._layout, self._fields, self._params, reader.resolve, self._constant, self._sizes.sizeof
        )

    def _constant(self, name: str) -> int | None:
        given = self._functions.get(name)
        if not isinstance(given, int):
            return self._sizes.constant(name)
        if not -(1 << 63) <= given < 1 << 64:
            raise AssignError(f"{name} has more than the 64 bits of a number of C")
        return int(given)

    def assign(self, *args: Any) -> bytes:
        """Return the record; raises AssignError when a part of it cannot be known."""
        if self._quick_assign is not None:
            # Whatever it raises, the machine says what it means.
            with suppress(Exception):
                return self._quick_assign(*args)
        return self.assign_slowly(*args)

    def assign_slowly(self, *args: Any) -> bytes:
        """Return the record as the machine makes it."""
        done = run_program(self._statements, self._inputs(args))
        for lost in done.unfollowed:
            raise AssignError(lost.reason)
        for name, reason in done.unknown.items():
            raise AssignError(f"field {name}: {reason}")
        return done.record

    def holds(self, *args: Any) -> bool:
        """Return whether TP_CONDITION holds; raises AssignError when that cannot be known."""
        if self._quick_holds is not None:
            with suppress(Exception):
                return self._quick_holds(*args)
        return self.holds_slowly(*args)

    def holds_slowly(self, *args: Any) -> bool:
        """Return what the machine says of TP_CONDITION."""
        done = run_program(self._condition, replace(self._inputs(args), fields=()))
        for note in done.notes:
            raise AssignError(note)
        return done.has_fired


def _hook(name: str, declared: Event | BareTracepoint, functions: Mapping[str, Any], tracing: Tracing) -> Any:
    where = _place(declared.origin, "")
    known = tracing.hooks.get(name)
    if known is not None:
        if (known.declared, known.where) == (declared, where):
            return known.tracepoint
        raise EventError(
            f"tracepoint {name} is declared twice: at {known.where} and at {where}", errno.EEXIST
        )
    parameters = tuple(declared.proto.names)
    control = HookControl(name, where, parameters, declared)
    holds = _condition_of(declared.condition, parameters, functions)
    control.tracepoint = tracing.mechanism.core.Tracepoint(
        name, parameters, (), condition=holds, control=control
    )
    tracing.hooks[name] = control
    return control.tracepoint


def _condition_of(
    code: Code | None, parameters: tuple[str, ...], functions: Mapping[str, Any]
) -> Callable[..., bool] | None:
    if code is None:
        return None
    node = code.expression()

    def holds(*args: Any) -> bool:
        return bool(ObjectReader(dict(zip(parameters, args, strict=True)), functions).read(node))

    return holds
