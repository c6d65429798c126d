"""Ops that give numbers, as functions of the record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracepoint.printk import ops
from tracepoint.printk.conversion import ABSENT, MAX_WIDTH
from tracepoint.printk.errnames import MAX_ERRNO
from tracepoint.printk.facts import HASHED_NOTE, UnknownPartError
from tracepoint.printk.twin.arithmetic import binary, with_number, wrapped
from tracepoint.record.field import unpacker
from tracepoint.source.functions import pure_functions

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.printk.memory import RecordMemory
    from tracepoint.printk.twin.maker import Maker, Number


def _unknown(_: Maker, op: ops.Unknown) -> Callable[[RecordMemory], Any]:
    reason = op.reason

    def read(_: RecordMemory) -> Any:
        raise UnknownPartError(reason)

    return read


def _constant(_: Maker, op: ops.Const) -> Number:
    value = op.value
    return lambda _: value


def _load(maker: Maker, op: ops.Load) -> Number:
    unpack, offset = unpacker(op.kind, is_big_endian=maker.is_big_endian), op.offset
    return lambda record: unpack(record.data, offset)[0]


def _load_at(maker: Maker, op: ops.LoadAt) -> Number:
    where, size = maker.place(op.place), op.kind.size
    unpack = unpacker(op.kind, is_big_endian=maker.is_big_endian)

    def read(record: RecordMemory) -> int:
        place = where(record)
        if place is None:
            raise UnknownPartError("a NULL pointer is dereferenced")
        data, at = place
        if at < 0 or at + size > len(data):
            raise UnknownPartError("a value outside the record")
        return unpack(data, at)[0]

    return read


def _fact(maker: Maker, op: ops.Fact) -> Number:
    otherwise, name = maker.number(op.otherwise), op.name
    look_up = _FACTS[op.what]

    def read(record: RecordMemory) -> int:
        number = look_up(record, name)
        return otherwise(record) if number is None else number

    return read


def _convert(maker: Maker, op: ops.Convert) -> Number:
    return wrapped(maker.number(op.value), op.kind)


def _unary(maker: Maker, op: ops.Unary) -> Number:
    read, size = maker.number(op.value), op.kind.size
    match op.operator:
        case "-":
            return wrapped(lambda record: -read(record), op.kind)
        case "~":
            return wrapped(lambda record: ~read(record), op.kind)
        case "abs":
            return wrapped(lambda record: abs(read(record)), op.kind)
    return lambda record: int.from_bytes(read(record).to_bytes(size, "little"), "big")


def _binary(maker: Maker, op: ops.Binary) -> Number:
    if isinstance(op.right, ops.Const):
        return with_number(op.operator, maker.number(op.left), op.right.value, op.kind)
    return binary(op.operator, maker.number(op.left), maker.number(op.right), op.kind)


def _negated(maker: Maker, op: ops.Not) -> Number:
    read = maker.number(op.value)
    return lambda record: int(not read(record))


def _is_set(maker: Maker, op: ops.IsSet) -> Number:
    read = maker.value(op.value)
    return lambda record: int(read(record) is not None)


def _both(maker: Maker, op: ops.Both) -> Number:
    a, b = maker.number(op.left), maker.number(op.right)
    return lambda record: int(bool(a(record) and b(record)))


def _either(maker: Maker, op: ops.Either) -> Number:
    a, b = maker.number(op.left), maker.number(op.right)
    return lambda record: int(bool(a(record) or b(record)))


def _if_number(maker: Maker, op: ops.IfNumber) -> Number:
    test, a, b = maker.number(op.test), maker.number(op.then), maker.number(op.otherwise)
    return lambda record: a(record) if test(record) else b(record)


def _pick_number(maker: Maker, op: ops.PickNumber) -> Number:
    which, cases = maker.number(op.index), {key: maker.number(case) for key, case in op.cases}

    def read(record: RecordMemory) -> int:
        number = which(record)
        if number not in cases:
            raise UnknownPartError("an index outside a table")
        return cases[number](record)

    return read


def _count_bits(maker: Maker, op: ops.CountBits) -> Number:
    read = maker.number(op.value)
    return lambda record: read(record).bit_count()


def _log2(maker: Maker, op: ops.Log2) -> Number:
    value = maker.number(op.value)

    def read(record: RecordMemory) -> int:
        number = value(record)
        if number == 0:
            raise UnknownPartError("the logarithm of 0")
        return number.bit_length() - 1

    return read


def _apply(maker: Maker, op: ops.Apply) -> Number:
    compute, kind, name = pure_functions(op.long_size)[op.name].compute, op.kind, op.name
    arguments = [maker.number(given) for given in op.arguments]

    def read(record: RecordMemory) -> int:
        try:
            return kind.wrap(compute(*[argument(record) for argument in arguments]))
        except ArithmeticError as error:
            raise UnknownPartError(f"{name}(): {error or 'no value'}") from None

    return read


def _jiffies_to(maker: Maker, op: ops.JiffiesTo) -> Number:
    jiffies, per_second, scale, kind = maker.number(op.jiffies), maker.number(op.hz), op.scale, op.kind

    def read(record: RecordMemory) -> int:
        hz, number = per_second(record), jiffies(record) * scale
        return kind.wrap(number // hz if scale % hz == 0 else -(-number // hz))

    return read


def _distance(maker: Maker, op: ops.Distance) -> Number:
    a, b, size = maker.place(op.left), maker.place(op.right), op.size

    def read(record: RecordMemory) -> int:
        one, two = a(record), b(record)
        if one is None or two is None or one[0] is not two[0]:
            raise UnknownPartError("the distance of two pointers")
        return (one[1] - two[1]) // size

    return read


def _hashed(maker: Maker, op: ops.Hashed) -> Number:
    address, top = maker.number(op.address), (1 << 8 * maker.long_size) - MAX_ERRNO

    def read(record: RecordMemory) -> int:
        number = address(record)
        if record.facts.hash_pointers and number and number < top:
            record.note(HASHED_NOTE)
        return number

    return read


def _width(maker: Maker, op: ops.Width) -> Number:
    read = maker.number(op.value)

    def number(record: RecordMemory) -> int:
        value = max(-MAX_WIDTH, min(MAX_WIDTH, read(record)))
        # -1 would read as "no width"; one character to the left or to the right is the same.
        return 1 if value == ABSENT else value

    return number


_FACTS: dict[str, Callable[[RecordMemory, str], int | None]] = {
    "variable": lambda record, name: record.facts.variables.get(name),
    "constant": lambda record, name: record.facts.constants(name),
    "sizeof": lambda record, name: record.facts.sizeof(name),
    "hz": lambda record, _: record.facts.hz or None,
    "kptr_restrict": lambda record, _: record.facts.kptr_restrict,
}
NUMBERS: dict[type[ops.PrintOp], Callable[[Maker, Any], Number]] = {
    ops.Unknown: _unknown,
    ops.Const: _constant,
    ops.Load: _load,
    ops.LoadAt: _load_at,
    ops.Fact: _fact,
    ops.Convert: _convert,
    ops.Unary: _unary,
    ops.Binary: _binary,
    ops.Not: _negated,
    ops.IsSet: _is_set,
    ops.Both: _both,
    ops.Either: _either,
    ops.IfNumber: _if_number,
    ops.PickNumber: _pick_number,
    ops.CountBits: _count_bits,
    ops.Log2: _log2,
    ops.Apply: _apply,
    ops.JiffiesTo: _jiffies_to,
    ops.Distance: _distance,
    ops.Hashed: _hashed,
    ops.Width: _width,
}
