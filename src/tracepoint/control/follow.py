"""Following a trace array: its records by time as they come, in bounded memory."""

from __future__ import annotations

from contextlib import ExitStack
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tracepoint.control.facts import RecordedFacts
from tracepoint.errors import TracefsError
from tracepoint.tracefile.follow import Followed
from tracepoint.tracefile.live import LiveSource

if TYPE_CHECKING:
    from tracepoint.control.array import ArrayFiles


class FollowedArray(Followed):
    """The ring buffers of an array, consumed as `trace_pipe` consumes them.

    Events must be enabled before; those that are enabled later have no format here.  A page is read as soon
    as it has a record: no CPU is waited for.  Raises TracefsError where no event is enabled or the kernel
    refuses.
    """

    def __init__(self, array: ArrayFiles) -> None:
        self._array = array
        enabled = array.enabled
        if not enabled:
            raise TracefsError(f"no event is enabled in {array.path}: there is nothing to follow")
        with ExitStack() as opened:
            folder = opened.enter_context(TemporaryDirectory(prefix="tracepoint-"))
            facts = RecordedFacts.read(array)
            read = array.tracefs.read
            formats = {name: read(f"events/{name.replace(':', '/')}/format") for name in enabled}
            facts.save(folder, formats)
            self._pages: dict[int, LiveSource] = {}
            for cpu in array.buffer_bytes:
                path = f"{array.prefix}per_cpu/{cpu}/trace_pipe_raw"
                try:
                    source = array.tracefs.files.open_pages(path)
                except OSError as error:
                    raise array.tracefs.explain(error, path) from error
                opened.callback(source.close)
                self._pages[int(cpu[3:])] = LiveSource(source.read, facts.layout.page_size)
            super().__init__(array.path, formats=folder, delay_s=0, sources=self._pages)
            self._opened = opened.pop_all()

    def close(self) -> None:
        """Close the ring buffers; until then their instance cannot be removed."""
        self._opened.close()

    def saved_cmdlines(self) -> str:
        """Return the names of tasks as they are now."""
        return self._array.tracefs.read("saved_cmdlines")

    def end(self) -> None:
        """Turn the array off; going through the records ends after those that it holds."""
        self._array.is_on = False
        for source in self._pages.values():
            source.ends = True
