"""The chosen records of pages, in pages of their own: by time, by event, and by a filter of each event.

`csrc/decode/sieve.c` and `sift.c` do the same where they were built.
"""

from __future__ import annotations

from array import array
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from tracepoint.filter.context import RecordContext
from tracepoint.named import NamedTuple
from tracepoint.record.decode import DECODE
from tracepoint.record.page import add_lost, walk_pages
from tracepoint.wording import counted

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from tracepoint.filter.program import FilterProgram
    from tracepoint.record.layout import PageLayout
    from tracepoint.record.page import Buffer
    from tracepoint.record.write import PageWriter
    from tracepoint.tracefile.timing import TimeMap

MIN_TIME, MAX_TIME = -(1 << 63), (1 << 63) - 1
_N_IDS = 1 << 16
_ALL_SLOT, _NO_SLOT = 0xFFFE, 0xFFFF


class Window(NamedTuple):
    """Times in ns: from `start` on, before `stop`."""

    start: int = MIN_TIME
    stop: int = MAX_TIME


ALL_TIMES = Window()


def signed_time(stamp: int) -> int:
    """Return a stamp of 64 bits as the number that a column of times holds."""
    return stamp - (stamp >> 63 << 64)


def shown_time(convert: TimeMap | None, stamp: int, cpu: int) -> int:
    """Return the time to show for a stamp of a CPU."""
    return stamp if convert is None else signed_time(convert(stamp & (1 << 64) - 1, cpu))


def stamp_window(window: Window, convert: TimeMap | None) -> Window:
    """Return the stamps whose times are in a window, for a clock that is affine."""
    if convert is None or window == ALL_TIMES:
        return window
    start = MIN_TIME if window.start == MIN_TIME else min(convert.first_stamp(window.start), MAX_TIME)
    stop = MAX_TIME if window.stop == MAX_TIME else min(convert.first_stamp(window.stop), MAX_TIME)
    return Window(start, stop)


class _Gap(NamedTuple):
    """Events that were lost, and the stamp of the page after them."""

    lost: int
    stamp: int


class Sifted(NamedTuple):
    """Pages of what was kept; what was damaged, with its place in the given data."""

    pages: Buffer
    faults: list[tuple[str, int]]


class Sieve:
    """Keeps the records of a window of times whose event has a program that they pass.

    `programs` are by the id of an event, None for one whose records are all kept; without `programs` those of
    every event are.  `convert` gives the times that the window counts in.  `new_ids` are written in place of
    ids, and those are what `programs` go by.  A loss stays before its record; where that is left out, it has
    an empty page, if it was in the window and on one of `cpus` (None: all).  Blocks of which all is kept stay
    as they are.
    """

    def __init__(
        self,
        layout: PageLayout,
        window: Window = ALL_TIMES,
        programs: Mapping[int, FilterProgram | None] | None = None,
        convert: TimeMap | None = None,
        new_ids: array[int] | None = None,
        *,
        cpus: Container[int] | None = None,
    ) -> None:
        self._new_ids = new_ids
        self._cpus = cpus
        self._layout = layout
        self._window = window
        self._programs = programs
        self._convert = convert

    def serves(self, layout: PageLayout, convert: TimeMap | None, new_ids: array[int] | None) -> bool:
        """Whether it sifts pages of this layout, clock and ids."""
        return (layout, convert, new_ids) == (self._layout, self._convert, self._new_ids)

    def sift(self, data: Buffer, cpu: int) -> Sifted:
        """Return pages of the records to keep out of a buffer of whole pages of a CPU."""
        if self.in_c is None or DECODE is None:
            pages, faults, n_too_long = self._sift_slowly(data, cpu)
        else:
            pages, faults, n_too_long = DECODE.sift_pages(self.in_c, data, cpu, self._keeps_losses(cpu))
            pages = memoryview(pages)
        if n_too_long:
            reason = f"{counted(n_too_long, 'record')} too long for a page that the kernel writes"
            faults.append((reason, 0))
        return Sifted(pages, faults)

    @cached_property
    def in_c(self) -> object | None:
        """What C takes to sift pages, or to choose records while it collects them; None without C."""
        layout, window, clock = self._layout, self._window, None
        if DECODE is None:
            return None
        if self._convert is None or self._convert.is_affine or window == ALL_TIMES:
            window = stamp_window(window, self._convert)
        else:
            clock = self._convert.in_c
        slots, packed = self._slots()
        numbers = (
            layout.data_offset, layout.data_size, layout.commit_offset, layout.long_size, layout.is_big_endian
        )  # fmt: skip
        found: object = DECODE.sieve(slots, self._new_ids or b"", packed, numbers, *window, clock)
        return found

    def _slots(self) -> tuple[bytes | array[int], tuple[bytes, ...]]:
        """Return which program each id has, and the programs, each once."""
        if self._programs is None:
            return b"", ()
        slots = array("H", [_NO_SLOT]) * _N_IDS
        packed: dict[bytes, int] = {}
        # Thousands of ids can share one program.
        own = {id(program): program for program in self._programs.values()}
        slot_of = {
            key: _ALL_SLOT if program is None else packed.setdefault(program.pack(), len(packed))
            for key, program in own.items()
        }
        places = {number: slot_of[id(program)] for number, program in self._programs.items()}
        if self._new_ids is not None:
            return array("H", (places.get(number, _NO_SLOT) for number in self._new_ids)), tuple(packed)
        for number, place in places.items():
            if 0 <= number < _N_IDS:
                slots[number] = place
        return slots, tuple(packed)

    def _keeps_losses(self, cpu: int) -> bool:
        return self._cpus is None or cpu in self._cpus

    def _sift_slowly(self, data: Buffer, cpu: int) -> tuple[Buffer, list[tuple[str, int]], int]:
        from tracepoint.record.write import PageWriter  # noqa: PLC0415 - the C module needs none

        if self._keeps_all(data, cpu):
            return data, [], 0
        writer, faults, n_too_long = PageWriter(self._layout), [], 0
        gap = _Gap(0, 0)
        for page in walk_pages(data, self._layout):
            where, marks = cpu, dict(page.marks)
            if page.lost:
                gap = _Gap(add_lost(gap.lost, page.lost), page.stamp)
            for index, (stamp, at, length) in enumerate(page.records):
                where = max(marks.get(index, where), 0)
                record = bytes(data[at : at + length])
                kept = self.kept(stamp, where, record)
                self._close(gap, writer, cpu, is_kept=kept is not None)
                gap = _Gap(0, 0)
                if kept is None:
                    continue
                try:
                    writer.add(stamp, kept, None if where == cpu else where)
                except ValueError:
                    n_too_long += 1
            if page.fault:
                faults.append((page.fault, page.fault_at))
        self._close(gap, writer, cpu, is_kept=False)
        return writer.pages(), faults, n_too_long

    def _keeps_all(self, data: Buffer, cpu: int) -> bool:
        """Whether pages are kept as they are: without damage or losses, where only the time is asked for."""
        if self._programs is not None or self._new_ids is not None or len(data) % self._layout.page_size:
            return False
        return all(
            not page.lost
            and not page.fault
            and all(self._is_in_window(stamp, cpu) for stamp, _, _ in page.records)
            for page in walk_pages(data, self._layout)
        )

    def _close(self, gap: _Gap, writer: PageWriter, cpu: int, *, is_kept: bool) -> None:
        """Write a loss: before the record that follows, or on its own where that is left out."""
        if gap.lost and is_kept:
            writer.lose(gap.lost)
        elif gap.lost and self._keeps_losses(cpu) and self._is_in_window(gap.stamp, cpu):
            writer.lose_apart(gap.stamp, gap.lost)

    def kept(self, stamp: int, cpu: int, record: bytes) -> bytes | None:
        """Return a record of a CPU, under the id that it gets, None for one that is left out."""
        return self._renumbered(record) if self._keeps(stamp, cpu, record) else None

    def _renumbered(self, record: bytes) -> bytes:
        if self._new_ids is None or len(record) < 2:
            return record
        order: Literal["big", "little"] = "big" if self._layout.is_big_endian else "little"
        return self._new_ids[int.from_bytes(record[:2], order)].to_bytes(2, order) + record[2:]

    def _is_in_window(self, stamp: int, cpu: int) -> bool:
        start, stop = self._window
        return start <= shown_time(self._convert, signed_time(stamp), cpu) < stop

    def _keeps(self, stamp: int, cpu: int, record: bytes) -> bool:
        if not self._is_in_window(stamp, cpu):
            return False
        if self._programs is None:
            return True
        order: Literal["big", "little"] = "big" if self._layout.is_big_endian else "little"
        number = int.from_bytes(record[:2], order)
        if self._new_ids is not None:
            number = self._new_ids[number]
        if len(record) < 2 or number not in self._programs:
            return False
        program = self._programs[number]
        return program is None or program.matches(record, RecordContext(cpu))
