"""Rings in files: the tables that stand beside them, and reading all of it from another process.

An instance with a directory writes its rings as `ring-PID-TID-SERIAL`, which a file is called once its
ring is complete, and the formats of its events as `formats-PID`.  `open_rings` needs nothing else: the
writer may be running, or may have been killed.
"""

from __future__ import annotations

import mmap
import os
import re
import stat
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracepoint.errors import TracepointError
from tracepoint.layout.format import EventFormat, read_format
from tracepoint.printk.program import compile_print
from tracepoint.printk.render import render_record
from tracepoint.runtime.fire import mechanism
from tracepoint.runtime.rings.files import MappedRing, RingFiles
from tracepoint.runtime.rings.format_table import SYSTEM
from tracepoint.runtime.rings.ring import ring_records
from tracepoint.wording import counted, one_line, tail

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.record.raw import RawRecord
    from tracepoint.runtime.fire.mechanism import CompiledCore
    from tracepoint.tracefile.recording import Recording

RING_NAME = re.compile(r"ring-(\d{1,10})-(\d{1,10})-(\d{1,20})")
MAX_RING = 65536 * 4096 + (4 << 20)
MAX_FORMATS = 64 << 20
MAGIC_SIZE = 8
CLOCKS = ("local", "global", "counter", "uptime", "perf", "mono", "mono_raw", "boot", "tai", "x86-tsc")


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

    `damage` lists what could not be read: a name and a reason each.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.damage: list[tuple[str, str]] = []

    def __repr__(self) -> str:
        return f"<MappedRings {tail(str(self.directory))}, {counted(len(self.rings), 'ring')}>"

    @cached_property
    def rings(self) -> tuple[MappedRing, ...]:
        """The rings, in the order of their files' names."""
        return tuple(self._read_rings())

    @cached_property
    def formats(self) -> dict[int, dict[int, EventFormat]]:
        """The formats of every process, by the events' numbers."""
        return {
            int(path.name.removeprefix("formats-")): dict(self._read_formats(path))
            for path in sorted(self.directory.glob("formats-*"))
            if path.name.removeprefix("formats-").isdigit()
        }

    def refresh(self) -> None:
        """Look again."""
        self.damage.clear()
        for name in ("rings", "formats"):
            self.__dict__.pop(name, None)

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
        clocks or the name ends in `.txt`, and OSError when the file cannot be written.
        """
        from tracepoint.runtime.rings.save_rings import save_rings  # noqa: PLC0415 - loads the writer of trace.dat

        files = RingFiles(self.directory, self.rings, self.formats, self.damage)
        return save_rings(files, Path(path), version=version, compression=compression)

    def _read_rings(self) -> Iterator[MappedRing]:
        core = mechanism.DEFAULT.compiled
        if core is None:
            raise TracepointError("rings in files are read by the C core, which is not there")
        for path in sorted(self.directory.glob("ring-*")):
            if RING_NAME.fullmatch(path.name) is None:
                continue
            try:
                yield _read_ring(core, path)
            except (OSError, ValueError) as error:
                self.damage.append((path.name, str(error)))

    def _read_formats(self, path: Path) -> Iterator[tuple[int, EventFormat]]:
        try:
            text = _open_regular(path, MAX_FORMATS).decode(errors="replace")
        except (OSError, ValueError) as error:
            self.damage.append((path.name, str(error)))
            return
        for part in text.split(f"\n{SYSTEM}"):
            system, _, body = part.removeprefix(SYSTEM).partition("\n")
            try:
                layout = read_format(body.rstrip("\n") + "\n", system)
            except TracepointError as error:
                self.damage.append((path.name, str(error)))
            else:
                yield layout.id, layout


def open_rings(directory: Path | str) -> MappedRings:
    """Read the rings that processes write, or wrote, into a directory.

    The process may go on writing; nothing is taken out.  Raises TracepointError without such a directory
    and without the C core.
    """
    path = Path(directory)
    if not path.is_dir():
        raise TracepointError(f"{path} is not a directory")
    found = MappedRings(path)
    _ = found.rings, found.formats
    return found


def _open_regular(path: Path, most: int) -> bytes:
    with _open(path, most) as file:
        return bytes(file.read(most))


def _open(path: Path, most: int) -> Any:
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    file = os.fdopen(number, "rb")
    facts = os.fstat(number)
    if not stat.S_ISREG(facts.st_mode) or facts.st_size > most:
        file.close()
        raise ValueError("not a file that an instance wrote")
    return file


def _read_ring(core: CompiledCore, path: Path) -> MappedRing:
    with _open(path, MAX_RING) as file:
        if not any(file.read(MAGIC_SIZE)):
            raise ValueError("not complete: its writer ended, or is at work, before the ring was made")
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    with memory:
        ring = core.Ring.attach(memory)
        pages, stats, owner = tuple(ring.peek()), ring.stats(), ring.owner()
        del ring
    clock = CLOCKS[owner["clock"]] if owner["clock"] < len(CLOCKS) else "?"
    comm = owner["comm"].decode(errors="replace")
    return MappedRing(path, owner["pid"], owner["tid"], comm, clock, owner["is_ended"], stats, pages)
