"""Ring files of several processes as one trace.dat: a server with its workers, or who was killed."""

from __future__ import annotations

import io
import os
import warnings
from typing import TYPE_CHECKING

from tracepoint.errors import LossWarning, TracepointError
from tracepoint.record.layout import PageLayout
from tracepoint.runtime.files.state import count_possible_cpus
from tracepoint.tracefile.compression import default_compression
from tracepoint.tracefile.container import DamageLog
from tracepoint.tracefile.content import BufferContent, CpuPages, TraceContent
from tracepoint.tracefile.filebytes import close_bytes
from tracepoint.tracefile.options import OptionId, text_option
from tracepoint.tracefile.recording import Recording
from tracepoint.tracefile.rings import merge_rings
from tracepoint.tracefile.write import check_tracedat_name, write_tracedat

if TYPE_CHECKING:
    from pathlib import Path

    from tracepoint.tracefile.container import Parts
    from tracepoint.tracefile.damage import Damage
    from tracepoint.tracefile.filebytes import Bytes
    from tracepoint.tracefile.ringfiles import RingFiles

_MAX_TOLD = 3


def save_rings(rings: RingFiles, path: Path, *, version: int, compression: str) -> Recording:
    """Save all rings of a directory as trace.dat; see `MappedRings.save`."""
    if version not in (6, 7):
        raise TracepointError(f"trace.dat has the versions 6 and 7, not {version}")
    check_tracedat_name(path)
    log = DamageLog()
    opened: list[Bytes] = []
    try:
        made = merge_rings(rings, PageLayout(), log.report, opened)
        stream = io.BytesIO()
        write_tracedat(stream, _content(made.parts), version, compression or default_compression(version))
    finally:
        for data in opened:
            close_bytes(data)
    path.write_bytes(stream.getvalue())
    saved = Recording(str(path), made.cpus)
    if problems := "; ".join(filter(None, (saved.missing, _damage_text(log.all())))):
        warnings.warn(f"{path}: {problems}", LossWarning, stacklevel=3)
    return saved


def _content(parts: Parts) -> TraceContent:
    """Return what is written: with all CPUs that the machine may have, as readers expect."""
    buffer = parts.buffers[0].content()
    pages = {cpu.cpu: cpu for cpu in buffer.cpus}
    n_cpus = max(parts.content.n_cpus, count_possible_cpus())
    cpus = tuple(pages.get(number, CpuPages(number, ())) for number in range(n_cpus))
    return parts.content._replace(
        buffers=(BufferContent(cpus, "", buffer.clock),),
        options=(text_option(OptionId.UNAME, " ".join(os.uname())), *parts.content.options),
        n_cpus=n_cpus,
    )


def _damage_text(damage: tuple[Damage, ...]) -> str:
    """Say what could not be read; empty when all could."""
    told = [one.reason for one in damage[:_MAX_TOLD]]
    if len(damage) > len(told):
        told.append(f"{len(damage) - len(told)} more places")
    return "; ".join(told)
