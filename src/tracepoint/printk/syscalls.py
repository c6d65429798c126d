"""Syscall events as the kernel prints them, which is not what their print format says.

kernel/trace/trace_syscalls.c: print_syscall_enter(), print_syscall_exit().
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.printk.facts import UnknownPartError
from tracepoint.printk.values import unpacker
from tracepoint.source.cvalue import IntType

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.layout.format import EventFormat, FieldFormat
    from tracepoint.printk.values import Record

_ENTER, _EXIT = "sys_enter_", "sys_exit_"


def is_syscall(form: EventFormat) -> bool:
    """Whether an event is one of a system call (system `syscalls`)."""
    return form.system == "syscalls" and form.name.startswith((_ENTER, _EXIT))


def _reader(form: EventFormat, field: FieldFormat) -> Callable[[Record], int]:
    size = field.size if field.size in (1, 2, 4, 8) else form.long_size
    unpack = unpacker(IntType(size, is_signed=False), is_big_endian=form.is_big_endian)
    offset = field.offset
    return lambda record: unpack(record.data, offset)[0]


def compile_syscall(form: EventFormat) -> Callable[[Record], str]:
    """Compile `sys_name(argument: hex, ...)` or `sys_name -> 0xhex`."""
    # The first field is the number of the call: `__syscall_nr`, in old kernels `nr`.
    fields = [field for field in form.event_fields[1:] if not field.is_data_loc]
    readers = [_reader(form, field) for field in fields]
    if form.name.startswith(_EXIT):
        if not readers:

            def no_result(_: Record) -> str:
                raise UnknownPartError("the result, which the record lacks")

            return no_result
        result, name = readers[0], form.name.removeprefix(_EXIT)
        return lambda record: f"sys_{name} -> 0x{result(record):x}"
    arguments = ", ".join(f"{field.name}: %x" for field in fields)
    template = f"sys_{form.name.removeprefix(_ENTER)}({arguments})"
    return lambda record: template % tuple([read(record) for read in readers])
