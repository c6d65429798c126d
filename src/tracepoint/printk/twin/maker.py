"""What makes functions of the record out of ops: once a program, to be run on every record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tracepoint.printk import ops
    from tracepoint.printk.memory import Location, RecordMemory

    Number = Callable[[RecordMemory], int]
    Place = Callable[[RecordMemory], Location | None]
    Text = Callable[[RecordMemory], str | None]
    #: What a `Call` runs: the record, then the values of the arguments.
    Function = Callable[..., str | None]


class Maker:
    """Makes functions of ops for records of a machine.

    `makers` says for each class of ops how; `functions` are those that a `Call` may name.
    """

    def __init__(
        self,
        machine: ops.RecordMachine,
        makers: Mapping[type[ops.PrintOp], Callable[[Maker, Any], Callable[[RecordMemory], Any]]],
        functions: Mapping[str, Function],
    ) -> None:
        self.is_big_endian, self.long_size = machine
        self.makers = makers
        self.functions = functions

    def number(self, op: ops.NumberOp) -> Number:
        """Return what gives the number of an op."""
        return self.makers[type(op)](self, op)

    def place(self, op: ops.PlaceOp) -> Place:
        """Return what gives the place of an op, None for NULL."""
        return self.makers[type(op)](self, op)

    def text(self, op: ops.TextOp) -> Text:
        """Return what gives the text of an op, None for NULL."""
        return self.makers[type(op)](self, op)

    def value(self, op: ops.PrintOp) -> Callable[[RecordMemory], Any]:
        """Return what gives the value of an op of any kind."""
        return self.makers[type(op)](self, op)
