"""Which fields of an event say the task: contexts of LTTng, and the common fields that perf and we write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.tracefile.ctf.scopes import EVENT_CONTEXT, FIELDS, STREAM_CONTEXT
from tracepoint.tracefile.ctf.types import CtfArray, CtfInteger, CtfString, shown_name
from tracepoint.tracefile.cursor import decode

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.tracefile.ctf.bits import PacketBits
    from tracepoint.tracefile.ctf.scopes import CtfScope
    from tracepoint.tracefile.ctf.types import CtfType

    Path = tuple[str, ...]

_CONTEXTS = (STREAM_CONTEXT, EVENT_CONTEXT)
_THREADS = ("tid", "vtid", "common_pid")
_PROCESSES = ("pid", "vpid")
_OTHERS = ("common_flags", "common_preempt_count")
_COMM = "procname"
_MAX_TASKS = 1 << 20


class TaskTable:
    """The names and processes of all threads of a recording: the last that was said of each."""

    def __init__(self) -> None:
        self._comms: dict[int, bytes] = {}
        self._processes: dict[int, int] = {}

    def see(self, thread: int, comm: bytes | None, process: int | None) -> None:
        """Take what an event says of its thread."""
        if comm is not None and (thread in self._comms or len(self._comms) < _MAX_TASKS):
            self._comms[thread] = comm
        if process is not None and (thread in self._processes or len(self._processes) < _MAX_TASKS):
            self._processes[thread] = process

    def comm_lines(self) -> str:
        """Return the text of `saved_cmdlines`."""
        names = {thread: decode(comm.partition(b"\0")[0]) for thread, comm in self._comms.items() if thread}
        return "".join(f"{thread} {name.replace(chr(10), '?')}\n" for thread, name in names.items() if name)

    def process_lines(self) -> str | None:
        """Return the text of `saved_tgids`, None when nothing is known."""
        return "".join(f"{thread} {process}\n" for thread, process in self._processes.items()) or None


class TaskFields:
    """Which integers of an event are its `common_pid`, `common_flags` and `common_preempt_count`.

    `hidden` are the paths of those that are no columns; `comm` is that of the name of the task.
    """

    def __init__(self, scope: CtfScope, table: TaskTable) -> None:
        self._table = table
        found: dict[str, Path] = {}
        for path in scope.integers:
            name = shown_name(path[-1])
            if path[:-1] in _CONTEXTS or (path[:-1] == FIELDS and name.startswith("common_")):
                found.setdefault(name, path)
        threads = [found[name] for name in _THREADS if name in found]
        processes = [found[name] for name in _PROCESSES if name in found]
        self._thread = next(iter(threads + processes), ())
        self._process = next(iter(processes if threads else ()), ())
        self._others = [found.get(name, ()) for name in _OTHERS]
        #: Whether an event says anything of its task.
        self.is_empty = not self._thread and not any(self._others)
        self.hidden = {path for path in (*threads[:1], *self._others, found.get("common_type", ())) if path}
        scope.needed.update(path for path in (self._thread, self._process, *self._others) if path)

    def comm_reader(self, path: Path, kind: CtfType) -> Callable[[PacketBits], bytes] | None:
        """Return the function that reads a name of a task, None for what is none."""
        if not self._thread or path[:-1] not in _CONTEXTS or shown_name(path[-1]) != _COMM:
            return None
        if isinstance(kind, CtfString):
            return lambda bits: bits.string()
        if not isinstance(kind, CtfArray) or not isinstance(kind.length, int):
            return None
        element, length = kind.element, kind.length
        if isinstance(element, CtfInteger) and element.size == 8 and element.align == 8:
            return lambda bits: bits.take(8, length)
        return None

    def common(self, bits: PacketBits) -> tuple[int, int, int]:
        """Return the flags, the count and the thread of the event that was read."""
        numbers = bits.numbers
        flags, preempt = (numbers[path] & 0xFF if path else 0 for path in self._others)
        if not self._thread:
            return flags, preempt, 0
        thread = (numbers[self._thread] + (1 << 31) & 0xFFFFFFFF) - (1 << 31)
        comm, bits.comm = bits.comm, None
        if comm is not None or self._process:
            self._table.see(thread, comm, numbers[self._process] if self._process else None)
        return flags, preempt, thread
