"""The ops of a print program: what a print format asks for, without saying how it is computed.

A program is a tree.  Each op says what it needs (its attributes that are ops) and gives a number, a place in
memory or a text.  `twin` runs the tree in Python and is the specification; `packed` flattens it into the form
that `csrc/decode/print.c` runs; another back end walks it in the same way.

Numbers are C integers: ops that compute name the `IntType` in which they do, and take operands of that
type (`Convert` makes them so).  A place is bytes and an offset, or NULL.  A text is bytes, here one character
a byte (latin-1), or NULL.  Byte order and the size of `long` are those of the record,
as its `RecordMachine` says.

What neither record nor facts tell ends the line (`UnknownPartError`): operands are computed only where C
would, so a line whose `?:` never reaches such a part still renders.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.source.types import IntType


class RecordMachine(NamedTuple):
    """Where a record was made: its byte order and the bytes of a `long`."""

    is_big_endian: bool = False
    long_size: int = 8


class PrintOp:
    """A node of a print program."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class NumberOp(PrintOp):
    """An op that gives a number."""

    __slots__ = ()


class PlaceOp(PrintOp):
    """An op that gives a place in memory, or NULL."""

    __slots__ = ()


class TextOp(PrintOp):
    """An op that gives a text, or NULL."""

    __slots__ = ()


# -- numbers ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Unknown(NumberOp, PlaceOp, TextOp):
    """A value of any kind that cannot be known: the line ends there."""

    reason: str


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Const(NumberOp):
    """A number known now."""

    value: int


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Load(NumberOp):
    """The integer at an offset of the record."""

    offset: int
    kind: IntType


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class LoadAt(NumberOp):
    """The integer at a place."""

    place: PlaceOp
    kind: IntType


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Fact(NumberOp):
    """What the facts tell of a name: `what` is `variable`, `constant`, `sizeof`, `hz` or `kptr_restrict`.

    It is of a type; where the facts do not tell it, `otherwise` is the number.
    """

    what: str
    name: str
    kind: IntType
    otherwise: NumberOp


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Convert(NumberOp):
    """A number as a store into a type keeps it."""

    value: NumberOp
    kind: IntType


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Unary(NumberOp):
    """`-` or `~` of a number, in a type; `abs`; `swap`: its bytes in the other order."""

    operator: str
    value: NumberOp
    kind: IntType


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Binary(NumberOp):
    """An operator of C, `min` or `max` on two numbers of a type; comparisons give 0 or 1.

    A shift by the width or more counts modulo the width; a division by zero is not known.
    """

    operator: str
    left: NumberOp
    right: NumberOp
    kind: IntType


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Not(NumberOp):
    """1 for 0, else 0."""

    value: NumberOp


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class IsSet(NumberOp):
    """Whether a place or text is not NULL, as 0 or 1."""

    value: PlaceOp | TextOp


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Both(NumberOp):
    """`&&`: 0 or 1; the right one counts only where the left one is not 0."""

    left: NumberOp
    right: NumberOp


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Either(NumberOp):
    """`||`: 0 or 1; the right one counts only where the left one is 0."""

    left: NumberOp
    right: NumberOp


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class IfNumber(NumberOp):
    """`?:` of numbers."""

    test: NumberOp
    then: NumberOp
    otherwise: NumberOp


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class PickNumber(NumberOp):
    """The number at an index of a table; outside it nothing is known."""

    index: NumberOp
    cases: tuple[tuple[int, NumberOp], ...]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class CountBits(NumberOp):
    """How many bits of an unsigned number are 1."""

    value: NumberOp


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Log2(NumberOp):
    """The highest bit of an unsigned number; that of 0 is not known."""

    value: NumberOp


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Apply(NumberOp):
    """What a function of `source.functions.pure_functions` makes of numbers of its types.

    Those that formats call often are made of other ops instead.
    """

    name: str
    long_size: int
    arguments: tuple[NumberOp, ...]
    kind: IntType


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class JiffiesTo(NumberOp):
    """Jiffies in units of which `scale` are a second, as a type keeps it.

    kernel/time/time.c: jiffies_to_msecs() rounds up where HZ does not divide the scale.
    """

    jiffies: NumberOp
    hz: NumberOp
    scale: int
    kind: IntType


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Distance(NumberOp):
    """How many elements of a size lie between two places of the same memory."""

    left: PlaceOp
    right: PlaceOp
    size: int


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Hashed(NumberOp):
    """An address; a note where the kernel would show a hash of it."""

    address: NumberOp


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Width(NumberOp):
    """The width or precision that a `*` takes: cut to what a line holds, and 1 for -1."""

    value: NumberOp


# -- places -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class At(PlaceOp):
    """A fixed offset of the record."""

    offset: int


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Bytes(PlaceOp):
    """Bytes known now: a string literal."""

    data: bytes


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Moved(PlaceOp):
    """A place moved by a number of elements of a size in bytes; NULL stays NULL."""

    place: PlaceOp
    count: NumberOp
    size: int


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class WordPlace(PlaceOp):
    """Where the word of a `__data_loc` or `__rel_loc` field points to; `origin` is where it counts from."""

    word: NumberOp
    origin: int


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class BytesOf(PlaceOp):
    """The bytes of a text, with a NUL."""

    text: TextOp


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class KernelPlace(PlaceOp):
    """Memory at an address of the kernel: NULL for 0, else not known."""

    address: NumberOp


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class IfPlace(PlaceOp):
    """`?:` of places."""

    test: NumberOp
    then: PlaceOp
    otherwise: PlaceOp


# -- texts ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Literal(TextOp):
    """A text known now."""

    text: str


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class String(TextOp):
    """The string at a place up to its NUL, or `limit` bytes of it when that comes first."""

    place: PlaceOp
    limit: NumberOp | None = None


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class KernelString(TextOp):
    """The string at an address of the kernel, which `printk_formats` gives; NULL for 0."""

    address: NumberOp


Table = tuple[tuple[NumberOp, TextOp], ...]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Flags(TextOp):
    """The names of the bits that are set, then what is left as hex; no delimiter is an empty one."""

    value: NumberOp
    delimiter: TextOp | None
    table: Table


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Symbolic(TextOp):
    """The first name of a number, or the number as hex where it has none or an empty one."""

    value: NumberOp
    table: Table


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class PickText(TextOp):
    """The text at an index of a table, else `otherwise`."""

    index: NumberOp
    cases: tuple[tuple[int, TextOp], ...]
    otherwise: TextOp


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Hex(TextOp):
    """Bytes as hex digits with a separator between two, but none before each `group`th (0: everywhere)."""

    place: PlaceOp
    length: NumberOp
    separator: str
    group: int = 0


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Numbers(TextOp):
    """`{0x1,0x2}`: `count` unsigned integers of `size` bytes."""

    place: PlaceOp
    count: NumberOp
    size: int


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Bitmap(TextOp):
    """`n_bits` bits of `size` bytes, which are longs: hex words of 32, or with `is_list` ranges."""

    place: PlaceOp
    size: NumberOp
    n_bits: NumberOp
    is_list: bool = False


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class SymbolText(TextOp):
    """An address as `%p` with these letters shows it, or `ip`: as the function tracer does."""

    address: NumberOp
    letters: str


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Character(TextOp):
    """One byte."""

    value: NumberOp


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Number(TextOp):
    """An integer as `conversion` (d, i, u, x, X, o, p) shows it; see `conversion.format_number`."""

    value: NumberOp
    conversion: str
    flags: str = ""
    width: NumberOp | None = None
    precision: NumberOp | None = None


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Padded(TextOp):
    """A text cut to a precision, then padded to a width; NULL is `(null)`."""

    text: TextOp
    flags: str = ""
    width: NumberOp | None = None
    precision: NumberOp | None = None


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class IfText(TextOp):
    """`?:` of texts."""

    test: NumberOp
    then: TextOp
    otherwise: TextOp


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Joined(TextOp):
    """Texts one after the other."""

    parts: tuple[TextOp, ...]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class WithoutNewline(TextOp):
    """A text without the newline that it may end with."""

    text: TextOp


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Call(TextOp):
    """What a function by this name makes of its arguments; a back end may have none of it."""

    name: str
    arguments: tuple[PrintOp, ...]


NULL_TEXT = KernelString(Const(0))


def static_table(table: Table) -> list[tuple[int, str]] | None:
    """Return the numbers and names of a table when all are known now, else None."""
    found = []
    for number, name in table:
        if not isinstance(number, Const) or not isinstance(name, Literal):
            return None
        found.append((number.value, name.text))
    return found


def operands(op: PrintOp) -> Iterator[PrintOp]:
    """Yield the ops that an op needs, in the order in which they are computed."""
    for item in fields(op):  # type: ignore[arg-type]  # every kind of op is a dataclass
        held = getattr(op, item.name)
        if isinstance(held, PrintOp):
            yield held
        elif isinstance(held, tuple) and item.name in ("table", "cases", "parts", "arguments"):
            for entry in held:
                yield from (
                    part
                    for part in (entry if isinstance(entry, tuple) else (entry,))
                    if isinstance(part, PrintOp)
                )


def walk(op: PrintOp) -> Iterator[PrintOp]:
    """Yield an op and all below it.

    >>> from tracepoint.source.types import INT
    >>> [type(found).__name__ for found in walk(Not(Load(8, INT)))]
    ['Not', 'Load']
    """
    todo = [op]
    while todo:
        found = todo.pop()
        yield found
        todo += operands(found)
