"""System calls: each `SYSCALL_DEFINEn()` defines the events sys_enter_NAME and sys_exit_NAME.

Newer kernels (since 7.0) also record what some arguments point to; a function of the kernel decides
which ones, by the number of the call, and that function is parsed here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracepoint.source.brackets import find_close_in_text
from tracepoint.tree.callsites.text import read_code
from tracepoint.tree.index.rows import SyscallRow

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEFINE = re.compile(r"^SYSCALL_DEFINE([0-6])\s*\(\s*(\w+)", re.MULTILINE)
_USER = re.compile(r"\b__user\b")
_SPACE = re.compile(r"\s+")
#: The file that says what the kernel copies from user space, and the table of numbers and names.
COPIES = "kernel/trace/trace_syscalls.c"
TABLE = "arch/x86/entry/syscalls/syscall_64.tbl"
_COPIES_FUNCTION = re.compile(r"^static void check_faultable_syscall\b.*?^\}", re.MULTILINE | re.DOTALL)
_COPIES_PART = re.compile(
    r"case\s+__NR_(?P<number>\w+)\s*:|\bBIT\((?P<bit>\d+)\)|\buser_arg_is_str\s*=\s*(?P<text>\d)"
    r"|\buser_arg_size\s*=\s*(?P<size>\d+)|(?P<end>\bbreak\b|\bdefault\b)"
)
_TABLE_ROW = re.compile(r"^\d+\s+(?:common|64)\s+(\w+)\s+sys_(\w+)", re.MULTILINE)


def read_syscalls(text: str) -> Iterator[SyscallRow]:
    """Yield name, `[type, name]` of the parameters, and line of each system call defined in a C text.

    >>> list(read_syscalls("SYSCALL_DEFINE1(close, unsigned int, fd)"))
    [SyscallRow(name='close', params=[['unsigned int', 'fd']], line=1)]
    """
    code = read_code(text).code
    for match in _DEFINE.finditer(code):
        end = find_close_in_text(code, code.index("(", match.start()))
        # The macro __user is empty for the compiler, and therefore in the formats.
        inner = _USER.sub("", code[match.end() : max(end, 0)])
        parts = [_SPACE.sub(" ", part).strip() for part in inner.split(",")[1:]]
        n_params = int(match[1])
        if end < 0 or len(parts) != 2 * n_params:
            continue
        params = [[parts[2 * i], parts[2 * i + 1]] for i in range(n_params)]
        yield SyscallRow(match[2], params, code.count("\n", 0, match.start()) + 1)


def read_copied_arguments(text: str, table: str = "") -> dict[str, list[int]]:
    """Return which arguments of each system call point to what its enter event also records.

    `text` is the kernel's trace_syscalls.c, `table` the list of numbers, whose names sometimes differ from
    those of the functions.  The values are a mask of argument numbers and whether it is text (1) or
    bytes (0).

    >>> read_copied_arguments('''static void check_faultable_syscall(int nr) {
    ...     switch (nr) { case __NR_umount2: data->user_mask = BIT(0); break; default: return; }
    ... }''', "166 common umount2 sys_umount")
    {'umount': [1, 1]}
    """
    function = _COPIES_FUNCTION.search(read_code(text).code)
    functions = dict(_TABLE_ROW.findall(table))
    found: dict[str, list[int]] = {}
    names: list[str] = []
    mask, has_size, is_text = 0, False, False
    for part in _COPIES_PART.finditer(function[0] if function else ""):
        if part["number"]:
            names.append(str(functions.get(part["number"], part["number"])))
        elif part["bit"]:
            mask |= 1 << min(int(part["bit"]), 6)
        elif part["end"]:
            found.update((name, [mask, int(is_text or not has_size)]) for name in names if mask)
            names, mask, has_size, is_text = [], 0, False, False
        else:
            has_size = has_size or part["size"] is not None
            is_text = is_text or part["text"] == "1"
    return found
