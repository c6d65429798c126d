"""Texts of `trace`, `trace_pipe`, `trace-cmd report` and `perf script` as recordings.

Each line becomes a record: the common fields, the text of the line, and the fields that the print format
shows where the format of the event is known. What the text does not show is not in the record's format.
"""

from __future__ import annotations

import struct
from codecs import BOM_UTF8
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.layout.format import COMMON_FIELDS, EventFormat, FieldFormat, write_format
from tracepoint.printk.own_events import TEXT_FMT
from tracepoint.printk.scan import compile_scanner
from tracepoint.record.layout import header_page_text
from tracepoint.record.page import add_lost
from tracepoint.tracefile.container import Parts, PartsContainer, read_formats
from tracepoint.tracefile.content import TraceContent
from tracepoint.tracefile.cursor import decode, encode
from tracepoint.tracefile.damage import Damage
from tracepoint.tracefile.filebytes import read_at, shorter_by
from tracepoint.tracefile.folder import find_formats
from tracepoint.tracefile.lines import (
    MAX_LINE,
    STACKS,
    is_frame,
    is_report_heading,
    is_sample,
    is_text,
    read_line,
    read_lost,
)
from tracepoint.tracefile.spool import PageSpool, spool_layout
from tracepoint.tracefile.textoptions import GRAPH_TRACER
from tracepoint.wording import one_line

if TYPE_CHECKING:
    from tracepoint.printk.scan import Scanner
    from tracepoint.tracefile.container import DamageLog
    from tracepoint.tracefile.cpudata import Report
    from tracepoint.tracefile.filebytes import Bytes
    from tracepoint.tracefile.lines import TraceLine

_TEXT = FieldFormat("text", "__data_loc char[]", 8, 4, is_signed=True)
_FIXED = 12
_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
_MAX_KINDS = 1 << 13
#: What `form` of a recording says of a text.
TEXT_FORM = "text of a trace"
# A record has to fit into a page.
_MAX_TEXT = 1 << 13
_BLOCK = 1 << 16
_MAX_SHOWN = 60
_UNTYPED = "text"
_GRAPH_HEADING = f"# tracer: {GRAPH_TRACER}"
# What a line of a stack begins with, which belongs to the record before it.
_OF_STACK = " => "


def is_text_file(data: Bytes) -> bool:
    """Say whether the content of a file is a text of records."""
    return is_text(decode(bytes(data[:MAX_LINE]).removeprefix(BOM_UTF8)))


def open_text(data: Bytes, path: str, log: DamageLog) -> PartsContainer:
    """Open a text of records; formats are looked for next to it."""
    opened = [data]

    def load(report: Report) -> Parts:
        folder = None if path in ("", "-") else Path(path).absolute().parent
        return TextReader(folder, opened, report).load(data)

    return PartsContainer(path, TEXT_FORM, load, opened, log)


class _Kind:
    """How the records of one event are made: its format and where its values go."""

    def __init__(self, number: int, system: str, name: str, scanner: Scanner | None = None) -> None:
        self.scanner = scanner
        fields, at = [], _FIXED
        for field in scanner.fields if scanner else ():
            # What goes on to the end of a record, too: texts are after all fields here.
            is_located = field.is_data_loc or not field.size
            size = 4 if is_located else field.size
            at += -at % (size if size in _CODES else 1)
            ctype = _TEXT.ctype if is_located else field.ctype
            fields.append(replace(field, ctype=ctype, offset=at, size=size))
            at += size
        self.size = at + -at % 4
        self._fields = fields
        self.format = EventFormat(system, name, (*COMMON_FIELDS, _TEXT, *fields), TEXT_FMT, number)

    def record(self, line: TraceLine, values: tuple[int | str, ...]) -> bytes:
        made = bytearray(self.size)
        struct.pack_into("<HBBi", made, 0, self.format.id, line.flags, line.preempt_count, line.pid)
        self._put_text(made, 8, line.text)
        for field, value in zip(self._fields, values, strict=True):
            if isinstance(value, int):
                struct.pack_into("<" + _CODES[field.size], made, field.offset, value)
            elif field.is_data_loc:
                self._put_text(made, field.offset, value)
            else:
                text = encode(value)[: field.size]
                made[field.offset : field.offset + len(text)] = text
        return bytes(made)

    @staticmethod
    def _put_text(made: bytearray, at: int, text: str) -> None:
        data = encode(text)[:_MAX_TEXT] + b"\0"
        # Offset and length have 16 bits each; what does not fit is cut.
        data = data[: max(0xFFFF - len(made), 0)]
        struct.pack_into("<HH", made, at, min(len(made), 0xFFFF), len(data))
        made += data


class TextReader:
    """Makes records of a text while it is read; formats are those of `folder`, None for none."""

    def __init__(self, folder: Path | None, opened: list[Bytes], report: Report) -> None:
        self._opened = opened
        self._report = report
        self._spool = PageSpool(spool_layout(), report)
        # By system and name as a line has them, and as the recording has them.
        self._typed: dict[tuple[str, str], _Kind] = {}
        self._named: dict[tuple[str, str], _Kind] = {}
        self._made: dict[tuple[str, str], _Kind] = {}
        self._known: dict[str, EventFormat] = {}
        self._free = iter(range(1, 1 << 16))
        self._comms: dict[int, str] = {}
        self._tgids: dict[int, int] = {}
        self._held: TraceLine | None = None
        self._has_records = self._is_in_stack = False
        #: How many events the lines say were lost; LOST_UNKNOWN (-1): some.
        self.lost = 0
        self._losses: list[tuple[int, int, int]] = []
        # The time and CPU of the last record, and how much later it was written.
        self._stamp = self._cpu = self._later = 0
        self._n_other = self._n_long = self._n_shortened = self._n_stacks = 0
        self._n_unordered = self._n_with_nul = 0
        # The start of a line whose end was not read yet, where it is, and how much was read.
        self._rest, self._rest_at, self._n_read = b"", 0, 0
        self._is_graph, self._n_drawn = False, 0
        self._n_unscanned: dict[str, int] = {}
        self._find_known(folder)

    def load(self, data: Bytes) -> Parts:
        """Return the records of a whole text."""
        for at in range(0, len(data), _BLOCK):
            stop = min(at + _BLOCK, len(data))
            block = read_at(data, at, stop)
            self.feed(block)
            if len(block) < stop - at:
                end = at + len(block)
                self._report(Damage(None, end, shorter_by(len(data) - end)))
                break
        self.end()
        return self.parts()

    def feed(self, block: bytes) -> None:
        """Take the next bytes of the text; what follows the last newline waits for the rest of its line."""
        *lines, rest = (self._rest + block).split(b"\n")
        self._n_read += len(block)
        if lines and not self._rest_at:
            lines[0] = lines[0].removeprefix(BOM_UTF8)
        if lines:
            self._rest_at = self._n_read - len(rest)
        for line in lines:
            self._feed_line(line)
        # A longer line is left out: memory stays bounded whatever a text holds.
        self._rest = rest[: MAX_LINE + 1]

    def end(self) -> None:
        """Take the last record and report what no record was made of.

        A last line without a newline is left out: its last value may be shorter than it was, and it may be
        the start of a record and not a continuation of the one before.
        """
        self.end_record()
        self._take_losses()
        if self._rest:
            shown = one_line(decode(self._rest), _MAX_SHOWN)
            reason = f"the last line has no newline, so it may be cut off, and was left out: {shown!r}"
            self._report(Damage(None, self._rest_at, reason))
        self._report_counts()

    def _report_counts(self) -> None:
        for number, reason in (
            (self._n_other, f"{self._n_other} lines that are not records"),
            (
                self._n_drawn,
                f"{self._n_drawn} lines of {GRAPH_TRACER} were left out: their records cannot be read",
            ),
            (
                self._n_stacks,
                f"the stacks of {self._n_stacks} records were left out: those of perf script are not read",
            ),
            (self._n_long, f"{self._n_long} lines longer than {MAX_LINE} bytes were left out"),
            (self._n_with_nul, f"NUL bytes were left out of {self._n_with_nul} lines"),
            (
                self._n_unordered,
                f"{self._n_unordered} records may come before some of lines above: times have few digits",
            ),
            (self._n_shortened, f"the texts of {self._n_shortened} records were cut to {_MAX_TEXT} bytes"),
        ):
            if number:
                self._report(Damage(None, 0, reason))
        for name, n_lines in self._n_unscanned.items():
            text = f"{_UNTYPED}:{name.partition(':')[2]}"
            reason = f"{n_lines} lines of {name} do not match its print format: see {text}"
            self._report(Damage(None, 0, reason))

    def parts(self) -> Parts:
        """Return the records that were read since the last call, and all that is known of them."""
        buffer = self._spool.finish(self._opened, "")
        layout = self._spool.layout
        names = {pid: name for pid, name in self._comms.items() if pid and name not in ("<...>", ":-1")}
        content = TraceContent(
            (),
            tuple((kind.format.system, write_format(kind.format)) for kind in self._made.values()),
            header_page_text(layout),
            saved_cmdlines="".join(f"{pid} {name}\n" for pid, name in names.items()),
            saved_tgids="".join(f"{pid} {tgid}\n" for pid, tgid in self._tgids.items()) or None,
            n_cpus=max((cpu.cpu + 1 for cpu in buffer.cpus), default=1),
            page_size=layout.page_size,
        )
        return Parts(content, (buffer,))

    def _find_known(self, folder: Path | None) -> None:
        if folder is None:
            return
        numbers: set[int] = set()
        # A text can be read without formats, so missing ones are not damage.
        texts = list(find_formats((folder, folder.parent), lambda _: None))
        for form in read_formats(texts, self._report, is_big_endian=False, long_size=8).values():
            numbers.add(form.id)
            if form.system == "ftrace" and form.name in STACKS:
                # A text has names in place of the addresses that these are.
                continue
            self._known.setdefault(form.name, form)
            self._known[f"{form.system}:{form.name}"] = form
        self._free = (number for number in range(1, 1 << 16) if number not in numbers)

    def _feed_line(self, raw: bytes) -> None:
        """Take a line without its end; one that begins no record continues the text of the one before."""
        if len(raw) > MAX_LINE:
            self.end_record()
            self._n_long += 1
            return
        if b"\0" in raw:
            # A text of a record ends at one.
            self._n_with_nul += 1
            raw = raw.replace(b"\0", b"")
        text = decode(raw).rstrip("\r")
        line = read_line(text)
        if line is not None:
            self.end_record()
            self._held, self._has_records, self._is_in_stack = line, True, False
        elif (lost := read_lost(text)) is not None:
            self.end_record()
            self.lost = add_lost(self.lost, lost[1])
            # They are before the next record, which may be read much later.
            self._losses.append((lost[0], self._stamp + self._later, lost[1]))
        elif text.startswith("#") or not text.strip():
            self._is_graph = self._is_graph or text == _GRAPH_HEADING
            self._end_stack()
        else:
            self._go_on(text)

    def _go_on(self, text: str) -> None:
        """Take a line that begins no record: it is of the one before, or not of the records at all."""
        held = self._held
        is_of_perf = held is not None and held.is_of_perf
        if is_of_perf and is_sample(text):
            self.end_record()
            self._n_other += 1
        elif self._is_graph and not text.startswith(_OF_STACK):
            self._n_drawn += 1
        elif self._is_in_stack or (is_of_perf and is_frame(text)):
            self._n_stacks += not self._is_in_stack
            self._is_in_stack = True
        elif held is None:
            self._n_other += self._has_records or not is_report_heading(text)
        elif len(held.text) <= _MAX_TEXT:
            self._held = held._replace(text=f"{held.text}\n{text}")

    def end_record(self) -> None:
        """Take the last record: no more lines of it come."""
        if self._held is not None:
            self._take(self._held)
        self._held = None

    def _end_stack(self) -> None:
        """Take a record with its stack, which ends with an empty line."""
        if self._is_in_stack:
            self.end_record()
        self._is_in_stack = False

    def _take(self, line: TraceLine) -> None:
        self._comms.setdefault(line.pid, line.comm)
        if line.tgid:
            self._tgids[line.pid] = line.tgid
        self._take_losses()
        self._n_shortened += len(encode(line.text)) > _MAX_TEXT
        kind, values = self._kind(line)
        self._spool.add(line.cpu, self._stamp_of(line), kind.record(line, values))

    def _take_losses(self) -> None:
        for loss in self._losses:
            self._spool.lose(*loss)
        self._losses.clear()

    def _stamp_of(self, line: TraceLine) -> int:
        """Return the time of a record in the order of the lines, within the precision that they have.

        Records are merged by time, of equal times that of the lower CPU first.  Lines that show microseconds
        have the order of nanoseconds, so one after a line of a higher CPU is 1 ns later than that, as long as
        the time rounds to the one that is shown.
        """
        if line.stamp != self._stamp:
            self._stamp, self._later = line.stamp, 0
        elif line.cpu < self._cpu and line.unit > 1:
            if self._later + 1 < line.unit // 2:
                self._later += 1
            else:
                self._n_unordered += 1
        self._cpu = line.cpu
        return self._stamp + self._later

    def _kind(self, line: TraceLine) -> tuple[_Kind, tuple[int | str, ...]]:
        """Return how a line's record is made, and the values of its fields.

        An event whose first line does not match its print format has no fields, like system calls in the text
        of the kernel.
        """
        typed = self._typed.get((line.system, line.event))
        if typed is not None and typed.scanner is not None:
            values = typed.scanner.scan(line.text)
            if values is not None:
                return typed, values
            name = f"{typed.format.system}:{typed.format.name}"
            self._n_unscanned[name] = self._n_unscanned.get(name, 0) + 1
            return self._untyped(_UNTYPED, line.event), ()
        untyped = self._named.get((line.system, line.event))
        if untyped is not None:
            return untyped, ()
        return self._first(line)

    def _first(self, line: TraceLine) -> tuple[_Kind, tuple[int | str, ...]]:
        key = (line.system, line.event)
        form = self._known.get(f"{line.system}:{line.event}" if line.system else line.event)
        if form is None:
            untyped = self._untyped(line.system or _UNTYPED, line.event)
        else:
            made = self._made.get((form.system, form.name))
            if made is not None and made.scanner is not None:
                # The same event with its system, or without.
                self._typed[key] = made
                return self._kind(line)
            scanner = None if made is not None else compile_scanner(form)
            values = None if scanner is None else scanner.scan(line.text)
            if scanner is not None and values is not None:
                typed = self._typed[key] = _Kind(form.id, form.system, form.name, scanner)
                self._made[form.system, form.name] = typed
                return typed, values
            untyped = made or _Kind(form.id, form.system, form.name)
            self._made[form.system, form.name] = untyped
        if len(self._named) < _MAX_KINDS:
            self._named[key] = untyped
        return untyped, ()

    def _untyped(self, system: str, name: str) -> _Kind:
        """Return the kind of records of which only the text is known: one for all events past a number."""
        if (system, name) not in self._made and len(self._made) >= _MAX_KINDS:
            system, name = _UNTYPED, "other"
        found = self._made.get((system, name))
        if found is None:
            found = self._made[system, name] = _Kind(next(self._free), system, name)
        return found
