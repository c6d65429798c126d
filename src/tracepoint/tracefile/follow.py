"""A recording that is still being written, as records by time: `Followed`."""

from __future__ import annotations

import heapq
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.closing import Closing
from tracepoint.errors import DecodeError
from tracepoint.filter.error import FilterError, FilterFault
from tracepoint.layout.compressed import COMPRESSED_STARTS
from tracepoint.record.page import add_lost
from tracepoint.tracefile.buffers import TraceBuffer
from tracepoint.tracefile.container import DamageLog, Parts, PartsContainer
from tracepoint.tracefile.cpudata import CpuData
from tracepoint.tracefile.damage import Damage
from tracepoint.tracefile.folder import FolderTexts
from tracepoint.tracefile.head import MAGIC, PERF_MAGICS
from tracepoint.tracefile.live import Live, LiveFile, LivePages, wait_for
from tracepoint.tracefile.livetext import LiveText
from tracepoint.tracefile.opening import is_process
from tracepoint.tracefile.pagefiles import PAGE_NAMES, cpu_files, page_folders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tracepoint.record.raw import RawRecord
    from tracepoint.tracefile.cpudata import Report

    Choose = Callable[[PartsContainer], TraceBuffer | None]

#: How long a CPU without records is waited for, in seconds: pages are handed out when they are full.
DELAY_S = 1.0
_POLL_S = 0.02
_LOOK_S = 1.0
_MOST_RECORDS = 4096
# What a page begins with, its time and its size, has zeros; a text has none.
_HEAD = 16
_PACKED = (".zst", ".gz", ".xz", ".bz2")
_CPU = re.compile(r"cpu(\d{1,4})", re.ASCII)


def never() -> bool:
    """Return False: it is not stopped."""
    return False


class Followed(Closing):
    """Files or pipes of pages, one for each CPU, or a text of records, that are read while they are written.

    `path` is a folder of `trace_pipe_raw` files (of a live tracefs too), one such file or FIFO, a text, or
    `-` for standard input; formats and texts are in the folder, in that above, or in `formats`.  `instance`
    names the ring buffer of a folder.  `sources` has what is read of each CPU in place of files, which
    `path` names in messages then.  A CPU that has no records at hand is waited for `delay_s` seconds.
    `n_late` counts records that came after later ones had been given.  Raises OSError and DecodeError.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        formats: str | os.PathLike[str] | None = None,
        instance: str = "",
        delay_s: float = DELAY_S,
        sources: Mapping[int, Live] | None = None,
    ) -> None:
        self.path = os.fspath(path)
        if sources is None and is_process(self.path):
            reason = "rings of a process are not followed: read them without following, as they are now"
            raise DecodeError(f"{reason}, or follow trace_pipe of tracepoint mount", self.path)
        self.n_late = 0
        self._instance = instance
        self._delay_s = delay_s
        self._log = DamageLog()
        self._sources = {
            cpu: LivePages(cpu, source, self._log.report) for cpu, source in (sources or {}).items()
        }
        self._text: LiveText | None = None
        self._has_files = sources is None
        self._is_folder = self._has_files and self.path != "-" and Path(path).is_dir()
        self._folder = Path(formats) if formats is not None else self._own_folder()
        # Where the pages of a folder are, unless it was said where the texts are.
        self._has_own_texts = formats is None
        self._beside: tuple[Path, ...] = ()
        self._looked_at = 0.0
        self._last = 0
        try:
            self._look()
        except BaseException:
            self.close()
            raise
        if not self._sources:
            what = f" of instance {instance!r}" if instance else ""
            reason = f"no pages{what} to follow: {PAGE_NAMES}"
            raise DecodeError(reason, self.path)

    def _own_folder(self) -> Path | None:
        if self.path == "-":
            return None
        path = Path(self.path).absolute()
        if self._is_folder:
            return path
        # per_cpu/cpu0/trace_pipe_raw of a tracefs, or of a copy of it.
        return path.parents[2] if path.parent.parent.name == "per_cpu" else path.parent

    def close(self) -> None:
        """Close the files."""
        for source in self._sources.values():
            source.file.close()

    @property
    def damage(self) -> tuple[Damage, ...]:
        """What could not be read so far."""
        return self._log.all()

    @property
    def n_lost(self) -> int:
        """How many events were lost, as what was read so far says it; LOST_UNKNOWN (-1): some."""
        total = self._text.lost if self._text else 0
        for source in self._sources.values():
            total = add_lost(total, source.lost)
        return total

    def saved_cmdlines(self) -> str:
        """Return the names of tasks as they are now: those of a live tracefs change."""
        return self._texts().saved_cmdlines() if self._text is None else ""

    def chunks(
        self, choose: Choose, is_stopped: Callable[[], bool] = never
    ) -> Iterator[tuple[PartsContainer, list[RawRecord]]]:
        """Yield records by time as they come, with what is known of them.

        `choose` returns the buffer of a container with the chosen records.  Ends when all pipes have ended,
        which files never do, and when `is_stopped` says so: with what was read until then.  Raises
        DecodeError, after what was read until then, when a file was truncated, replaced or removed.
        """
        if self._wait(is_stopped):
            yield from self._chunks(choose, is_stopped)
        for file in self._files():
            if file.fault is not None:
                raise file.fault

    def _chunks(
        self, choose: Choose, is_stopped: Callable[[], bool]
    ) -> Iterator[tuple[PartsContainer, list[RawRecord]]]:
        source = next(iter(self._sources.values()))
        head = bytes(source.file.waiting[:_HEAD])
        if head.startswith(COMPRESSED_STARTS):
            reason = "compressed: read it without following, or follow what comes out of its decompressor"
            raise DecodeError(reason, self.path)
        if head.startswith((MAGIC, *PERF_MAGICS)):
            raise DecodeError("a recording that is complete: read it without following", self.path)
        if self._has_files and not self._is_folder and b"\0" not in source.file.waiting[:_HEAD]:
            yield from self._text_chunks(source.file, choose, is_stopped)
            return
        container = PartsContainer(self.path, "pages that are followed", self._load, [], self._log)
        buffer = choose(container)
        if buffer is not None and buffer.cpus:
            yield from ((container, batch) for batch in self._batches(buffer.cpus[0], is_stopped))

    def _look(self) -> None:
        """Open files of CPUs that are new."""
        for cpu, path in sorted(self._paths().items()):
            if cpu not in self._sources:
                self._sources[cpu] = LivePages(cpu, LiveFile(path), self._log.report)

    def _look_again(self) -> set[int]:
        """Open files of CPUs that are new, once a second; return those CPUs."""
        now, known = time.monotonic(), set(self._sources)
        if self._is_folder and now - self._looked_at >= _LOOK_S:
            self._looked_at = now
            try:
                self._look()
            except DecodeError as error:
                # Pages of another recording that came later do not end this one.
                self._log.report(Damage(None, 0, error.reason))
        return self._sources.keys() - known

    def _paths(self) -> dict[int, Path | None]:
        if not self._has_files:
            return {}
        if self.path == "-":
            return {0: None}
        path = Path(self.path)
        if not self._is_folder:
            named = _CPU.search(path.name) or _CPU.fullmatch(path.absolute().parent.name)
            return {int(named[1]) if named else 0: path}
        files = cpu_files(path)
        found = files.get(self._instance, {})
        if self._has_own_texts:
            self._beside = page_folders(files)
        return {cpu: path for cpu, path in found.items() if path.suffix not in _PACKED}

    def _files(self) -> list[Live]:
        return [source.file for source in self._sources.values()]

    @property
    def _is_over(self) -> bool:
        """Whether no more is to come."""
        files = self._files()
        return all(file.is_ended for file in files) or any(file.fault for file in files)

    def _wait(self, is_stopped: Callable[[], bool]) -> bool:
        """Wait for the first bytes, which say what follows; return False when there are none at the end."""
        while not is_stopped():
            self._look_again()
            files = self._files()
            for file in files:
                while len(file.waiting) < _HEAD and file.read():
                    pass
            if any(len(file.waiting) >= _HEAD for file in files):
                return True
            if self._is_over:
                return any(file.waiting for file in files)
            wait_for(files, _POLL_S)
        return False

    def _texts(self) -> FolderTexts:
        if self._folder is None:
            raise DecodeError("no formats next to standard input: name the folder that has them", self.path)
        return FolderTexts(self._folder, {}, self._log.report, self._beside)

    def _load(self, report: Report) -> Parts:
        """Read what is next to the pages; their first bytes say in which byte order they are."""
        texts = self._texts()
        content = texts.read([file.waiting for file in self._files()])
        content = content._replace(n_cpus=1 + max(self._sources))
        data = CpuData(0, 0, 0, content.layout, b"", None, report)
        return Parts(content, (TraceBuffer(self._instance, texts.clock(self._instance), (data,)),))

    def _text_chunks(
        self, file: Live, choose: Choose, is_stopped: Callable[[], bool]
    ) -> Iterator[tuple[PartsContainer, list[RawRecord]]]:
        text = self._text = LiveText(file, self.path, self._folder, self._log)
        is_last, refusal = False, None
        while not is_last:
            is_new = file.read()
            is_last = is_stopped() or file.is_ended
            container = text.take(is_pause=not is_new, is_last=is_last)
            records: list[RawRecord] = []
            if container.buffers[0].cpus:
                try:
                    buffer, refusal = choose(container), None
                    records = [] if buffer is None else list(buffer.records())
                except FilterError as error:
                    # Events are known from their first line on: one that has the field may be to come.
                    if error.fault is not FilterFault.FIELD_NOT_FOUND:
                        raise
                    refusal = error
            if records:
                yield container, records
            if not is_new and not is_last:
                wait_for([file], _POLL_S)
        if refusal is not None:
            raise refusal

    def _batches(self, data: CpuData, is_stopped: Callable[[], bool]) -> Iterator[list[RawRecord]]:
        for source in self._sources.values():
            source.start(data)
        barrier = 0
        while True:
            is_last = is_stopped()
            is_new = not is_last and self._read(data)
            is_last = is_last or self._is_over
            self._fill(is_last=is_last)
            batch = self._merge(None if is_last else barrier)
            if batch:
                yield batch
            elif is_last:
                return
            elif not is_new:
                wait_for(self._files(), _POLL_S)
            # All CPUs are read once more before a record is given: one that has been silent may have an
            # earlier record that was written since.
            barrier = max(source.newest for source in self._sources.values())

    def _read(self, data: CpuData) -> bool:
        for cpu in self._look_again():
            self._sources[cpu].start(data)
        found = [file.read() for file in self._files()]
        return any(found)

    def _fill(self, *, is_last: bool) -> None:
        now = time.monotonic()
        for source in self._sources.values():
            if source.head is None:
                source.advance(is_last=is_last)
            if source.head is not None:
                source.idle_since = None
            elif source.idle_since is None:
                source.idle_since = now

    def _merge(self, barrier: int | None) -> list[RawRecord]:
        """Return records at hand by time, up to one whose CPU has no more or one later than `barrier`."""
        if barrier is not None and self._is_waiting():
            return []
        heads = [(s.head.timestamp, cpu) for cpu, s in self._sources.items() if s.head is not None]
        heapq.heapify(heads)
        found: list[RawRecord] = []
        while heads and len(found) < _MOST_RECORDS:
            stamp, cpu = heads[0]
            source = self._sources[cpu]
            if source.head is None or (barrier is not None and stamp > barrier):
                break
            self.n_late += stamp < self._last
            self._last = max(self._last, stamp)
            found.append(source.head)
            source.advance(is_last=barrier is None)
            if source.head is not None:
                heapq.heapreplace(heads, (source.head.timestamp, cpu))
            elif barrier is None or source.file.is_ended:
                heapq.heappop(heads)
            else:
                # There may be more to read of it at once.
                break
        return found

    def _is_waiting(self) -> bool:
        """Whether a CPU has nothing at hand, and has not been without records for long.

        Not once another has more than is kept: it would lose events.
        """
        latest = time.monotonic() - self._delay_s
        is_full = any(file.is_full for file in self._files())
        return not is_full and any(
            source.head is None
            and not source.file.is_ended
            and source.idle_since is not None
            and source.idle_since > latest
            for source in self._sources.values()
        )
