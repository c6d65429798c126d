"""An assignment as a program: input values in, a record's stored bytes out.

The record is the kernel's: fixed members where the `EventFormat` says, dynamic ones after them
in the order of declaration, as trace_event_get_offsets_*() places them
(include/trace/stages/stage5_get_offsets.h).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.assign.copies import NULL_STRING, bitmask_bytes, string_of
from tracepoint.assign.machine import CutInput, Inputs, Machine, Unfollowed
from tracepoint.assign.run import new_machine, run
from tracepoint.assign.values import CannotFollowError, Want
from tracepoint.errors import SourceError
from tracepoint.model.field import BitmaskField, DynamicArrayField, Field, SockaddrField, StringField
from tracepoint.record.field import location_origin, pack_location
from tracepoint.source import ast
from tracepoint.source.statements import Block
from tracepoint.source.types import INT

if TYPE_CHECKING:
    from tracepoint.diagnostics import Span
    from tracepoint.model.event import Event
    from tracepoint.model.origin import Code
    from tracepoint.source.ast import Node

# The length of a __data_loc word has 16 bits; a record has to fit a page of the ring buffer
# (kernel/trace/ring_buffer.c: BUF_MAX_DATA_SIZE, 4080 less the event's header).
MAX_DYNAMIC = 0xFFFF
MAX_RECORD = 4072
EXPLORED_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Program:
    """The readable parts of an assignment: its statements, the condition, and the dynamic members."""

    statements: Block
    condition: Node | None = None
    condition_error: str = ""


@dataclass(frozen=True, slots=True)
class Assigned:
    """What one run of an assignment stored.

    `record` is the whole record without the common fields' values; `unassigned` are fields that
    no statement stored to on this path (the kernel leaves there what the buffer held);
    `unknown` maps a field to the reason why its value cannot be known; `conversions` are input
    values that a store cut; `length_fields` hold counts of what is copied; `strings` maps made-up
    kernel addresses to the text that they point to; `has_fired` is False when TP_CONDITION was false;
    `written` has a one for every byte of the record that a statement stored to.
    """

    record: bytes
    has_fired: bool
    unassigned: tuple[str, ...]
    unknown: dict[str, str]
    unfollowed: tuple[Unfollowed, ...]
    conversions: tuple[CutInput, ...]
    notes: tuple[str, ...]
    strings: dict[int, bytes]
    length_fields: frozenset[str] = frozenset()
    written: bytes = b""

    @property
    def is_complete(self) -> bool:
        """Whether every stored value is known."""
        return not self.unfollowed and not self.unknown


def read_program(event: Event) -> Program:
    """Read the statements and the condition of an event; raises SourceError when they are damaged."""
    statements = event.assign.statements() if event.assign else Block(())
    if event.condition is None:
        return Program(statements)
    try:
        return Program(statements, event.condition.expression())
    except SourceError as error:
        return Program(statements, None, error.message)


def run_program(program: Program, inputs: Inputs, *, is_exploring: bool = False) -> Assigned:
    """Fire the event once.

    `inputs.resolve` is asked for every input whose value is needed; `is_exploring` walks all
    branches, to find the inputs, and its record means nothing.  Nothing is raised for what the
    statements do: see `unfollowed`.

    >>> from tracepoint.assign.example import example_inputs
    >>> from tracepoint.source.statements import parse_statements
    >>> from tracepoint.source.lexer import lex
    >>> from tracepoint.source.text import SourceFile
    >>> code = parse_statements(lex(SourceFile("a.h", "__entry->n = x + 1;")))
    >>> run_program(Program(code), example_inputs({"x": 41})).record[8:12].hex()
    '2a000000'
    """
    machine = new_machine(inputs, is_exploring=is_exploring)
    has_fired = _fires(machine, program)
    if has_fired or is_exploring:
        _place_dynamic(machine)
        for statement in program.statements.body:
            if run(machine, statement) == "return":
                break
    return _result(machine, has_fired=has_fired)


def _fires(machine: Machine, program: Program) -> bool:
    if program.condition_error:
        machine.note(f"TP_CONDITION could not be read ({program.condition_error}); taken as true")
    if program.condition is None:
        return True
    try:
        return machine.is_true(program.condition)
    except CannotFollowError as error:
        machine.note(f"TP_CONDITION could not be known ({error.reason}); taken as true")
        return True


def _place_dynamic(machine: Machine) -> None:
    """Give every dynamic member its place and fill the words that lead there."""
    inputs = machine.inputs
    start = at = max((f.offset + f.size for f in inputs.layout.fields), default=0)
    places: list[tuple[Field, int, int]] = []
    for field in inputs.fields:
        if not field.is_dynamic or field.name not in inputs.layout:
            continue
        try:
            size = _dynamic_size(machine, field)
        except CannotFollowError as error:
            _lose_field(machine, field, error.reason)
            size = 0
        if size > MAX_DYNAMIC:
            _lose_field(machine, field, f"{size} bytes do not fit the 16 bits of a length word")
            size = 0
        if machine.is_exploring:
            size = max(size, EXPLORED_BYTES)
        places.append((field, at, size))
        at += size
    tail = max(inputs.layout.size_bytes - start, 0)
    machine.allocate(at + tail)
    for field, offset, size in places:
        machine.dynamic[field.name] = (offset, size)
        machine.ranges.append((offset, offset + size, field.name))
        word = inputs.layout[field.name]
        value = pack_location(offset, size, location_origin(word))
        machine.record.data[word.offset : word.offset + 4] = value.to_bytes(4, machine.record.order)
    if len(machine.record.data) > MAX_RECORD and not machine.is_exploring:
        machine.note(
            f"the record has {len(machine.record.data)} bytes: the kernel drops what does not fit a page"
        )


def _lose_field(machine: Machine, field: Field, reason: str) -> None:
    machine.unknown[field.name] = reason
    span: Span | None = field.origin.span if field.origin is not None else None
    machine.unfollowed.setdefault(Unfollowed(span, f"{field.macro}({field.name})", reason, (field.name,)))


def _dynamic_size(machine: Machine, field: Field) -> int:
    match field:
        case DynamicArrayField(length=length):
            element = machine.shapes.of_dynamic(machine.inputs.layout[field.name]).size
            return _length(machine, _parse(length)) * element
        case StringField(length=length) if length is not None:
            _remember_source(machine, field)
            return _length(machine, _parse(length)) + 1
        case StringField():
            text = _remember_source(machine, field)
            return len(NULL_STRING if text is None else text) + 1
        case BitmaskField(n_bits=n_bits):
            node = ast.Name("nr_cpumask_bits") if n_bits is None else _parse(n_bits)
            return bitmask_bytes(machine, _length(machine, node))
        case SockaddrField(length=length):
            return _length(machine, _parse(length))
    raise CannotFollowError(f"{field.macro} is not a dynamic member")


def _remember_source(machine: Machine, field: StringField) -> bytes | None:
    if not field.source:
        return None
    try:
        text = string_of(machine, _parse(field.source), field.name)
    except CannotFollowError:
        if field.length is None:
            raise
        return None
    machine.sources[field.name] = text
    return text


def _parse(code: Code) -> Node:
    try:
        return code.expression()
    except SourceError as error:
        raise CannotFollowError(error.message) from None


def _length(machine: Machine, node: Node) -> int:
    length = machine.integer(node, Want(INT, "length")).value
    if not 0 <= length <= 1 << 20:
        raise CannotFollowError(f"a length of {length}")
    return length


def _result(machine: Machine, *, has_fired: bool) -> Assigned:
    written = machine.record.written
    unassigned = []
    for field in machine.inputs.layout.event_fields:
        place = machine.dynamic.get(field.name) if field.is_data_loc else (field.offset, field.size)
        if place is None or field.name in machine.unknown or not place[1]:
            continue
        if not any(written[place[0] : place[0] + place[1]]):
            unassigned.append(field.name)
    return Assigned(
        bytes(machine.record.data),
        has_fired,
        tuple(unassigned),
        dict(machine.unknown),
        tuple(machine.unfollowed),
        tuple(machine.conversions),
        tuple(machine.notes),
        dict(machine.strings),
        frozenset(machine.length_fields),
        bytes(written),
    )


__all__ = ["Assigned", "Inputs", "Program", "read_program", "run_program"]
