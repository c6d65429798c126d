"""The ring buffers of a recording: the data of all CPUs, by time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import merge
from typing import TYPE_CHECKING

from tracepoint.tracefile.content import BufferContent, CpuPages
from tracepoint.tracefile.damage import Damage
from tracepoint.tracefile.order import in_order, narrowed
from tracepoint.tracefile.sieve import ALL_TIMES, Sieve
from tracepoint.wording import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from tracepoint.filter.program import FilterProgram
    from tracepoint.record.raw import RawRecord
    from tracepoint.tracefile.cpudata import CpuData, Report
    from tracepoint.tracefile.sieve import Window


@dataclass(frozen=True, slots=True)
class TraceBuffer:
    """One ring buffer: `name` is empty for the top one, else the name of the instance."""

    name: str
    clock: str
    cpus: tuple[CpuData, ...]

    def __repr__(self) -> str:
        name = f"of instance {one_line(self.name, 40)}" if self.name else "at the top"
        return f"<TraceBuffer {name}, clock {one_line(self.clock, 20)}, {counted(len(self.cpus), 'CPU')}>"

    def records(self) -> Iterator[RawRecord]:
        """Yield the records of all CPUs by time, as the kernel's `trace` does.

        Of equal times the lower CPU comes first (kernel/trace/trace.c: __find_next_entry()).
        """
        streams = [part.records() for part in sorted(self.in_order().cpus, key=lambda part: part.cpu)]
        return merge(*streams, key=lambda record: record.timestamp)

    def in_order(self) -> TraceBuffer:
        """Return the buffer with each CPU whose pages go back in time as parts that are in order."""
        return replace(self, cpus=tuple(part for cpu in self.cpus for part in in_order(cpu)))

    def sifted(
        self,
        window: Window = ALL_TIMES,
        programs: Mapping[int, FilterProgram | None] | None = None,
        cpus: Container[int] | None = None,
    ) -> TraceBuffer:
        """Return the buffer with the chosen records only; `programs` and `cpus` are as `Sieve` takes them."""
        kept: list[CpuData] = []
        sieves: list[Sieve] = []
        for cpu in self.cpus:
            facts = cpu.layout, cpu.time_map, cpu.new_ids
            sieve = next((sieve for sieve in sieves if sieve.serves(*facts)), None)
            if sieve is None:
                layout, convert, new_ids = facts
                sieve = Sieve(layout, window, programs, convert, new_ids, cpus=cpus)
                sieves.append(sieve)
            is_whole = window == ALL_TIMES and programs is None and cpu.new_ids is None
            kept += [cpu] if is_whole else [replace(part, sieve=sieve) for part in narrowed(cpu, window)]
        return replace(self, cpus=tuple(kept))

    def content(self) -> BufferContent:
        """Return the buffer as a writer takes it; it can be gone through more than once."""
        return BufferContent(tuple(CpuPages(c.cpu, _Blocks(c)) for c in self.cpus), self.name, self.clock)


@dataclass(frozen=True, slots=True)
class _Blocks:
    cpu: CpuData

    def __iter__(self) -> Iterator[bytes]:
        return self.cpu.blocks()


def without_overlaps(buffers: list[TraceBuffer], n_bytes: int, report: Report) -> tuple[TraceBuffer, ...]:
    """Cut data off where a file of `n_bytes` ends, and drop what lies over other data.

    A small file whose tables all point to the same bytes would else be a very long recording.
    """
    taken: list[tuple[int, int]] = []
    kept = []
    for buffer in buffers:
        cpus = []
        for cpu in buffer.cpus:
            size = min(cpu.size, max(n_bytes - cpu.offset, 0))
            if size < cpu.size:
                reason = f"{cpu.size} bytes of data where the file has {size}"
                report(Damage(cpu.cpu, min(cpu.offset, n_bytes), reason))
            if not size:
                cpus.append(replace(cpu, offset=min(cpu.offset, n_bytes), size=0, codec=None))
            else:
                taken.append((cpu.offset, size))
                cpus.append(replace(cpu, size=size))
        kept.append(replace(buffer, cpus=tuple(cpus)))
    bad = _overlapping(taken)
    return tuple(_without(buffer, bad, report) for buffer in kept)


def _overlapping(places: list[tuple[int, int]]) -> set[tuple[int, int]]:
    bad: set[tuple[int, int]] = set()
    reached = 0
    for offset, size in sorted(places):
        if offset < reached:
            bad.add((offset, size))
        reached = max(reached, offset + size)
    return bad


def _without(buffer: TraceBuffer, bad: set[tuple[int, int]], report: Report) -> TraceBuffer:
    cpus = []
    for cpu in buffer.cpus:
        if (cpu.offset, cpu.size) in bad:
            report(Damage(cpu.cpu, cpu.offset, "the data lies over other data and was left out"))
        else:
            cpus.append(cpu)
    return replace(buffer, cpus=tuple(cpus))
