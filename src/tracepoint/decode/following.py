"""Records of a recording that is still being written: `follow` returns a `Following`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.closing import Closing
from tracepoint.decode.records import Record
from tracepoint.decode.trace import Trace
from tracepoint.tracefile.follow import DELAY_S, Followed, never
from tracepoint.tracefile.text import TextWriter, facts_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from tracepoint.tracefile.buffers import TraceBuffer
    from tracepoint.tracefile.container import Container
    from tracepoint.tracefile.damage import Damage

    Step = Callable[[Trace], Trace]


class Following(Closing):
    """The records of `followed` by time, as they come; going through them reads on.

    `select`, `on_cpus`, `of_tasks` and `where` choose records as those of `Trace` do.
    """

    def __init__(self, followed: Followed, steps: tuple[Step, ...] = (), instance: str = "") -> None:
        self._followed = followed
        self._steps = steps
        self._instance = instance
        self._going: Iterator[Record] | None = None

    def __repr__(self) -> str:
        return f"<Following {self._followed.path}>"

    def close(self) -> None:
        """Close the files."""
        self._followed.close()

    def _with(self, step: Step) -> Following:
        return Following(self._followed, (*self._steps, step), self._instance)

    def select(self, *patterns: str) -> Following:
        """Return the same with the events that match: `sched:*`, `*:sched_*`, `sched_switch`."""
        return self._with(lambda trace: trace.select(*patterns))

    def on_cpus(self, *cpus: int) -> Following:
        """Return the same with the records of some CPUs."""
        return self._with(lambda trace: trace.on_cpus(*cpus))

    def of_tasks(self, *tasks: int | str) -> Following:
        """Return the same with the records that tasks wrote: their ids, or names known at the start."""
        return self._with(lambda trace: trace.of_tasks(*tasks))

    def where(self, text: str) -> Following:
        """Return the same with the records that pass a filter in the kernel's language."""
        return self._with(lambda trace: trace.where(text))

    @property
    def n_lost(self) -> int:
        """How many events were lost, as what was read so far says it; LOST_UNKNOWN (-1): some."""
        return self._followed.n_lost

    @property
    def n_late(self) -> int:
        """How many records came after later ones had been given."""
        return self._followed.n_late

    @property
    def damage(self) -> tuple[Damage, ...]:
        """What could not be read so far."""
        return self._followed.damage

    def _chosen(self, file: Container) -> TraceBuffer | None:
        trace = Trace(file, self._instance)
        for step in self._steps:
            trace = step(trace)
        return trace.buffer

    def records(self, is_stopped: Callable[[], bool] = never) -> Iterator[Record]:
        """Yield the records; `is_stopped` is asked many times a second, then the last ones follow."""
        file, writer = None, TextWriter({})
        for container, batch in self._followed.chunks(self._chosen, is_stopped):
            if container is not file:
                file = container
                writer = TextWriter(file.events, facts_of(file), is_big_endian=file.is_big_endian)
            for raw in batch:
                yield Record(raw, file.events.get(raw.id(is_big_endian=file.is_big_endian)), writer)

    def __iter__(self) -> Iterator[Record]:
        """Go on with the next record, also after a loop that was left."""
        if self._going is None:
            self._going = self.records()
        return self._going


def follow(
    path: str | os.PathLike[str],
    *,
    formats: str | os.PathLike[str] | None = None,
    instance: str = "",
    delay_s: float = DELAY_S,
) -> Following:
    """Follow pages or a text that are still being written, in bounded memory.

    `path` is a folder of `trace_pipe_raw` files, such as a tracefs, one such file, a FIFO, a text of
    `trace_pipe`, or `-` for standard input.  Formats and texts are in the folder, in that above, or in
    `formats`; `instance` names a ring buffer beside the top one.  Records are by time: a CPU without
    records is waited for `delay_s` seconds.  Ends when the pipes end; files do not.  Raises OSError and
    DecodeError.
    """
    followed = Followed(path, formats=formats, instance=instance, delay_s=delay_s)
    return Following(followed, (), instance)
