"""`record --py`: what Python processes recorded, in the file of the kernel's records, on one clock."""

from __future__ import annotations

import contextlib
import errno
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tracepoint.cli.trace.recordings import open_file, warn_of_damage
from tracepoint.control.session import open_tracefs
from tracepoint.convert.tracedat import write_cut
from tracepoint.decode.trace import Trace
from tracepoint.errors import TracepointError
from tracepoint.runtime.remote.client import ANSWER_WAIT_S, RemoteFiles
from tracepoint.runtime.remote.files import ProcessFiles
from tracepoint.runtime.remote.registry import Process, find_process, find_processes
from tracepoint.runtime.rings.followed import FollowedEvents, FollowedFolder
from tracepoint.tracefile.container import DamageLog
from tracepoint.tracefile.merged import COMMON_CLOCKS, MergedContainer
from tracepoint.tracefile.rings import open_ring_folder
from tracepoint.tracefile.tracedat import chosen_clock, read_tracedat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.cli.output import Output
    from tracepoint.tracefile.container import Container


class PythonProcesses:
    """Python processes that record while the kernel does.

    Their clock becomes that of the kernel's records, which empties the rings of one that had another.  As a
    context manager it asks for the same of workers that start meanwhile, and of those that run already.
    Raises ProcessError for one that does not listen, TracepointError for a clock that is another in the
    kernel.
    """

    def __init__(self, pids: Sequence[int], clock: str, out: Output) -> None:
        if clock not in COMMON_CLOCKS:
            raise TracepointError(
                f"the clock {clock} is not the same in the kernel and in a process: choose one of "
                f"{', '.join(COMMON_CLOCKS)}"
            )
        self._out, self._clock = out, clock
        # Of each folder of rings, what processes that start in it are asked for.
        self._filters: dict[str, dict[str, str]] = {}
        self._following = contextlib.ExitStack()
        # Where each keeps its rings, which others share: empty for memory of its own.
        self._folders = {pid: self._prepare(pid, clock) for pid in dict.fromkeys(pids)}

    def _prepare(self, pid: int, clock: str) -> str:
        with RemoteFiles(find_process(pid).pid, ANSWER_WAIT_S) as files:
            if chosen_clock(files.read_text("trace_clock")) != clock:
                files.write_text("trace_clock", clock)
            if not files.hello()["n_enabled"]:
                self._out.warn(f"process {pid} has no event enabled: tracepoint enable --pid {pid} EVENT")
            if folder := files.directory():
                self._filters.setdefault(folder, {}).update(_filters_of(files))
            return folder

    def __enter__(self) -> Self:
        for folder, filters in self._filters.items():
            try:
                self._following.enter_context(FollowedFolder(folder, FollowedEvents(self._clock, filters)))
            except OSError as error:
                self._out.warn(f"{folder}: workers that start from now on are not followed: {error.strerror}")
        for process in find_processes() if self._filters else ():
            if process.pid not in self._folders and not self._folders.keys().isdisjoint(process.ancestors):
                self._follow(process.pid)
        return self

    def _follow(self, pid: int) -> None:
        """Let a child that runs already record what is followed in its folder of rings."""
        try:
            with contextlib.ExitStack() as opened:
                files = opened.enter_context(RemoteFiles(pid, ANSWER_WAIT_S))
                filters = self._filters.get(files.directory())
                if not filters:
                    return
                if chosen_clock(files.read_text("trace_clock")) != self._clock:
                    files.write_text("trace_clock", self._clock)
                tracing = opened.enter_context(open_tracefs(ProcessFiles(files, pid), keeps_journal=False))
                # What it records already keeps its filter, and it may not have loaded all modules.
                names = sorted(filters.keys() & set(tracing.event_names) - set(tracing.enabled))
                for name in names:
                    if filters[name]:
                        tracing.event(name).set_filter(filters[name])
                    tracing.enable(name)
                if names:
                    # Before its filters are cleared.
                    opened.callback(tracing.disable, *names)
                    self._following.callback(self._put_back, opened.pop_all(), pid)
        except (TracepointError, OSError) as error:
            if not _is_gone(pid, error):
                self._out.warn(f"process {pid}, a child that ran before, is not followed: {error}")

    def _put_back(self, opened: contextlib.ExitStack, pid: int) -> None:
        """Put a child back as it was before it was followed, unless it has ended."""
        try:
            opened.close()
        except (TracepointError, OSError) as error:
            if not _is_gone(pid, error):
                self._out.warn(f"process {pid} could not be restored: {error}")

    def __exit__(self, *_: object) -> None:
        self._following.close()

    def join(self, path: str, compression: str, name: str) -> None:
        """Put what they recorded into a recording of the kernel, from its first record to its last.

        What is reported is reported of `name`.
        Raises TracepointError where that cannot be done; the kernel's recording stays then as it was.
        """
        opened: list[Container] = [open_file(path)]
        try:
            kernel = Trace(opened[0])
            start, stop = kernel.span if kernel.n_records else (None, None)
            opened += self._saved()
            merged = MergedContainer(opened)
            whole = Trace(merged).between(start, None if stop is None else stop + 1)
            n_more = whole.n_records - kernel.n_records
            write_cut(whole, path, compression=compression)
            warn_of_damage(path, merged.damage, self._out)
        except TracepointError as error:
            raise TracepointError(f"{path} has the kernel's records only: {error}") from error
        finally:
            for file in opened:
                file.close()
        self._out.say(f"{name}: {n_more} records of Python processes joined")

    def _saved(self) -> list[Container]:
        folders = sorted({*self._folders.values()} - {""})
        found: list[Container] = [
            open_ring_folder(Path(folder), DamageLog(), clock=self._clock) for folder in folders
        ]
        for pid, folder in self._folders.items():
            if not folder:
                with RemoteFiles(find_process(pid).pid) as files:
                    found.append(read_tracedat(files.save(), f"pid:{pid}"))
        return found


def _is_gone(pid: int, error: Exception) -> bool:
    """Whether a process has ended, which one that nobody waited for yet may have."""
    return getattr(error, "errno", None) == errno.ESRCH or not Process(pid, Path()).is_alive


def _filters_of(files: RemoteFiles) -> dict[str, str]:
    """Return the filter of each event that the top instance of a process records, empty for none."""
    found = {}
    for name in files.read_text("set_event").split():
        text = files.read_text(f"events/{name.replace(':', '/')}/filter").strip()
        # Of a filter that was refused, the file shows the reason in further lines: it has no effect.
        found[name] = "" if text == "none" or "\n" in text else text
    return found
