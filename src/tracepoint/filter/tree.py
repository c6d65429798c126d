"""The predicate tree: what a filter says, with every field found and every value read."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TypeAlias

from tracepoint.filter.numbers import DIGITS


class Comparator(enum.StrEnum):
    """The operators, in the order in which they are tried at a place: `<=` before `<`."""

    GLOB = "~"
    NE = "!="
    EQ = "=="
    LE = "<="
    LT = "<"
    GE = ">="
    GT = ">"
    BAND = "&"


class Source(enum.IntEnum):
    """What a predicate looks at; the numbers are those of `csrc/filter.h`."""

    NOTHING = 0
    SCALAR = 1
    CPU = 2
    STATIC_STRING = 3
    DATA_LOC = 4
    REL_LOC = 5
    COMM = 6
    POINTER = 7
    USER_POINTER = 8
    SCALAR_IN_CPUS = 9
    CPU_IN_CPUS = 10
    CPUMASK = 11
    CPUMASK_HAS_CPU = 12
    FUNCTION = 13
    NUMBER_IN_SET = 14


class Match(enum.IntEnum):
    """How a string is compared: enum regex_type in kernel/trace/trace.h."""

    FULL = 16
    FRONT = 17
    MIDDLE = 18
    END = 19
    GLOB = 20


@dataclass(frozen=True, slots=True)
class Pattern:
    """A quoted value, ready to compare: the way, the bytes, and whether the answer is turned round."""

    match: Match
    text: bytes
    is_inverted: bool = False


@dataclass(frozen=True, slots=True)
class Predicate:
    """One comparison: `field op value`.

    `offset`, `size` and `is_signed` say where the field lies; `value` is the number, the mask of
    CPUs or the first address of a function, `value_end` the address after it; `pattern` is set for
    strings, `numbers` (up to 32 bits each) for NUMBER_IN_SET, which no filter text says.
    """

    field: str
    op: Comparator
    source: Source
    offset: int = 0
    size: int = 0
    is_signed: bool = False
    value: int = 0
    value_end: int = 0
    pattern: Pattern | None = None
    numbers: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of `term`."""

    term: Expression


@dataclass(frozen=True, slots=True)
class And:
    """All of `terms`, tried from the left until one fails."""

    terms: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Any of `terms`, tried from the left until one holds."""

    terms: tuple[Expression, ...]


Expression: TypeAlias = Predicate | Not | And | Or


def read_pattern(text: bytes, op: Comparator) -> Pattern:
    """Return how to compare with a quoted value.

    Only a leading and a trailing `*` are cheap; any other special character makes it a glob.
    Kernel: filter_parse_regex() in kernel/trace/trace_events_filter.c.

    >>> read_pattern(b"!*sh*", Comparator.GLOB)
    Pattern(match=<Match.MIDDLE: 18>, text=b'sh', is_inverted=True)
    """
    if op is not Comparator.GLOB:
        return Pattern(Match.FULL, text, is_inverted=op is Comparator.NE)
    is_inverted = text.startswith(b"!")
    text = text[is_inverted:]
    if text[:1] and text[0] in DIGITS:
        return Pattern(Match.FULL, text, is_inverted)
    has_front = text.startswith(b"*")
    body = text[has_front:]
    has_back = body.endswith(b"*")
    body = body[: len(body) - has_back]
    if any(c in body for c in b"*[?\\"):
        return Pattern(Match.GLOB, text, is_inverted)
    ways = {
        (False, False): Match.FULL,
        (False, True): Match.FRONT,
        (True, False): Match.END,
        (True, True): Match.MIDDLE,
    }
    return Pattern(ways[has_front, has_back], body, is_inverted)
