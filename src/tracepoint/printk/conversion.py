r"""printk format strings to pieces, and integers as lib/vsprintf.c prints them.

The kernel differs from C: `%#x` of 0 is `0x0`, a `0` flag counts together with a precision, a
precision of 0 still prints the digit 0 (lib/vsprintf.c: number()).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tracepoint.source.types import IntType

STAR = -2
ABSENT = -1
_CONVERSION = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>[0-9]+|\*)?(?:\.(?P<precision>[0-9]+|\*)?)?"
    r"(?P<length>hh|h|ll|l|LL|L|z|Z|t|j|q)?(?P<conversion>[a-zA-Z%])"
)
_POINTER_LETTERS = re.compile(r"[a-zA-Z0-9]+")
MAX_WIDTH = 1 << 14


@dataclass(frozen=True, slots=True)
class Conversion:
    """One `%...` of a format: `width` and `precision` are numbers, `STAR` or `ABSENT`.

    `extension` holds the letters after `%p` that belong to it; `letters` all that follow.
    """

    text: str
    flags: str
    width: int
    precision: int
    length: str
    conversion: str
    letters: str = ""

    @property
    def n_arguments(self) -> int:
        """How many arguments it takes."""
        return (self.width == STAR) + (self.precision == STAR) + (self.conversion != "%")


# What each extension takes of the letters after %p; the first of its letters decides which it is.
_EXTENSIONS = re.compile(
    r"[Ss]R?b?|B[b]?|h[CDN]?|bl?|M[FR]?|mR?|[Ii]4[hnbl]?|I6c?|i6|[Ii]S[pfschnbl]*|E[achnops]*|U[bBlL]?|"
    r"K|4cc|a[dp]?|t[RT][dt]?[rs]*|x|e|[uk]s"
)
_FIRST_LETTERS = frozenset("SsBRrhbMmIiEUVKN4adtCDgGOfAxeuk")


def _pointer_letters(text: str, at: int) -> tuple[str, int]:
    """Return the extension after a `%p`, and where the text goes on.

    The kernel drops every letter and digit after `%p`, also those that no extension takes
    (lib/vsprintf.c: vsnprintf(), FORMAT_TYPE_PTR).
    """
    found = _POINTER_LETTERS.match(text, at)
    if found is None:
        return "", at
    letters = found[0]
    if letters[0] not in _FIRST_LETTERS:
        return "", found.end()
    extension = _EXTENSIONS.match(letters)
    return (extension[0] if extension else letters), found.end()


def _count(text: str | None, *, given: bool) -> int:
    if text is None:
        return 0 if given else ABSENT
    return STAR if text == "*" else min(int(text[:9]), MAX_WIDTH)


def parse_format(text: str) -> list[str | Conversion]:
    """Split a printk format string into literal text and conversions.

    `%%` becomes text; what the kernel does not know stays a `Conversion`, to be refused by
    the caller that compiles it.

    >>> [p if isinstance(p, str) else p.text for p in parse_format("a=%-5d 100%% %pI6c:%s")]
    ['a=', '%-5d', ' 100% ', '%pI6c', ':', '%s']
    """
    pieces: list[str | Conversion] = []
    literal = ""
    at = 0
    while (found := text.find("%", at)) >= 0:
        literal += text[at:found]
        match = _CONVERSION.match(text, found)
        if match is None:
            literal += "%"
            at = found + 1
            continue
        at = match.end()
        if match["conversion"] == "%":
            literal += "%"
            continue
        letters = ""
        if match["conversion"] == "p":
            letters, at = _pointer_letters(text, at)
        if literal:
            pieces.append(literal)
            literal = ""
        has_point = "." in match[0]
        pieces.append(
            Conversion(
                text[found:at],
                match["flags"],
                _count(match["width"], given=False),
                _count(match["precision"], given=has_point),
                match["length"] or "",
                match["conversion"],
                letters,
            )
        )
    literal += text[at:]
    if literal:
        pieces.append(literal)
    return pieces


def conversion_type(conversion: Conversion, long_size: int) -> IntType:
    """Return the integer type that a conversion takes from its argument."""
    is_signed = conversion.conversion in "di"
    match conversion.length:
        case "hh":
            size = 1
        case "h":
            size = 2
        case "l" | "z" | "Z" | "t":
            size = long_size
        case "ll" | "LL" | "L" | "j" | "q":
            size = 8
        case _:
            size = 4
    return IntType(size, is_signed=is_signed)


def _sign(value: int, flags: str) -> str:
    if value < 0:
        return "-"
    return "+" if "+" in flags else " " if " " in flags else ""


def _prefix(value: int, conversion: str, flags: str) -> str:
    if "#" not in flags:
        return ""
    if conversion == "o":
        return "0" if value else ""
    return {"x": "0x", "p": "0x", "X": "0X"}.get(conversion, "")


_BASES = {"x": "x", "p": "x", "X": "X", "o": "o"}


def format_number(
    value: int, conversion: str, flags: str = "", width: int = ABSENT, precision: int = ABSENT
) -> str:
    """Format an integer, already of its type's range, as lib/vsprintf.c: number() does.

    >>> format_number(0, "x", "#"), format_number(-5, "d", "0", 5), format_number(7, "d", "", 5, 3)
    ('0x0', '-0005', '  007')
    """
    sign = _sign(value, flags) if conversion in "di" else ""
    prefix = _prefix(value, conversion, flags)
    digits = format(abs(value), _BASES.get(conversion, "d"))
    body = digits.rjust(precision, "0") if precision > len(digits) else digits
    gap = width - len(sign) - len(prefix) - len(body)
    if gap <= 0:
        return sign + prefix + body
    if "-" in flags:
        return sign + prefix + body + " " * gap
    if "0" in flags:
        return sign + prefix + "0" * gap + body
    return " " * gap + sign + prefix + body


def split_width(width: int, flags: str) -> tuple[str, int]:
    """Return flags and width of a conversion whose `*` width may be negative: that means left.

    >>> split_width(-8, "0"), split_width(ABSENT, "")
    (('0-', 8), ('', -1))
    """
    return (flags + "-", -width) if width < ABSENT else (flags, width)


def format_text(text: str, flags: str = "", width: int = ABSENT, precision: int = ABSENT) -> str:
    """Cut and pad a string as `%s` does; the `0` flag pads with spaces as in the kernel.

    >>> format_text("abcdef", "-", 5, 3)
    'abc  '
    """
    if precision >= 0:
        text = text[:precision]
    if len(text) >= width:
        return text
    return text.ljust(width) if "-" in flags else text.rjust(width)
