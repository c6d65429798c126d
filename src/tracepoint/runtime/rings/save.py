"""Saving what was recorded: trace.dat for trace-cmd and KernelShark, or the text of `trace`."""

from __future__ import annotations

import io
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.errors import LossWarning, TracepointError
from tracepoint.layout.format import write_format
from tracepoint.layout.process_events import OWN_EVENTS
from tracepoint.record.layout import PageLayout
from tracepoint.record.write import PageWriter
from tracepoint.runtime.files.trace import peeked_records, stats_text, trace_text
from tracepoint.runtime.files.tree import process_files
from tracepoint.runtime.rings.mapped import open_rings
from tracepoint.runtime.rings.options import DIRECTORY_VARIABLE
from tracepoint.runtime.rings.symbols import kallsyms_text
from tracepoint.tracefile.compression import default_compression
from tracepoint.tracefile.content import BufferContent, CpuPages, TraceContent
from tracepoint.tracefile.options import Option, OptionId, text_option
from tracepoint.tracefile.recording import CpuStats, Recording, stats_options
from tracepoint.tracefile.write import check_tracedat_name, write_tracedat

if TYPE_CHECKING:
    from tracepoint.runtime.files.state import InstanceState
    from tracepoint.runtime.files.tree import ControlFiles


def save(
    path: str | os.PathLike[str],
    *,
    version: int = 7,
    compression: str = "",
    children: bool = False,
    files: ControlFiles | None = None,
) -> Recording:
    """Save what all instances recorded, and leave it in the rings; return what was saved.

    With `children`, what all processes recorded that share the directory of the top instance
    (`TRACEPOINT_DIRECTORY`): this one, those it forked or started, and those that ended.

    A name that ends in `.txt` gets the text of `trace` of the top instance.  `version` of trace.dat is 6 or
    7; `compression` is `none`, `zlib` or `zstd`, without it zstd where that can be had (version 7).
    `files` are the control files of the hierarchy, those of the process without it.
    Where events are missing, because the rings were too small or could not be made, `missing` of the
    result says how many, and so does a LossWarning.  Raises TracepointError for another combination, and for
    the name of another form such as `x.csv`, and OSError when the file cannot be written.
    """
    tree = files or process_files()
    target = Path(path)
    if children:
        return open_rings(_shared_directory(tree)).save(target, version=version, compression=compression)
    if target.suffix == ".txt":
        state = tree.state_of(tree.tracing)
        target.write_text(trace_text(state), errors="surrogateescape")
        buffers: tuple[SavedBuffer, ...] = (_buffer(state, ""),)
    else:
        check_tracedat_name(target)
        data, buffers = saved_bytes(tree, version, compression)
        target.write_bytes(data)
    saved = Recording(str(target), tuple(stats for buffer in buffers for stats in buffer.cpus))
    if saved.missing:
        warnings.warn(f"{target}: {saved.missing}: larger rings keep more", LossWarning, stacklevel=2)
    return saved


def _shared_directory(tree: ControlFiles) -> str:
    directory = tree.tracing.directory
    if not directory:
        raise TracepointError(
            "what children record is in their own memory: start the program with "
            f"{DIRECTORY_VARIABLE}=DIRECTORY, where all keep their rings as files"
        )
    return directory


@dataclass(frozen=True, slots=True)
class SavedBuffer:
    """One instance as it is saved: its pages, its counts as options of trace.dat, and what they say."""

    content: BufferContent
    options: tuple[Option, ...]
    cpus: tuple[CpuStats, ...]


def saved_bytes(
    tree: ControlFiles, version: int = 7, compression: str = ""
) -> tuple[bytes, tuple[SavedBuffer, ...]]:
    """Return what was recorded as trace.dat, and by instance what was lost; see `save`."""
    arrays = {"": tree.tracing, **tree.tracing.instances}
    buffers = tuple(_buffer(tree.state_of(array), name) for name, array in arrays.items())
    stream = io.BytesIO()
    write_tracedat(stream, _content(tree, buffers), version, compression or default_compression(version))
    return stream.getvalue(), buffers


def _content(tree: ControlFiles, buffers: tuple[SavedBuffer, ...]) -> TraceContent:
    events = tree.tracing.events
    formats = tuple((form.system, write_format(form)) for form in OWN_EVENTS)
    formats += tuple((event.system, write_format(event.layout)) for event in events)
    host = os.uname()
    return TraceContent(
        tuple(buffer.content for buffer in buffers),
        formats,
        kallsyms=kallsyms_text(),
        saved_cmdlines=tree.read_text("saved_cmdlines"),
        saved_tgids=tree.read_text("saved_tgids") or None,
        options=(
            text_option(OptionId.UNAME, " ".join(host)),
            *(o for buffer in buffers for o in buffer.options),
        ),
        n_cpus=tree.n_cpus,
    )


def _buffer(state: InstanceState, name: str) -> SavedBuffer:
    """Lay the records of each CPU out in the order of time, from the rings of all threads."""
    writers = {cpu: PageWriter(PageLayout()) for cpu in range(state.n_cpus)}
    n_records = dict.fromkeys(writers, 0)
    for record in peeked_records(state):
        writer = writers.setdefault(record.cpu, PageWriter(PageLayout()))
        if record.lost:
            writer.lose(record.lost)
        writer.add(record.timestamp, record.data)
        n_records[record.cpu] = n_records.get(record.cpu, 0) + 1
    made, cpus = [], []
    for cpu, writer in sorted(writers.items()):
        pages, lost = writer.pages(), state.stats(cpu) if cpu < state.n_cpus else {}
        made.append(CpuPages(cpu, (pages,)))
        overrun = lost.get("overrun", 0) + lost.get("commit_overrun", 0)
        n_pages = len(pages) // PageLayout().page_size
        cpus.append(CpuStats(cpu, n_pages, n_records[cpu], overrun, lost.get("dropped", 0), name))
    options = stats_options({cpu: stats_text(state, cpu) for cpu in range(state.n_cpus)}, name)
    return SavedBuffer(BufferContent(tuple(made), name, state.instance.clock), options, tuple(cpus))
