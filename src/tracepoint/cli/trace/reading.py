"""The records of a buffer in the formats of `tracepoint read`: text, JSON lines, CSV, tables."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING

from tracepoint.cli.files import read_bytes
from tracepoint.cli.trace.layout import with_layout
from tracepoint.cli.trace.recordings import (
    buffer_named,
    narrowed,
)
from tracepoint.convert.tables import csv_lines, json_lines, write_table
from tracepoint.decode.parts import TableParts
from tracepoint.decode.records import RECORD_COLUMNS, record_values, shown_records
from tracepoint.decode.trace import Trace
from tracepoint.errors import TracepointError
from tracepoint.record.page import LOST_UNKNOWN
from tracepoint.tracefile.linewriter import LineWriter
from tracepoint.tracefile.options import uname_of
from tracepoint.tracefile.recording import losses_of, read_tgids
from tracepoint.tracefile.report import ReportWriter
from tracepoint.tracefile.sieve import ALL_TIMES
from tracepoint.tracefile.text import TextWriter, facts_of
from tracepoint.tracefile.textoptions import TextOptions, is_from_6_13
from tracepoint.tree.cache import cache_folder
from tracepoint.tree.kernel_facts import KernelFiles, KernelKnowledge, find_kernel_files, given_kernel_files
from tracepoint.wording import utf8

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator

    from tracepoint.decode.records import ShownRecord
    from tracepoint.record.raw import RawRecord
    from tracepoint.tracefile.buffers import TraceBuffer
    from tracepoint.tracefile.container import Container

_MAX_NAMED = 5


class Reading:
    """One buffer of a file while it is printed."""

    def __init__(self, trace: Container, args: argparse.Namespace) -> None:
        self._trace = trace
        self.view = narrowed(Trace(trace, buffer_named(trace, args.instance).name), args)
        self._buffer = self.view.buffer or buffer_named(trace, args.instance)
        self._told = losses_of(trace.options, self._buffer.name)
        clock = self._buffer.clock or trace.clock or "local"
        told = trace.saved_tgids if args.tgids is None else read_bytes(args.tgids).decode(errors="replace")
        self._tgids = read_tgids(told or "")
        options = TextOptions(
            clock=clock,
            record_tgid=told is not None,
            release=(release := _release(trace)),
            preemption=_preemption(trace),
            n_cpus=trace.n_cpus,
            is_from_6_13=is_from_6_13(release),
        )
        self.kernel = KernelKnowledge(_kernel_files(trace, args.kernel_facts))
        facts = self.kernel.facts(facts_of(trace))
        self._counts = self.view.n_by_id
        self.names = {*self.view.names, *self.view.events}
        self._buffer = self.view.in_order or self._buffer
        # The text of a record on its own, as in the other formats, has no layout.
        chosen = with_layout(options, args, trace, self._counts)
        options = chosen if args.format == "text" else replace(options, irq_info=False)
        make = ReportWriter if args.format == "report" else TextWriter
        self.writer = make(trace.events, facts, options, self._tgids, is_big_endian=trace.is_big_endian)
        self._lines = LineWriter(self.writer, self._counts)

    @property
    def buffer(self) -> TraceBuffer:
        """The buffer with the chosen records."""
        return self._buffer

    @property
    def n_lost(self) -> int:
        """Lost events: according to the pages, and according to the recorder's counts."""
        told, n_lost = self._told, sum(n for n in self._losses if n != LOST_UNKNOWN)
        chosen = self.view.selection
        if chosen.window != ALL_TIMES or chosen.cpus is not None:
            # The recorder counts those of all times and CPUs.
            return n_lost
        return max(n_lost, told.overrun) + told.commit_overrun + told.dropped

    @property
    def has_latency_heading(self) -> bool:
        """Whether the heading is that of a latency trace."""
        options = self.writer.options
        return options.latency_format and options.context_info and not self.writer.is_report

    @property
    def is_lost_unknown(self) -> bool:
        """Whether events were lost that nothing counted."""
        return LOST_UNKNOWN in self._losses

    @cached_property
    def _losses(self) -> list[int]:
        return [n_lost for cpu in self.view.lost for _, n_lost in self.view.losses(cpu)]

    def blocks(self, form: str) -> Iterator[bytes | memoryview]:
        """Yield the output; that of a format of tables is written by `write_table`."""
        makers: dict[str, Callable[[], Iterator[bytes | memoryview]]] = {
            "text": self.text,
            "report": self.text,
            "jsonl": self.jsonl,
            "csv": self.csv,
        }
        return makers[form]() if form in makers else iter(())

    def _only_table(self) -> TableParts | None:
        """Return the table of the one event that is read; None when there are several, or none."""
        names = [name for name in self.view.events if name in self.view]
        return TableParts(self.view, names[0]) if len(names) == 1 else None

    def write_table(self, form: str, stream: IO[bytes]) -> None:
        """Write the table of the one event that is read; raises TracepointError when there are several."""
        table = self._only_table()
        if table is None:
            names = ", ".join(list(self.view.events)[:_MAX_NAMED]) or "none"
            raise TracepointError(
                f"--format {form} is for one event, and {len(self.view.events)} were recorded: {names}; "
                "name one, or write all with tracepoint convert"
            )
        write_table(table, stream, form)

    def csv(self) -> Iterator[bytes]:
        """Yield lines of CSV: the columns of the one event that is read, else the texts of all."""
        table = self._only_table()
        if table is not None:
            lines = csv_lines(table.columns, (row.values() for part in table for row in part))
        else:
            lines = csv_lines(RECORD_COLUMNS, map(record_values, self._shown()))
        return map(utf8, lines)

    def text(self) -> Iterator[bytes | memoryview]:
        """Yield the text that `trace` shows, its heading first."""
        n_entries, n_overrun = sum(self._counts.values()), self._told.overrun
        yield self._lines.header(n_entries, n_entries + n_overrun, self._trace.n_cpus).encode()
        yield from self._lines.blocks(self._buffer, has_overruns=n_overrun > 0)

    def _shown(self) -> Iterator[ShownRecord]:
        return shown_records(self._buffer.records(), self.writer)

    def jsonl(self) -> Iterator[bytes]:
        """Yield an object of JSON for each record, one a line."""
        return self.json_lines(self._buffer.records())

    def json_lines(self, records: Iterable[RawRecord]) -> Iterator[bytes]:
        """Yield records as objects of JSON, one a line."""
        shown = shown_records(records, self.writer)
        return (f"{line}\n".encode() for line in json_lines(shown, self.writer, self._tgids))


def _release(trace: Container) -> str:
    words = uname_of(trace.options)
    return words[2] if len(words) > 2 else ""


def _preemption(trace: Container) -> str:
    """Return how the recorded kernel preempts, by its version; empty where that does not say."""
    words = uname_of(trace.options)[3:]
    if "PREEMPT_RT" in words:
        return "preempt_rt"
    return "preempt" if "PREEMPT" in words else ""


def _kernel_files(trace: Container, given: list[Path]) -> KernelFiles:
    """Return the files with facts about the recorded kernel: those named, else what is installed of it."""
    if given:
        return sum((given_kernel_files(path) for path in given), KernelFiles())
    # The recording of a process has the machine's release too, but no symbols of its kernel.
    if "_stext" not in trace.kallsyms:
        return KernelFiles()
    roots = [Path("/"), *sorted(cache_folder().glob("kernels/*")), *sorted(cache_folder().glob("headers/*"))]
    version = " ".join(uname_of(trace.options)[3:])
    return find_kernel_files(_release(trace), version, roots, sorted(cache_folder().glob("sources/*")))
