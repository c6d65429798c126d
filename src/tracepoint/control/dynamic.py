"""Events that are defined at run time: synthetic ones and those of kprobes, uprobes and eprobes.

Facts: kernel/trace/trace_dynevent.c and the `create` functions that it calls.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.errors import TracefsError

if TYPE_CHECKING:
    from tracepoint.control.tracefs import Tracefs

PATH = "dynamic_events"
_KINDS = {
    "p": "probe",
    "r": "return probe",
    "e": "event probe",
    "s": "synthetic",
    "f": "function probe",
    "t": "tracepoint probe",
    "u": "user event",
}
_LINE = re.compile(r"([a-z])([0-9]*):(?:([^/\s]+)/)?(\S+)(?:\s+(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class DynamicEvent:
    """One definition: `kind` is its letter (`p`, `r`, `e`, `s`, ...), `definition` what follows the name."""

    kind: str
    system: str
    name: str
    definition: str
    text: str


def list_dynamic(tracefs: Tracefs) -> list[DynamicEvent]:
    """Return every event that was defined at run time, oldest first."""
    return [event for line in tracefs.read(PATH).splitlines() if (event := read_dynamic(line))]


def read_dynamic(line: str) -> DynamicEvent | None:
    """Read a line of `dynamic_events`.

    >>> read_dynamic("p:kprobes/opens do_sys_openat2 dfd=%di:s32").name
    'opens'
    """
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    default = "synthetic" if match[1] == "s" else ""
    return DynamicEvent(match[1], match[3] or default, match[4], match[5] or "", line)


def define_dynamic(tracefs: Tracefs, definition: str) -> None:
    """Define an event in the words of `dynamic_events`, such as `s:wake u64 lat; pid_t pid`.

    Raises TracefsError with the kernel's caret when it refuses.
    """
    if not _LINE.fullmatch(definition.strip()):
        raise TracefsError(
            f"{definition.strip()!r} is not a definition: KIND:[GROUP/]NAME ..., "
            f"where KIND is one of {', '.join(f'{k} ({v})' for k, v in _KINDS.items())}",
            PATH,
            definition,
        )
    tracefs.write(PATH, definition.strip())


def remove_dynamic(tracefs: Tracefs, name: str) -> None:
    """Remove the event called `name` (`system:event`, or the event's name alone).

    Raises TracefsError when there is none, or when it is in use (enabled, or part of a histogram).
    """
    system, _, event = name.rpartition(":")
    found = [e for e in list_dynamic(tracefs) if e.name == event and system in ("", e.system)]
    if not found:
        names = ", ".join(f"{e.system}:{e.name}" for e in list_dynamic(tracefs)) or "none"
        raise TracefsError(f"no event {name!r} was defined at run time; there are: {names}", PATH)
    tracefs.write(PATH, f"-:{found[0].system}/{found[0].name}")
