"""The pieces of a print format to text ops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.printk import operators, ops
from tracepoint.printk.conversion import ABSENT, STAR, Conversion, conversion_type
from tracepoint.printk.pointers import PointerArgument, lower_pointer
from tracepoint.printk.values import Value, text_of
from tracepoint.source.types import INT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracepoint.printk.expressions import Lowering
    from tracepoint.source import ast


class _Line:
    """Lowers pieces one by one, each with the arguments that it takes."""

    def __init__(self, lowering: Lowering, arguments: Sequence[ast.Node]) -> None:
        self.lowering = lowering
        self.arguments = list(arguments)

    def next_value(self) -> Value:
        if not self.arguments:
            return self.lowering.unknown("an argument that the print format lacks")
        return self.lowering.value(self.arguments.pop(0))

    def text(self, piece: str | Conversion) -> ops.TextOp:
        return ops.Literal(piece) if isinstance(piece, str) else self.conversion(piece)

    def number(self, given: int) -> ops.NumberOp | None:
        """Lower a width or precision; None without one."""
        if given != STAR:
            return None if given == ABSENT else ops.Const(given)
        return ops.Width(operators.converted(self.lowering.as_integer(self.next_value()), INT).op)

    def conversion(self, piece: Conversion) -> ops.TextOp:
        width, precision = self.number(piece.width), self.number(piece.precision)
        value = self.next_value()
        lowering = self.lowering
        match piece.conversion:
            case "d" | "i" | "u" | "x" | "X" | "o":
                kind = conversion_type(piece, lowering.long_size)
                number = operators.converted(lowering.as_integer(value), kind).op
                return ops.Number(number, piece.conversion, piece.flags, width, precision)
            case "s":
                limit = None if precision is None else ops.Binary("max", precision, ops.Const(0), INT)
                return ops.Padded(text_of(value, limit), piece.flags, width, limit)
            case "c":
                return ops.Padded(ops.Character(lowering.as_integer(value).op), piece.flags, width)
            case "p":
                return self.pointer(piece, PointerArgument(
                    piece.letters, piece.flags, width, precision, value, lowering.machine
                ))  # fmt: skip
        return ops.Padded(ops.KernelString(lowering.unknown(f"the conversion {piece.text}").op))

    def pointer(self, piece: Conversion, argument: PointerArgument) -> ops.TextOp:
        lowered = lower_pointer(argument)
        if lowered is None:
            reason = f"%p{piece.letters}, which shows memory of the kernel"
            return ops.Padded(ops.KernelString(self.lowering.unknown(reason).op))
        return lowered


def lower_line(
    lowering: Lowering, pieces: Iterable[str | Conversion], arguments: Sequence[ast.Node]
) -> ops.TextOp:
    """Lower a format string, as its pieces, with its arguments."""
    line = _Line(lowering, arguments)
    return ops.Joined(tuple(line.text(piece) for piece in pieces))
