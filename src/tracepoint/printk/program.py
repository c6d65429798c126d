"""A print format compiled for one event: done once, then run on every record.

The print format of tracefs holds the format string as the compiler read it: its escapes are
already characters, a quote in it is a bare quote, a newline a raw newline.  Only probes (kprobes,
uprobes, event probes) have quotes with a backslash: no compiler saw their print formats.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tracepoint.errors import SourceError
from tracepoint.printk import ops
from tracepoint.printk.calls import CALLS
from tracepoint.printk.conversion import Conversion, parse_format
from tracepoint.printk.expressions import Lowering
from tracepoint.printk.fields import fields_op
from tracepoint.printk.flatten import flatten
from tracepoint.printk.functions import lower_call
from tracepoint.printk.lower import lower_line
from tracepoint.printk.own_events import is_own_event, lower_own_event
from tracepoint.printk.syscalls import is_syscall, lower_syscall
from tracepoint.printk.twin.run import text_function
from tracepoint.printk.values import constant, unknown
from tracepoint.source import ast
from tracepoint.source.cexpr import parse_arguments
from tracepoint.source.types import INT
from tracepoint.wording import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tracepoint.layout.format import EventFormat
    from tracepoint.layout.structs import StructLayout
    from tracepoint.printk.memory import Record
    from tracepoint.printk.packed import Flat
    from tracepoint.printk.structs import Layouts
    from tracepoint.source.lexer import Token


@dataclass(frozen=True)
class PrintProgram:
    """What `render_record` runs: `op` gives the line, and `print(program)` shows one instruction a line.

    `needs` names, in plain words, what the record alone does not tell (functions of the kernel,
    `jiffies`, HZ); it is empty when every record of the event renders from its bytes.
    `is_named` says whether the kernel puts `event_name: ` in front of the text.
    """

    format: EventFormat
    op: ops.TextOp
    needs: tuple[str, ...] = ()
    is_named: bool = True

    @property
    def is_complete(self) -> bool:
        """Whether every part of the print format was understood."""
        return not self.needs

    @property
    def machine(self) -> ops.Machine:
        """Where the records were made."""
        return ops.Machine(self.format.is_big_endian, self.format.long_size)

    @cached_property
    def run(self) -> Callable[[Record], str | None]:
        """The program in Python."""
        return text_function(self.op, self.machine, CALLS)

    @cached_property
    def ops(self) -> Flat:
        """The program as instructions, one a line when printed."""
        return flatten(self.op, self.machine, fields_op(self.format))

    @cached_property
    def packed(self) -> bytes:
        """The instructions as the C reader takes them."""
        return self.ops.pack()

    def __str__(self) -> str:
        return str(self.ops)

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
        return PrintProgram(form, lower_syscall(form), is_named=False)
    if is_own_event(form):
        own = lower_own_event(form)
        reason = f"how the kernel prints ftrace:{form.name}"
        return PrintProgram(form, own or ops.Unknown(reason), () if own else (reason,), is_named=False)
    lowering = Lowering(form, constants or _no_constant, layouts or _no_layout, lower_call)
    # The output function that the format becomes has a variable of this name, and it is 1 there
    # (include/trace/trace_events.h: trace_raw_output_##call; TRACE_TYPE_HANDLED).
    lowering.locals["ret"] = constant(1, INT)
    # And this one is the buffer that functions of a driver print into.
    lowering.locals["p"] = unknown("the buffer of the line", lowering.ulong)
    try:
        text, arguments = split_print_format(form.print_fmt) if source is None else _split_source(source)
        op = lower_line(lowering, parse_format(text), arguments)
    except SourceError as error:
        reason = f"the print format: {error.message}"
        return PrintProgram(form, ops.Unknown(reason), (reason,))
    return PrintProgram(form, op, tuple(dict.fromkeys(lowering.reasons)))
