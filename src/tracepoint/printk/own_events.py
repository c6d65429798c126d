"""The tracer's own events (system `ftrace`), which the kernel prints by functions of their own.

kernel/trace/trace_output.c and trace_functions.c.  These lines have no `event_name: ` in front.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from tracepoint.named import NamedTuple
from tracepoint.printk import ops
from tracepoint.printk.symbols import ip_letters, symbol_text
from tracepoint.source.types import IntType

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.layout.format import EventFormat
    from tracepoint.printk.memory import RecordMemory

    Lower = Callable[[EventFormat, "OwnStyle"], ops.TextOp]

# What a stack has in place of an address of ftrace itself since Linux 6.3: FTRACE_TRAMPOLINE_MARKER.
_TRAMPOLINE_MARK, _TRAMPOLINE = 0x7FFFFFFF, "[FTRACE TRAMPOLINE]"
_LETTERS = "RSDTtXZPI"
#: The states of tasks in `context_switch` and `wakeup`.
SWITCH_STATES = tuple((number, ops.Literal(letter)) for number, letter in enumerate(_LETTERS))
_INTEGER_SIZES = (1, 2, 4, 8)


class OwnStyle(NamedTuple):
    """How the tracer's own events are shown.

    `has_parent`: functions with their callers (print-parent); `has_offset`, `has_address`: addresses with
    their offsets in functions, and as numbers (sym-offset, sym-addr); `is_message_only`: printed text without
    where it was printed.  `form` is `raw`, `hex`, `bin` or `fields`, for events of all systems; empty for the
    usual text.
    """

    has_parent: bool = True
    has_offset: bool = False
    has_address: bool = False
    is_message_only: bool = False
    form: str = ""

    def letters(self, long_size: int) -> str:
        """Return how addresses of so many bytes are shown, as `symbols.symbol_text` takes it."""
        return ip_letters(has_offset=self.has_offset, address_size=long_size * self.has_address)


#: The event that says how often a function was called in turn.
FUNC_REPEATS = "func_repeats"
#: What its text ends with: the time of the last call follows.
REPEATS_END = "last_ts:"
#: The events that function_graph shows as other tracers do: print_graph_function_flags().
NO_COMMENTS = ("function", "kernel_stack")
#: The events of printed text.
MESSAGES = ("print", "bprint", "bputs")
#: The print format of events of which a text of a trace is all that is known, beside some fields.
TEXT_FMT = '"%s", __get_str(text)'
#: What trace_options are set to from the start.
USUAL = OwnStyle()


def _number(form: EventFormat, name: str) -> ops.Load:
    field = form[name]
    return ops.Load(field.offset, IntType(field.size, is_signed=field.is_signed))


def _name(form: EventFormat, name: str, style: OwnStyle) -> ops.TextOp:
    """Lower an address that is shown as its function."""
    return ops.SymbolText(_number(form, name), style.letters(form.long_size))


def _after_name(form: EventFormat, text: ops.TextOp, style: OwnStyle) -> ops.TextOp:
    if style.is_message_only:
        return ops.WithoutNewline(text)
    return ops.WithoutNewline(ops.Joined((_name(form, "ip", style), ops.Literal(": "), text)))


def _machine(form: EventFormat) -> tuple[ops.NumberOp, ops.NumberOp]:
    return ops.Const(int(form.is_big_endian)), ops.Const(form.long_size)


def _print(form: EventFormat, style: OwnStyle) -> ops.TextOp:
    """`print`: what was written to trace_marker, or trace_printk() of a constant string."""
    return _after_name(form, ops.String(ops.At(form["buf"].offset)), style)


def _bputs(form: EventFormat, style: OwnStyle) -> ops.TextOp:
    address = _number(form, "str")
    missing = ops.Unknown("the string, which printk_formats would give")
    return _after_name(form, ops.IfText(address, ops.KernelString(address), missing), style)


def _bprint(form: EventFormat, style: OwnStyle) -> ops.TextOp:
    """`bprint`: trace_printk() with arguments."""
    arguments = (_number(form, "fmt"), ops.Const(form["buf"].offset), *_machine(form))
    return _after_name(form, ops.Call("stored_print", arguments), style)


def _raw_data(form: EventFormat, style: OwnStyle) -> ops.TextOp:
    del style
    number = ops.Number(_number(form, "id"), "x")
    data = ops.Call("raw_data", (ops.Const(form["buf"].offset),))
    return ops.Joined((ops.Literal("# "), number, ops.Literal(" buf:"), data))


def raw_data_text(record: RecordMemory, at: int) -> str:
    """Return the bytes from an offset on."""
    return "".join(f" {byte:02x}" for byte in record.data[at:])


def _function(form: EventFormat, style: OwnStyle) -> ops.TextOp:
    name = _name(form, "ip", style)
    if not style.has_parent:
        return name
    caller = ops.Joined((ops.Literal(" <-"), _name(form, "parent_ip", style)))
    return ops.Joined((name, ops.IfText(_number(form, "parent_ip"), caller, ops.Literal(""))))


def _repeats(form: EventFormat, style: OwnStyle) -> ops.TextOp:
    """`func_repeats`: a function that was called again; the time of the last call comes later."""
    return ops.Joined((_function(form, style), ops.Call("repeats", (_number(form, "count"),))))


def state_digits(record: RecordMemory, state: int, is_wide: int) -> str:
    """Return the letter of a task's state as the digits of a char or an int."""
    del record
    letter = _LETTERS[state] if 0 <= state < len(_LETTERS) else "?"
    return f"{ord(letter):0{8 if is_wide else 2}x} "


def repeats_text(record: RecordMemory, count: int) -> str:
    """Return how often a function was called again, up to the time of the last call."""
    del record
    return f" (repeats: {count}, {REPEATS_END}"


def _stack(form: EventFormat, style: OwnStyle) -> ops.TextOp:
    arguments = (ops.Const(form["caller"].offset), *_machine(form))
    letters = ops.Literal(style.letters(form.long_size))
    return ops.Call("kernel_stack", (*arguments, letters))


def _user_stack(form: EventFormat, style: OwnStyle) -> ops.TextOp:
    del style
    return ops.Call("user_stack", (ops.Const(form["caller"].offset), *_machine(form)))


def _addresses(record: RecordMemory, at: int, is_big: int, long_size: int) -> list[int]:
    data = record.data[at : at + (len(record.data) - at) // long_size * long_size]
    code = f"{'>' if is_big else '<'}{len(data) // long_size}{'Q' if long_size == 8 else 'I'}"
    return list(struct.unpack(code, data))


def kernel_stack_text(record: RecordMemory, at: int, is_big: int, long_size: int, letters: str) -> str:
    """Return the functions of the stack that is stored from an offset on; `letters` are `symbol_text`'s."""
    lines = ["<stack trace>"]
    for address in _addresses(record, at, is_big, long_size):
        if address == (1 << 8 * long_size) - 1:
            break
        name = _TRAMPOLINE if address == _TRAMPOLINE_MARK else symbol_text(record, address, letters)
        lines.append(f" => {name}")
    return "\n".join(lines)


def user_stack_text(record: RecordMemory, at: int, is_big: int, long_size: int) -> str:
    """Return the addresses of a process's stack that is stored from an offset on."""
    lines = ["<user stack trace>"]
    for address in _addresses(record, at, is_big, long_size)[:8]:
        if address == 0:
            break
        lines.append(f" =>  <{address:0{2 * long_size}x}>")
    return "\n".join(lines)


def _switch(arrow: str) -> Lower:
    """`context_switch` and `wakeup` of the latency tracers."""

    def lower(form: EventFormat, style: OwnStyle) -> ops.TextOp:
        del style

        def number(name: str, width: int, flags: str = "") -> ops.TextOp:
            return ops.Number(_number(form, name), "d", flags, ops.Const(width))

        def task(pid: str, prio: str, state: str) -> tuple[ops.TextOp, ...]:
            letter = ops.PickText(_number(form, state), SWITCH_STATES, ops.Literal("?"))
            colon = ops.Literal(":")
            return number(pid, 7), colon, number(prio, 3), colon, letter

        prev = task("prev_pid", "prev_prio", "prev_state")
        then = task("next_pid", "next_prio", "next_state")
        comm = ops.Call("comm", (_number(form, "next_pid"),))
        cpu = (ops.Literal(f" {arrow} ["), number("next_cpu", 3, "0"), ops.Literal("] "))
        return ops.Joined((ops.Literal(" "), *prev, *cpu, *then, ops.Literal(" "), comm))

    return lower


_SWITCH_NUMBERS = ("prev_pid", "prev_prio", "prev_state", "next_cpu", "next_pid", "next_prio", "next_state")
#: For each event its numbers, the array that it ends with, and what lowers it.
_EVENTS: dict[str, tuple[tuple[str, ...], str, Lower]] = {
    "print": (("ip",), "buf", _print),
    "bprint": (("ip", "fmt"), "buf", _bprint),
    "bputs": (("ip", "str"), "", _bputs),
    "raw_data": (("id",), "buf", _raw_data),
    "function": (("ip", "parent_ip"), "", _function),
    FUNC_REPEATS: (("ip", "parent_ip", "count", "top_delta_ts", "bottom_delta_ts"), "", _repeats),
    "kernel_stack": ((), "caller", _stack),
    "user_stack": ((), "caller", _user_stack),
    "context_switch": (_SWITCH_NUMBERS, "", _switch("==>")),
    "wakeup": (_SWITCH_NUMBERS, "", _switch("  +")),
}


def is_own_event(form: EventFormat) -> bool:
    """Return whether an event belongs to the tracer itself, and has its fields and not only their text."""
    return form.kernel_system == "ftrace" and form.print_fmt != TEXT_FMT


def lower_own_event(form: EventFormat, style: OwnStyle = USUAL) -> ops.TextOp | None:
    """Lower the line of one of the tracer's own events; None when its form is not known here."""
    numbers, array, lower = _EVENTS.get(form.name, ((), "", None))
    is_known = all(name in form and form[name].size in _INTEGER_SIZES for name in numbers)
    if lower is None or not is_known or (array and array not in form):
        return None
    return lower(form, style)
