"""System calls: each `SYSCALL_DEFINEn()` makes the events sys_enter_NAME and sys_exit_NAME."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracepoint.tree.callsites_text import closing, read_code

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEFINE = re.compile(r"^SYSCALL_DEFINE([0-6])\s*\(\s*(\w+)", re.MULTILINE)
_USER = re.compile(r"\b__user\b")
_SPACE = re.compile(r"\s+")
Syscall = tuple[str, list[list[str]], int]


def read_syscalls(text: str) -> Iterator[Syscall]:
    """Yield name, `[type, name]` of the parameters, and line of each system call defined in a C text.

    >>> list(read_syscalls("SYSCALL_DEFINE1(close, unsigned int, fd)"))
    [('close', [['unsigned int', 'fd']], 1)]
    """
    code = read_code(text).code
    for match in _DEFINE.finditer(code):
        end = closing(code, code.index("(", match.start()))
        # The macro __user is empty for the compiler, and so in the formats.
        inner = _USER.sub("", code[match.end() : max(end, 0)])
        parts = [_SPACE.sub(" ", part).strip() for part in inner.split(",")[1:]]
        n_params = int(match[1])
        if end < 0 or len(parts) != 2 * n_params:
            continue
        params = [[parts[2 * i], parts[2 * i + 1]] for i in range(n_params)]
        yield match[2], params, code.count("\n", 0, match.start()) + 1
