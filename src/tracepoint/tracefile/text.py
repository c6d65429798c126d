"""The text of tracefs `trace` and `trace_pipe`: heading, and one line or more for each record.

In: records by time, formats, names of tasks.  Out: what the kernel writes for them
(kernel/trace/trace.c and trace_output.c), character for character; where the kernel knows more than the
recording, the line says what is known and `TextWriter.notes` says what is missing.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from tracepoint.printk.facts import NO_FACTS, RenderFacts, read_printk_formats
from tracepoint.printk.kallsyms import Kallsyms
from tracepoint.printk.own_events import FUNC_REPEATS, MESSAGES, REPEATS_END, is_own_event
from tracepoint.printk.printer import Printer
from tracepoint.printk.program import compile_print
from tracepoint.printk.render import render_record
from tracepoint.record.field import field_bytes, integer
from tracepoint.record.page import LOST_UNKNOWN, U64
from tracepoint.tracefile.headings import (
    LATENCY_COLUMNS,
    OWN_HEADINGS,
    irq_columns,
    latency_heading,
    plain_columns,
)
from tracepoint.tracefile.recording import read_pairs, variables_of
from tracepoint.tracefile.textoptions import TextOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tracepoint.layout.format import EventFormat
    from tracepoint.printk.program import PrintProgram
    from tracepoint.record.raw import RawRecord
    from tracepoint.tracefile.container import Container

_IRQS_OFF, _NO_SUPPORT, _NEED_RESCHED, _HARDIRQ, _SOFTIRQ, _PREEMPT_RESCHED, _NMI, _BH_OFF = (
    1 << bit for bit in range(8)
)
_RESCHED_LAZY = _NO_SUPPORT
_MARKS = ((10**9, "$"), (10**8, "@"), (10**7, "*"), (10**6, "#"), (10**5, "!"), (10**4, "+"))
_MAX_NOTES = 1000
# Records that are rendered together.
_FIRST_BATCH, _MOST_BATCH = 64, 4096
# Spelt so that it is not taken for a mark of something left to do.
_NO_TASK = f"<{3 * 'X'}>"


def flags_text(flags: int, preempt_count: int, *, may_be_lazy: bool = False) -> str:
    """Return the five characters of `common_flags` and `common_preempt_count`.

    kernel/trace/trace_output.c: trace_print_lat_fmt(); with `may_be_lazy` as kernels since 6.13.

    >>> flags_text(0x09, 0x01)
    'd.h1.'
    """
    is_irqs_off, is_bh_off = flags & _IRQS_OFF, flags & _BH_OFF
    if is_irqs_off:
        first = "D" if is_bh_off else "d"
    elif is_bh_off:
        first = "b"
    else:
        first = "X" if flags & _NO_SUPPORT and not may_be_lazy else "."
    is_lazy = may_be_lazy and bool(flags & _RESCHED_LAZY)
    second = ".npNlbLB"[bool(flags & _NEED_RESCHED) + 2 * bool(flags & _PREEMPT_RESCHED) + 4 * is_lazy]
    if flags & _NMI:
        third = "Z" if flags & _HARDIRQ else "z"
    elif flags & _HARDIRQ:
        third = "H" if flags & _SOFTIRQ else "h"
    else:
        third = "s" if flags & _SOFTIRQ else "."
    depth, migrate = preempt_count & 15, preempt_count >> 4
    return f"{first}{second}{third}{f'{depth:x}' if depth else '.'}{f'{migrate:x}' if migrate else '.'}"


def microseconds(time_ns: int) -> int:
    """Round to microseconds as the kernel does (ns2usecs())."""
    return (time_ns + 500 & U64) // 1000


def _padded(text: str, width: int) -> str:
    """Set right in `width` bytes, as `%16s` does."""
    return " " * (width - len(text.encode("utf-8", "surrogateescape"))) + text


class TextWriter:
    """Writes records as text.

    `events` maps ids to formats, `facts` is what rendering needs (its `comms` name the tasks), `tgids`
    maps pids to processes.  `notes` collects what was not known, with the number of lines.
    """

    #: Whether lines have the columns of `trace-cmd report`.
    is_report = False

    def __init__(
        self,
        events: Mapping[int, EventFormat],
        facts: RenderFacts = NO_FACTS,
        options: TextOptions | None = None,
        tgids: Mapping[int, int] | None = None,
        *,
        is_big_endian: bool = False,
    ) -> None:
        self.events = events
        self.is_big_endian = is_big_endian
        self.facts = facts
        self.options = options or TextOptions()
        self.tgids = tgids or {}
        own = {n: event for n, event in events.items() if is_own_event(event)}
        self._repeats = {n for n, event in own.items() if event.name == FUNC_REPEATS}
        is_bare = self.options.is_message_only
        self._messages = {n for n, event in own.items() if is_bare and event.name in MESSAGES}
        self._programs: dict[int, PrintProgram] = {}
        self.names: dict[int, str] = {}
        self.printer = Printer({}, facts, is_big_endian=is_big_endian)
        self._number = struct.Struct(">H" if is_big_endian else "<H").unpack_from
        self._unpack = struct.Struct(">HBBi" if is_big_endian else "<HBBi").unpack_from
        self._flags = {
            (flags, count): self.flags_text(flags, count) for flags in range(256) for count in (0, 1, 2, 3)
        }
        self.notes: dict[str, int] = {}

    def common(self, record: RawRecord) -> tuple[int, int, int, int]:
        """Return type, flags, preempt count and pid of a record; a damaged one may not have them all."""
        kind, flags, count, pid = self._unpack(record.data.ljust(8, b"\0"))
        return kind, flags, count, pid

    def flags_text(self, flags: int, preempt_count: int) -> str:
        """Return the characters of flags and counts as the recorded kernel shows them."""
        return flags_text(flags, preempt_count, may_be_lazy=self.options.is_from_6_13)

    def header(self, n_entries: int, n_written: int, n_cpus: int) -> str:
        """Return the heading of `trace`; `trace_pipe` has none."""
        options = self.options
        head = f"# tracer: {options.tracer}\n#\n"
        if options.tracer in OWN_HEADINGS:
            return head + OWN_HEADINGS[options.tracer]
        if not options.context_info:
            return head
        if options.latency_format:
            if not n_entries:
                return head
            columns = "" if options.verbose else LATENCY_COLUMNS
            return head + self.latency_heading(n_entries, n_written, n_cpus) + columns
        if options.verbose:
            return head
        head += f"# entries-in-buffer/entries-written: {n_entries}/{n_written}   #P:{n_cpus}\n#\n"
        return head + (irq_columns if options.irq_info else plain_columns)(has_tgid=options.record_tgid)

    def latency_heading(self, n_entries: int, n_written: int, n_cpus: int) -> str:
        """Return what a latency trace says of itself: print_trace_header()."""
        entries = f"#{n_entries}/{n_written}"
        return latency_heading(self.options, entries, n_cpus)

    def lines(self, records: Iterable[RawRecord], *, has_overruns: bool = False) -> Iterator[str]:
        r"""Yield the text of each record, with the lines the kernel puts before it; each ends in `\n`.

        `has_overruns` says that events were overwritten: then the begin of each CPU's buffer is
        shown, but for the first.  trace_pipe never shows it.
        """
        is_annotated = self.options.annotate and has_overruns
        started: set[int] = set()
        previous: tuple[RawRecord, str] | None = None
        # The kernel counts from 0 here: trace.c: s_start() begins at -1.
        index = 0
        for record, body in self._with_bodies(records):
            if previous is not None:
                yield self.entry(*previous, record.timestamp, index, started if is_annotated else None)
                index += 1
            previous = record, body
        if previous is not None:
            last = previous[0].timestamp
            yield self.entry(*previous, last, index, started if is_annotated else None)

    def line(self, record: RawRecord) -> str:
        """Return the text of one record on its own."""
        return self.entry(record, self.bodies([record])[0], record.timestamp, 0, None)

    def _with_bodies(self, records: Iterable[RawRecord]) -> Iterator[tuple[RawRecord, str]]:
        """Yield each record with what its line says after the context: a few first, then many at once."""
        records, size = iter(records), _FIRST_BATCH
        while batch := list(islice(records, size)):
            yield from zip(batch, self.bodies(batch), strict=True)
            size = min(4 * size, _MOST_BATCH)

    def entry(
        self, record: RawRecord, body: str, next_time: int, index: int, started: set[int] | None
    ) -> str:
        """Return the lines of one record: those before it, its context, its body.

        `next_time` is that of the record after it, `index` its number; `started` are the CPUs that were shown
        already, None where they are not told.
        """
        text = self.lost_text(record)
        number, flags, count, pid = self.common(record)
        if self.options.form:
            has_context = self.options.context_info
            return text + (self._form_context(record, pid) if has_context else "") + body
        if number in self._messages:
            return text + body
        if started is not None and record.cpu not in started:
            started.add(record.cpu)
            if index > 1:
                text += f"##### CPU {record.cpu} buffer started ####\n"
        if self.options.context_info:
            if self.options.latency_format:
                text += self._latency_context(record, next_time, index, (flags, count, pid))
            else:
                text += self._context(record, flags, count, pid)
        return text + body

    def _form_context(self, record: RawRecord, pid: int) -> str:
        """Return pid, CPU and time: print_raw_fmt(), print_hex_fmt(), print_bin_fmt()."""
        cpu, time = record.cpu, record.timestamp
        match self.options.form:
            case "raw":
                return f"{pid} {cpu} {time} "
            case "hex":
                return f"{pid & 0xFFFFFFFF:08x} {cpu:08x} {time:016x} "
        order = ">" if self.is_big_endian else "<"
        return struct.pack(f"{order}iiQ", pid, cpu, time).decode(errors="surrogateescape")

    @staticmethod
    def lost_text(record: RawRecord) -> str:
        """Return the line that says what was lost before a record."""
        if not record.lost:
            return ""
        number = "" if record.lost == LOST_UNKNOWN else f"{record.lost} "
        return f"CPU:{record.cpu} [LOST {number}EVENTS]\n"

    def comm(self, pid: int) -> str:
        """Return the name of a task as the kernel prints it: trace_find_cmdline()."""
        if pid <= 0:
            return _NO_TASK if pid else "<idle>"
        return self.facts.comms.get(pid, "<...>")

    def name_tasks(self, comms: Mapping[int, str]) -> None:
        """Add names of tasks by their ids, for what is written from now on."""
        self.facts = replace(self.facts, comms={**self.facts.comms, **comms})

    def task(self, pid: int) -> str:
        """Return what names the task at the begin of a line."""
        return f"{self.padded_comm(pid)}-{pid:<7d} {self.process(pid)}"

    def padded_comm(self, pid: int) -> str:
        """Return the name of a task in the width of its column."""
        return _padded(self.comm(pid), 16)

    def process(self, pid: int) -> str:
        """Return the column TGID, empty without it."""
        if not self.options.record_tgid:
            return ""
        tgid = self.tgids.get(pid)
        return f"({tgid:7d}) " if tgid else "(-------) "

    def _context(self, record: RawRecord, flags: int, count: int, pid: int) -> str:
        options = self.options
        text = f"{self.task(pid)}[{record.cpu:03d}] "
        if options.irq_info:
            text += self._flags.get((flags, count)) or self.flags_text(flags, count)
        return f"{text} {self.time_text(record.timestamp)}: "

    def _latency_context(
        self, record: RawRecord, next_time: int, index: int, common: tuple[int, int, int]
    ) -> str:
        """kernel/trace/trace_output.c: trace_print_lat_context()."""
        flags, count, pid = common
        since = record.timestamp - self.options.time_start_ns & U64
        until = next_time - record.timestamp & U64
        is_in_ns = self.options.is_in_ns
        if is_in_ns:
            since, until = microseconds(since), microseconds(until)
        if not self.options.verbose:
            comm = _padded(self.comm(pid)[:8], 8)
            text = f"{comm}-{pid:<7d} {record.cpu:3d}{self.flags_text(flags, count)} {since:4d}"
            return f"{text}us{mark_of(until * 1000)}: " if is_in_ns else f"{text}: "
        comm = _padded(self.comm(pid), 16)
        text = f"{comm} {pid:7d} {record.cpu:3d} {flags} {count & 15:08x} {index:08x} "
        if not is_in_ns:
            return f"{text}[{record.timestamp:016x}] {since} (+{until}): "
        return (
            f"{text}[{microseconds(record.timestamp):08x}] {since // 1000}.{since % 1000:03d}ms "
            f"(+{until // 1000}.{until % 1000:03d}ms): "
        )

    def body(self, record: RawRecord) -> str:
        """Return what follows `event_name: ` in a record's line."""
        number = self.common(record)[0]
        name, text = self._rendered(number, record.data)
        return self._dated(record, text) if name is not None else f"Unknown type {number}"

    def _body(self, number: int, data: bytes) -> str:
        name, text = self._rendered(number, data)
        return f"Unknown type {number}\n" if name is None else f"{name}{text}\n"

    def texts(self, records: Sequence[RawRecord]) -> list[str]:
        """Return what `body` gives for each of many records, which are rendered at once."""
        return self._numbers_and_texts(records)[1]

    def _numbers_and_texts(self, records: Sequence[RawRecord]) -> tuple[list[int], list[str]]:
        # A record of the ring buffer has at least the common fields; a damaged one may not.
        data = [record.data.ljust(2, b"\0") for record in records]
        numbers = [self._number(one)[0] for one in data]
        for number in dict.fromkeys(numbers):
            self.program(number)
        lines = self.printer.render_list(data)
        for index, rendered in lines.noted.items():
            if (program := self.program(numbers[index])) is not None and rendered.notes:
                self.note(program.format, rendered.notes)
        texts = lines.texts
        if not self._repeats.isdisjoint(numbers):
            texts = list(map(self._dated, records, texts))
        return numbers, texts

    def bodies(self, records: Sequence[RawRecord]) -> list[str]:
        r"""Return the text after the context in the line of each record, `\n` included."""
        numbers, texts = self._numbers_and_texts(records)
        if self.options.form:
            return list(map(self._formed, numbers, texts))
        return [f"{self.names[number]}{text}\n" for number, text in zip(numbers, texts, strict=True)]

    def _formed(self, number: int, text: str) -> str:
        """Return what follows the context in a line of another form."""
        program = self._programs.get(number)
        if program is None:
            return {"raw": f"{number} ?\n", "hex": "\n", "bin": ""}[self.options.form]
        return f"{self.names[number]}{text}\n" if program.is_line else text

    def _dated(self, record: RawRecord, text: str) -> str:
        """Put in the time of the last call, which a function's repeats count from their own."""
        event = self.events.get(self.common(record)[0])
        if event is None or event.name != FUNC_REPEATS or not text.endswith(REPEATS_END):
            return text
        halves = ("top_delta_ts", "bottom_delta_ts")
        high, low = (field_bytes(event, event[name], record.data) for name in halves)
        if high is None or low is None:
            return text
        delta = (integer(event, high) << 32) + integer(event, low)
        return f"{text} {self.time_text(record.timestamp - delta & U64)})"

    def time_text(self, time: int) -> str:
        """Write a time as the context of a line has it: trace_print_time()."""
        if not self.options.is_in_ns:
            return f"{time:12d}"
        seconds, rest = divmod(microseconds(time), 1_000_000)
        return f"{seconds:5d}.{rest:06d}"

    def program(self, number: int) -> PrintProgram | None:
        """Return the program for records of a type, compiled for the first; None for an unknown type.

        `names[number]` is then what its lines begin with after the context.
        """
        if number in self.names:
            return self._programs.get(number)
        event = self.events.get(number)
        self.names[number] = ""
        if event is None:
            return None
        program = self._programs[number] = self.compiled(event)
        self.names[number] = self.named(program)
        self.printer.add(number, program)
        return program

    def compiled(self, event: EventFormat) -> PrintProgram:
        """Return the program of an event."""
        return compile_print(event, own=self.options.own_style(event))

    def named(self, program: PrintProgram) -> str:
        """Return what a line begins with after the context."""
        return f"{program.format.name}: " if program.is_named else ""

    def _rendered(self, number: int, data: bytes) -> tuple[str | None, str]:
        """Return the name with its colon (None for an unknown type) and the text."""
        program = self.program(number)
        if program is None:
            return None, ""
        rendered = render_record(program, data, self.facts)
        if rendered.notes:
            self.note(program.format, rendered.notes)
        return self.names[number], rendered.text

    def note(self, event: EventFormat, notes: tuple[str, ...], n_lines: int = 1) -> None:
        """Count lines of an event that are not the kernel's text, or not all of it."""
        for note in notes:
            text = f"{event.system}:{event.name}: {note}"
            if text in self.notes or len(self.notes) < _MAX_NOTES:
                self.notes[text] = self.notes.get(text, 0) + n_lines


def mark_of(delay_ns: int) -> str:
    """Return the sign for a long time: trace_find_mark()."""
    if delay_ns <= _MARKS[-1][0]:
        return " "
    return next((mark for limit, mark in _MARKS if delay_ns > limit), " ")


def facts_of(trace: Container, known: RenderFacts = NO_FACTS) -> RenderFacts:
    """Return what a recording gives a renderer, with what else is `known` (HZ, constants, variables)."""
    return RenderFacts(
        Kallsyms(trace.kallsyms) if trace.kallsyms else known.kallsyms,
        read_printk_formats(trace.printk_formats) or known.printk_formats,
        known.hz,
        known.hash_pointers,
        known.kptr_restrict,
        {**variables_of(trace.options), **known.variables},
        known.constants,
        known.sizeof,
        known.n_possible_cpus,
        {**read_pairs(trace.saved_cmdlines), **known.comms},
    )
