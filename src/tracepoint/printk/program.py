"""A print format compiled for one event: done once, then run on every record.

The print format of tracefs holds the format string as the compiler read it: its escapes are
already characters, a quote in it is a bare quote, a newline a raw newline.  Only probes (kprobes,
uprobes, event probes) have quotes with a backslash: no compiler saw their print formats.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from tracepoint.errors import SourceError
from tracepoint.printk import operators
from tracepoint.printk.conversion import (
    ABSENT,
    STAR,
    Conversion,
    conversion_type,
    format_number,
    format_text,
    parse_format,
    split_width,
)
from tracepoint.printk.evaluate import Evaluator
from tracepoint.printk.facts import UnknownPartError
from tracepoint.printk.functions import compile_call
from tracepoint.printk.pointers import compile_pointer
from tracepoint.printk.special import compile_own_event, is_own_event
from tracepoint.printk.syscalls import compile_syscall, is_syscall
from tracepoint.printk.values import Value, constant, text_of, unknown
from tracepoint.source import ast
from tracepoint.source.cexpr import parse_arguments
from tracepoint.source.cvalue import INT
from tracepoint.wording import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tracepoint.layout.format import EventFormat
    from tracepoint.layout.structs import StructLayout
    from tracepoint.printk.structs import Layouts
    from tracepoint.printk.values import Record
    from tracepoint.source.lexer import Token

    Text = Callable[[Record], str]
    Number = Callable[[Record], int]

_MAX_WIDTH = 1 << 14


@dataclass(frozen=True, slots=True)
class PrintProgram:
    """What `render_record` runs.

    `needs` names, in plain words, what the record alone does not tell (functions of the kernel,
    `jiffies`, HZ); it is empty when every record of the event renders from its bytes.
    `is_named` tells whether the kernel puts `event_name: ` in front of the text.
    """

    format: EventFormat
    run: Text = field(repr=False, compare=False)
    needs: tuple[str, ...] = ()
    is_named: bool = True

    @property
    def is_complete(self) -> bool:
        """Whether every part of the print format was understood."""
        return not self.needs

    def __repr__(self) -> str:
        return f"<PrintProgram {one_line(f'{self.format.system}:{self.format.name}')}>"


def _no_constant(name: str) -> int | None:
    del name
    return None


def _no_layout(name: str) -> StructLayout | None:
    del name
    return None


def _latin(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("latin-1")


def split_print_format(text: str) -> tuple[str, tuple[ast.Node, ...]]:
    """Split the text after `print fmt: ` into format string (latin-1) and argument expressions.

    The string ends at the first quote after which everything parses and as many arguments
    stand as the format takes.  Raises `SourceError` when there is none.

    >>> split_print_format('"say "%d"", REC->a')[0]
    'say "%d"'
    """
    if not text.startswith('"'):
        raise SourceError("a print format begins with a quote")
    best: tuple[str, tuple[ast.Node, ...]] | None = None
    error: SourceError | None = None
    at = text.find('"', 1)
    while at > 0:
        rest = text[at + 1 :].lstrip()
        if not rest or rest.startswith(","):
            found = _latin(text[1:at]).replace(r"\"", '"')
            try:
                arguments = parse_arguments(rest[1:])
            except SourceError as caught:
                error = error or caught
            else:
                wanted = sum(p.n_arguments for p in parse_format(found) if isinstance(p, Conversion))
                if wanted == len(arguments):
                    return found, arguments
                best = best or (found, arguments)
        at = text.find('"', at + 1)
    if best is None:
        raise error or SourceError("the format string of a print format never ends")
    return best


def _split_source(source: str | Sequence[Token]) -> tuple[str, tuple[ast.Node, ...]]:
    """Split the C text of TP_printk: literals with escapes, then arguments."""
    nodes = parse_arguments(source)
    if not nodes or not isinstance(nodes[0], ast.String):
        raise SourceError("TP_printk does not begin with a string literal")
    if nodes[0].pieces:
        raise SourceError("TP_printk has a name in its format string")
    return nodes[0].value, nodes[1:]


class _Compiler:
    """Turns pieces and arguments into a template and the readers that fill it."""

    def __init__(self, evaluator: Evaluator, arguments: tuple[ast.Node, ...]) -> None:
        self.evaluator = evaluator
        self.arguments = list(arguments)
        self.template = ""
        self.readers: list[Callable[[Record], object]] = []

    def next_value(self) -> Value:
        if not self.arguments:
            return self.evaluator.unknown("an argument that the print format lacks")
        return self.evaluator.value(self.arguments.pop(0))

    def add(self, piece: str | Conversion) -> None:
        if isinstance(piece, str):
            self.template += piece.replace("%", "%%")
            return
        directive, reader = self.conversion(piece)
        self.template += directive
        self.readers.append(reader)

    def number(self, given: int) -> Number:
        """Compile a width or precision."""
        if given != STAR:
            return lambda _: given
        read = operators.converted(self.evaluator.as_integer(self.next_value()), INT).read

        def number(record: Record) -> int:
            value = max(-_MAX_WIDTH, min(_MAX_WIDTH, read(record)))
            # -1 would read as "no width"; one character to the left or to the right is the same.
            return 1 if value == ABSENT else value

        return number

    def conversion(self, piece: Conversion) -> tuple[str, Callable[[Record], object]]:
        width, precision = self.number(piece.width), self.number(piece.precision)
        value = self.next_value()
        match piece.conversion:
            case "d" | "i" | "u" | "x" | "X" | "o":
                return self.integer(piece, width, precision, value)
            case "s":
                return "%s", self.string(piece, width, precision, value)
            case "c":
                return "%s", self.character(piece, width, value)
            case "p":
                return "%s", compile_pointer(self.evaluator, piece, width, precision, value)
        return "%s", self.evaluator.unknown(f"the conversion {piece.text}").read

    def integer(
        self, piece: Conversion, width: Number, precision: Number, value: Value
    ) -> tuple[str, Callable[[Record], object]]:
        kind = conversion_type(piece, self.evaluator.long_size)
        read = operators.converted(self.evaluator.as_integer(value), kind).read
        letter = piece.conversion
        plain_flags = set(piece.flags) <= (set("-0+ ") if letter in "di" else set("-0"))
        if plain_flags and piece.precision == ABSENT and piece.width != STAR:
            digits = "" if piece.width == ABSENT else str(piece.width)
            return f"%{piece.flags}{digits}{'d' if letter in 'iu' else letter}", read
        flags = piece.flags

        def text(record: Record) -> str:
            marks, wide = split_width(width(record), flags)
            return format_number(read(record), letter, marks, wide, max(precision(record), ABSENT))

        return "%s", text

    def string(self, piece: Conversion, width: Number, precision: Number, value: Value) -> Text:
        has_limit = piece.precision != ABSENT

        def limit(record: Record) -> int:
            return max(precision(record), 0)

        read = text_of(value, limit if has_limit else None)
        if not has_limit and piece.width == ABSENT:
            return lambda record: _shown(read(record))
        flags = piece.flags

        def text(record: Record) -> str:
            marks, wide = split_width(width(record), flags)
            return format_text(_shown(read(record)), marks, wide, limit(record) if has_limit else ABSENT)

        return text

    def character(self, piece: Conversion, width: Number, value: Value) -> Text:
        read = self.evaluator.as_integer(value).read
        flags = piece.flags

        def text(record: Record) -> str:
            marks, wide = split_width(width(record), flags)
            return format_text(chr(read(record) & 0xFF), marks, wide)

        return text

    def finish(self) -> Text:
        template, readers = self.template, self.readers
        if not readers:
            text = template.replace("%%", "%")
            return lambda _: text
        if len(readers) == 1:
            only = readers[0]
            return lambda record: template % (only(record),)
        return lambda record: template % tuple([read(record) for read in readers])


def _shown(text: str | None) -> str:
    return "(null)" if text is None else text


def _never(reason: str) -> Text:
    def run(_: Record) -> NoReturn:
        raise UnknownPartError(reason)

    return run


def compile_print(
    form: EventFormat,
    *,
    constants: Callable[[str], int | None] | None = None,
    layouts: Layouts | None = None,
    source: str | Sequence[Token] | None = None,
) -> PrintProgram:
    r"""Compile an event's print format; never fails, what is not understood is in `needs`.

    `constants` gives the value of an enum constant left in the format, or None; `layouts` the
    layout of a struct by its C name (`struct drm_rect`), or None; `source` is the
    C text (or tokens) inside TP_printk, to be used instead of `form.print_fmt`.

    >>> from tracepoint.layout.format import EventFormat, FieldFormat
    >>> field = FieldFormat("a", "u32", 8, 4, is_signed=False)
    >>> form = EventFormat("demo", "one", (field,), '"a=%#x", REC->a', n_common=0)
    >>> from tracepoint.printk.render import render_record
    >>> str(render_record(compile_print(form), bytes(12)))
    'a=0x0'
    """
    if is_syscall(form):
        return PrintProgram(form, compile_syscall(form), is_named=False)
    if is_own_event(form):
        own = compile_own_event(form)
        reason = f"how the kernel prints ftrace:{form.name}"
        return PrintProgram(form, own or _never(reason), () if own else (reason,), is_named=False)
    evaluator = Evaluator(form, constants or _no_constant, layouts or _no_layout)
    evaluator.calls = compile_call
    # The output function that the format becomes has a variable of this name, and it is 1 there
    # (include/trace/trace_events.h: trace_raw_output_##call; TRACE_TYPE_HANDLED).
    evaluator.locals["ret"] = constant(1, INT)
    # And this one is the buffer that functions of a driver print into.
    evaluator.locals["p"] = unknown("the buffer of the line", evaluator.ulong)
    try:
        text, arguments = split_print_format(form.print_fmt) if source is None else _split_source(source)
        compiler = _Compiler(evaluator, arguments)
        for piece in parse_format(text):
            compiler.add(piece)
    except SourceError as error:
        reason = f"the print format: {error.message}"
        return PrintProgram(form, _never(reason), (reason,))
    return PrintProgram(form, compiler.finish(), tuple(dict.fromkeys(evaluator.reasons)))
