"""The types of CTF 1.8: what TSDL can say about the bits of a field.

Sizes and alignments are bits.  Types are values that others share, so each knows how deep it is and how many
leaves it has: a text of a few lines can name a type of 2^100 leaves.
"""

from __future__ import annotations

from dataclasses import dataclass, field

MAX_DEPTH = 32
MAX_LEAVES = 4096
_MAX_BITS = 64


@dataclass(frozen=True, slots=True)
class CtfInteger:
    """An integer: `is_big_endian` is None for the byte order of the trace, `clock` the name of a clock."""

    size: int
    align: int
    is_signed: bool = False
    is_big_endian: bool | None = None
    base: int = 10
    is_text: bool = False
    clock: str = ""
    depth: int = field(default=1, init=False)
    n_leaves: int = field(default=1, init=False)

    def __post_init__(self) -> None:
        if not 1 <= self.size <= _MAX_BITS:
            raise ValueError(f"an integer of {self.size} bits")


@dataclass(frozen=True, slots=True)
class CtfFloat:
    """A floating point number of IEEE 754 of 32 or 64 bits."""

    size: int
    align: int
    is_big_endian: bool | None = None
    depth: int = field(default=1, init=False)
    n_leaves: int = field(default=1, init=False)


@dataclass(frozen=True, slots=True)
class CtfString:
    """A string that ends with NUL."""

    align: int = field(default=8, init=False)
    depth: int = field(default=1, init=False)
    n_leaves: int = field(default=1, init=False)


@dataclass(frozen=True, slots=True)
class CtfEnum:
    """An integer with names: (name, lowest, highest)."""

    container: CtfInteger
    names: tuple[tuple[str, int, int], ...]
    depth: int = field(default=1, init=False)
    n_leaves: int = field(default=1, init=False)

    @property
    def align(self) -> int:
        """The alignment of the integer."""
        return self.container.align


@dataclass(frozen=True, slots=True)
class CtfArray:
    """Elements of one type: `length` is their number, or the path of the field that says it."""

    element: CtfType
    length: int | tuple[str, ...]

    @property
    def align(self) -> int:
        """The alignment of an element."""
        return self.element.align

    @property
    def depth(self) -> int:
        """The depth of the type."""
        return self.element.depth + 1

    @property
    def n_leaves(self) -> int:
        """The number of leaves, those of one element."""
        return self.element.n_leaves


@dataclass(frozen=True, slots=True)
class CtfStruct:
    """Fields in order, by the names that TSDL gives them."""

    fields: tuple[tuple[str, CtfType], ...] = ()
    min_align: int = 1
    align: int = field(default=1, init=False)
    depth: int = field(default=1, init=False)
    n_leaves: int = field(default=1, init=False)

    def __post_init__(self) -> None:
        align = max([self.min_align, *(kind.align for _, kind in self.fields)])
        object.__setattr__(self, "align", align)
        _measure(self, self.fields)


@dataclass(frozen=True, slots=True)
class CtfVariant:
    """One of several types: the name that the field `tag` has then says which; it is empty without one."""

    tag: tuple[str, ...]
    options: tuple[tuple[str, CtfType], ...]
    align: int = field(default=1, init=False)
    depth: int = field(default=1, init=False)
    n_leaves: int = field(default=1, init=False)

    def __post_init__(self) -> None:
        _measure(self, self.options)


CtfType = CtfInteger | CtfFloat | CtfString | CtfEnum | CtfArray | CtfStruct | CtfVariant


def _measure(made: CtfStruct | CtfVariant, members: tuple[tuple[str, CtfType], ...]) -> None:
    """Set depth and leaves; raises ValueError when there are too many."""
    depth = 1 + max((kind.depth for _, kind in members), default=0)
    n_leaves = sum(kind.n_leaves for _, kind in members) + 1
    if depth > MAX_DEPTH or n_leaves > MAX_LEAVES:
        raise ValueError(f"a type of {depth} levels and {n_leaves} fields")
    object.__setattr__(made, "depth", depth)
    object.__setattr__(made, "n_leaves", n_leaves)


def shown_name(name: str) -> str:
    """Return the name of a field as readers show it: without the first underscore.

    >>> shown_name("_prev_comm"), shown_name("__len"), shown_name("id")
    ('prev_comm', '_len', 'id')
    """
    return name.removeprefix("_") or name
