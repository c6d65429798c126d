"""The events of system calls: the two of all calls, or a pair for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.needs import Fields, Need

if TYPE_CHECKING:
    from collections.abc import Collection

ENTER, EXIT = "raw_syscalls:sys_enter", "raw_syscalls:sys_exit"
#: How the events of one call begin; the name of the call follows.
ENTER_ONE, EXIT_ONE = "syscalls:sys_enter_", "syscalls:sys_exit_"
EXEC = "sched:sched_process_exec"
#: The number of a call, in the events of one.
NUMBER = "__syscall_nr"

_EXEC = Need({EXEC: Fields(("pid", "old_pid"))}, "tasks that take over the id of their process")
NEEDS = (
    Need({ENTER: Fields(("common_pid", "id"))}, "where a call begins", is_needed=True),
    Need({EXIT: Fields(("common_pid", "id", "ret"))}, "where it ends", is_needed=True),
    _EXEC,
)


def needs_in(recorded: Collection[str]) -> tuple[Need, ...]:
    """Return what is read of a recording with these events: those of single calls where it has no others.

    >>> [need.names[0] for need in needs_in(["syscalls:sys_enter_read", "syscalls:sys_exit_read"])][:2]
    ['syscalls:sys_enter_read', 'syscalls:sys_exit_read']
    """
    if ENTER in recorded or EXIT in recorded:
        return NEEDS
    enters = [name for name in sorted(recorded) if name.startswith(ENTER_ONE)]
    exits = [name for name in sorted(recorded) if name.startswith(EXIT_ONE)]
    if not enters:
        return NEEDS
    begins = (Need({name: Fields(("common_pid", NUMBER))}, "where a call begins") for name in enters)
    ends = (Need({name: Fields(("common_pid", NUMBER, "ret"))}, "where it ends") for name in exits)
    return (*begins, *ends, _EXEC)
