"""A filter as a program for one record: jumps that leave as soon as the answer is known.

`compile_filter` makes it, `FilterProgram.matches` runs it (the readable twin), and
`FilterProgram.pack` gives the flat form that `csrc/filter.c` runs; `csrc/filter.h` describes it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.filter.context import NO_CONTEXT, RecordContext
from tracepoint.filter.match import match_pattern
from tracepoint.filter.tree import And, Comparator, Expression, Not, Or, Predicate, Source
from tracepoint.record.field import unpack_location
from tracepoint.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.filter.parse import Filter

COMM_SIZE = 16
_U32_MASK = (1 << 32) - 1

_COMPARE: dict[Comparator, Callable[[int, int], bool]] = {
    Comparator.EQ: int.__eq__,
    Comparator.NE: int.__ne__,
    Comparator.LE: int.__le__,
    Comparator.LT: int.__lt__,
    Comparator.GE: int.__ge__,
    Comparator.GT: int.__gt__,
    Comparator.BAND: lambda a, b: bool(a & b),
}


@dataclass(frozen=True, slots=True)
class FilterInstruction:
    """Try `predicate` and go on at `if_true` or `if_false`.

    The number of instructions as a place means accept, one more reject.
    """

    predicate: Predicate
    if_true: int
    if_false: int


@dataclass(frozen=True, slots=True)
class FilterProgram:
    """The instructions of one filter, in the order in which predicates are tried.

    A predicate whose field does not lie inside the record does not hold.
    """

    instructions: tuple[FilterInstruction, ...]
    is_big_endian: bool = False
    n_cpus: int = 8192
    long_size: int = 8

    def __repr__(self) -> str:
        return f"<FilterProgram, {counted(len(self.instructions), 'instruction')}>"

    def matches(self, record: bytes, context: RecordContext = NO_CONTEXT) -> bool:
        """Return whether `record` (from `common_type` on) passes.

        Kernel: filter_match_preds() in kernel/trace/trace_events_filter.c.
        """
        at = 0
        while at < len(self.instructions):
            step = self.instructions[at]
            at = step.if_true if self._holds(step.predicate, record, context) else step.if_false
        return at == len(self.instructions)

    def _holds(self, predicate: Predicate, record: bytes, context: RecordContext) -> bool:
        source = predicate.source
        if source is Source.CPU:
            return _compare_cpu(predicate, context.cpu)
        if source is Source.CPU_IN_CPUS:
            return _in_cpus(predicate, context.cpu)
        if source is Source.COMM:
            return _string_holds(predicate, context.comm[: COMM_SIZE - 1].ljust(COMM_SIZE, b"\0"))
        field = record[predicate.offset : predicate.offset + predicate.size]
        if source is Source.NOTHING or len(field) < predicate.size:
            return False
        if source is Source.STATIC_STRING:
            return _string_holds(predicate, field)
        return self._number_holds(predicate, record, self._integer(field), context)

    def _number_holds(self, predicate: Predicate, record: bytes, value: int, context: RecordContext) -> bool:
        """Judge a field that is a number, an address or the place of something else."""
        match predicate.source:
            case Source.SCALAR:
                return _compare_scalar(predicate, value)
            case Source.NUMBER_IN_SET:
                return (value in predicate.numbers) == (predicate.op is Comparator.EQ)
            case Source.SCALAR_IN_CPUS:
                cpu = value & _U32_MASK
                return cpu < self.n_cpus and _in_cpus(predicate, cpu)
            case Source.FUNCTION:
                return (predicate.value <= value < predicate.value_end) == (predicate.op is Comparator.EQ)
            case Source.POINTER | Source.USER_POINTER:
                text = context.read_string(value, predicate.source is Source.USER_POINTER)
                return text is not None and _string_holds(predicate, text + b"\0")
            case _:
                return self._located_holds(predicate, record, value)

    def _located_holds(self, predicate: Predicate, record: bytes, word: int) -> bool:
        is_relative = predicate.source is Source.REL_LOC
        start, length = unpack_location(word, predicate.offset + predicate.size if is_relative else 0)
        if start + length > len(record):
            return False
        data = record[start : start + length]
        if predicate.source in (Source.CPUMASK, Source.CPUMASK_HAS_CPU):
            return self._cpumask_holds(predicate, data)
        return _string_holds(predicate, data)

    def _cpumask_holds(self, predicate: Predicate, data: bytes) -> bool:
        words = [data[at : at + self.long_size] for at in range(0, len(data), self.long_size)]
        bits = sum(self._integer(word) << 8 * self.long_size * i for i, word in enumerate(words))
        mask = bits & ((1 << self.n_cpus) - 1)
        wanted = 1 << predicate.value if predicate.source is Source.CPUMASK_HAS_CPU else predicate.value
        if predicate.op is Comparator.BAND:
            return bool(mask & wanted)
        return (mask == wanted) == (predicate.op is Comparator.EQ)

    def _integer(self, data: bytes) -> int:
        return int.from_bytes(data, "big" if self.is_big_endian else "little")

    def pack(self) -> bytes:
        """Return the flat form: header, instructions, operand bytes; see `csrc/filter.h`."""
        operands = bytearray()
        body = b"".join(_pack_instruction(step, operands) for step in self.instructions)
        head = _FLAT_HEAD.pack(
            FLAT_MAGIC,
            len(self.instructions),
            self.n_cpus,
            len(operands),
            self.is_big_endian,
            self.long_size,
        )
        return head + body + bytes(operands)


FLAT_MAGIC = 0x31465054
_FLAT_HEAD = struct.Struct("<IIIIII")
_FLAT = struct.Struct("<BBHHHHHIIIQQ")
_FLAT_OP = {
    Comparator.EQ: 1,
    Comparator.NE: 2,
    Comparator.LE: 3,
    Comparator.LT: 4,
    Comparator.GE: 5,
    Comparator.GT: 6,
    Comparator.BAND: 7,
    Comparator.GLOB: 8,
}
_FLAG_INVERTED = 1
_FLAG_SIGNED = 2
_U64_MASK = (1 << 64) - 1


def _pack_instruction(step: FilterInstruction, operands: bytearray) -> bytes:
    predicate = step.predicate
    op: int = _FLAT_OP[predicate.op]
    flags = _FLAG_SIGNED if predicate.is_signed else 0
    operand = b""
    value = predicate.value
    if predicate.pattern is not None:
        op, operand = predicate.pattern.match, predicate.pattern.text
        flags |= _FLAG_INVERTED if predicate.pattern.is_inverted else 0
    elif predicate.source in (Source.CPU_IN_CPUS, Source.SCALAR_IN_CPUS, Source.CPUMASK):
        operand, value = value.to_bytes((value.bit_length() + 7) // 8, "little"), 0
    elif predicate.source is Source.NUMBER_IN_SET:
        operand = struct.pack(f"<{len(predicate.numbers)}I", *sorted(predicate.numbers))
    elif predicate.source is Source.SCALAR:
        value = _as_field(predicate, value)
    elif predicate.source is Source.CPU:
        value = _as_int(value)
    at = len(operands)
    operands += operand
    return _FLAT.pack(
        op,
        predicate.source,
        flags,
        predicate.offset,
        predicate.size,
        step.if_true,
        step.if_false,
        at,
        len(operand),
        0,
        value & _U64_MASK,
        predicate.value_end,
    )


def _as_field(predicate: Predicate, value: int) -> int:
    """Cast to the field's type, as C does."""
    bits = predicate.size * 8
    value &= (1 << bits) - 1
    if predicate.is_signed and value >> (bits - 1):
        value -= 1 << bits
    return value


def _as_int(value: int) -> int:
    value &= _U32_MASK
    return value - (1 << 32) if value >> 31 else value


def _compare_scalar(predicate: Predicate, raw: int) -> bool:
    return _COMPARE[predicate.op](_as_field(predicate, raw), _as_field(predicate, predicate.value))


def _compare_cpu(predicate: Predicate, cpu: int) -> bool:
    """`cpu & 1` is accepted and never true: filter_pred_cpu() knows no such operator."""
    return predicate.op is not Comparator.BAND and _COMPARE[predicate.op](cpu, _as_int(predicate.value))


def _in_cpus(predicate: Predicate, cpu: int) -> bool:
    """Compare a number with a mask of several CPUs, which no number equals."""
    if predicate.op is Comparator.BAND:
        return bool(predicate.value >> cpu & 1)
    return predicate.op is Comparator.NE


def _string_holds(predicate: Predicate, data: bytes) -> bool:
    pattern = predicate.pattern
    if pattern is None:
        return False
    return match_pattern(pattern, data) != pattern.is_inverted


def compile_filter(parsed: Filter) -> FilterProgram:
    """Make the program of a filter.

    >>> from tracepoint.filter.parse import parse_filter
    >>> from tracepoint.layout.format import EventFormat, FieldFormat
    >>> event = EventFormat("s", "e", (FieldFormat("n", "int", 0, 4, True),), "", n_common=0)
    >>> program = compile_filter(parse_filter("n == -1 || !(n < 5 && n != 3)", event))
    >>> [program.matches(n.to_bytes(4, "little", signed=True)) for n in (-1, 0, 3, 7)]
    [True, False, True, True]
    """
    steps: list[tuple[Predicate, int, int]] = []
    places: dict[int, int] = {}
    accept, reject = 0, 1
    n_labels = 2
    # Left to right without recursion: an entry is an expression with its two labels, or a label to place.
    todo: list[tuple[Expression | None, int, int]] = [(parsed.expression, accept, reject)]
    while todo:
        node, if_true, if_false = todo.pop()
        match node:
            case None:
                places[if_true] = len(steps)
            case Predicate():
                steps.append((node, if_true, if_false))
            case Not(term):
                todo.append((term, if_false, if_true))
            case And(terms) | Or(terms):
                is_and = isinstance(node, And)
                todo.append((terms[-1], if_true, if_false))
                for term in reversed(terms[:-1]):
                    label, n_labels = n_labels, n_labels + 1
                    todo.append((None, label, label))
                    todo.append((term, label, if_false) if is_and else (term, if_true, label))
    places[accept], places[reject] = len(steps), len(steps) + 1
    instructions = tuple(FilterInstruction(p, places[t], places[f]) for p, t, f in steps)
    return FilterProgram(instructions, parsed.event.is_big_endian, parsed.n_cpus, parsed.event.long_size)
