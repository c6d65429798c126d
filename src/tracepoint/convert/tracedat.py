"""A part of a recording as a trace.dat of its own, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import merge
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.errors import TracepointError
from tracepoint.record.pages import read_pages
from tracepoint.record.write import PageWriter
from tracepoint.tracefile.content import BufferContent, CpuPages
from tracepoint.tracefile.options import TIME_OPTIONS
from tracepoint.tracefile.sieve import Sieve
from tracepoint.tracefile.write import check_tracedat_name, write_tracedat
from tracepoint.tree.writing import replacing

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from tracepoint.decode.trace import Trace
    from tracepoint.record.layout import PageLayout
    from tracepoint.tracefile.cpudata import CpuData

    Progress = Callable[[int], None]

_BLOCK_RECORDS = 1 << 14


def write_cut(
    trace: Trace,
    path: str | os.PathLike[str],
    *,
    version: int = 7,
    compression: str = "none",
    progress: Progress = lambda _: None,
) -> None:
    """Write the selected records of a trace as a trace.dat with all else that the recording has.

    `version` is 6 or 7, `compression` none, zlib or zstd; `progress` is called with the number of records
    written since the last call.  The file appears when it is complete.  Raises OSError, and TracepointError
    for what a trace.dat cannot hold and for the name of another form, such as `x.csv`.
    """
    check_tracedat_name(Path(path))
    file = trace.file
    buffer = trace.in_order
    if buffer is None:
        raise TracepointError(f"{file.path}: a trace without pages cannot be cut")
    content = file.content()
    # Stamps stay as they are where the file says how to convert them.
    if any(option.id in TIME_OPTIONS for option in content.options):
        buffer = replace(buffer, cpus=tuple(replace(cpu, time_map=None) for cpu in buffer.cpus))
    numbers = sorted({cpu.cpu for cpu in buffer.cpus})
    blocks = (
        CpuPages(n, _CutBlocks(tuple(c for c in buffer.cpus if c.cpu == n), content.layout, progress))
        for n in numbers
    )
    content = content._replace(buffers=(BufferContent(tuple(blocks), "", buffer.clock),))
    with replacing(Path(path), 0o644) as stream:
        write_tracedat(stream, content, version, compression)


@dataclass(frozen=True, slots=True)
class _CutBlocks:
    """The pages of what is left of one CPU, which several files may have."""

    sources: tuple[CpuData, ...]
    layout: PageLayout
    progress: Progress

    def __iter__(self) -> Iterator[bytes]:
        only = self.sources[0]
        # Pages hold stamps, and a sieve leaves out what is damaged.
        if len(self.sources) == 1 and only.time_map is None and only.layout == self.layout:
            whole = only if only.sieve is not None else replace(only, sieve=Sieve(only.layout))
            for block in whole.blocks():
                yield block
                self.progress(len(read_pages(block, self.layout).stamps))
        else:
            yield from self._by_record()

    def _by_record(self) -> Iterator[bytes]:
        number = self.sources[0].cpu
        writer, n_kept = PageWriter(self.layout), 0
        streams = (cpu.records(with_losses=True) for cpu in self.sources)
        for record in merge(*streams, key=lambda r: r.timestamp):
            if record.lost and not record.data:
                writer.lose_apart(record.timestamp, record.lost)
                continue
            if record.lost:
                writer.lose(record.lost)
            writer.add(record.timestamp, record.data, None if record.cpu == number else record.cpu)
            n_kept += 1
            if n_kept == _BLOCK_RECORDS:
                yield writer.pages()
                self.progress(n_kept)
                writer, n_kept = PageWriter(self.layout), 0
        yield writer.pages()
        self.progress(n_kept)
