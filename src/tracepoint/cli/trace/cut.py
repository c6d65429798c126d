"""`tracepoint cut`: a part of a recording as a trace.dat of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.cli.status import EXIT_DONE, EXIT_FINDINGS
from tracepoint.cli.trace.recordings import (
    add_file_argument,
    add_instance_argument,
    add_selection_arguments,
    check_output,
    open_recording,
    report_empty,
    report_unmatched,
    warn_of_damage,
    writing_to,
)
from tracepoint.convert.tracedat import write_cut

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.output import Output
    from tracepoint.decode.trace import Trace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_file_argument(parser)
    add_selection_arguments(parser)
    add_output_arguments(parser)
    add_instance_argument(parser)


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what says how a trace.dat is written."""
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="OUT", help="- for stdout")
    parser.add_argument("--file-version", type=int, choices=(6, 7), default=7, help="default: 7")
    parser.add_argument("--compression", choices=("none", "zlib", "zstd"), default="none")


def run(args: argparse.Namespace, out: Output) -> int:
    """Write the file; the exit status is 1 when a pattern, or all that is chosen, matches nothing."""
    check_output(args.output, [args.file])
    with open_recording(args) as trace:
        is_missing = report_unmatched(args.file, args.pattern, {*trace.names, *trace.events}, out)
        write_selected(trace, args, out)
        is_empty = report_empty(trace, out)
        warn_of_damage(args.file, trace.damage, out)
    return EXIT_FINDINGS if is_missing or is_empty else EXIT_DONE


def write_selected(trace: Trace, args: argparse.Namespace, out: Output) -> None:
    """Write the selected records as the arguments say, with progress."""
    version, compression = args.file_version, args.compression
    with (
        writing_to(args.output, out) as path,
        out.progress("records", trace.n_records) as progress,
    ):
        write_cut(trace, path, version=version, compression=compression, progress=progress.step)
