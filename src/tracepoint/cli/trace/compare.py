"""`tracepoint compare`: what changed between two recordings, or two sets of them."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.analysis.compare import compare_reports
from tracepoint.analysis.registry import ANALYSES, DEFAULT, analyse
from tracepoint.analysis.report import ALL
from tracepoint.analysis.sections import MAX_ROWS, Choice
from tracepoint.analysis.sets import compare_sets, figures_of
from tracepoint.analysis.text import report_facts, report_lines
from tracepoint.cli.status import EXIT_DONE, EXIT_IN_PART
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
from tracepoint.errors import TracepointError
from tracepoint.fleet.inputs import find_inputs, local_file
from tracepoint.wording import counted, json_line

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from tracepoint.analysis.report import Report
    from tracepoint.analysis.sets import RecordingFigures
    from tracepoint.cli.output import Output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "before",
        metavar="BEFORE",
        help="a recording of any form that read takes, or several: a folder of .dat files, a pattern in "
        "quotes, a prefix of an object store",
    )
    parser.add_argument("after", metavar="AFTER", help="another, or several, of the same work")
    parser.add_argument(
        "analysis",
        nargs="?",
        metavar="ANALYSIS",
        help=f"what to compare: {', '.join(ANALYSES)}; default: {DEFAULT}",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="PAGE",
        help="write the changes, and of two recordings AFTER, as an HTML file",
    )
    parser.add_argument("--all", action="store_true", help=f"all rows, not the first {MAX_ROWS} of a table")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the resampling; default: 1")
    add_analysis_options(parser)
    add_instance_argument(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    """Print the changes; what limits them goes to stderr."""
    analysis = args.analysis or DEFAULT
    options = options_of(args, [analysis])[analysis]
    sets = [find_inputs([name]) for name in (args.before, args.after)]
    if any(len(paths) > 1 for paths in sets):
        return _run_sets(args, out, sets, lambda trace: analyse(trace, analysis, **options))
    names = sets[0][0], sets[1][0]
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
        else:
            _print(args, out, found)
        for note in found.notes():
            out.say(f"tracepoint: {note}")
        for name, file in zip(names, files, strict=True):
            warn_of_damage(name, file.damage, out)
    return EXIT_DONE


def _print(args: argparse.Namespace, out: Output, found: Report) -> None:
    if args.format == "json":
        out.line(json_line(report_facts(found, ALL)))
    else:
        for line in report_lines(found, Choice(most=None if args.all else MAX_ROWS)):
            out.line(line)


def _run_sets(
    args: argparse.Namespace, out: Output, sets: Sequence[Sequence[str]], run: Callable[[Trace], Report]
) -> int:
    """Compare two sets of recordings; one that cannot be read is reported, and the rest is compared."""
    if args.output is not None:
        check_output(args.output, [path for paths in sets for path in paths])
    figures: list[list[RecordingFigures]] = [[], []]
    events: Counter[str] = Counter()
    n_unread = 0
    for paths, own in zip(sets, figures, strict=True):
        for path in paths:
            try:
                own.append(_figures(path, args.instance, run, events))
            except (TracepointError, OSError) as error:
                n_unread += 1
                reason = str(error)
                out.say(f"tracepoint: {reason if path in reason else f'{path}: {reason}'}")
        if not own:
            raise TracepointError(f"compare: none of {counted(len(paths), 'recording')} can be compared")
    found = compare_sets(figures[0], figures[1], args.seed)
    if args.output is None:
        _print(args, out, found)
    else:
        from tracepoint.report.sets import make_set_report  # noqa: PLC0415 - text needs none of it

        title = f"{Path(args.before).name} and {Path(args.after).name}"
        with writing_to(args.output, out, is_text=True) as page:
            make_set_report(found, events, title=title).write(page)
    for note in found.notes():
        out.say(f"tracepoint: {note}")
    return EXIT_IN_PART if n_unread else EXIT_DONE


def _figures(
    path: str, instance: str, run: Callable[[Trace], Report], events: Counter[str]
) -> RecordingFigures:
    """Return the figures of a recording, and count its records in `events`."""
    with local_file(path) as name, open_file(name) as file:
        trace = Trace(file, buffer_named(file, instance).name)
        found = figures_of(run(trace), trace.events)
        events.update(trace.events)
        return found
