"""What a process has mapped where, as far as its system calls were recorded."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

# include/uapi/asm-generic/mman-common.h
_MAP_ANONYMOUS = 0x20
_LONG = 1 << 64
_BLOCK_BITS = 21
_FIRST = 1 << 16
_UPPER_HALF = 1 << 63


class MappedRegion(NamedTuple):
    """A part of an address space: `kind` is what it is, as far as this is known."""

    start: int
    stop: int
    kind: str


class Mappings:
    """The mappings of one process that were made while it was recorded.

    >>> made = Mappings()
    >>> made.map(0x7f0000000000, 0x3000, "anon"); made.unmap(0x7f0000001000, 0x1000)
    >>> made.find(0x7f0000000fff).kind, made.find(0x7f0000001000).kind, made.find(0x7f0000002000).kind
    ('anon', '2 MiB', 'anon')
    """

    def __init__(self) -> None:
        self._regions: list[MappedRegion] = []
        self._starts: list[int] = []

    def copy(self) -> Mappings:
        """Return the mappings of a child."""
        made = Mappings()
        made._regions, made._starts = self._regions[:], self._starts[:]
        return made

    def map(self, start: int, size: int, kind: str) -> None:
        """Add a region; parts of others that it covers are gone."""
        if not 0 < size < _LONG - start:
            return
        self.unmap(start, size)
        at = bisect_right(self._starts, start)
        self._regions.insert(at, MappedRegion(start, start + size, kind))
        self._starts.insert(at, start)

    def unmap(self, start: int, size: int) -> None:
        """Remove what is mapped of a range."""
        stop = start + size
        first = max(bisect_right(self._starts, start) - 1, 0)
        last = bisect_right(self._starts, stop - 1)
        kept = []
        for region in self._regions[first:last]:
            if region.start < min(start, region.stop):
                kept.append(region._replace(stop=min(start, region.stop)))
            if region.stop > max(stop, region.start):
                kept.append(region._replace(start=max(stop, region.start)))
        self._regions[first:last] = kept
        self._starts[first:last] = [region.start for region in kept]

    def find(self, address: int) -> MappedRegion:
        """Return the region of an address: 2 MiB around it where its mapping was not recorded."""
        at = bisect_right(self._starts, address) - 1
        if at >= 0 and address < self._regions[at].stop:
            return self._regions[at]
        return region_of(address)


class AddressSpaces:
    """The mappings of all processes; a process is known by its id, or by that of its task."""

    def __init__(self) -> None:
        self._own: dict[int, Mappings] = {}
        self._asked: dict[int, tuple[int, str]] = {}
        self._heaps: dict[int, tuple[int, int]] = {}

    def find(self, process: int, address: int) -> MappedRegion:
        """Return the region of an address of a process."""
        own = self._own.get(process)
        return region_of(address) if own is None else own.find(address)

    def ask(self, tid: int, size: int, flags: int, fd: int) -> None:
        """A task calls mmap()."""
        self._asked[tid] = (size, "anonymous" if flags & _MAP_ANONYMOUS else f"file, fd {_signed(fd)}")

    def get(self, tid: int, process: int, result: int) -> None:
        """mmap() of a task returned an address or an error."""
        asked = self._asked.pop(tid, None)
        if asked is not None and _signed(result) >= 0:
            size, kind = asked
            self._of(process).map(result, size + 4095 & ~4095, kind)

    def grow(self, process: int, end: int) -> None:
        """brk() returned the end of the heap; what was before the first call is not known."""
        start, before = self._heaps.get(process, (end, end))
        self._heaps[process] = (start, end)
        own = self._of(process)
        if end < before:
            own.unmap(end, before - end)
        elif end > start:
            own.map(start, end - start, "heap")

    def drop(self, process: int, start: int, size: int) -> None:
        """A process unmaps a range."""
        self._of(process).unmap(start, size)

    def fork(self, parent: int, child: int) -> None:
        """A process has the mappings of its parent."""
        if parent in self._own:
            self._own[child] = self._own[parent].copy()
        if parent in self._heaps:
            self._heaps[child] = self._heaps[parent]

    def clear(self, process: int) -> None:
        """A process begins another program."""
        self._own.pop(process, None)
        self._heaps.pop(process, None)

    def forget(self) -> None:
        """Forget all mappings, and what tasks asked for."""
        self._own.clear()
        self._asked.clear()
        self._heaps.clear()

    def _of(self, process: int) -> Mappings:
        return self._own.setdefault(process, Mappings())


def region_of(address: int) -> MappedRegion:
    """Return the part of an address space that an address is in, where mappings are not known.

    >>> region_of(8)
    MappedRegion(start=0, stop=65536, kind='first 64 KiB')
    >>> hex(region_of(0x7f0000201000).start)
    '0x7f0000200000'
    """
    if address < _FIRST:
        return MappedRegion(0, _FIRST, "first 64 KiB")
    start = address >> _BLOCK_BITS << _BLOCK_BITS
    kind = "2 MiB of the kernel" if address >= _UPPER_HALF else "2 MiB"
    return MappedRegion(start, start + (1 << _BLOCK_BITS), kind)


def blocks_of(addresses: Iterable[int]) -> list[int]:
    """Return for each address the number of the region of `region_of`."""
    return [address >> _BLOCK_BITS if address >= _FIRST else -1 for address in addresses]


def region_of_block(block: int) -> MappedRegion:
    """Return the region whose number `blocks_of` gives.

    >>> addresses = (0, 0x10000, 0x200000, 1 << 63)
    >>> [region_of_block(block) for block in blocks_of(addresses)] == [region_of(n) for n in addresses]
    True
    """
    return region_of(max(block << _BLOCK_BITS, _FIRST) if block >= 0 else 0)


def _signed(value: int) -> int:
    """Return an int of C that a field holds as a long without sign."""
    return value - _LONG if value >= _UPPER_HALF else value
