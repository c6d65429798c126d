"""Version 6 of trace.dat: one part after the other, then the pages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.errors import DecodeError
from tracepoint.tracefile.buffers import TraceBuffer, without_overlaps
from tracepoint.tracefile.cpudata import CpuData
from tracepoint.tracefile.cursor import Cursor, decode
from tracepoint.tracefile.damage import Damage
from tracepoint.tracefile.head import FLYRECORD_TAG, LATENCY_TAG, OPTIONS_TAG
from tracepoint.tracefile.options import Option, OptionId, find_options, read_u32
from tracepoint.tracefile.sections import skip_descriptions

if TYPE_CHECKING:
    from tracepoint.record.layout import PageLayout
    from tracepoint.tracefile.compression import Decompressor
    from tracepoint.tracefile.cpudata import Report
    from tracepoint.tracefile.filebytes import Bytes
    from tracepoint.tracefile.head import FileHead
    from tracepoint.tracefile.timing import TimeMap

_TAG_SIZE = 10

_NAMES = {
    OptionId.HEADER_INFO: "header",
    OptionId.FTRACE_EVENTS: "ftrace",
    OptionId.EVENT_FORMATS: "systems",
    OptionId.KALLSYMS: "kallsyms",
    OptionId.PRINTK: "printk",
    OptionId.CMDLINES: "cmdlines",
}

Place = tuple[int, int]


@dataclass(slots=True)
class Version6:
    """The parts of a file of version 6 and their places."""

    data: Bytes
    head: FileHead
    path: str
    report: Report
    places: dict[str, int] = field(default_factory=dict)
    options: list[Option] = field(default_factory=list)
    n_cpus: int = 0
    latency_text: str = ""
    tables: list[tuple[str, list[Place]]] = field(default_factory=list)

    def cursor(self, number: OptionId) -> Cursor | None:
        """Return a cursor at a part, None when the file has no such part."""
        place = self.places.get(_NAMES[number])
        return None if place is None else self._at(place)

    def _at(self, offset: int) -> Cursor:
        return Cursor(self.data, offset, big=self.head.is_big_endian, path=self.path)

    def buffers(self, layout: PageLayout, times: TimeMap | None) -> tuple[TraceBuffer, ...]:
        """Return the ring buffers."""
        clocks = [option.text for option in find_options(self.options, OptionId.TRACECLOCK)]
        clock = clocks[0].partition("[")[2].partition("]")[0] if clocks else ""
        found = [
            TraceBuffer(
                name,
                clock,
                tuple(
                    CpuData(cpu, offset, size, layout, self.data, None, self.report, times)
                    for cpu, (offset, size) in enumerate(table)
                ),
            )
            for name, table in self.tables
        ]
        return without_overlaps(found, len(self.data), self.report)

    def read_tables(self, cursor: Cursor) -> None:
        """Read what follows the number of CPUs: options, then a text or the tables."""
        tag = cursor.take(_TAG_SIZE, "a tag")
        while tag == OPTIONS_TAG:
            self.options.extend(_read_options(cursor))
            tag = cursor.take(_TAG_SIZE, "a tag")
        if tag == LATENCY_TAG:
            self.latency_text = decode(cursor.take(cursor.left))
        elif tag == FLYRECORD_TAG:
            self.tables.append(("", _read_table(cursor, self.n_cpus)))
        else:
            cursor.at -= _TAG_SIZE
            raise cursor.error(f"{tag!r} where options or the table of pages should be")

    def read_instances(self) -> None:
        """Read the tables of the instances, which BUFFER options point to."""
        n_cpus = self.n_cpus
        for option in self.options:
            try:
                if option.id == OptionId.CPUCOUNT:
                    n_cpus = read_u32(option, is_big_endian=self.head.is_big_endian)
                elif option.id == OptionId.BUFFER:
                    self._read_instance(option, n_cpus)
            except DecodeError as error:
                self.report(Damage(None, error.offset or 0, f"an instance: {error.reason}"))

    def _read_instance(self, option: Option, n_cpus: int) -> None:
        given = Cursor(option.data, big=self.head.is_big_endian)
        offset, name = given.u64(), given.c_string("an instance")
        cursor = self._at(offset)
        if cursor.take(_TAG_SIZE, "a tag") != FLYRECORD_TAG:
            cursor.at = offset
        self.tables.append((name, _read_table(cursor, n_cpus)))


def _read_options(cursor: Cursor) -> list[Option]:
    found = []
    while number := cursor.u16():
        found.append(Option(number, cursor.take(cursor.u32(), "an option")))
    return found


def _read_table(cursor: Cursor, n_cpus: int) -> list[Place]:
    if n_cpus > cursor.left // 16:
        raise cursor.error(f"{n_cpus} CPUs in {cursor.left} bytes")
    return [(cursor.u64(), cursor.u64()) for _ in range(n_cpus)]


def read_version6(
    data: Bytes, head: FileHead, codec: Decompressor | None, path: str, report: Report
) -> Version6:
    """Find the parts of a file; raises DecodeError when it is cut off before its pages begin."""
    del codec
    found = Version6(data, head, path, report)
    cursor = Cursor(data, head.end, big=head.is_big_endian, path=path)
    found.places = skip_descriptions(cursor)
    found.n_cpus = cursor.u32()
    found.read_tables(cursor)
    found.read_instances()
    return found
