"""Floating point in a print format, for readers that know integers only.

No kernel has floating point in a record or in a print format, and its readers lose their place in the
arguments at a `%f`.  The bits of the number are recorded, and `%f` becomes `%s%llu.%06llu` with
expressions over these bits, which every reader can work out: trace-cmd, perf and ours show the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from tracepoint.errors import LayoutError
from tracepoint.source.brackets import outside
from tracepoint.source.lexer import Kind, lex
from tracepoint.source.text import SourceFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_CONVERSION = re.compile(r"%(?:%|([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+))?(?:hh|h|ll|l|L|q|j|z|t)?([a-zA-Z]))")
_FLOATS = "fFeEgGaA"
_MAX_PLACES = 7
_PLACES = 6


@dataclass(frozen=True, slots=True)
class _Shape:
    """Bits of the fraction and bias of the exponent: IEEE 754 binary32 and binary64."""

    fraction: int
    bias: int

    @property
    def special(self) -> int:
        """The exponent of what is not a number, with all bits set."""
        return 2 * self.bias + 1


_SHAPES = {"float": _Shape(23, 127), "double": _Shape(52, 1023)}
# Bits after the point that are worked with; ten to the seventh times these fits 64 bits.
_KEPT = 40


def show_floats(print_format: str, floats: Mapping[str, str], event: str = "") -> str:
    """Return a print format (with REC->) in which `%f` of the fields `floats` is shown by integers.

    `%f`, `%g` and `%e` all show digits around a point: as many places as a precision says, up to 7,
    else 6.  From 2**63 on, and for what is not a number, `huge `, `inf ` or `nan ` comes before zeros.
    Raises LayoutError for `%f` of anything but such a field, and for such a field shown otherwise.
    """
    literal, arguments = _split(print_format)
    if literal is None:
        return print_format
    queue = iter(arguments)
    made: list[str] = []

    def replaced(match: re.Match[str]) -> str:
        _, width, places, letter = match.groups()
        if letter is None:
            return match[0]
        made.extend(next(queue, "0") for star in (width, places) if star == "*")
        argument = next(queue, "0").strip()
        name = argument.removeprefix("REC->") if argument.startswith("REC->") else ""
        is_float = letter in _FLOATS
        if not is_float and name not in floats:
            made.append(argument)
            return match[0]
        if not is_float or name not in floats or "*" in (width, places):
            raise LayoutError(
                f"{match[0]} cannot show {argument}: %f, %.Nf, %g and %e show float and double fields",
                event=event,
            )
        n_places = _PLACES if places is None else min(int(places), _MAX_PLACES)
        made.extend(_expressions(argument, _SHAPES[floats[name]], n_places))
        return f"%s%llu.%0{n_places}llu" if n_places else "%s%llu"

    text = _CONVERSION.sub(replaced, literal)
    return ", ".join([text, *made, *(rest.strip() for rest in queue)])


def _split(print_format: str) -> tuple[str | None, list[str]]:
    """Return the text in quotes and the arguments; None when it does not begin with texts only."""
    tokens = [t for t in lex(SourceFile("<print fmt>", print_format)) if t.kind is not Kind.END]
    commas = [tokens[at].start for at in outside(tokens, {","})]
    ends = [*commas, len(print_format)]
    first = [t for t in tokens if t.start < ends[0]]
    if not first or any(t.kind is not Kind.STRING for t in first):
        return None, []
    parts = [print_format[a + 1 : b] for a, b in pairwise(ends)]
    return print_format[: ends[0]].strip(), parts


def _expressions(bits: str, shape: _Shape, n_places: int) -> Iterator[str]:
    """Yield what comes before the digits, the digits before the point and those after it."""
    exponent = f"(({bits} >> {shape.fraction}) & {shape.special})"
    # A constant of 64 bits makes the bits of a float 64 bits wide as well.
    fraction = f"({bits} & {(1 << shape.fraction) - 1}ULL)"
    is_negative = f"({bits} >> {shape.fraction + (11 if shape.fraction == 52 else 8)})"
    is_large = f"({exponent} >= {shape.bias + 63})"
    infinite = f'({fraction} ? "nan " : ({is_negative} ? "-inf " : "inf "))'
    huge = f'({is_negative} ? "-huge " : "huge ")'
    minus = f'({is_negative} ? "-" : "")'
    yield f"{is_large} ? (({exponent} == {shape.special}) ? {infinite} : {huge}) : {minus}"
    # libtraceevent takes a right operand in parentheses apart where its operator binds less than the one
    # before it: here everything on the right is a constant, or binds more (hence `+ 0` below).
    scale = 10**n_places
    whole, rest = _whole(exponent, fraction, shape), _rest(exponent, fraction, shape)
    # Rounded as printf() does as long as both fit together; above 2**40 there are few places left.
    is_small = f"({exponent} < {shape.bias + _KEPT})"
    rounded = f"(((({rest} * {scale}) + {1 << (_KEPT - 1)}) >> {_KEPT}) + ({whole} * {scale}))"
    yield f"{is_large} ? 0 : ({is_small} ? ({rounded} / {scale}) : {whole})"
    if n_places:
        yield f"{is_large} ? 0 : ({is_small} ? ({rounded} % {scale}) : (({rest} * {scale}) >> {_KEPT}))"


def _whole(exponent: str, fraction: str, shape: _Shape) -> str:
    """The digits before the point of a number below 2**63."""
    mantissa = f"({fraction} | {1 << shape.fraction})"
    unit = shape.bias + shape.fraction
    return (
        f"(({exponent} >= {shape.bias}) ? (({exponent} > {unit}) ? ({mantissa} << ({exponent} - {unit}))"
        f" : ({mantissa} >> ({unit} - ({exponent} + 0)))) : 0)"
    )


def _rest(exponent: str, fraction: str, shape: _Shape) -> str:
    """What is after the point, in units of 2**-40."""
    mantissa = f"({fraction} | {1 << shape.fraction})"
    shift = shape.fraction - _KEPT
    kept = f"({mantissa} >> {shift})" if shift > 0 else f"({mantissa} << {-shift})"
    behind = f"(({mantissa} << ({exponent} - {shape.bias})) & {(1 << shape.fraction) - 1})"
    aligned = f"({behind} >> {shift})" if shift > 0 else f"({behind} << {-shift})"
    return (
        f"(({exponent} >= {shape.bias}) ? {aligned}"
        f" : (({exponent} < {shape.bias - 63}) ? 0 : ({kept} >> ({shape.bias} - ({exponent} + 0)))))"
    )
