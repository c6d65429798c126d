"""The files in which a Python process keeps its rings: `ring-PID-TID-SERIAL`, and `formats-PID` beside them.

A file has the name of a ring once the ring is complete.  Nothing else is needed to read them: the writer
may be running, or may have been killed.
"""

from __future__ import annotations

import mmap
import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracepoint.errors import DecodeError, TracepointError
from tracepoint.layout.format import read_format
from tracepoint.named import NamedTuple
from tracepoint.record.core import CORE
from tracepoint.wording import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.layout.format import EventFormat

#: The line before each format in a file of formats.
SYSTEM = "system: "

_RING = re.compile(r"ring-(?P<pid>\d{1,10})-\d{1,10}-\d{1,20}", re.ASCII)
# A ring is made under a name of its own, and linked to its name once it is complete: csrc/thread.c.
_MAPPED = re.compile(
    rb"(?:\S+ +){4}(?P<inode>\d+) +(?P<folder>/.*)(?<=/)"
    rb"\.?(?P<name>ring-(?P<pid>\d{1,10})-\d{1,10}-\d{1,20})(?:-[^/]*)?(?: \(deleted\))?",
    re.DOTALL,
)
_FORMATS = re.compile(r"formats-(?P<pid>\d{1,10})", re.ASCII)
_MAX_RING = 65536 * 4096 + (4 << 20)
_MAX_FORMATS = 64 << 20
_MAGIC_SIZE = 8
# As csrc/clock.h numbers them.
_CLOCKS = ("local", "global", "counter", "uptime", "perf", "mono", "mono_raw", "boot", "tai", "x86-tsc")


@dataclass(frozen=True)
class MappedRing:
    """One ring file: the process and thread that wrote it, and how many records it holds and lost."""

    path: Path
    pid: int
    tid: int
    comm: str
    clock: str
    is_ended: bool
    stats: dict[str, int]
    pages: tuple[bytes, ...] = field(repr=False)

    def __repr__(self) -> str:
        name, n_records = one_line(self.comm), self.stats.get("entries", 0)
        return f"<MappedRing of {name}, process {self.pid}, {counted(n_records, 'record')}>"


class RingFiles(NamedTuple):
    """All rings of a directory; `formats` are those of each process by the events' numbers.

    `damage` lists what could not be read: a name and a reason each.
    """

    directory: Path
    rings: tuple[MappedRing, ...]
    formats: dict[int, dict[int, EventFormat]]
    damage: list[tuple[str, str]]


def is_ring_folder(directory: Path) -> bool:
    """Say whether a directory has files with the names of rings or of their formats."""
    return any(_RING.fullmatch(name) or _FORMATS.fullmatch(name) for name in os.listdir(directory))  # noqa: PTH208 - names are enough


def read_ring_files(directory: Path, pid: int | None = None) -> RingFiles:
    """Read the rings of all processes, or of one; raises OSError, and DecodeError without the C core.

    Nothing is taken out of them, and a process may go on writing.
    """
    if CORE is None:
        raise DecodeError("rings in files are read by the C core, which is not there", str(directory))
    found = RingFiles(directory, (), {}, [])
    rings = []
    for path, owner in _named(directory, _RING):
        if pid in (None, owner):
            try:
                rings.append(_read_ring(path))
            except (OSError, ValueError) as error:
                found.damage.append((path.name, str(error)))
    for path, owner in _named(directory, _FORMATS):
        if pid in (None, owner):
            found.formats[owner] = dict(_read_formats(path, found.damage))
    return found._replace(rings=tuple(rings))


def rings_mapped_by(pid: int) -> list[Path]:
    """Return the directories that hold rings of a running process, as its memory map says.

    Raises OSError when the process is not there, or belongs to another user (see ptrace(2), access modes).
    """
    found = set()
    for line in Path(f"/proc/{pid}/maps").read_bytes().split(b"\n"):
        match = _MAPPED.fullmatch(line)
        if match is not None and int(match["pid"]) == pid:
            # fs/proc/task_mmu.c: show_vma_header_prefix() and seq_path(), which escapes newlines only.
            ring = Path(os.fsdecode(match["folder"].replace(rb"\012", b"\n") + match["name"]))
            # In another mount namespace it may be another file, or none.
            with suppress(OSError):
                if ring.stat().st_ino == int(match["inode"]):
                    found.add(ring.parent)
    return sorted(found)


def _named(directory: Path, name: re.Pattern[str]) -> Iterator[tuple[Path, int]]:
    """Yield the files whose names match, in their order, with the process that each belongs to."""
    for path in sorted(directory.iterdir()):
        if (match := name.fullmatch(path.name)) is not None:
            yield path, int(match["pid"])


def _read_formats(path: Path, damage: list[tuple[str, str]]) -> Iterator[tuple[int, EventFormat]]:
    try:
        with _open(path, _MAX_FORMATS) as file:
            text = file.read(_MAX_FORMATS).decode(errors="replace")
    except (OSError, ValueError) as error:
        damage.append((path.name, str(error)))
        return
    for part in text.split(f"\n{SYSTEM}"):
        system, _, body = part.removeprefix(SYSTEM).partition("\n")
        try:
            layout = read_format(body.rstrip("\n") + "\n", system)
        except TracepointError as error:
            damage.append((path.name, str(error)))
        else:
            yield layout.id, layout


def _open(path: Path, most: int) -> Any:
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    file = os.fdopen(number, "rb")
    facts = os.fstat(number)
    if not stat.S_ISREG(facts.st_mode) or facts.st_size > most:
        file.close()
        raise ValueError("not a file that an instance wrote")
    return file


def _read_ring(path: Path) -> MappedRing:
    core: Any = CORE
    with _open(path, _MAX_RING) as file:
        if not any(file.read(_MAGIC_SIZE)):
            raise ValueError("not complete: its writer ended, or is at work, before the ring was made")
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    with memory:
        ring = core.Ring.attach(memory)
        pages, stats, owner = tuple(ring.peek()), ring.stats(), ring.owner()
        del ring
    clock = _CLOCKS[owner["clock"]] if owner["clock"] < len(_CLOCKS) else "?"
    comm = owner["comm"].decode(errors="replace")
    return MappedRing(path, owner["pid"], owner["tid"], comm, clock, owner["is_ended"], stats, pages)
