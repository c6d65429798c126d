"""The text of `trace-cmd report`: its columns, and the text of events in its style."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.printk.report import compile_report
from tracepoint.record.page import LOST_UNKNOWN
from tracepoint.tracefile.text import TextWriter

if TYPE_CHECKING:
    from tracepoint.layout.format import EventFormat
    from tracepoint.printk.program import PrintProgram
    from tracepoint.record.raw import RawRecord

_NAME_WIDTH = 21


class ReportWriter(TextWriter):
    """Writes records as `trace-cmd report` does."""

    is_report = True

    def compiled(self, event: EventFormat) -> PrintProgram:
        """Return the program of an event, by its print format."""
        return compile_report(event)

    def named(self, program: PrintProgram) -> str:
        """Return what the text of a line begins with."""
        return f"{program.format.name + ':':<{_NAME_WIDTH}} "

    def entry(
        self, record: RawRecord, body: str, next_time: int, index: int, started: set[int] | None
    ) -> str:
        """Return the line of one record, after the one that says what was lost before it."""
        del next_time, index, started
        task, time = self.task(self.common(record)[3]), self.time_text(record.timestamp)
        space = " " * self.options.is_in_ns
        return f"{self.lost_text(record)}{task}[{record.cpu:03d}]{space}{time}: {body}"

    def task(self, pid: int) -> str:
        """Return what names the task at the begin of a line."""
        return f"{self.padded_comm(pid)}-{pid:<5d} "

    def process(self, pid: int) -> str:
        """Return the column TGID, which there is none of."""
        del pid
        return ""

    @staticmethod
    def lost_text(record: RawRecord) -> str:
        """Return the line that says what was lost before a record."""
        if not record.lost:
            return ""
        number = "" if record.lost == LOST_UNKNOWN else f"{record.lost} "
        return f"CPU:{record.cpu} [{number}EVENTS DROPPED]\n"

    def header(self, n_entries: int, n_written: int, n_cpus: int) -> str:
        """Return what stands above the lines."""
        del n_entries, n_written
        return f"cpus={n_cpus}\n"
