"""`tracepoint sql`: SQL over the events of a recording."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tracepoint.analysis.sql.database import AnalysisDatabase
from tracepoint.cli.status import EXIT_DONE, EXIT_IN_PART
from tracepoint.cli.trace.recordings import (
    add_file_argument,
    add_filter_arguments,
    add_instance_argument,
    open_recording,
    warn_of_damage,
    warn_of_losses,
)
from tracepoint.convert.tables import csv_lines
from tracepoint.errors import TracepointError
from tracepoint.record.page import LOST_UNKNOWN
from tracepoint.tracefile.filebytes import STDIN
from tracepoint.wording import json_line, visible

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from tracepoint.cli.output import Output
    from tracepoint.decode.trace import Trace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_file_argument(parser)
    parser.add_argument(
        "query",
        nargs="?",
        metavar="QUERY",
        help="events are views: sched.sched_switch; each statement up to a ; prints its rows",
    )
    parser.add_argument(
        "--format",
        choices=("table", "csv", "jsonl"),
        default="table",
        help='default: table; of csv an empty field is NULL and "" an empty text; of jsonl NaN is null; '
        "bytes are hexadecimal in both",
    )
    parser.add_argument("--shell", action="store_true", help="read queries from stdin, each up to its ;")
    parser.add_argument("--strict", action="store_true", help="exit status 3 for damaged or lost data")
    add_filter_arguments(parser)
    add_instance_argument(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    """Print the rows of a query, or of each query of stdin; the status is 3 when one of a script fails."""
    if args.query is None and not args.shell:
        raise TracepointError("no query: give one, or --shell")
    if args.shell and args.file == STDIN:
        raise TracepointError("--shell reads queries from stdin: the recording has to be a file")
    with open_recording(args) as trace:
        database = AnalysisDatabase(trace)
        missing = Missing(args.file, trace, out)
        if args.query is not None:
            _print(database, args.query, args.format, out)
        has_failed = False
        for query in _queries(out) if args.shell else ():
            try:
                _print(database, query, args.format, out)
            except TracepointError as error:
                has_failed = True
                out.error(str(error))
            missing.warn()
            out.flush()
        missing.warn()
    # Whoever types has seen it.
    is_in_part = (has_failed and not sys.stdin.isatty()) or (args.strict and missing.is_any)
    return EXIT_IN_PART if is_in_part else EXIT_DONE


class Missing:
    """What the rows of queries may lack, reported once: a file can become shorter between two of them."""

    def __init__(self, file: str, trace: Trace, out: Output) -> None:
        self._file = file
        self._trace = trace
        self._out = out
        self._n_reported: int | None = None

    @property
    def is_any(self) -> bool:
        """Whether any was reported."""
        return bool(self._n_reported) or any(self._trace.lost.values())

    def warn(self) -> None:
        """Report losses and damage that were not reported yet."""
        damage = self._trace.damage
        if self._n_reported is None:
            lost = self._trace.lost.values()
            n_lost = sum(n for n in lost if n != LOST_UNKNOWN)
            warn_of_losses(n_lost, is_more=LOST_UNKNOWN in lost, out=self._out)
        warn_of_damage(self._file, damage[self._n_reported or 0 :], self._out)
        self._n_reported = len(damage)


def _queries(out: Output) -> Iterator[str]:
    """Yield the queries of stdin, with a prompt on a terminal."""
    lines: list[str] = []
    has_prompt = sys.stdin.isatty()
    while True:
        if has_prompt:
            out.write("   ...> " if lines else "tracepoint> ")
            out.flush()
        line = sys.stdin.readline()
        lines.append(line)
        if not line or line.rstrip().endswith(";"):
            query = "".join(lines).strip()
            if query:
                yield query
            lines = []
        if not line:
            return


def _print(database: AnalysisDatabase, query: str, form: str, out: Output) -> None:
    for names, rows in database.results(query):
        _print_rows(names, rows, form, out)


def _print_rows(names: list[str], rows: Iterator[tuple[Any, ...]], form: str, out: Output) -> None:
    if form == "table":
        # All rows decide how wide a column is.
        for line in _table(names, [[_shown(value) for value in row] for row in rows]):
            out.line(line)
    elif form == "csv":
        for lines in csv_lines(names, rows):
            out.write(lines)
    else:
        for row in rows:
            out.line(json_line(dict(zip(names, row, strict=True))))


def _table(names: list[str], rows: list[list[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    yield "  ".join(name.ljust(width) for name, width in zip(names, widths, strict=True)).rstrip()
    yield "  ".join("-" * width for width in widths)
    for row in rows:
        yield "  ".join(value.ljust(width) for value, width in zip(row, widths, strict=True)).rstrip()


def _shown(value: Any) -> str:
    return "NULL" if value is None else visible(" ".join(str(value).split("\n")))
