"""Saving what was recorded: trace.dat for trace-cmd and KernelShark, or the text of `trace`."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.layout.format import write_format
from tracepoint.runtime.files_text import OWN_EVENTS
from tracepoint.runtime.files_trace import peeked_records, trace_text
from tracepoint.runtime.files_tree import process_files
from tracepoint.runtime.hierarchy import tracing
from tracepoint.runtime.symbols import kallsyms_text
from tracepoint.tracefile.compression import has_zstd
from tracepoint.tracefile.content import BufferContent, CpuPages, TraceContent
from tracepoint.tracefile.options import Option, OptionId, text_option
from tracepoint.tracefile.pages import PageLayout, PageWriter
from tracepoint.tracefile.write import write_tracedat

if TYPE_CHECKING:
    from tracepoint.runtime.files_state import InstanceState
    from tracepoint.runtime.files_tree import ControlFiles


def save(path: str | os.PathLike[str], *, version: int = 7, compression: str = "") -> None:
    """Save what all instances recorded, and leave it in the rings.

    A name that ends in `.txt` gets the text of `trace`.  `version` of trace.dat is 6 or 7;
    `compression` is `none`, `zlib` or `zstd`, without it zstd where that can be had (version 7).
    Raises TracepointError for another combination and OSError when the file cannot be written.
    """
    tree = process_files()
    target = Path(path)
    if target.suffix == ".txt":
        target.write_text(trace_text(tree.state_of(tracing)), errors="surrogateescape")
    else:
        target.write_bytes(saved_bytes(tree, version, compression))


def saved_bytes(tree: ControlFiles, version: int = 7, compression: str = "") -> bytes:
    """Return what was recorded as trace.dat; see `save`."""
    if not compression:
        compression = "zstd" if version == 7 and has_zstd() else "none"
    stream = io.BytesIO()
    write_tracedat(stream, recording(tree), version, compression)
    return stream.getvalue()


def recording(tree: ControlFiles) -> TraceContent:
    """Return everything that a recording of this process holds."""
    events = tree.tracing.events
    formats = tuple((form.system, write_format(form)) for form in OWN_EVENTS)
    formats += tuple((event.system, write_format(event.layout)) for event in events)
    buffers = [_buffer(tree.state_of(tree.tracing), "")]
    for name, instance in list(tree.tracing.instances.items()):
        buffers.append(_buffer(tree.state_of(instance), name))
    host = os.uname()
    uname = f"{host.sysname} {host.nodename} {host.release} {host.version} {host.machine}"
    options: tuple[Option, ...] = (text_option(OptionId.UNAME, uname),)
    return TraceContent(
        tuple(buffers),
        formats,
        kallsyms=kallsyms_text(),
        saved_cmdlines=tree.read_text("saved_cmdlines"),
        saved_tgids=tree.read_text("saved_tgids") or None,
        options=options,
        n_cpus=tree.n_cpus,
    )


def _buffer(state: InstanceState, name: str) -> BufferContent:
    """Lay the records of each CPU out in the order of time, from the rings of all threads."""
    writers = {cpu: PageWriter(PageLayout()) for cpu in range(state.n_cpus)}
    for record in peeked_records(state):
        writer = writers.setdefault(record.cpu, PageWriter(PageLayout()))
        if record.lost:
            writer.lose(record.lost)
        writer.add(record.timestamp, record.data)
    cpus = tuple(CpuPages(cpu, (writer.pages(),)) for cpu, writer in sorted(writers.items()))
    return BufferContent(cpus, name, state.instance.clock)
