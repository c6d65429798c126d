"""Syscall events as the kernel prints them, which is not what their print format says.

kernel/trace/trace_syscalls.c: print_syscall_enter(), print_syscall_exit().
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.printk import ops
from tracepoint.source.types import IntType

if TYPE_CHECKING:
    from tracepoint.layout.format import EventFormat, FieldFormat

_ENTER, _EXIT = "sys_enter_", "sys_exit_"


def is_syscall(form: EventFormat) -> bool:
    """Return whether an event is one of a system call: its first field is the number of the call.

    That is `__syscall_nr`, in old kernels `nr`: kernel/trace/trace_syscalls.c.
    """
    first = form.event_fields[0].name if form.event_fields else ""
    is_named = form.kernel_system == "syscalls" and form.name.startswith((_ENTER, _EXIT))
    return is_named and first in ("__syscall_nr", "nr")


def _shown(form: EventFormat, field: FieldFormat) -> ops.TextOp:
    size = field.size if field.size in (1, 2, 4, 8) else form.long_size
    return ops.Number(ops.Load(field.offset, IntType(size, is_signed=False)), "x")


def lower_syscall(form: EventFormat) -> ops.TextOp:
    """Lower `sys_name(argument: hex, ...)` or `sys_name -> 0xhex`."""
    fields = [field for field in form.event_fields[1:] if not field.is_data_loc]
    if form.name.startswith(_EXIT):
        if not fields:
            return ops.Unknown("the result, which the record lacks")
        head = ops.Literal(f"sys_{form.name.removeprefix(_EXIT)} -> 0x")
        return ops.Joined((head, _shown(form, fields[0])))
    parts: list[ops.TextOp] = []
    for number, field in enumerate(fields):
        parts += [ops.Literal(f"{', ' if number else ''}{field.name}: "), _shown(form, field)]
    head = ops.Literal(f"sys_{form.name.removeprefix(_ENTER)}(")
    return ops.Joined((head, *parts, ops.Literal(")")))
