"""Several recordings as one, by time: what differs in them is kept apart, or refused."""

from __future__ import annotations

import re
from array import array
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.errors import DecodeError
from tracepoint.tracefile.buffers import TraceBuffer
from tracepoint.tracefile.container import DamageLog, Parts, PartsContainer
from tracepoint.tracefile.options import TIME_OPTIONS, OptionId
from tracepoint.tracefile.recording import read_pairs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracepoint.tracefile.container import Container
    from tracepoint.tracefile.damage import Damage

#: Clocks with one zero and one speed in the kernel and in what a program reads with clock_gettime():
#: kernel/trace/trace.c: trace_clocks[].
COMMON_CLOCKS = ("mono", "mono_raw", "boot", "tai")
_N_IDS = 1 << 16
_ID = re.compile(r"^ID:[ \t]*(\d{1,9})[ \t\r]*$", re.MULTILINE)
_NAME = re.compile(r"^name:[ \t]*([^\n]*?)[ \t\r]*$", re.MULTILINE)


class MergedContainer(PartsContainer):
    """Recordings with one clock, one byte order and one width of `long`, whose records are merged by time.

    Events with the same name and fields are one, whatever their ids.  One whose fields differ keeps its
    records apart, in the system `SYSTEM@FILE`.  The names of a task that differ are left out, and symbols
    where recordings have different ones.
    """

    def __init__(self, files: Sequence[Container]) -> None:
        self._files = files
        _check_alike(files)
        path = " + ".join(Path(file.path).name for file in files)
        super().__init__(path, f"{len(files)} recordings", lambda _: _merge(files), [], DamageLog())

    def close(self) -> None:
        """Close the files; nothing more can be read from them."""
        super().close()
        for file in self._files:
            file.close()

    @property
    def damage(self) -> tuple[Damage, ...]:
        """What could not be read so far, with the name of its file."""
        return (
            *super().damage,
            *(replace(d, reason=f"{Path(f.path).name}: {d.reason}") for f in self._files for d in f.damage),
        )


def _check_alike(files: Sequence[Container]) -> None:
    """Refuse files that cannot be one; raises DecodeError that names them."""
    first = files[0]
    for file in files[1:]:
        kinds = [(f.is_big_endian, f.layout.long_size) for f in (first, file)]
        if kinds[0] != kinds[1]:
            words = [f"{8 * size}-bit {'big' if big else 'little'}-endian" for big, size in kinds]
            reason = f"its records are {words[1]}, those of {first.path} {words[0]}"
            raise DecodeError(reason, file.path)
        if first.clock and file.clock and first.clock != file.clock:
            raise DecodeError(
                f"its clock is {file.clock}, that of {first.path} {first.clock}: times cannot be compared",
                file.path,
            )


def _merge(files: Sequence[Container]) -> Parts:
    events = _Events()
    buffers: dict[str, list[TraceBuffer]] = {}
    for file in files:
        new_ids = events.add(file)
        for buffer in file.buffers:
            cpus = tuple(replace(cpu, new_ids=new_ids) for cpu in buffer.cpus)
            buffers.setdefault(buffer.name, []).append(replace(buffer, cpus=cpus))
    merged = tuple(
        TraceBuffer(name, same[0].clock, tuple(c for b in same for c in b.cpus)).sifted()
        for name, same in buffers.items()
    )
    contents = [file.content() for file in files]
    # Times are those that each file's own options give.
    options = [o for o in contents[0].options if o.id not in TIME_OPTIONS]
    options += [o for content in contents[1:] for o in content.options if o.id == OptionId.CPUSTAT]
    content = contents[0]._replace(
        buffers=(),
        formats=tuple(events.formats),
        kallsyms=_only(content.kallsyms for content in contents),
        printk_formats=_only(content.printk_formats for content in contents),
        saved_cmdlines=_pairs(content.saved_cmdlines for content in contents),
        saved_tgids=_pairs(c.saved_tgids or "" for c in contents)
        if any(c.saved_tgids is not None for c in contents)
        else None,
        options=tuple(options),
        n_cpus=max(content.n_cpus for content in contents),
    )
    return Parts(content, merged)


class _Events:
    """The formats of all files, each event with an id that no other has."""

    def __init__(self) -> None:
        self.formats: list[tuple[str, str]] = []
        self._ids: dict[tuple[str, str, str], int] = {}
        self._names: set[tuple[str, str]] = set()
        self._used: set[int] = set()
        self._without = _N_IDS - 1

    def add(self, file: Container) -> array[int]:
        """Add the events of a file; return the new id for each of its own."""
        found: dict[int, int] = {}
        for system, text in file.formats:
            number, name = _ID.search(text), _NAME.search(text)
            if number is None or name is None or not 0 <= int(number[1]) < _N_IDS:
                continue
            found[int(number[1])] = self._id(file, system, name[1], int(number[1]), text)
        # Records whose format the file does not have are kept apart from the events of others.
        return array("H", (found.get(number, self._without) for number in range(_N_IDS)))

    def _id(self, file: Container, system: str, name: str, number: int, text: str) -> int:
        body = _ID.sub("", text, count=1)
        known = self._ids.get((system, name, body))
        if known is not None:
            return known
        fresh = self._free(number)
        self._used.add(fresh)
        self._ids[system, name, body] = fresh
        other, n_more = system, 1
        while (other, name) in self._names:
            other, n_more = f"{system}@{Path(file.path).stem}{f'.{n_more}' if n_more > 1 else ''}", n_more + 1
        self._names.add((other, name))
        self.formats.append((other, _ID.sub(f"ID: {fresh}", text, count=1)))
        return fresh

    def _free(self, wanted: int) -> int:
        """Return an id that is free, the wanted one where it is."""
        if wanted not in self._used and wanted != self._without:
            return wanted
        found = next((number for number in range(1, self._without) if number not in self._used), None)
        if found is None:
            raise DecodeError("more than 65,534 events in all recordings together")
        return found


def _only(texts: Iterable[str]) -> str:
    """Return the text that all have which have one; nothing where they differ."""
    found = {text for text in texts if text}
    return found.pop() if len(found) == 1 else ""


def _pairs(texts: Iterable[str]) -> str:
    """Return the lines of `saved_cmdlines` or `saved_tgids` on which all agree."""
    found: dict[int, str | None] = {}
    for text in texts:
        for pid, value in read_pairs(text).items():
            found[pid] = value if found.get(pid, value) == value else None
    return "".join(f"{pid} {value}\n" for pid, value in found.items() if value is not None)
