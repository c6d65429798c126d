"""Print programs run in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.printk import ops
from tracepoint.printk.facts import UnknownPartError
from tracepoint.printk.memory import NO_RECORD
from tracepoint.printk.twin.maker import Maker
from tracepoint.printk.twin.numbers import NUMBERS
from tracepoint.printk.twin.places import PLACES
from tracepoint.printk.twin.texts import TEXTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracepoint.printk.twin.maker import Function, Number, Text


def constant_of(op: ops.NumberOp) -> ops.NumberOp:
    """Return the constant that an op of constants gives, or the op where it gives none."""
    try:
        return ops.Const(Maker(ops.RecordMachine(), NUMBERS, {}).number(op)(NO_RECORD))
    except UnknownPartError:
        return op


def number_function(op: ops.NumberOp, machine: ops.RecordMachine) -> Number:
    """Return what gives the number of an op that calls no function."""
    return Maker(machine, {**NUMBERS, **PLACES, **TEXTS}, {}).number(op)


def text_function(op: ops.TextOp, machine: ops.RecordMachine, functions: Mapping[str, Function]) -> Text:
    """Return what gives the text of an op for records of a machine; `functions` are those it may call."""
    return Maker(machine, {**NUMBERS, **PLACES, **TEXTS}, functions).text(op)
