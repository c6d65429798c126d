"""A part of a recording as a trace.dat of its own, record by record in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.decode.rows import shown_time, signed_time
from tracepoint.errors import TracepointError
from tracepoint.model.patterns import matches_any
from tracepoint.record.page import U64, add_lost
from tracepoint.record.write import PageWriter
from tracepoint.tracefile.content import BufferContent, CpuPages
from tracepoint.tracefile.write import write_tracedat
from tracepoint.tree.writing import replacing

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterator

    from tracepoint.decode.rows import Window
    from tracepoint.decode.trace import Trace
    from tracepoint.tracefile.buffers import CpuData

    Progress = Callable[[int], None]

_BLOCK_RECORDS = 1 << 14


def write_cut(
    trace: Trace,
    path: str | os.PathLike[str],
    patterns: Collection[str] = (),
    *,
    version: int = 7,
    compression: str = "none",
    progress: Progress = lambda _: None,
) -> None:
    """Write the records of a trace, within its window, as a trace.dat with all else that the recording has.

    `patterns` choose events as `Trace.tables` does; `version` is 6 or 7, `compression` none, zlib or zstd;
    `progress` is called with the number of records read since the last call.  The file appears when it is
    complete.  Raises OSError, and TracepointError for what a trace.dat cannot hold.
    """
    file = trace.file
    buffer = trace.buffer
    if buffer is None:
        raise TracepointError(f"{file.path}: a trace without pages cannot be cut")
    wanted = None
    if patterns:
        forms = file.events.items()
        wanted = {number for number, form in forms if matches_any(patterns, f"{form.system}:{form.name}")}
    blocks = (CpuPages(c.cpu, _CutBlocks(c, wanted, trace.window, progress)) for c in buffer.cpus)
    content = replace(file.content(), buffers=(BufferContent(tuple(blocks), "", buffer.clock),))
    with replacing(Path(path), 0o644) as stream:
        write_tracedat(stream, content, version, compression)


@dataclass(frozen=True, slots=True)
class _CutBlocks:
    """The pages of what is left of one CPU."""

    cpu: CpuData
    wanted: Collection[int] | None
    window: Window
    progress: Progress

    def __iter__(self) -> Iterator[bytes]:
        cpu, (start, stop) = self.cpu, self.window
        is_big = cpu.layout.is_big_endian
        writer, n_kept, n_read, lost = PageWriter(cpu.layout), 0, 0, 0
        # Stamps stay as they are: the file says how to convert them.
        for record in replace(cpu, time_map=None).records():
            n_read += 1
            lost = add_lost(lost, record.lost)
            stamp = signed_time(record.timestamp)
            is_wanted = self.wanted is None or record.id(is_big_endian=is_big) in self.wanted
            if not is_wanted or not start <= shown_time(cpu.time_map, stamp, cpu.cpu) < stop:
                continue
            if record.cpu != cpu.cpu:
                raise TracepointError("records of a process, whose CPU changes within a ring, cannot be cut")
            if lost:
                writer.lose(lost)
                lost = 0
            writer.add(stamp & U64, record.data)
            n_kept += 1
            if n_kept == _BLOCK_RECORDS:
                yield writer.pages()
                self.progress(n_read)
                writer, n_kept, n_read = PageWriter(cpu.layout), 0, 0
        yield writer.pages()
        self.progress(n_read)
