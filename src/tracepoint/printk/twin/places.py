"""Ops that give places in memory, as functions of the record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracepoint.printk import ops
from tracepoint.printk.facts import UnknownPartError
from tracepoint.record.field import unpack_location

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.printk.memory import Location, RecordMemory
    from tracepoint.printk.twin.maker import Maker, Place


def _at(_: Maker, op: ops.At) -> Place:
    offset = op.offset
    return lambda record: (record.data, offset)


def _bytes_known(_: Maker, op: ops.Bytes) -> Place:
    place = op.data, 0
    return lambda _: place


def _moved(maker: Maker, op: ops.Moved) -> Place:
    where, by, size = maker.place(op.place), maker.number(op.count), op.size

    def read(record: RecordMemory) -> Location | None:
        place = where(record)
        return None if place is None else (place[0], place[1] + by(record) * size)

    return read


def _located(maker: Maker, op: ops.WordPlace) -> Place:
    word, origin = maker.number(op.word), op.origin
    return lambda record: (record.data, unpack_location(word(record), origin)[0])


def _bytes_of(maker: Maker, op: ops.BytesOf) -> Place:
    read = maker.text(op.text)

    def place(record: RecordMemory) -> Location | None:
        text = read(record)
        return None if text is None else (text.encode("latin-1", "replace") + b"\0", 0)

    return place


def _kernel(maker: Maker, op: ops.KernelPlace) -> Place:
    address = maker.number(op.address)

    def read(record: RecordMemory) -> None:
        if address(record) != 0:
            raise UnknownPartError("memory that a kernel pointer points to")

    return read


def _if_place(maker: Maker, op: ops.IfPlace) -> Place:
    test, a, b = maker.number(op.test), maker.place(op.then), maker.place(op.otherwise)
    return lambda record: a(record) if test(record) else b(record)


PLACES: dict[type[ops.PrintOp], Callable[[Maker, Any], Place]] = {
    ops.At: _at,
    ops.Bytes: _bytes_known,
    ops.Moved: _moved,
    ops.WordPlace: _located,
    ops.BytesOf: _bytes_of,
    ops.KernelPlace: _kernel,
    ops.IfPlace: _if_place,
}
