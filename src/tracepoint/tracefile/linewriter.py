"""Whole lines of `trace` for all records of a buffer, by time: in C where it was built.

C merges the CPUs, draws calls, and writes contexts and texts; a record that its print program leaves is
rendered by the twin, which also names functions.  `TextWriter.lines` and `GraphLayout.lines` are the
specification, and make the layouts of latency-format.
"""

from __future__ import annotations

from array import array
from itertools import islice
from typing import TYPE_CHECKING

from tracepoint.record.decode import DECODE
from tracepoint.record.page import U64
from tracepoint.record.pages import read_pages
from tracepoint.record.raw import RawRecord
from tracepoint.tracefile.graph import GraphLayout, graph_header
from tracepoint.tracefile.graphnames import FunctionNames
from tracepoint.tracefile.graphtables import graph_tables
from tracepoint.tracefile.mmio import mmio_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType

    from tracepoint.record.pages import Pages
    from tracepoint.tracefile.buffers import TraceBuffer
    from tracepoint.tracefile.cpudata import CpuData
    from tracepoint.tracefile.text import TextWriter

    Block = bytes | memoryview

# Of csrc/decode/lines.c: the flags of a call, and the kinds of a change.
_HAS_CONTEXT, _HAS_IRQ_INFO, _IS_IN_NS, _HAS_OVERRUNS, _IS_BIG_ENDIAN, _MAY_BE_LAZY, _IS_REPORT = (
    1 << bit for bit in range(7)
)
_LOST, _CPU = 0, 1
# Of struct state: how many numbers are kept from block to block, and two of them.
_N_KEPT, _IS_LAST, _IS_HELD = 11, 5, 6
_NO_SOURCE = -1
_LINES_A_BLOCK = 1024
_N_IDS = 1 << 16
# How much text is made at once: small enough for a cache.
_BLOCK = 1 << 18


class _Source:
    """The records of a CPU, a block at a time."""

    def __init__(self, cpu: CpuData) -> None:
        self._cpu = cpu
        self._blocks = cpu.pages()
        self._data: bytes = b""
        self._pages = read_pages(b"", cpu.layout)
        self._changes = array("q")
        self._given: tuple[object, ...] = ()
        # Of struct state: position, changes taken, CPU, lost, whether its begin was shown, and what is held.
        self._state = array("Q", [0, 0, cpu.cpu, *(0,) * _N_KEPT])

    def has_records(self) -> bool:
        """Read on when the block is used up; return whether there is a record."""
        while self._state[0] >= len(self._pages.stamps):
            block = next(self._blocks, None)
            if block is not None:
                self._take(*block)
            elif not self._state[_IS_HELD]:
                return False
            else:
                self._take(b"", read_pages(b"", self._cpu.layout))
                self._state[_IS_LAST] = 1
                return True
        return True

    def _take(self, data: bytes, pages: Pages) -> None:
        """Go on to the next block; what was lost after the last record comes before its first."""
        _, n_taken, where, lost, *kept = self._state
        changes = array("q")
        for n in range(3 * n_taken, len(self._changes), 3):
            if self._changes[n + 1] == _LOST:
                changes.extend((0, _LOST, self._changes[n + 2]))
        changes.extend((0, _CPU, self._cpu.cpu))
        for first, head in pages.noted_heads():
            # What was lost before records that were left out is on a page without data.
            if head.lost and head.size:
                changes.extend((first, _LOST, head.lost))
            for index, cpu in head.marks:
                changes.extend((first + index, _CPU, max(cpu, 0)))
            if head.marks:
                changes.extend((first + head.n_records, _CPU, self._cpu.cpu))
        if self._cpu.time_map is not None:
            convert, cpu = self._cpu.time_map, self._cpu.cpu
            pages = pages._replace(
                stamps=memoryview(array("Q", (convert(s, cpu) & U64 for s in pages.stamps)))
            )
        self._data, self._pages, self._changes = data, pages, changes
        self._state = array("Q", [0, 0, where, lost, *kept])
        self._given = (data, pages.stamps, pages.offsets, pages.lengths, changes, self._state)

    def columns(self) -> tuple[object, ...]:
        """Return the block as C takes it."""
        return self._given

    def record(self, index: int) -> RawRecord:
        """Return a record of the block."""
        pages = self._pages
        at = pages.offsets[index]
        return RawRecord(pages.stamps[index], 0, self._data[at : at + pages.lengths[index]], 0)


def _texts(texts: Iterable[str]) -> tuple[array[int], bytes]:
    """Return where each text ends, and the texts."""
    ends, found, at = array("Q"), [], 0
    for text in texts:
        found.append(text.encode("utf-8", "surrogateescape"))
        at += len(found[-1])
        ends.append(at)
    return ends, b"".join(found)


class LineWriter:
    """Writes the lines of the records of a buffer with a `TextWriter`, as bytes of UTF-8.

    `numbers` are the types of the records that the buffer has.
    """

    def __init__(self, writer: TextWriter, numbers: Iterable[int]) -> None:
        self._writer = writer
        self._names = FunctionNames(writer)
        self._numbers = sorted(number for number in numbers if 0 <= number < _N_IDS)

    def header(self, n_entries: int, n_written: int, n_cpus: int) -> str:
        """Return the heading of `trace`."""
        if self._writer.options.is_graph:
            return graph_header(self._writer, n_entries, n_written, n_cpus)
        return self._writer.header(n_entries, n_written, n_cpus)

    def blocks(self, buffer: TraceBuffer, *, has_overruns: bool = False) -> Iterator[Block]:
        """Yield the lines of a buffer's records by time; a block is valid until the next is asked for."""
        buffer = buffer.in_order()
        # C draws the calls of a CPU from one source.
        is_apart = self._writer.options.is_graph and len({c.cpu for c in buffer.cpus}) < len(buffer.cpus)
        if DECODE is None or is_apart or not self._writer.options.is_usual:
            lines = self._lines(buffer, has_overruns=has_overruns)
            while batch := list(islice(lines, _LINES_A_BLOCK)):
                yield "".join(batch).encode("utf-8", "surrogateescape")
        else:
            yield from self._in_c(DECODE, buffer, has_overruns=has_overruns)

    def _lines(self, buffer: TraceBuffer, *, has_overruns: bool) -> Iterator[str]:
        """Yield the text of each record, made in Python."""
        if self._writer.options.is_mmio:
            return mmio_lines(self._writer, buffer.records())
        if not self._writer.options.is_graph:
            return self._writer.lines(buffer.records(), has_overruns=has_overruns)
        streams = [cpu.records() for cpu in sorted(buffer.cpus, key=lambda c: c.cpu)]
        return GraphLayout(self._writer).lines(streams, has_overruns=has_overruns)

    def _flags(self, *, has_overruns: bool) -> int:
        options = self._writer.options
        return (
            options.context_info * _HAS_CONTEXT
            | options.irq_info * _HAS_IRQ_INFO
            | options.is_in_ns * _IS_IN_NS
            | (has_overruns and options.annotate) * _HAS_OVERRUNS
            | self._writer.is_big_endian * _IS_BIG_ENDIAN
            | options.is_from_6_13 * _MAY_BE_LAZY
            | self._writer.is_report * _IS_REPORT
        )

    def _tables(self, *, has_overruns: bool) -> tuple[object, ...]:
        """Return what all lines share: the names of tasks and events, flags, and those of a graph."""
        writer = self._writer
        pids = sorted({0, *writer.facts.comms, *(writer.tgids if writer.options.record_tgid else ())})
        pids = [pid for pid in pids if 0 <= pid < 1 << 31]
        for number in self._numbers:
            writer.program(number)
        last = max(self._numbers, default=0)
        names = _texts(writer.names.get(number, "") for number in range(last + 1))
        unknown = _texts([*(f"{writer.comm(pid):>16}-" for pid in (1 << 31, -1)), f" {writer.process(-1)}"])
        tables = array("i", pids), *_texts(map(writer.task, pids)), *names, *unknown
        graph = graph_tables(writer, pids, _texts) if writer.options.is_graph else None
        return *tables, self._flags(has_overruns=has_overruns), graph

    def _in_c(self, decode: ModuleType, buffer: TraceBuffer, *, has_overruns: bool) -> Iterator[Block]:
        tables, printer = self._tables(has_overruns=has_overruns), self._writer.printer
        lines, room = decode.line_writer(printer.loaded()[0], *tables)
        # The same memory for every block: new pages cost as much as the text that is written to them.
        out, at = bytearray(room + _BLOCK), 0
        sources = [_Source(cpu) for cpu in sorted(buffer.cpus, key=lambda c: c.cpu)]
        while sources := [source for source in sources if source.has_records()]:
            given = tuple(source.columns() for source in sources)
            at, left = decode.render_lines(lines, printer.loaded()[1], out, at, given)
            if left or at >= _BLOCK:
                text = memoryview(out)[:at]
                yield self._with_left(text, left, sources) if left else text
                at = 0
        yield memoryview(out)[:at]
        self._take_notes(decode.line_notes(lines))

    def _take_notes(self, notes: list[tuple[int, int, int, int]]) -> None:
        for number, state, why, n_lines in notes:
            if (program := self._writer.program(number)) is not None:
                found = self._writer.printer.notes(number, state, why)
                self._writer.note(program.format, found, n_lines)

    def _with_left(self, text: memoryview, left: list[tuple[int, int, int]], sources: list[_Source]) -> bytes:
        """Put in what the twin makes of the records that C left, and the names of functions."""
        records = [sources[source].record(index) for _, source, index in left if source != _NO_SOURCE]
        bodies = iter(self._writer.bodies(records))
        parts: list[Block] = []
        start = 0
        for place, source, address in left:
            is_name = source == _NO_SOURCE
            more = self._names.name_for_c(address) if is_name else next(bodies).removesuffix("\n")
            parts += [text[start:place], more.encode("utf-8", "surrogateescape")]
            start = place
        self._writer.printer.settle()
        return b"".join([*parts, text[start:]])
