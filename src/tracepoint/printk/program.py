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
from tracepoint.printk.conversion import parse_format
from tracepoint.printk.expressions import Lowering
from tracepoint.printk.fields import fields_op
from tracepoint.printk.flatten import flatten
from tracepoint.printk.functions import lower_call
from tracepoint.printk.lower import lower_line
from tracepoint.printk.own_events import USUAL, OwnStyle, is_own_event
from tracepoint.printk.own_lines import is_unended, lower_own_line
from tracepoint.printk.printformat import split_print_format, split_source
from tracepoint.printk.syscalls import is_syscall, lower_syscall
from tracepoint.printk.twin.run import text_function
from tracepoint.printk.values import constant, unknown
from tracepoint.source import ast
from tracepoint.source.types import INT
from tracepoint.wording import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tracepoint.layout.format import EventFormat
    from tracepoint.layout.structs import StructLayout
    from tracepoint.printk.memory import RecordMemory
    from tracepoint.printk.packed import Flat
    from tracepoint.printk.scope import Layouts
    from tracepoint.source.lexer import Token


@dataclass(frozen=True)
class PrintProgram:
    """What `render_record` runs: `op` gives the line, and `print(program)` shows one instruction a line.

    `needs` names, in plain words, what the record alone does not tell (functions of the kernel,
    `jiffies`, HZ); it is empty when every record of the event renders from its bytes.
    `is_named` says whether the kernel puts `event_name: ` in front of the text, `is_line` whether a newline
    behind it.
    """

    format: EventFormat
    op: ops.TextOp
    needs: tuple[str, ...] = ()
    is_named: bool = True
    is_line: bool = True

    @property
    def is_complete(self) -> bool:
        """Whether every part of the print format was understood."""
        return not self.needs

    @property
    def machine(self) -> ops.RecordMachine:
        """Where the records were made."""
        return ops.RecordMachine(self.format.is_big_endian, self.format.long_size)

    @cached_property
    def run(self) -> Callable[[RecordMemory], str | None]:
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


def compile_print(
    form: EventFormat,
    *,
    constants: Callable[[str], int | None] | None = None,
    layouts: Layouts | None = None,
    source: str | Sequence[Token] | None = None,
    own: OwnStyle = USUAL,
) -> PrintProgram:
    r"""Compile an event's print format; never fails, what is not understood is in `needs`.

    `constants` gives the value of an enum constant left in the format, or None; `layouts` the
    layout of a struct by its C name (`struct drm_rect`), or None; `source` is the
    C text (or tokens) inside TP_printk, to be used instead of `form.print_fmt`; `own` is how the
    tracer's own events are shown.

    >>> from tracepoint.layout.format import EventFormat, FieldFormat
    >>> field = FieldFormat("a", "u32", 8, 4, is_signed=False)
    >>> form = EventFormat("demo", "one", (field,), '"a=%#x", REC->a', n_common=0)
    >>> from tracepoint.printk.render import render_record
    >>> str(render_record(compile_print(form), bytes(12)))
    'a=0x0'
    """
    if is_syscall(form) and not own.form:
        return PrintProgram(form, lower_syscall(form), is_named=False)
    lowering = Lowering(form, constants or _no_constant, layouts or _no_layout, lower_call)
    if is_own_event(form) or own.form:
        return _compile_own(lowering, own)
    # The output function that the format becomes has a variable of this name, and it is 1 there
    # (include/trace/trace_events.h: trace_raw_output_##call; TRACE_TYPE_HANDLED).
    lowering.locals["ret"] = constant(1, INT)
    # And this one is the buffer that functions of a driver print into.
    lowering.locals["p"] = unknown("the buffer of the line", lowering.ulong)
    try:
        text, arguments = split_print_format(form.print_fmt) if source is None else split_source(source)
        op = lower_line(lowering, parse_format(text), arguments)
    except SourceError as error:
        reason = f"the print format: {error.message}"
        return PrintProgram(form, ops.Unknown(reason), (reason,))
    return PrintProgram(form, op, tuple(dict.fromkeys(lowering.reasons)))


def _compile_own(lowering: Lowering, own: OwnStyle) -> PrintProgram:
    """Compile the line of an event that the tracer makes itself."""
    form = lowering.form
    line = lower_own_line(lowering, own)
    reason = f"how the kernel prints ftrace:{form.name}"
    needs = () if line else (reason,)
    is_line = not is_unended(form, own)
    return PrintProgram(form, line or ops.Unknown(reason), needs, is_named=False, is_line=is_line)


def compile_labels(form: EventFormat, name: str) -> PrintProgram | None:
    r"""Compile what an event's print format says of the value of one field; None when it names no values.

    That is every argument that looks at no other field and can be a string: `__print_symbolic()`,
    `__print_flags()`, a choice between strings.

    >>> from tracepoint.layout.format import EventFormat, FieldFormat
    >>> from tracepoint.printk.render import render_record
    >>> field = FieldFormat("vec", "unsigned int", 8, 4, is_signed=False)
    >>> text = '"vec=%u [action=%s]", REC->vec, __print_symbolic(REC->vec, { 0, "HI" }, { 1, "TIMER" })'
    >>> program = compile_labels(EventFormat("irq", "softirq_entry", (field,), text, n_common=0), "vec")
    >>> str(render_record(program, bytes(8) + b"\1\0\0\0"))
    'TIMER'
    """
    try:
        _, arguments = split_print_format(form.print_fmt)
    except SourceError:
        return None
    chosen = [node for node in arguments if _fields_in(node) == {name} and _has_string(node)]
    if not chosen:
        return None
    lowering = Lowering(form, _no_constant, _no_layout, lower_call)
    op = lower_line(lowering, parse_format("%s" * len(chosen)), chosen)
    return None if lowering.reasons else PrintProgram(form, op, is_named=False)


def _fields_in(node: ast.Node) -> set[str]:
    return {n.name for n in ast.walk(node) if isinstance(n, ast.Member) and n.base == ast.Name("REC")}


def _has_string(node: ast.Node) -> bool:
    return any(isinstance(n, ast.String) for n in ast.walk(node))
