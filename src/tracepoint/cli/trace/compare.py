"""`tracepoint compare`: what changed between two recordings."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.analysis.compare import compare_reports
from tracepoint.analysis.registry import ANALYSES, DEFAULT, analyse
from tracepoint.analysis.report import ALL
from tracepoint.analysis.sections import MAX_ROWS, Choice
from tracepoint.analysis.text import report_facts, report_lines
from tracepoint.cli.status import EXIT_DONE
from tracepoint.cli.trace.options import add_analysis_options, options_of
from tracepoint.cli.trace.recordings import (
    add_instance_argument,
    buffer_named,
    check_output,
    open_file,
    warn_of_damage,
    writing_to,
)
from tracepoint.decode.trace import Trace
from tracepoint.wording import json_line

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.output import Output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("before", metavar="BEFORE", help="a recording of any form that read takes")
    parser.add_argument("after", metavar="AFTER", help="another, of the same work")
    parser.add_argument(
        "analysis",
        nargs="?",
        metavar="ANALYSIS",
        help=f"what to compare: {', '.join(ANALYSES)}; default: {DEFAULT}",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="PAGE", help="write the changes and AFTER as an HTML file"
    )
    parser.add_argument("--all", action="store_true", help=f"all rows, not the first {MAX_ROWS} of a table")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the resampling; default: 1")
    add_analysis_options(parser)
    add_instance_argument(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    """Print the changes; what limits them goes to stderr."""
    analysis = args.analysis or DEFAULT
    options = options_of(args, [analysis])[analysis]
    names = args.before, args.after
    with ExitStack() as stack:
        files = [stack.enter_context(open_file(name)) for name in names]
        traces = [Trace(file, buffer_named(file, args.instance).name) for file in files]
        before, after = (analyse(trace, analysis, **options) for trace in traces)
        found = compare_reports(before, after, args.seed)
        if args.output is not None:
            from tracepoint.report.page import make_report  # noqa: PLC0415 - text needs none of it

            check_output(args.output, names)
            title = " and ".join(Path(name).name for name in names)
            with writing_to(args.output, out, is_text=True) as path:
                make_report(traces[1], [found, after], title=title).write(path)
        elif args.format == "json":
            out.line(json_line(report_facts(found, ALL)))
        else:
            for line in report_lines(found, Choice(most=None if args.all else MAX_ROWS)):
                out.line(line)
        for note in found.notes():
            out.say(f"tracepoint: {note}")
        for name, file in zip(names, files, strict=True):
            warn_of_damage(name, file.damage, out)
    return EXIT_DONE
