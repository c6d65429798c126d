"""`tracepoint read --follow`: the records of what is still being written, as they come."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from tracepoint.cli.status import EXIT_DONE, EXIT_FINDINGS, EXIT_IN_PART
from tracepoint.cli.stopping import interrupt_ends
from tracepoint.cli.trace.reading import Reading
from tracepoint.cli.trace.recordings import has_choice, report_unmatched, warn_of_damage
from tracepoint.errors import TracepointError
from tracepoint.record.page import LOST_UNKNOWN
from tracepoint.tracefile.follow import DELAY_S, Followed
from tracepoint.tracefile.recording import read_pairs
from tracepoint.wording import counted

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from tracepoint.cli.output import Output
    from tracepoint.record.raw import RawRecord
    from tracepoint.tracefile.buffers import TraceBuffer
    from tracepoint.tracefile.container import Container

_NAMES_S = 1.0
_FORMATS = ("text", "jsonl")
# The task; its CPU, flags and time; the event.
_HEAD = re.compile(r"^( *\S[^\n]*?-\d+ +)((?:\( *[\d-]+\) )?\[\d+\] [^\n:]*: )(\w+)(?=:)", re.MULTILINE)


def follow(args: argparse.Namespace, out: Output) -> int:
    """Print records until the end, then what was lost."""
    if args.format not in _FORMATS:
        raise TracepointError(f"--follow prints {' or '.join(_FORMATS)}, not {args.format}")
    made = Followed(
        args.file,
        formats=args.formats,
        instance=args.instance,
        delay_s=DELAY_S if args.delay is None else args.delay,
    )
    with made as followed, interrupt_ends() as stop:
        printing = Printing(args, followed, out)
        try:
            printing.run(stop.is_set)
        finally:
            say_what_is_missing(followed, out)
        if args.strict and (followed.n_lost or followed.damage):
            return EXIT_IN_PART
        is_missing = report_unmatched(args.file, args.pattern, printing.names, out)
        if not printing.n_records and has_choice(args):
            out.say("tracepoint: no record that is chosen came")
            return EXIT_FINDINGS
        return EXIT_FINDINGS if is_missing else EXIT_DONE


def say_what_is_missing(followed: Followed, out: Output) -> None:
    """Report what was lost while it was followed, and what could not be read."""
    n_lost = followed.n_lost
    if n_lost:
        out.warn(f"{'some' if n_lost == LOST_UNKNOWN else n_lost} events were lost while recording")
    if followed.n_late:
        n_late = counted(followed.n_late, "record")
        out.warn(f"{n_late} came too late to be in the order of time; a longer --delay waits for them")
    warn_of_damage(followed.path, followed.damage, out)


class Printing:
    """What is printed: `n_records` until now; `names` are the events that are known.

    Names of tasks are read again when they are `names_s` seconds old.
    """

    def __init__(
        self, args: argparse.Namespace, followed: Followed, out: Output, names_s: float = _NAMES_S
    ) -> None:
        self.names: set[str] = set()
        self.n_records = 0
        self._args = args
        self._followed = followed
        self._out = out
        self._reading: Reading | None = None
        self._names_s = names_s
        self._named_at = time.monotonic()

    def run(self, is_stopped: Callable[[], bool]) -> None:
        """Print records as they come."""
        for _, records in self._followed.chunks(self._choose, is_stopped):
            if self._reading is not None:
                self._print(self._reading, records)

    def _choose(self, container: Container) -> TraceBuffer:
        self._reading = Reading(container, self._args)
        self.names.update(self._reading.names)
        return self._reading.buffer

    def _print(self, reading: Reading, records: list[RawRecord]) -> None:
        self.n_records += len(records)
        now = time.monotonic()
        if now - self._named_at >= self._names_s:
            self._named_at = now
            reading.writer.name_tasks(read_pairs(self._followed.saved_cmdlines()))
        if self._args.format == "jsonl":
            lines = b"".join(reading.json_lines(records))
        else:
            text = "".join(reading.writer.lines(records))
            lines = (_HEAD.sub(self._paint, text) if self._out.has_color else text).encode(
                "utf-8", "surrogateescape"
            )
        self._out.write_utf8(lines)
        self._out.flush()

    def _paint(self, head: re.Match[str]) -> str:
        task, flags, event = head.groups()
        return self._out.style(task, "cyan") + self._out.style(flags, "dim") + self._out.style(event, "green")
