"""`tracepoint merge`: several recordings as one trace.dat, by time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.cli.status import EXIT_DONE, EXIT_FINDINGS
from tracepoint.cli.trace.cut import add_output_arguments, write_selected
from tracepoint.cli.trace.recordings import (
    add_filter_arguments,
    check_output,
    narrowed,
    open_file,
    report_empty,
    warn_of_damage,
)
from tracepoint.decode.trace import Trace
from tracepoint.errors import TracepointError
from tracepoint.tracefile.filebytes import STDIN
from tracepoint.tracefile.merged import MergedContainer

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.output import Output
    from tracepoint.tracefile.container import Container


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("file", nargs="+", metavar="FILE", help="recordings of any form, with the same clock")
    add_output_arguments(parser)
    add_filter_arguments(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    """Write the file; the exit status is 1 when no record is what is chosen."""
    check_output(args.output, args.file)
    if args.file.count(STDIN) > 1:
        raise TracepointError("- is given more than once: stdin can be read once, as one recording")
    files: list[Container] = []
    try:
        files += map(open_file, args.file)
        merged = MergedContainer(files)
        trace = narrowed(Trace(merged), args)
        write_selected(trace, args, out)
        is_empty = report_empty(trace, out)
        warn_of_damage(str(Path(args.output)), merged.damage, out)
    finally:
        for file in files:
            file.close()
    return EXIT_FINDINGS if is_empty else EXIT_DONE
