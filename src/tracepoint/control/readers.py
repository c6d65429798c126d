"""The readers of a recording: one thread for each CPU, which moves pages part after part."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time

from tracepoint.control.drain import DrainEnd
from tracepoint.control.facts import Description
from tracepoint.control.part import RecordedPart
from tracepoint.control.reader import CpuReader
from tracepoint.decode.found import NO_ID
from tracepoint.errors import TracefsError, TracepointError
from tracepoint.tracefile.recording import Recording, read_stats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from tracepoint.control.array import ArrayFiles
    from tracepoint.control.limits import RecordLimits
    from tracepoint.control.operations import PageSource
    from tracepoint.control.status import RecordStatus

_NO_LIMIT = 1 << 62
_MORE_PAGES = 4
# Of a part with a limit, what is kept for what other CPUs have when one of them reaches it.
_SHARED = 8


class Readers:
    """What reads an array, and the parts that it makes: one, or with `finished` as many as there are to fill.

    As a context manager it closes what it reads, and removes the parts.  `finished` gets each part that no
    reader moves pages to any more, from the last of them.
    """

    def __init__(
        self,
        array: ArrayFiles,
        target: str,
        *,
        starts: bool,
        compression: str,
        finished: Callable[[RecordedPart], None] | None = None,
    ) -> None:
        self.array, self.target = array, target
        self.starts, self.goes_on = starts, finished is not None
        self.description = Description(array, compression)
        self._finished = finished
        self.is_cut = False
        # A reader, or who saves the parts, cannot go on.
        self.has_stopped = False
        self.has_begun = threading.Event()
        self._parts: list[RecordedPart] = []
        self._spare: RecordedPart | None = None
        self._lock = threading.Lock()
        self._opened = contextlib.ExitStack()
        self._room = self._share = self._n_alive = self._n_removed = 0
        self._is_ending = self._is_off_early = False

    def __enter__(self) -> Self:
        self._parts.append(RecordedPart(self.target))
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()
        for part in (*self._parts, *([self._spare] if self._spare else [])):
            part.remove()

    def collect(self, limits: RecordLimits, watch: Callable[[RecordStatus], None] | None) -> None:
        """Move pages to parts until it is time to end."""
        # A marker or a stack may need them at the end, when a file may have no room for them any more.
        self.description.read(with_symbols=limits.max_bytes is not None)
        facts = self.description.facts
        if not self.description.formats and facts.settings.tracer in ("", "nop"):
            raise TracefsError(f"no event is enabled in {self.array.path}: there is nothing to record")
        sizes = self.array.buffer_bytes
        part = self._parts[0]
        self._set_room(self.description.save(part.folder), limits.max_bytes, len(sizes))
        part.prepare(facts.layout, self._room, self._share)
        for cpu, size in sizes.items():
            source = self._open(f"{self.array.prefix}per_cpu/{cpu}/trace_pipe_raw")
            self._opened.callback(self._close, source)
            n_ring = size // facts.layout.data_size + 2
            before = read_stats(self._stats(cpu))
            part.cpus.append(CpuReader(int(cpu[3:]), source, f"{part.folder}/{cpu}", n_ring, before))
        self._n_alive = part.n_moving = len(part.cpus)
        if self.goes_on:
            self.make_spare()
        threads: list[threading.Thread] = []
        try:
            for at in range(len(part.cpus)):
                thread = threading.Thread(target=self._collect, args=(at,), daemon=True)
                thread.start()
                threads.append(thread)
            if self.starts:
                self.array.is_on = True
            # The time of the first part does not count what was done before.
            part.began = time.monotonic()
            self.has_begun.set()
            with self._watched(sizes, watch):
                limits.wait(lambda: self.has_stopped or (limits.while_on and not self.array.is_on))
        finally:
            self._end(threads)

    def _watched(
        self, sizes: dict[str, int], watch: Callable[[RecordStatus], None] | None
    ) -> contextlib.AbstractContextManager[None]:
        if watch is None:
            return contextlib.nullcontext()
        from tracepoint.control.status import watching  # noqa: PLC0415 - without a terminal nobody looks

        return watching(self._stats, sizes, lambda: self.n_bytes, watch)

    def make_spare(self) -> None:
        """Make the next part before a reader needs it: that takes long enough for a ring buffer to fill."""
        part = self._parts[-1]
        if self._spare is None and part.n_moving and not self._is_ending:
            made = self._empty_part(part)
            with self._lock:
                self._spare = made

    def stop(self) -> None:
        """Let the recording end: what happens from then on is neither kept nor lost."""
        with self._lock, contextlib.suppress(TracefsError, OSError):
            if not self._is_ending and self.array.is_on:
                self._is_off_early = True
                self.array.is_on = False
        self.has_stopped = True

    def save(self, part: RecordedPart, target: str, check: Callable[[str], None]) -> Recording:
        """Write a part that is finished as a file, and remove it; `check` may refuse the target."""
        for one in part.cpus:
            if one.error is not None and one.end is not DrainEnd.TARGET:
                with self._may_be_cut():
                    raise one.error
        self._describe(part)
        written = part.write(self.description)
        check(target)
        os.replace(written, target)
        return Recording(target, part.stats(self.is_cut), self.is_cut, part.problem)

    def is_empty(self, part: RecordedPart) -> bool:
        """Return whether nothing was recorded or lost in a part that is finished."""
        if part.n_pages or part.has_failed:
            return False
        self._read_ends(part)
        return not any(cpu.overrun or cpu.dropped for cpu in part.stats(self.is_cut))

    def remove(self, part: RecordedPart) -> None:
        """Remove the folder of a part that was saved; the newest one stays until the end."""
        with self._lock:
            if part is self._parts[-1]:
                return
            self._n_removed += part.n_pages
            self._parts.remove(part)
        part.remove()

    @property
    def newest_part(self) -> RecordedPart:
        """The part that pages are moved to, or that they were moved to last."""
        return self._parts[-1]

    @property
    def n_bytes(self) -> int:
        """The bytes of the pages so far."""
        with self._lock:
            n_pages = self._n_removed + sum(part.n_pages for part in self._parts)
        return n_pages * self.description.facts.layout.page_size

    def _collect(self, at: int) -> None:
        """Read one CPU, part after part."""
        part: RecordedPart | None = self._parts[0]
        while part is not None:
            part.collect(part.cpus[at])
            part = self._following(part, at)

    def _following(self, part: RecordedPart, at: int) -> RecordedPart | None:
        """Return where a reader goes on when it has left a part."""
        reader = part.cpus[at]
        is_over = reader.end is DrainEnd.ENDED and part.is_last
        if not is_over and self.goes_on and reader.end in (DrainEnd.ENDED, DrainEnd.NO_ROOM):
            try:
                return self._go_on(part, at)
            except OSError as error:
                reader.end, reader.error = DrainEnd.TARGET, error
        if reader.end is not DrainEnd.ENDED:
            self.stop()
        with self._lock:
            self._n_alive -= 1
            for left in self._parts[self._parts.index(part) :]:
                self._leave(left)
        return None

    def _go_on(self, part: RecordedPart, at: int) -> RecordedPart:
        """Leave a part for the next one, which is made by the reader that needs it first."""
        reader = part.cpus[at]
        with contextlib.suppress(TracefsError, OSError):
            reader.after = self._stats(f"cpu{reader.number}")
        with self._lock:
            if part is self._parts[-1]:
                self._parts.append(self._next_part(part))
            following = self._parts[self._parts.index(part) + 1]
            following.cpus[at].before = read_stats(reader.after)
            self._leave(part)
        return following

    def _next_part(self, part: RecordedPart) -> RecordedPart:
        part.end()
        made, self._spare = self._spare or self._empty_part(part), None
        made.began = time.monotonic()
        made.cpus = [cpu.following(made.folder) for cpu in part.cpus]
        made.n_moving = self._n_alive
        if self._is_ending:
            made.is_last = True
            made.end()
        return made

    def _empty_part(self, part: RecordedPart) -> RecordedPart:
        made = RecordedPart(self.target)
        try:
            part.share_texts(made)
            made.prepare(self.description.facts.layout, self._room, self._share)
        except OSError:
            made.remove()
            raise
        return made

    def _leave(self, part: RecordedPart) -> None:
        part.n_moving -= 1
        if not part.n_moving and self._finished is not None:
            self._finished(part)

    def _end(self, threads: list[threading.Thread]) -> None:
        """Read the rest with the array off: reading makes events too, when system calls are traced."""
        was_on = False
        try:
            with self._lock:
                was_on = self._switch_off()
        finally:
            for thread in threads:
                thread.join()
            with self._may_be_cut():
                if was_on and not self.starts:
                    self.array.is_on = True

    def _switch_off(self) -> bool:
        """Turn the array off and end the last part; return whether it was on."""
        was_on = False
        try:
            with self._may_be_cut():
                was_on = self.array.is_on
                if was_on:
                    self.array.is_on = False
                was_on = was_on or self._is_off_early
        finally:
            self._is_ending = True
            # Readers that have left a part already may have done so before the array was off.
            self._parts[-1].is_last = not self._parts[-1].is_ended
            self._parts[-1].end()
        return was_on

    def _set_room(self, n_described: int, max_bytes: int | None, n_cpus: int) -> None:
        """Find out how many pages a part may have, by CPU and together."""
        if max_bytes is None:
            self._room = _NO_LIMIT
            return
        page_size = self.description.facts.layout.page_size
        # The data of each CPU begins at a page; options and a table stand around them.
        n_described += page_size * (n_cpus + _MORE_PAGES)
        if self.goes_on:
            self._share = max((max_bytes - n_described) // page_size // _SHARED // n_cpus, 1)
        n_needed = n_described + page_size * self._share * n_cpus
        if max_bytes < n_needed + page_size:
            raise TracepointError(f"at most {max_bytes} bytes: {n_needed} are needed to describe the events")
        self._room = (max_bytes - n_needed) // page_size

    def _describe(self, part: RecordedPart) -> None:
        """Read what is known at the end of a part, for all records that were saved."""
        found = {number for one in part.cpus for number in one.count(self.description.facts.layout)}
        self._read_ends(part)
        with self._may_be_cut():
            self.description.read(found - {NO_ID})

    def _read_ends(self, part: RecordedPart) -> None:
        """Read what the CPUs of a part counted until its end, where that was not read when it ended."""
        with self._may_be_cut():
            for one in part.cpus:
                if one.end is not None and not one.after:
                    one.after = self._stats(f"cpu{one.number}")

    @contextlib.contextmanager
    def _may_be_cut(self) -> Iterator[None]:
        """Continue without the data of a process that has ended."""
        try:
            yield
        except (OSError, TracefsError) as error:
            if error.errno != errno.ESRCH:
                raise
            self.is_cut = True

    def _open(self, path: str) -> PageSource:
        try:
            return self.array.tracefs.files.open_pages(path)
        except OSError as error:
            raise self.array.tracefs.explain(error, path) from error

    def _close(self, source: PageSource) -> None:
        with self._may_be_cut():
            source.close()

    def _stats(self, cpu: str) -> str:
        return self.array.tracefs.read(f"{self.array.prefix}per_cpu/{cpu}/stats")
