"""`tracepoint read`: the records of a recording as the kernel's `trace` shows them, or as JSON lines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.cli import numbers
from tracepoint.cli.status import EXIT_DONE, EXIT_FINDINGS, EXIT_IN_PART
from tracepoint.cli.trace.layout import add_layout_arguments
from tracepoint.cli.trace.reading import Reading
from tracepoint.cli.trace.recordings import (
    add_file_argument,
    add_instance_argument,
    add_selection_arguments,
    has_choice,
    open_file,
    report_empty,
    report_unmatched,
    warn_of_damage,
    warn_of_losses,
)
from tracepoint.errors import TracepointError
from tracepoint.wording import counted

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.output import Output
    from tracepoint.tracefile.container import Container


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_file_argument(parser)
    add_selection_arguments(parser)
    parser.add_argument(
        "--format",
        choices=("text", "report", "jsonl", "csv", "arrow", "parquet"),
        default="text",
        help="default: text; report is that of trace-cmd; csv, arrow and parquet of one event have its "
        "fields as columns, csv of several the text of each record",
    )
    add_instance_argument(parser)
    parser.add_argument("--strict", action="store_true", help="exit status 3 for damaged or lost data")
    parser.add_argument(
        "--tgids", type=Path, metavar="FILE", help="a copy of saved_tgids: shows the column TGID from it"
    )
    parser.add_argument(
        "--kernel-facts",
        type=Path,
        metavar="PATH",
        action="append",
        default=[],
        help="where to find enum values, sizes and HZ of the recorded kernel: its headers, sources, vmlinux, "
        "vmlinuz, BTF or configuration; without it those of the same release that are installed",
    )
    add_layout_arguments(parser)
    _add_follow_arguments(parser)


def _add_follow_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what says that a recording is still being written."""
    group = parser.add_argument_group("what is still being written")
    group.add_argument(
        "--follow",
        action="store_true",
        help="print records as they are written to FILE: a folder of trace_pipe_raw files such as a tracefs, "
        "one such file, a FIFO, a text of trace_pipe, or - for stdin; until pipes end, or Ctrl-C",
    )
    group.add_argument(
        "--formats", type=Path, metavar="DIR", help="where events/*/*/format are; default: that of FILE"
    )
    group.add_argument(
        "--delay",
        type=numbers.seconds,
        metavar="S",
        help="wait so long for a CPU that has no records; default: 1",
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Print the records by time; the exit status is 1 when what is chosen matches nothing."""
    if args.follow:
        from tracepoint.cli.trace.follow import follow  # noqa: PLC0415 - most files do not grow

        return follow(args, out)
    if args.formats is not None or args.delay is not None:
        word = "--delay" if args.formats is None else "--formats"
        raise TracepointError(
            f"{word} is for --follow: formats are in a recording that is complete, or next to it"
        )
    with open_file(args.file) as trace:
        if trace.latency_text:
            out.write(trace.latency_text)
            return EXIT_DONE
        reading = Reading(trace, args)
        if args.format in ("arrow", "parquet") and (reading.view.n_records or not has_choice(args)):
            reading.write_table(args.format, out.binary())
        for block in reading.blocks(args.format):
            out.write_utf8(block)
        is_missing = report_unmatched(args.file, args.pattern, reading.names, out)
        is_empty = report_empty(reading.view, out)
        _say_what_is_missing(trace, reading, out)
        if args.strict and (trace.damage or reading.n_lost or reading.is_lost_unknown):
            return EXIT_IN_PART
    return EXIT_FINDINGS if is_missing or is_empty else EXIT_DONE


def _say_what_is_missing(trace: Container, reading: Reading, out: Output) -> None:
    warn_of_losses(reading.n_lost, is_more=reading.is_lost_unknown, out=out)
    warn_of_damage(trace.path, trace.damage, out)
    if reading.has_latency_heading:
        out.say("tracepoint: a ? in the heading is for what is not in the recording")
    notes = reading.writer.notes
    if notes:
        n_lines = sum(notes.values())
        whose = "trace-cmd" if reading.writer.is_report else "the kernel"
        out.say(f"tracepoint: {counted(n_lines, 'line')} not printed as {whose} would (-v shows why)")
        for note, count in sorted(notes.items()):
            out.detail(f"  {count} x {note}")
        for note in reading.kernel.notes:
            out.detail(f"  {note}")
