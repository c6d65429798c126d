"""Version 7 of trace.dat: sections anywhere in the file, found through a chain of options."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.errors import DecodeError
from tracepoint.filter.numbers import MAX_CPUS
from tracepoint.record.layout import MAX_PAGE_BYTES, PageLayout
from tracepoint.tracefile.buffers import TraceBuffer, without_overlaps
from tracepoint.tracefile.cpudata import CpuData
from tracepoint.tracefile.cursor import Cursor
from tracepoint.tracefile.damage import Damage
from tracepoint.tracefile.head import COMPRESSED
from tracepoint.tracefile.options import Option, OptionId, find_options, read_buffer, read_u32
from tracepoint.tracefile.salvage import find_chunked, walk_sections
from tracepoint.tracefile.sections import read_packed
from tracepoint.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.tracefile.compression import Decompressor
    from tracepoint.tracefile.cpudata import Report
    from tracepoint.tracefile.filebytes import Bytes
    from tracepoint.tracefile.head import FileHead
    from tracepoint.tracefile.options import BufferOption, CpuPlace
    from tracepoint.tracefile.salvage import FoundSection
    from tracepoint.tracefile.timing import TimeMap

_MAX_OPTION_SECTIONS = 1024
_MAX_OPTIONS = 1 << 16
_PARTS = range(OptionId.HEADER_INFO, OptionId.CMDLINES + 1)


@dataclass(frozen=True, slots=True)
class SectionHead:
    """The head of a section: `start` and `size` are those of what follows it, in bytes."""

    id: int
    is_compressed: bool
    start: int
    size: int


@dataclass(slots=True)
class Version7:
    """The sections of a file of version 7."""

    data: Bytes
    head: FileHead
    codec: Decompressor | None
    path: str
    report: Report
    options: list[Option] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)
    n_cpus: int = 0
    latency_text: str = ""
    found: list[FoundSection] = field(default_factory=list)
    cpus: list[tuple[int, int]] = field(default_factory=list)

    def _at(self, offset: int) -> Cursor:
        return Cursor(self.data, offset, big=self.head.is_big_endian, path=self.path)

    def section_head(self, offset: int, expected: int) -> SectionHead:
        """Read the head of the section at an offset, which must be of the expected kind."""
        cursor = self._at(offset)
        number, flags, _, size = cursor.u16(), cursor.u16(), cursor.u32(), cursor.u64()
        if number != expected:
            cursor.at = offset
            raise cursor.error(f"section {number} where section {expected} should be")
        return SectionHead(number, bool(flags & COMPRESSED), cursor.at, min(size, cursor.left))

    def section(self, offset: int, expected: int) -> Cursor:
        """Return a cursor over the content of a section, decompressed."""
        head = self.section_head(offset, expected)
        if not head.is_compressed:
            return Cursor(
                self.data, head.start, head.start + head.size, big=self.head.is_big_endian, path=self.path
            )
        cursor = self._at(head.start)
        if self.codec is None:
            raise cursor.error("a compressed section in a file that names no compressor")
        content = read_packed(cursor, self.codec)
        return Cursor(content, big=self.head.is_big_endian, path=self.path, base=offset)

    def cursor(self, number: OptionId) -> Cursor | None:
        """Return a cursor at a part, None when the file has no such part."""
        place = self.places.get(number)
        return None if place is None else self.section(place, number)

    def read_options(self) -> None:
        """Follow the chain of options to its end, or to where it is damaged."""
        offset, seen = self.head.first_options, set[int]()
        try:
            while offset:
                seen.add(offset)
                offset = self._read_option_section(self.section(offset, OptionId.DONE), seen)
        except DecodeError as error:
            reason, size = error.reason, len(self.data)
            if offset > size:
                reason = f"the file was cut off after {size} bytes: there are options at {offset:#x}"
            self.report(Damage(None, offset if error.offset is None else error.offset, reason))
            self._find_sections(seen)
            if not self.options and not self.found:
                raise

    def _find_sections(self, seen: set[int]) -> None:
        """Find the sections by going through the file, and read the options that no chain led to."""
        self.found = list(walk_sections(self.data, self.head))
        for section in self.found:
            if section.id == OptionId.DONE and section.offset not in seen:
                seen.add(section.offset)
                try:
                    self._read_option_section(self.section(section.offset, OptionId.DONE), seen)
                except DecodeError as error:
                    self.report(Damage(None, section.offset, error.reason))

    def _read_option_section(self, cursor: Cursor, seen: set[int]) -> int:
        """Read the options of one section; return the offset of the next, 0 when it is the last."""
        while cursor.left:
            number = cursor.u16()
            data = cursor.take(cursor.u32(), "an option")
            if number == OptionId.DONE:
                if cursor.left:
                    left = f"{cursor.left} bytes are left over in section OPTIONS"
                    self.report(Damage(None, cursor.base + cursor.at, left))
                after = Cursor(data, big=self.head.is_big_endian, path=self.path).u64()
                if after in seen or len(seen) >= _MAX_OPTION_SECTIONS:
                    raise cursor.error("the chain of options never ends")
                return after
            if len(self.options) >= _MAX_OPTIONS:
                raise cursor.error("more options than a recording has")
            self.options.append(Option(number, data))
        raise cursor.error("a section of options without an end")

    def sort_options(self) -> None:
        """Find the sections that options point to; of several of one kind the first is right."""
        big = self.head.is_big_endian
        for option in self.options:
            try:
                if option.id in _PARTS:
                    place = Cursor(option.data, big=big).u64()
                    if self.places.setdefault(option.id, place) != place:
                        reason = f"a second section {OptionId(option.id).name} was left out"
                        self.report(Damage(None, place, reason))
                elif option.id == OptionId.CPUCOUNT:
                    self._take_count(read_u32(option, is_big_endian=big))
                elif option.id == OptionId.BUFFER_TEXT and not self.latency_text:
                    self._read_latency(Cursor(option.data, big=big).u64())
            except DecodeError as error:
                self.report(Damage(None, error.offset or 0, f"option {option.id}: {error.reason}"))
        self._use_found()

    def _take_count(self, n_cpus: int) -> None:
        if n_cpus > MAX_CPUS:
            raise DecodeError(f"{n_cpus} CPUs, more than a kernel has")
        self.n_cpus = max(self.n_cpus, n_cpus)

    def _use_found(self) -> None:
        """Take the sections, and the data of CPUs, of which no option says where they are."""
        for section in self.found:
            if section.id in _PARTS:
                self.places.setdefault(section.id, section.offset)
        buffers = [section for section in self.found if section.id == OptionId.BUFFER]
        if find_options(self.options, OptionId.BUFFER) or not buffers:
            return
        first = buffers[0]
        if self.codec is None or not first.is_compressed:
            reason = "the list of CPUs is missing, and plain pages do not say of which CPU they are"
        else:
            self.cpus = list(find_chunked(self.data, first, self.head, self.n_cpus or MAX_CPUS))
            self.n_cpus = max(self.n_cpus, len(self.cpus))
            n_cpus = counted(len(self.cpus), "CPU")
            reason = f"the list of CPUs is missing: numbers from 0 on for the data of {n_cpus}"
        self.report(Damage(None, first.offset, reason))
        for section in buffers[1:]:
            self.report(Damage(None, section.offset, "an instance whose name is missing was left out"))

    def _read_latency(self, offset: int) -> None:
        cursor = self.section(offset, OptionId.BUFFER_TEXT)
        self.latency_text = cursor.text(cursor.left, "a latency trace")

    def buffers(self, layout: PageLayout, times: TimeMap | None) -> tuple[TraceBuffer, ...]:
        """Return the ring buffers, the top one first."""
        found = list(self._read_buffers(layout, times))
        if self.cpus:
            cpus = (
                CpuData(cpu, at, size, layout, self.data, self.codec, self.report, times)
                for cpu, (at, size) in enumerate(self.cpus)
            )
            found.append(TraceBuffer("", "", tuple(cpus)))
        found.sort(key=lambda buffer: buffer.name != "")
        return without_overlaps(found, len(self.data), self.report)

    def _read_buffers(self, layout: PageLayout, times: TimeMap | None) -> Iterator[TraceBuffer]:
        for option in find_options(self.options, OptionId.BUFFER):
            try:
                given = read_buffer(Cursor(option.data, big=self.head.is_big_endian))
                codec = self._buffer_codec(given)
                pages = _buffer_layout(layout, given)
            except DecodeError as error:
                self.report(Damage(None, error.offset or 0, f"a buffer: {error.reason}"))
                continue
            cpus = tuple(
                CpuData(p.cpu, p.offset, p.size, pages, self.data, codec, self.report, times)
                for p in self._possible(given.cpus)
            )
            yield TraceBuffer(given.name, given.clock, cpus)

    def _possible(self, places: tuple[CpuPlace, ...]) -> Iterator[CpuPlace]:
        """Yield the data of CPUs; for a number that no kernel has, that of the place in the list is taken."""
        numbers = {place.cpu for place in places}
        for index, place in enumerate(places):
            if place.cpu < MAX_CPUS:
                yield place
                continue
            is_free = index < MAX_CPUS and index not in numbers
            which = f"taken for that of CPU {index}, by its place in the list" if is_free else "left out"
            reason = f"the data of CPU {place.cpu}, more than a kernel has: {which}"
            self.report(Damage(None, place.offset, reason))
            if is_free:
                yield place._replace(cpu=index)

    def _buffer_codec(self, buffer: BufferOption) -> Decompressor | None:
        """Return the compressor of a buffer's data, None when it is plain."""
        if not self.section_head(buffer.section, OptionId.BUFFER).is_compressed:
            return None
        if self.codec is None:
            raise DecodeError("a compressed buffer in a file that names no compressor")
        return self.codec


def _buffer_layout(layout: PageLayout, buffer: BufferOption) -> PageLayout:
    """Return the layout of an instance, whose pages may be of another size than the top buffer's."""
    start = layout.data_offset
    if buffer.page_size == layout.page_size:
        return layout
    if not start + 4 <= buffer.page_size <= MAX_PAGE_BYTES or buffer.page_size % 4:
        raise DecodeError(f"pages of {buffer.page_size} bytes")
    return PageLayout(
        start, buffer.page_size - start, layout.commit_offset, layout.long_size, layout.is_big_endian
    )


def read_version7(
    data: Bytes, head: FileHead, codec: Decompressor | None, path: str, report: Report
) -> Version7:
    """Find the sections of a file; raises DecodeError when its options cannot be read at all."""
    found = Version7(data, head, codec, path, report)
    if not head.first_options:
        raise DecodeError("no options: the recording was never finished", path, head.end - 8)
    found.read_options()
    found.sort_options()
    return found
