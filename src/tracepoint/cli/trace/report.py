"""`tracepoint report`: analyses of a recording as one page to look at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.analysis.registry import ANALYSES, DEFAULT, analyse
from tracepoint.cli.numbers import nanoseconds
from tracepoint.cli.status import EXIT_DONE, EXIT_FINDINGS, EXIT_IN_PART
from tracepoint.cli.trace.options import add_analysis_options, options_of
from tracepoint.cli.trace.recordings import (
    add_file_argument,
    add_instance_argument,
    buffer_named,
    check_output,
    no_figures,
    open_file,
    warn_of_damage,
    writing_to,
)
from tracepoint.decode.trace import Trace
from tracepoint.report.page import make_report

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.output import Output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_file_argument(parser)
    parser.add_argument(
        "analysis",
        nargs="*",
        metavar="ANALYSIS",
        help=f"what to show: {', '.join(ANALYSES)}; default: {DEFAULT}",
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="PAGE", required=True, help="the HTML file to write"
    )
    parser.add_argument("--title", default="", help="default: the name of the recording")
    parser.add_argument(
        "--catalog",
        metavar="URL",
        help="names of events lead to this site of `tracepoint catalog`, an address or a relative path",
    )
    parser.add_argument("--strict", action="store_true", help="exit status 3 for damaged or lost data")
    add_analysis_options(parser)
    group = parser.add_argument_group("part to show")
    group.add_argument("--from", dest="start", type=nanoseconds, metavar="S", help="from this second on")
    group.add_argument("--to", dest="stop", type=nanoseconds, metavar="S", help="before this second")
    add_instance_argument(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    """Write the page; what limits its figures is in it, and on stderr."""
    options = options_of(args, list(dict.fromkeys(args.analysis or [DEFAULT])))
    check_output(args.output, [args.file])
    with open_file(args.file) as file:
        trace = Trace(file, buffer_named(file, args.instance).name).between(args.start, args.stop)
        reports = [analyse(trace, name, **own) for name, own in options.items()]
        if not any(report.has_figures for report in reports):
            out.say(f"tracepoint: no page is written: {no_figures(file, args)}")
            return EXIT_FINDINGS
        with writing_to(args.output, out, is_text=True) as path:
            make_report(trace, reports, title=args.title, catalog=args.catalog).write(path)
        for note in dict.fromkeys(note for report in reports for note in report.notes()):
            out.say(f"tracepoint: {note}")
        warn_of_damage(args.file, file.damage, out)
        is_complete = all(report.coverage.is_complete for report in reports)
        return EXIT_IN_PART if args.strict and not is_complete else EXIT_DONE
