"""Rings in files, read from another process: the writer may be running, or may have been killed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.errors import TracepointError
from tracepoint.printk.program import compile_print
from tracepoint.printk.render import render_record
from tracepoint.record.pages import ring_records
from tracepoint.tracefile.ringfiles import read_ring_files
from tracepoint.wording import counted, one_line, tail

if TYPE_CHECKING:
    import os

    from tracepoint.layout.format import EventFormat
    from tracepoint.record.raw import RawRecord
    from tracepoint.tracefile.recording import Recording
    from tracepoint.tracefile.ringfiles import MappedRing


@dataclass(frozen=True, slots=True)
class MappedRecord:
    """One record of a mapped ring: whose it is, its event's format, and the raw record."""

    pid: int
    comm: str
    layout: EventFormat
    raw: RawRecord

    def __repr__(self) -> str:
        return f"<MappedRecord {one_line(self.event)} of process {self.pid}>"

    @property
    def event(self) -> str:
        """`system:name`."""
        return f"{self.layout.system}:{self.layout.name}"

    @property
    def text(self) -> str:
        """What the print format makes of it."""
        return render_record(compile_print(self.layout), self.raw.data).text


class MappedRings:
    """All rings of a directory, as they were when they were looked at last.

    `damage` lists what could not be read: a name and a reason each.  Raises OSError, and TracepointError
    without the C core.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._files = read_ring_files(directory)

    def __repr__(self) -> str:
        return f"<MappedRings {tail(str(self.directory))}, {counted(len(self.rings), 'ring')}>"

    @property
    def rings(self) -> tuple[MappedRing, ...]:
        """The rings, in the order of their files' names."""
        return self._files.rings

    @property
    def formats(self) -> dict[int, dict[int, EventFormat]]:
        """The formats of every process, by the events' numbers."""
        return self._files.formats

    @property
    def damage(self) -> list[tuple[str, str]]:
        """What could not be read: a name and a reason each."""
        return self._files.damage

    def refresh(self) -> None:
        """Look again."""
        self._files = read_ring_files(self.directory)

    def records(self) -> list[MappedRecord]:
        """Return all records in the order of time; those of unknown events are in `damage`."""
        found = []
        for ring in self.rings:
            formats = self.formats.get(ring.pid, {})
            for raw in ring_records(ring.pages):
                layout = formats.get(raw.id())
                if layout is None:
                    self.damage.append((ring.path.name, f"a record of event {raw.id()}, which has no format"))
                else:
                    found.append(MappedRecord(ring.pid, ring.comm, layout, raw))
        return sorted(found, key=lambda record: record.raw.timestamp)

    def save(self, path: str | os.PathLike[str], *, version: int = 7, compression: str = "") -> Recording:
        """Save what all processes recorded as one trace.dat, in the order of time; return what was saved.

        The threads keep their numbers and names, and `saved_tgids` has their processes.  What the rings lost
        and what could not be read is a LossWarning.  Raises TracepointError where the rings have several
        clocks, or the name is that of another form, `x.txt`, and OSError when the file cannot be written.
        """
        from tracepoint.runtime.rings.save_rings import save_rings  # noqa: PLC0415 - loads the writer of trace.dat

        return save_rings(self._files, Path(path), version=version, compression=compression)


def open_rings(directory: Path | str) -> MappedRings:
    """Read the rings that processes write, or wrote, into a directory.

    The process may go on writing; nothing is taken out.  Raises TracepointError without such a directory
    and without the C core.
    """
    path = Path(directory)
    if not path.is_dir():
        raise TracepointError(f"{path} is not a directory")
    return MappedRings(path)
