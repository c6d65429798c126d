"""The tracer's own events (system `ftrace`), which the kernel prints by functions of their own.

kernel/trace/trace_output.c and trace_functions.c.  These lines have no `event_name: ` in front.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from tracepoint.printk import ops
from tracepoint.printk.symbols import IP, symbol_text
from tracepoint.source.types import IntType

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.layout.format import EventFormat
    from tracepoint.printk.memory import Record

    Lower = Callable[[EventFormat], ops.TextOp]

_STATES = tuple((number, ops.Literal(letter)) for number, letter in enumerate("RSDTtXZPI"))
_INTEGER_SIZES = (1, 2, 4, 8)


def _number(form: EventFormat, name: str) -> ops.Load:
    field = form[name]
    return ops.Load(field.offset, IntType(field.size, is_signed=field.is_signed))


def _name(form: EventFormat, name: str) -> ops.TextOp:
    """Lower an address that is shown as its function."""
    return ops.Symbol(_number(form, name), IP)


def _after_name(form: EventFormat, text: ops.TextOp) -> ops.TextOp:
    return ops.WithoutNewline(ops.Joined((_name(form, "ip"), ops.Literal(": "), text)))


def _machine(form: EventFormat) -> tuple[ops.NumberOp, ops.NumberOp]:
    return ops.Const(int(form.is_big_endian)), ops.Const(form.long_size)


def _print(form: EventFormat) -> ops.TextOp:
    """`print`: what was written to trace_marker, or trace_printk() of a constant string."""
    return _after_name(form, ops.String(ops.At(form["buf"].offset)))


def _bputs(form: EventFormat) -> ops.TextOp:
    address = _number(form, "str")
    missing = ops.Unknown("the string, which printk_formats would give")
    return _after_name(form, ops.IfText(address, ops.KernelString(address), missing))


def _bprint(form: EventFormat) -> ops.TextOp:
    """`bprint`: trace_printk() with arguments."""
    arguments = (_number(form, "fmt"), ops.Const(form["buf"].offset), *_machine(form))
    return _after_name(form, ops.Call("stored_print", arguments))


def _raw_data(form: EventFormat) -> ops.TextOp:
    number = ops.Number(_number(form, "id"), "x")
    data = ops.Call("raw_data", (ops.Const(form["buf"].offset),))
    return ops.Joined((ops.Literal("# "), number, ops.Literal(" buf:"), data))


def raw_data_text(record: Record, at: int) -> str:
    """Return the bytes from an offset on."""
    return "".join(f" {byte:02x}" for byte in record.data[at:])


def _function(form: EventFormat) -> ops.TextOp:
    caller = ops.Joined((ops.Literal(" <-"), _name(form, "parent_ip")))
    has_caller = _number(form, "parent_ip")
    return ops.Joined((_name(form, "ip"), ops.IfText(has_caller, caller, ops.Literal(""))))


def _stack(function: str) -> Lower:
    return lambda form: ops.Call(function, (ops.Const(form["caller"].offset), *_machine(form)))


def _addresses(record: Record, at: int, is_big: int, long_size: int) -> list[int]:
    data = record.data[at : at + (len(record.data) - at) // long_size * long_size]
    code = f"{'>' if is_big else '<'}{len(data) // long_size}{'Q' if long_size == 8 else 'I'}"
    return list(struct.unpack(code, data))


def kernel_stack_text(record: Record, at: int, is_big: int, long_size: int) -> str:
    """Return the functions of the stack that is stored from an offset on."""
    lines = ["<stack trace>"]
    for address in _addresses(record, at, is_big, long_size):
        if address == (1 << 8 * long_size) - 1:
            break
        lines.append(f" => {symbol_text(record, address, IP)}")
    return "\n".join(lines)


def user_stack_text(record: Record, at: int, is_big: int, long_size: int) -> str:
    """Return the addresses of a process's stack that is stored from an offset on."""
    lines = ["<user stack trace>"]
    for address in _addresses(record, at, is_big, long_size)[:8]:
        if address == 0:
            break
        lines.append(f" =>  <{address:0{2 * long_size}x}>")
    return "\n".join(lines)


def _switch(arrow: str) -> Lower:
    """`context_switch` and `wakeup` of the latency tracers."""

    def lower(form: EventFormat) -> ops.TextOp:
        def number(name: str, width: int, flags: str = "") -> ops.TextOp:
            return ops.Number(_number(form, name), "d", flags, ops.Const(width))

        def task(pid: str, prio: str, state: str) -> tuple[ops.TextOp, ...]:
            letter = ops.PickText(_number(form, state), _STATES, ops.Literal("?"))
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
    "kernel_stack": ((), "caller", _stack("kernel_stack")),
    "user_stack": ((), "caller", _stack("user_stack")),
    "context_switch": (_SWITCH_NUMBERS, "", _switch("==>")),
    "wakeup": (_SWITCH_NUMBERS, "", _switch("  +")),
}


def is_own_event(form: EventFormat) -> bool:
    """Return whether an event belongs to the tracer itself."""
    return form.system == "ftrace"


def lower_own_event(form: EventFormat) -> ops.TextOp | None:
    """Lower the line of one of the tracer's own events; None when its form is not known here."""
    numbers, array, lower = _EVENTS.get(form.name, ((), "", None))
    is_known = all(name in form and form[name].size in _INTEGER_SIZES for name in numbers)
    if lower is None or not is_known or (array and array not in form):
        return None
    return lower(form)
