"""The reader of one CPU's ring buffer: its thread, the file it moves pages to, and what those hold."""

from __future__ import annotations

import mmap
import os
import re

from tracepoint.control.drain import DrainEnd, MovedPages, drain, free_space
from tracepoint.decode.counting import IdCounts
from tracepoint.tracefile.recording import read_stats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader, FileIO

    from tracepoint.control.drain import DrainPlan
    from tracepoint.control.operations import PageSource
    from tracepoint.record.layout import PageLayout
    from tracepoint.record.page import Buffer

# Whole chunks of a compressed trace.dat, whatever the size of a page.
_PAGES_A_BLOCK = 640
# Of what is released as it is copied, whole chunks too: a block is written before its space is given back.
_RELEASED_BYTES = 40 * 4096
# Of kernel/trace/trace.c: tracing_stats_read().
_SINCE = re.compile(r"^(overrun|commit overrun|dropped events|read events): (\d+)$", re.MULTILINE)


class CpuReader:
    """One CPU's pages in transit; `n_ring` pages fit into its ring buffer.

    `n_old` pages at the beginning are left out of what is saved.
    `before` and `after` are the counts and the text of `stats` when the recording began and ended.
    """

    def __init__(
        self, number: int, source: PageSource, spool: str, n_ring: int, before: dict[str, int]
    ) -> None:
        self.number, self.source, self.spool, self.n_ring = number, source, spool, n_ring
        self.before, self.after = before, ""
        self.moved = MovedPages()
        self.n_old = self.n_records = self.n_lost = 0
        self.end: DrainEnd | None = None
        self.error: OSError | None = None

    def collect(self, plan: DrainPlan) -> None:
        """Move pages until the end, after those that are there; what goes wrong is kept for who waits."""
        try:
            handle = os.open(self.spool, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.lseek(handle, 0, os.SEEK_END)
                self.end, number = drain(self.source, handle, plan, self.n_ring, self.moved)
            finally:
                os.close(handle)
            if number:
                self.error = OSError(number, os.strerror(number))
        except OSError as error:
            self.end, self.error = DrainEnd.TARGET, error

    def following(self, folder: str) -> CpuReader:
        """Return the reader that goes on where this one ends, with a file in another folder."""
        before = read_stats(self.after) if self.after else self.before
        return CpuReader(
            self.number, self.source, f"{folder}/{os.path.basename(self.spool)}", self.n_ring, before
        )

    def stats_since(self) -> str:
        """Return the text of `stats` after the recording, its counts from the beginning of it on."""

        def since(found: re.Match[str]) -> str:
            return f"{found[1]}: {max(int(found[2]) - self.before.get(found[1], 0), 0)}"

        return _SINCE.sub(since, self.after)

    @property
    def n_saved(self) -> int:
        """The pages that are saved."""
        return self.moved.n_pages - self.n_old

    def stamps(self, layout: PageLayout) -> list[int]:
        """Return the times at which the pages begin, in the clock of the recording."""
        from tracepoint.tracefile.order import stamps_of  # noqa: PLC0415 - for flight recorders only

        with open(self.spool, "rb") as stream:
            return stamps_of(_mapped(stream), layout)

    def count(self, layout: PageLayout) -> dict[int, int]:
        """Return the records of each event id in the pages; keep their sum, and what heads say was lost."""
        if not self.n_saved:
            return {}
        with open(self.spool, "rb") as stream:
            counts = IdCounts()
            heads = counts.add(_mapped(stream)[self.n_old * layout.page_size :], layout).heads
        found = counts.by_id()
        self.n_records = sum(found.values())
        # Some do not say how many.
        self.n_lost = sum(max(head.lost, 0) for head in heads)
        return found

    def blocks(self, layout: PageLayout, releases: bool) -> Iterator[Buffer]:
        """Yield the pages again, mapped; with `releases` the space of what was taken is given back."""
        n_pages = _RELEASED_BYTES // layout.page_size if releases else _PAGES_A_BLOCK
        step = max(n_pages, 1) * layout.page_size
        if not self.n_saved:
            return
        with open(self.spool, "r+b", buffering=0) as stream:
            # Unmapped with its last part: who takes the parts may hold one when it fails.
            data = _mapped(stream)
            for at in range(self.n_old * layout.page_size, self.moved.n_pages * layout.page_size, step):
                yield data[at : at + step]
                if releases:
                    free_space(stream.fileno(), at, step)


def _mapped(stream: BufferedReader | FileIO) -> memoryview:
    """Map a file of pages, which is ours alone; it is unmapped with the last part of it."""
    size = os.fstat(stream.fileno()).st_size
    # An empty file cannot be mapped.
    return memoryview(mmap.mmap(stream.fileno(), size, access=mmap.ACCESS_READ) if size else b"")
