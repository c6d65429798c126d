"""The `%p` family: one entry an extension, as lib/vsprintf.c: pointer() dispatches them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.printk import ops
from tracepoint.printk.errnames import ERROR_NAMES, MAX_ERRNO
from tracepoint.printk.operators import converted
from tracepoint.printk.values import IntValue, Value, place_of, text_of
from tracepoint.source.types import INT, ULLONG, IntType

if TYPE_CHECKING:
    from collections.abc import Callable

    Lower = Callable[["PointerArgument"], ops.TextOp]

_MAX_SHOWN = 64


@dataclass(frozen=True, slots=True)
class PointerArgument:
    """One `%p...` with its argument; width and precision are None where there are none."""

    letters: str
    flags: str
    width: ops.NumberOp | None
    precision: ops.NumberOp | None
    value: Value
    machine: ops.RecordMachine

    @property
    def ulong(self) -> IntType:
        """The type of an address."""
        return IntType(self.machine.long_size, is_signed=False)

    @property
    def place(self) -> ops.PlaceOp:
        """The memory that it points to."""
        return place_of(self.value)

    @property
    def address(self) -> ops.NumberOp:
        """The address itself, for extensions that print or look it up."""
        if isinstance(self.value, IntValue):
            return converted(self.value, self.ulong).op
        return ops.Unknown("the address of a part of the record")

    @property
    def count(self) -> ops.NumberOp | None:
        """The width as a number of bytes or bits; None without one."""
        return None if self.width is None else ops.Unary("abs", self.width, INT)

    def padded(self, text: ops.TextOp) -> ops.TextOp:
        """Return a text padded as the conversion's width asks."""
        return ops.Padded(text, self.flags, self.width, self.precision)

    def unless_null(self, text: ops.TextOp) -> ops.TextOp:
        """Return a text, padded `(null)` where the pointer is NULL."""
        return ops.IfText(ops.IsSet(self.place), text, self.padded(ops.NULL_TEXT))

    def call(self, function: str) -> ops.TextOp:
        """Return what a function makes of the place, the letters and the byte order, padded."""
        is_big = ops.Const(int(self.machine.is_big_endian))
        return self.padded(ops.Call(function, (self.place, ops.Literal(self.letters), is_big)))


def _calls(function: str) -> Lower:
    """Make what lowers an extension that a function shows."""
    return lambda argument: argument.call(function)


# -- plain addresses --------------------------------------------------------------------------


def _number(argument: PointerArgument, address: ops.NumberOp) -> ops.TextOp:
    flags, width = argument.flags, argument.width
    if width is None:
        flags, width = flags + "0", ops.Const(2 * argument.machine.long_size)
    return ops.Number(address, "p", flags, width, argument.precision)


def _plain(argument: PointerArgument) -> ops.TextOp:
    """`%p`: the address in full width; with hashing the kernel shows another number."""
    return _number(argument, ops.Hashed(argument.address))


def _raw(argument: PointerArgument) -> ops.TextOp:
    """`%px`: never hashed."""
    return _number(argument, argument.address)


def _restricted(argument: PointerArgument) -> ops.TextOp:
    """`%pK`: by kptr_restrict; 1 is taken as read by a privileged process."""
    level = ops.Fact("kptr_restrict", "kptr_restrict", INT, ops.Const(0))
    shown = ops.IfText(
        ops.Binary("==", level, ops.Const(1), INT), _raw(argument), _number(argument, ops.Const(0))
    )
    return ops.IfText(ops.Not(level), _plain(argument), shown)


def _error(argument: PointerArgument) -> ops.TextOp:
    """`%pe`: the name of an error pointer, anything else as `%p`."""
    address, end = argument.address, 1 << 8 * argument.machine.long_size
    names = tuple(
        (end - code, argument.padded(ops.Literal(f"-{name}"))) for code, name in ERROR_NAMES.items()
    )
    signed = ops.Convert(address, IntType(argument.machine.long_size, is_signed=True))
    number = ops.Number(signed, "d", argument.flags, argument.width, argument.precision)
    is_error = ops.Binary(">=", address, ops.Const(end - MAX_ERRNO), argument.ulong)
    return ops.IfText(is_error, ops.PickText(address, names, number), _plain(argument))


def _symbol(argument: PointerArgument) -> ops.TextOp:
    return argument.padded(ops.SymbolText(argument.address, argument.letters))


# -- things in memory ---------------------------------------------------------------------------


def _hex(argument: PointerArgument) -> ops.TextOp:
    """`%*ph`: as many bytes as the width says, at most 64, one without a width."""
    count = argument.count or ops.Const(1)
    separator = {"C": ":", "D": "-", "N": ""}.get(argument.letters[1:], " ")
    shown = ops.Hex(argument.place, ops.Binary("min", count, ops.Const(_MAX_SHOWN), INT), separator)
    null = ops.Padded(ops.NULL_TEXT, argument.flags, argument.width)
    return ops.IfText(ops.Not(count), ops.Literal(""), ops.IfText(ops.IsSet(argument.place), shown, null))


def _bitmap(argument: PointerArgument) -> ops.TextOp:
    long_size = argument.machine.long_size
    n_bits = argument.count or ops.Const(0)
    above = ops.Binary("+", n_bits, ops.Const(8 * long_size - 1), INT)
    n_longs = ops.Binary("/", above, ops.Const(8 * long_size), INT)
    size = ops.Binary("*", n_longs, ops.Const(long_size), INT)
    shown = ops.Bitmap(argument.place, size, n_bits, is_list=argument.letters == "bl")
    return ops.IfText(ops.IsSet(argument.place), shown, ops.Literal("(null)"))


def _physical(argument: PointerArgument) -> ops.TextOp:
    """`%pa`, `%pap`, `%pad`: phys_addr_t or dma_addr_t by reference; both of 8 bytes here."""
    if argument.machine.long_size == 4:
        return argument.unless_null(ops.Unknown("the size of phys_addr_t"))
    number = ops.Number(ops.LoadAt(argument.place, ULLONG), "x", "0", ops.Const(16))
    return argument.unless_null(ops.Joined((ops.Literal("0x"), number)))


def _escaped(argument: PointerArgument) -> ops.TextOp:
    count = argument.count or ops.Const(1)
    shown: ops.TextOp = ops.Call("escaped", (argument.place, count))
    if argument.letters != "E":
        shown = ops.Unknown(f"the escapes of %p{argument.letters}")
    return ops.IfText(ops.Not(count), ops.Literal(""), argument.unless_null(shown))


def _user_string(argument: PointerArgument) -> ops.TextOp:
    return argument.padded(text_of(argument.value))


_EXACT: dict[str, Lower] = {
    "": _plain,
    "x": _raw,
    "K": _restricted,
    "e": _error,
    "b": _bitmap,
    "bl": _bitmap,
    "4cc": _calls("fourcc"),
    "a": _physical,
    "ap": _physical,
    "ad": _physical,
    "ks": _user_string,
    "us": _user_string,
}
_BY_FIRST: dict[str, Lower] = {
    "S": _symbol,
    "s": _symbol,
    "B": _symbol,
    "h": _hex,
    "E": _escaped,
    "t": _calls("time"),
    "M": _calls("mac"),
    "m": _calls("mac"),
    "U": _calls("uuid"),
}
_BY_TWO: dict[str, Lower] = {
    "I4": _calls("ip4"),
    "i4": _calls("ip4"),
    "I6": _calls("ip6"),
    "i6": _calls("ip6"),
    "IS": _calls("sockaddr"),
    "iS": _calls("sockaddr"),
}


def lower_pointer(argument: PointerArgument) -> ops.TextOp | None:
    """Lower one `%p...`; None for what shows kernel memory (`%pd`, `%pV`, `%pg`)."""
    letters = argument.letters
    lower = _EXACT.get(letters) or _BY_TWO.get(letters[:2]) or _BY_FIRST.get(letters[:1])
    return None if lower is None else lower(argument)
