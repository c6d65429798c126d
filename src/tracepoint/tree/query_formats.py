"""Formats of a tree's events, made of what the index keeps.

A module of its own because most questions need no format, and importing layouts takes time.
"""

from __future__ import annotations

from typing import Any

from tracepoint.layout.compute import COMMON_FIELDS
from tracepoint.layout.format import EventFormat, FieldFormat
from tracepoint.tree.store import SYSCALLS

_WORD_SIZE = 8


def event_format(system: str, name: str, row: list[Any]) -> EventFormat:
    """Make the format of an event from a stored layout: fields, size in bytes, print format."""
    fields, size, print_fmt = row
    own = tuple(FieldFormat(n, c, o, s, is_signed=bool(g)) for n, c, o, s, g in fields)
    common = COMMON_FIELDS
    return EventFormat(system, name, (*common, *own), print_fmt, size_bytes=size, n_common=len(common))


def syscall_formats(name: str, params: list[list[str]]) -> tuple[EventFormat, EventFormat]:
    """Return the formats of the enter and exit events of a system call on a 64-bit kernel.

    They are made at run time, by kernel/trace/trace_syscalls.c: syscall_enter_define_fields(),
    __set_enter_print_fmt(), syscall_exit_define_fields().

    >>> syscall_formats("close", [["unsigned int", "fd"]])[0].print_fmt
    '"fd: 0x%08lx", ((unsigned long)(REC->fd))'
    """
    number = FieldFormat("__syscall_nr", "int", 8, 4, is_signed=True)
    fields = [
        FieldFormat(param, ctype, 16 + index * _WORD_SIZE, _WORD_SIZE, is_signed=False)
        for index, (ctype, param) in enumerate(params)
    ]
    shown = ", ".join(f"{param}: 0x%08lx" for _, param in params)
    values = "".join(f", ((unsigned long)(REC->{param}))" for _, param in params)
    enter = EventFormat(
        SYSCALLS, f"sys_enter_{name}", (*COMMON_FIELDS, number, *fields), f'"{shown}"{values}'
    )
    returned = FieldFormat("ret", "long", 16, 8, is_signed=True)
    out = EventFormat(SYSCALLS, f"sys_exit_{name}", (*COMMON_FIELDS, number, returned), '"0x%lx", REC->ret')
    return enter, out
