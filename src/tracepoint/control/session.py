"""Temporary use of tracefs: everything that was changed is restored, however the session ends."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import signal
import threading

from tracepoint.control.files import find_files
from tracepoint.control.instance import TraceArray, TracefsInstance
from tracepoint.control.journal import Journal, journal_folder
from tracepoint.control.restored import Restored
from tracepoint.control.tracefs import Tracefs
from tracepoint.errors import TracefsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType
    from typing import Self

    from tracepoint.control.operations import Files

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_NUMBERS = itertools.count(1)


class TracefsSession(TraceArray):
    """The top level of a tracefs, and the way to its instances; made by `open_tracefs`.

    As a context manager it restores everything at the end, on errors, and on SIGINT, SIGTERM and SIGHUP.
    After SIGKILL, `tracepoint restore` does so from the journal.
    """

    def __init__(self, tracefs: Tracefs) -> None:
        super().__init__(tracefs)
        self._owner = os.getpid()
        self._old_handlers: dict[int, object] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS[1:]:
                if signal.getsignal(number) is signal.SIG_DFL:
                    self._old_handlers[number] = signal.signal(number, _leave)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            restored = self.restore()
        finally:
            for number in self._old_handlers:
                signal.signal(number, signal.SIG_DFL)
            self._old_handlers.clear()
        if restored.problems and kind is None:
            raise TracefsError(_not_restored(restored, self.tracefs.journal.path))

    def restore(self) -> Restored:
        """Restore what was changed so far; what cannot be restored stays in the journal.

        Signals wait until it is done.  In a child process that was forked off it does nothing.
        """
        if os.getpid() != self._owner:
            return Restored()
        with signals_held():
            journal = self.tracefs.journal
            restored = _restored(self.tracefs.files, journal.entries) if journal.entries else Restored()
            if restored.problems:
                journal.leave()
            else:
                journal.close()
        return restored

    def keep(self) -> None:
        """Keep everything that was changed so far."""
        self.tracefs.journal.close()

    def instance(self, name: str = "", *, buffer_bytes: int = 0, clock: str = "") -> TracefsInstance:
        """Return the instance `name`, created if it does not exist (without a name: a new one).

        `buffer_bytes` is the size for each CPU, `clock` one of `clocks`.  One that was made here is
        removed at the end of its `with` block or of the session.
        """
        name = name or f"tracepoint-{os.getpid()}-{next(_NUMBERS)}"
        if "/" in name or "\0" in name or name in (".", "..") or len(os.fsencode(name)) > 255:
            raise TracefsError(f"{name[:80]!r} cannot be the name of an instance")
        is_new = not self.tracefs.exists(f"instances/{name}")
        if is_new:
            self.tracefs.make_instance(name)
        made = TracefsInstance(self.tracefs, name, is_new=is_new, remove=self.remove_instance)
        if clock:
            made.clock = clock
        if buffer_bytes:
            made.set_buffer(buffer_bytes)
        return made

    @property
    def instances(self) -> list[str]:
        """The names of all instances."""
        return self.tracefs.names("instances")

    def remove_instance(self, name: str) -> None:
        """Remove an instance with everything in it; raises TracefsError (EBUSY) while it is being read.

        Undone, its settings come back; what it had recorded does not.
        """
        self.tracefs.remove_instance(name)


def open_tracefs(
    files: Files | None = None, *, journal: str | os.PathLike[str] | None = None, keeps_journal: bool = True
) -> TracefsSession:
    """Return the tracefs of the running kernel, found through /proc/mounts.

    `files` replaces it by another one, `journal` is the folder for journals (default:
    `journal_folder()`); without `keeps_journal` nothing survives a SIGKILL.  Used without `with`,
    everything is restored when the program ends.  Raises TracefsNotFound, saying how to mount it,
    and TracefsPermission where this user may not read it.
    """
    opened = files if files is not None else find_files()
    folder = (journal or journal_folder()) if keeps_journal else None
    tracing = TracefsSession(Tracefs(opened, Journal(folder, opened.root)))
    tracing.tracefs.names("events")
    atexit.register(tracing.restore)
    return tracing


def _restored(files: Files, entries: dict[str, str]) -> Restored:
    from tracepoint.control.restore import restore_settings  # noqa: PLC0415 - with the language of triggers

    return restore_settings(files, entries)


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


@contextlib.contextmanager
def signals_held() -> Iterator[set[int]]:
    """Block the signals that end a session; yield those that were blocked before."""
    held = {int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)}
    try:
        yield held
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


def _not_restored(restored: Restored, path: str | None) -> str:
    lines = "\n".join(f"  {problem}" for problem in restored.problems)
    return f"not everything could be put back (`tracepoint restore` tries again from {path}):\n{lines}"
