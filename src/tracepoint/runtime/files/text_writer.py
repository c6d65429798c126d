"""The text of what this process recorded: `TextWriter`, and what only a kernel's own `trace` shows."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.printk.render import render_record
from tracepoint.runtime.files.texts import PRINT_ID, RAW_ID
from tracepoint.tracefile.text import TextOptions, TextWriter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.layout.format import EventFormat
    from tracepoint.printk.facts import RenderFacts
    from tracepoint.record.raw import RawRecord
    from tracepoint.runtime.dynamic.event_probe import EventProbe

# The last that is set wins: print_trace_line() in kernel/trace/trace.c.
FORMS = ("raw", "hex", "bin")


@dataclass(frozen=True, slots=True)
class Own:
    """What the text of a process depends on beside its records.

    `probes` are the event probes by id; `form` is one of FORMS, or empty for the usual text.
    """

    probes: Mapping[int, EventProbe]
    form: str = ""


class ProcessWriter(TextWriter):
    """Writes records as text."""

    def __init__(
        self,
        events: Mapping[int, EventFormat],
        facts: RenderFacts,
        options: TextOptions,
        tgids: Mapping[int, int],
        own: Own,
    ) -> None:
        super().__init__(events, facts, options, tgids)
        self._own = own

    def _rendered(self, number: int, data: bytes) -> tuple[str | None, str]:
        probe = self._own.probes.get(number)
        if probe is None:
            return super()._rendered(number, data)
        return f"{probe.event.name}: ", render_record(probe.print_program(data), data, self.facts).text

    def bodies(self, records: Sequence[RawRecord]) -> list[str]:
        """Return the text after the context, of the events that code of this process prints too."""
        numbers = [self._unpack(record.data.ljust(8, b"\0"))[0] for record in records]
        if self._own.form:
            return [self._plain(number, record.data) for number, record in zip(numbers, records, strict=True)]
        if self._own.probes.keys().isdisjoint(numbers):
            return super().bodies(records)
        return [self._body(number, record.data) for number, record in zip(numbers, records, strict=True)]

    def _entry(
        self, record: RawRecord, body: str, next_time: int, index: int, started: set[int] | None
    ) -> str:
        if not self._own.form:
            return super()._entry(record, body, next_time, index, started)
        pid = self._unpack(record.data.ljust(8, b"\0"))[3]
        context = ""
        if self.options.context_info:
            context = _context(self._own.form, pid, record.cpu, record.timestamp)
        return f"{self._lost_text(record)}{context}{body}"

    def _plain(self, number: int, data: bytes) -> str:
        """Return what most kinds of records show, but for two in the form `raw`; no values."""
        if self._own.form == "raw":
            if number not in self._events:
                return f"{number} ?\n"
            if number == RAW_ID:
                return self._body(number, data)
            if number == PRINT_ID:
                (address,) = struct.unpack_from("<Q", data.ljust(16, b"\0"), 8)
                text = data[16:].partition(b"\0")[0].decode(errors="surrogateescape")
                return f"# {address:x} {text}"
        end = "\n" if self._own.form == "hex" else ""
        return f"type: {number}\n{end}" if number in self._events else end


def _context(form: str, pid: int, cpu: int, time: int) -> str:
    """Return pid, CPU and time: print_raw_fmt(), print_hex_fmt(), print_bin_fmt()."""
    if form == "raw":
        return f"{pid} {cpu} {time} "
    if form == "hex":
        return f"{pid & 0xFFFFFFFF:08x} {cpu:08x} {time:016x} "
    return struct.pack("<iiQ", pid, cpu, time).decode(errors="surrogateescape")
