"""The arguments of an event probe: `NAME=$field:TYPE`, what each fetches and how it is stored.

Grammar, order of checks, words and places of carets: kernel/trace/trace_probe.c,
traceprobe_parse_probe_arg() and parse_probe_arg().
"""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.filter.numbers import read_s64, read_u64

if TYPE_CHECKING:
    from tracepoint.layout.format import EventFormat, FieldFormat

HEAD = 8
WORD = 8
MAX_NAME, MAX_EXPRESSION, MAX_COUNT, MAX_SIZE = 32, 63, 64, 3072
# FETCH_INSN_MAX is 16: one fetches and one ends.
MAX_DEREFERENCES = 14
LOCATION = "__data_loc char[]"
NO_MEMORY = "There is no kernel memory here, only the record"
NO_ADDRESS = "A text has no address here: fetch it as string, or from it with +0(...)"
GOOD_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
RESERVED = frozenset(
    "common_type common_flags common_preempt_count common_pid common_tgid "
    "__probe_ip __probe_ret_ip __probe_func".split()
)
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*")
_BITFIELD = re.compile(r"b(0[xX][0-9a-fA-F]+|[0-9]+)@(0[xX][0-9a-fA-F]+|[0-9]+)/")


class EventProbeError(Exception):
    """A definition that is refused: (text, offset) of each entry for the log, and the errno."""

    def __init__(self, text: str = "", offset: int = 0, number: int = errno.EINVAL) -> None:
        super().__init__(text)
        self.entries = [(text, offset)] if text else []
        self.number = number

    def also(self, text: str, offset: int) -> EventProbeError:
        """Add an entry and return itself."""
        self.entries.append((text, offset))
        return self


@dataclass(frozen=True, slots=True)
class FetchType:
    """A type: its bytes in the record, its sign, how it is printed and what `format` calls it."""

    name: str
    n_bytes: int
    is_signed: bool
    printed: str
    shown: str

    @property
    def is_text(self) -> bool:
        """Whether the values are texts after the fixed part."""
        return self.shown == LOCATION


def _number_type(letter: str, bits: int) -> FetchType:
    long = "L" if bits == 64 else ""
    printed = f"0x%{long}x" if letter == "x" else f"%{long}{'d' if letter == 's' else 'u'}"
    shown = f"{'u' if letter == 'x' else letter}{bits}"
    return FetchType(f"{letter}{bits}", bits // 8, letter == "s", printed, shown)


_QUOTED = r"\"%s\""
_TYPES = {
    kind.name: kind
    for kind in (
        FetchType("string", 4, is_signed=True, printed=_QUOTED, shown=LOCATION),
        FetchType("ustring", 4, is_signed=True, printed=_QUOTED, shown=LOCATION),
        FetchType("symbol", 8, is_signed=False, printed="%pS", shown="u64"),
        *(_number_type(letter, bits) for letter in "usx" for bits in (8, 16, 32, 64)),
    )
}


@dataclass(frozen=True, slots=True)
class FieldOperand:
    """A field of the record."""

    place: FieldFormat

    @property
    def is_text(self) -> bool:
        """Whether the kernel takes its address, and not its value: is_string_field()."""
        ctype = self.place.ctype
        return "char" in ctype and (self.place.is_data_loc or "[" in ctype)


@dataclass(frozen=True, slots=True)
class Comm:
    """The name of the thread."""

    is_text = True


@dataclass(frozen=True, slots=True)
class Quoted:
    """A text of the definition."""

    text: str
    is_text = True


@dataclass(frozen=True, slots=True)
class Fixed:
    """A number of the definition, or an address."""

    value: int
    is_text = False


@dataclass(frozen=True, slots=True)
class VariableOperand:
    """`$name`, before it is known what has this name."""

    name: str
    is_text = False


Source = FieldOperand | Comm | Quoted | Fixed | VariableOperand


@dataclass(frozen=True, slots=True)
class Fetch:
    """Where a value comes from; `steps` are dereferences, innermost first: (bytes, is it a user's)."""

    source: Source
    steps: tuple[tuple[int, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class ProbeArg:
    """One argument.

    `expression` is its text; `offset` counts bytes from the begin of the record; `count` is the number of
    elements, 0 for no array; `bits` are the shifts to the left and right of a bit field.
    """

    name: str
    expression: str
    kind: FetchType
    offset: int
    count: int
    fetch: Fetch
    bits: tuple[int, int] | None

    @property
    def n_bytes(self) -> int:
        """What it takes of the fixed part."""
        return self.kind.n_bytes * max(self.count, 1)

    @property
    def ctype(self) -> str:
        """What `format` shows: the number of elements is left out."""
        return f"{self.kind.shown}[]" if self.count else self.kind.shown


def parse_args(words: list[str], event: EventFormat) -> tuple[ProbeArg, ...]:
    """Read the arguments of a probe on an event; raises ProbeError, its offsets count from the first word.

    >>> from tracepoint.layout.format import EventFormat, FieldFormat
    >>> event = EventFormat("s", "e", (FieldFormat("n", "int", 8, 4, True),), "", n_common=0)
    >>> [(arg.name, arg.kind.name, arg.offset) for arg in parse_args(["a=$n:u8", "$n"], event)]
    [('a', 'u8', 8), ('arg2', 'x64', 9)]
    """
    made: list[ProbeArg] = []
    at = 0
    for number, word in enumerate(words, 1):
        offset = made[-1].offset + made[-1].n_bytes if made else HEAD
        try:
            made.append(_parse_arg(word, number, {arg.name for arg in made}, offset, event))
        except EventProbeError as error:
            error.entries = [(text, at + place) for text, place in error.entries]
            raise
        at += len(word) + 1
    return tuple(made)


def _parse_arg(word: str, number: int, used: set[str], offset: int, event: EventFormat) -> ProbeArg:
    name, equals, body = word.partition("=")
    if equals and len(name) > MAX_NAME:
        raise EventProbeError("Argument name is too long")
    if equals and not name:
        raise EventProbeError("Argument name is not specified")
    if not equals:
        name, body = f"arg{number}", word
    if GOOD_NAME.fullmatch(name) is None:
        raise EventProbeError("Argument name must follow the same rules as C identifiers")
    if name in RESERVED or name in used:
        raise EventProbeError("This argument name is already used")
    start = len(word) - len(body)
    if len(body) > MAX_EXPRESSION:
        raise EventProbeError("Argument expression is too long", start)
    if not body:
        raise EventProbeError("No argument expression", start)
    return _Body(body, start, event).read(name, offset)


@dataclass(slots=True)
class _Body:
    """The text after `=`: traceprobe_parse_probe_arg_body(); `start` is where it begins in its word."""

    text: str
    start: int
    event: EventFormat

    def read(self, name: str, offset: int) -> ProbeArg:
        text, colon, type_text = self.text.partition(":")
        at = self.start + len(text) + 1 if colon else self.start
        type_name, count = self._array(type_text, at) if colon else ("x64", 0)
        kind = _find_type(type_name)
        if kind is None:
            raise EventProbeError("Unknown type is specified", at)
        if offset - HEAD + kind.n_bytes * max(count, 1) > MAX_SIZE:
            raise EventProbeError("Event too big (too many fields?)", self.start, errno.E2BIG)
        fetch = _fetch(text, self.start)
        bits = self._bits(type_name, kind, at)
        if count and not (kind.is_text or (fetch.steps and not fetch.steps[-1][1])):
            raise EventProbeError("String accepts only memory argument", at)
        found = Fetch(_resolve(fetch.source, self.event), fetch.steps)
        _check_reachable(found, kind, count, self.start)
        return ProbeArg(name, self.text, kind, offset, count, found, bits)

    @staticmethod
    def _array(text: str, at: int) -> tuple[str, int]:
        name, bracket, rest = text.partition("[")
        if not bracket:
            return name, 0
        at += len(name) + 1
        digits, close, tail = rest.partition("]")
        if not close:
            raise EventProbeError("Array is not closed", at + len(rest))
        if tail:
            raise EventProbeError("Array has wrong suffix", at + len(digits) + 1)
        count = read_u64(digits.encode(errors="replace"))
        if not count or count >= 1 << 32:
            raise EventProbeError("Invalid array size", at)
        if count > MAX_COUNT:
            raise EventProbeError("Array number is too big", at)
        return name, count

    @staticmethod
    def _bits(name: str, kind: FetchType, at: int) -> tuple[int, int] | None:
        """Return the shifts of `b<width>@<offset>/<container>`: __parse_bitfield_probe_arg()."""
        if not name.startswith("b"):
            return None
        match = _BITFIELD.match(name)
        width, low = (read_u64(part.encode()) or 0 for part in match.groups()) if match else (0, 0)
        n_bits = 8 * kind.n_bytes
        if not width or width + low > n_bits:
            raise EventProbeError("Invalid bitfield", at)
        return n_bits - (width + low), n_bits - width


def _find_type(name: str) -> FetchType | None:
    """Find a type; a bit field is of its container's: find_fetch_type()."""
    if not name.startswith("b"):
        return _TYPES.get(name)
    size = read_u64(name.partition("/")[2].encode(errors="replace"))
    return _TYPES.get(f"u{size}")


def _fetch(text: str, offset: int) -> Fetch:
    """Read what is fetched: parse_probe_arg(); `offset` is where carets count from."""
    match text[:1]:
        case "$":
            return Fetch(VariableOperand(text[1:]))
        case "%":
            error = EventProbeError("Invalid $-variable specified", offset)
            raise error.also("Invalid fetch argument", offset)
        case "@":
            return _address(text[1:], offset)
        case "+" | "-":
            return _dereference(text, offset)
        case "\\":
            return Fetch(_immediate(text[1:], offset))
        case _:
            raise EventProbeError("Invalid fetch argument", offset)


def _address(text: str, offset: int) -> Fetch:
    if text[:1].isdecimal():
        value = read_u64(text.encode(errors="replace"))
        if value is None:
            raise EventProbeError("Invalid memory address", offset, _why_no_number(text))
        return Fetch(Fixed(value), ((0, False),))
    if text.startswith("+"):
        raise EventProbeError("File offset is not available with kprobe", offset)
    raise EventProbeError(NO_MEMORY, offset, errno.ENOENT)


def _dereference(text: str, offset: int) -> Fetch:
    """Read `[+|-][u]BYTES(INNER)`; the place after a `u` is one less than it is, as in the kernel."""
    is_user = text[1:2] == "u"
    text = (text[0] + text[2:] if is_user else text).removeprefix("+")
    digits, brace, rest = text.partition("(")
    if not brace:
        raise EventProbeError("Dereference needs a brace", offset)
    n_bytes = read_s64(digits.encode(errors="replace"))
    if n_bytes is None:
        raise EventProbeError("Invalid dereference offset", offset, _why_no_number(digits))
    offset += len(digits) + 1 + (not text.startswith("-"))
    inner, close, _ = rest.rpartition(")")
    if not close:
        raise EventProbeError("Dereference brace is not closed", offset + len(rest))
    found = _fetch(inner, offset)
    if isinstance(found.source, Quoted) and not found.steps:
        raise EventProbeError("$comm can not be dereferenced", offset)
    if len(found.steps) == MAX_DEREFERENCES:
        raise EventProbeError("Dereference is too much nested", offset)
    # The kernel keeps 32 bits of it.
    n_bytes = (n_bytes + (1 << 31)) % (1 << 32) - (1 << 31)
    return Fetch(found.source, (*found.steps, (n_bytes, is_user)))


def _immediate(text: str, offset: int) -> Source:
    """Read what follows a backslash: a number, or a text in quotes."""
    if text.startswith('"'):
        if len(text) < 2 or not text.endswith('"'):
            raise EventProbeError("String is not closed with '\"'", offset + 1 + len(text))
        return Quoted(text[1:-1])
    raw = text.removeprefix("+").encode(errors="replace")
    is_signed = text[:1] in ("-", "+")
    value = (read_s64(raw) if is_signed else read_u64(raw)) if text[:1].isdecimal() or is_signed else None
    if value is None:
        raise EventProbeError("Invalid immediate value", offset + 1, _why_no_number(text))
    return Fixed(value)


def _why_no_number(text: str) -> int:
    """Return ERANGE for digits that are too many, else EINVAL."""
    digits = text.removeprefix("+").removeprefix("-")
    is_number = _NUMBER.fullmatch(digits) is not None
    return errno.ERANGE if is_number else errno.EINVAL


def _resolve(source: Source, event: EventFormat) -> Source:
    """Look a `$name` up: trace_eprobe_tp_arg_update(); raises ProbeError (ENOENT)."""
    if not isinstance(source, VariableOperand):
        return source
    if any(place.name == source.name for place in event.event_fields):
        return FieldOperand(event[source.name])
    if source.name in ("comm", "COMM"):
        return Comm()
    raise EventProbeError("Attached event does not have this field", 0, errno.ENOENT)


def _check_reachable(fetch: Fetch, kind: FetchType, count: int, start: int) -> None:
    """Refuse what a kernel would read from its memory as a number: there is none that could be shown."""
    if kind.is_text:
        if count:
            raise EventProbeError(NO_MEMORY, start)
        return
    if fetch.source.is_text and not fetch.steps:
        raise EventProbeError(NO_ADDRESS, start)
    is_in_record = fetch.source.is_text and len(fetch.steps) == 1 and not fetch.steps[0][1]
    if fetch.steps and not is_in_record:
        raise EventProbeError(NO_MEMORY, start)
