"""The tracer's own events (system `ftrace`), which the kernel prints by functions of their own.

kernel/trace/trace_output.c and trace_functions.c.  These lines have no `event_name: ` in front.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from tracepoint.printk.binary import binary_text
from tracepoint.printk.facts import UnknownPartError
from tracepoint.printk.values import c_string, unpacker
from tracepoint.source.cvalue import IntType

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.layout.format import EventFormat
    from tracepoint.printk.values import Record

    Text = Callable[[Record], str]

_STATES = "RSDTtXZPI"


def _name_of(record: Record, address: int) -> str:
    """Return an address as seq_print_ip_sym() does with neither offset nor address asked for."""
    if address == 0:
        return "0"
    table = record.facts.kallsyms
    if table is None:
        record.note("symbols are not known (no kallsyms): addresses are shown instead")
        return f"0x{address:08x}"
    found = table.lookup(address)
    return found.name if found and found.is_sure else f"0x{address:08x}"


def _number(form: EventFormat, name: str) -> Callable[[Record], int]:
    field = form[name]
    kind = IntType(field.size, is_signed=field.is_signed)
    unpack = unpacker(kind, is_big_endian=form.is_big_endian)
    offset = field.offset
    return lambda record: unpack(record.data, offset)[0]


def _print(form: EventFormat) -> Text:
    """`print`: what was written to trace_marker, or trace_printk() of a constant string."""
    ip, at = _number(form, "ip"), form["buf"].offset

    def read(record: Record) -> str:
        return f"{_name_of(record, ip(record))}: {c_string(record.data, at)}".removesuffix("\n")

    return read


def _bputs(form: EventFormat) -> Text:
    ip, address = _number(form, "ip"), _number(form, "str")

    def read(record: Record) -> str:
        text = record.facts.printk_formats.get(address(record))
        if text is None:
            raise UnknownPartError("the string, which printk_formats would give")
        return f"{_name_of(record, ip(record))}: {text}".removesuffix("\n")

    return read


def _bprint(form: EventFormat) -> Text:
    """`bprint`: trace_printk() with arguments."""
    ip, address, at = _number(form, "ip"), _number(form, "fmt"), form["buf"].offset

    def read(record: Record) -> str:
        fmt = record.facts.printk_formats.get(address(record))
        if fmt is None:
            raise UnknownPartError("the format, which printk_formats would give")
        return f"{_name_of(record, ip(record))}: {binary_text(form, record, fmt, at)}".removesuffix("\n")

    return read


def _raw_data(form: EventFormat) -> Text:
    number, at = _number(form, "id"), form["buf"].offset

    def read(record: Record) -> str:
        return f"# {number(record):x} buf:" + "".join(f" {byte:02x}" for byte in record.data[at:])

    return read


def _function(form: EventFormat) -> Text:
    ip, parent = _number(form, "ip"), _number(form, "parent_ip")

    def read(record: Record) -> str:
        text = _name_of(record, ip(record))
        caller = parent(record)
        return f"{text} <-{_name_of(record, caller)}" if caller else text

    return read


def _addresses(form: EventFormat, record: Record, at: int) -> list[int]:
    size = form.long_size
    data = record.data[at : at + (len(record.data) - at) // size * size]
    code = f"{'>' if form.is_big_endian else '<'}{len(data) // size}{'Q' if size == 8 else 'I'}"
    return list(struct.unpack(code, data))


def _kernel_stack(form: EventFormat) -> Text:
    at = form["caller"].offset
    last = (1 << 8 * form.long_size) - 1

    def read(record: Record) -> str:
        lines = ["<stack trace>"]
        for address in _addresses(form, record, at):
            if address == last:
                break
            lines.append(f" => {_name_of(record, address)}")
        return "\n".join(lines)

    return read


def _user_stack(form: EventFormat) -> Text:
    at = form["caller"].offset

    def read(record: Record) -> str:
        lines = ["<user stack trace>"]
        for address in _addresses(form, record, at)[:8]:
            if address == 0:
                break
            lines.append(f" =>  <{address:0{2 * form.long_size}x}>")
        return "\n".join(lines)

    return read


def _switch(arrow: str) -> Callable[[EventFormat], Text]:
    """`context_switch` and `wakeup` of the latency tracers."""

    def compile_it(form: EventFormat) -> Text:
        names = ("prev_pid", "prev_prio", "prev_state", "next_cpu", "next_pid", "next_prio", "next_state")
        readers = [_number(form, name) for name in names]

        def read(record: Record) -> str:
            prev, prev_prio, prev_state, cpu, pid, prio, state = (reader(record) for reader in readers)
            comm = "<idle>" if pid == 0 else record.facts.comms.get(pid)
            if comm is None:
                record.note(f"the command of pid {pid} is not known")
                comm = "<...>"
            states = [_STATES[s] if s < len(_STATES) else "?" for s in (prev_state, state)]
            return (
                f" {prev:7d}:{prev_prio:3d}:{states[0]} {arrow} "
                f"[{cpu:03d}] {pid:7d}:{prio:3d}:{states[1]} {comm}"
            )

        return read

    return compile_it


_COMPILERS: dict[str, tuple[tuple[str, ...], Callable[[EventFormat], Text]]] = {
    "print": (("ip", "buf"), _print),
    "bprint": (("ip", "fmt", "buf"), _bprint),
    "bputs": (("ip", "str"), _bputs),
    "raw_data": (("id", "buf"), _raw_data),
    "function": (("ip", "parent_ip"), _function),
    "kernel_stack": (("caller",), _kernel_stack),
    "user_stack": (("caller",), _user_stack),
    "context_switch": (("prev_pid", "next_state", "next_cpu"), _switch("==>")),
    "wakeup": (("prev_pid", "next_state", "next_cpu"), _switch("  +")),
}


def is_own_event(form: EventFormat) -> bool:
    """Whether an event belongs to the tracer itself."""
    return form.system == "ftrace"


def compile_own_event(form: EventFormat) -> Text | None:
    """Compile the line of one of the tracer's own events; None when its form is not known here."""
    needed, compiler = _COMPILERS.get(form.name, ((), None))
    if compiler is None or any(name not in form for name in needed):
        return None
    return compiler(form)
