"""Formats of a tree's events, from the data in the index.

A separate module because most queries need no format, and importing layouts takes time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.layout.format import COMMON_FIELDS, EventFormat, FieldFormat
from tracepoint.tree.index.store import SYSCALLS

if TYPE_CHECKING:
    from tracepoint.tree.index.rows import LayoutRow

_WORD_SIZE = 8


def event_format(system: str, name: str, row: LayoutRow) -> EventFormat:
    """Make the format of an event from a stored layout: fields, size in bytes, print format."""
    own = tuple(FieldFormat(n, c, o, s, is_signed=bool(g)) for n, c, o, s, g in row.fields)
    common = COMMON_FIELDS
    return EventFormat(
        system, name, (*common, *own), row.print_fmt, size_bytes=row.size_bytes, n_common=len(common)
    )


def syscall_formats(
    name: str, params: list[list[str]], copied: int = 0, *, is_text: bool = True
) -> tuple[EventFormat, EventFormat]:
    """Return the formats of the enter and exit events of a system call on a 64-bit kernel.

    `copied` is a mask of the arguments whose target in user space is recorded too, as text or as bytes.
    The kernel makes them at run time, in kernel/trace/trace_syscalls.c: syscall_enter_define_fields(),
    __set_enter_print_fmt(), syscall_exit_define_fields().

    >>> syscall_formats("close", [["unsigned int", "fd"]])[0].print_fmt
    '"fd: 0x%08lx", ((unsigned long)(REC->fd))'
    >>> syscall_formats("chdir", [["const char *", "path"]], 1)[0].fields[-1].name
    '__path_val'
    """
    number = FieldFormat("__syscall_nr", "int", 8, 4, is_signed=True)
    fields = [
        FieldFormat(param, ctype, 16 + index * _WORD_SIZE, _WORD_SIZE, is_signed=False)
        for index, (ctype, param) in enumerate(params)
    ]
    end = 16 + len(params) * _WORD_SIZE
    targets = [param for index, (_, param) in enumerate(params) if copied >> index & 1]
    copies = [
        FieldFormat(f"__{param}_val", "__data_loc char[]", end + 4 * index, 4, is_signed=False)
        for index, param in enumerate(targets)
    ]
    print_fmt = _enter_print_fmt([param for _, param in params], targets, is_text=is_text)
    own = (number, *fields, *copies)
    enter = EventFormat(SYSCALLS, f"sys_enter_{name}", (*COMMON_FIELDS, *own), print_fmt)
    returned = FieldFormat("ret", "long", 16, 8, is_signed=True)
    out = EventFormat(SYSCALLS, f"sys_exit_{name}", (*COMMON_FIELDS, number, returned), '"0x%lx", REC->ret')
    return enter, out


def _enter_print_fmt(params: list[str], targets: list[str], *, is_text: bool) -> str:
    shown, values = [], ""
    for param in params:
        values += f", ((unsigned long)(REC->{param}))"
        if param not in targets:
            shown.append(f"{param}: 0x%08lx")
        elif is_text:
            shown.append(f'{param}: 0x%08lx \\"%s\\"')
            values += f", __get_str(__{param}_val)"
        else:
            shown.append(f"{param}: 0x%08lx (%s)")
            values += f", __print_dynamic_array(__{param}_val, 1)"
    return f'"{", ".join(shown)}"{values}'
