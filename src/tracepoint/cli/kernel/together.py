"""`record --py`: what Python processes recorded, in the file of the kernel's records, on one clock."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.cli.trace.recordings import open_file, warn_of_damage
from tracepoint.convert.tracedat import write_cut
from tracepoint.decode.trace import Trace
from tracepoint.errors import TracepointError
from tracepoint.runtime.remote.client import ANSWER_WAIT_S, RemoteFiles
from tracepoint.runtime.remote.registry import find_process
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

    Their clock becomes that of the kernel's records, which empties the rings of one that had another.
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
        # Where each keeps its rings, which others share: empty for memory of its own.
        self._folders = {pid: self._prepare(pid, clock) for pid in dict.fromkeys(pids)}

    def _prepare(self, pid: int, clock: str) -> str:
        with RemoteFiles(find_process(pid).pid, ANSWER_WAIT_S) as files:
            if chosen_clock(files.read_text("trace_clock")) != clock:
                files.write_text("trace_clock", clock)
            if not files.hello()["n_enabled"]:
                self._out.warn(f"process {pid} has no event enabled: tracepoint enable --pid {pid} EVENT")
            return files.directory()

    def join(self, path: Path, compression: str) -> None:
        """Put what they recorded into a recording of the kernel, from its first record to its last.

        Raises TracepointError where that cannot be done; the kernel's recording stays then as it was.
        """
        opened: list[Container] = [open_file(str(path))]
        try:
            kernel = Trace(opened[0])
            start, stop = kernel.span if kernel.n_records else (None, None)
            opened += self._saved()
            merged = MergedContainer(opened)
            whole = Trace(merged).between(start, None if stop is None else stop + 1)
            n_more = whole.n_records - kernel.n_records
            write_cut(whole, path, compression=compression)
            warn_of_damage(str(path), merged.damage, self._out)
        except TracepointError as error:
            raise TracepointError(f"{path} has the kernel's records only: {error}") from error
        finally:
            for file in opened:
                file.close()
        self._out.say(f"{path}: {n_more} records of Python processes joined")

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
