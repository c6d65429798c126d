"""`tracepoint analyse`: what a recording was taken for, as short tables or JSON."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from tracepoint.analysis.registry import ANALYSES, OPTIONS, analyse, needed_events, needs_of
from tracepoint.analysis.sections import MAX_ROWS, Choice, TableSection
from tracepoint.analysis.text import folded_lines, report_facts, report_lines
from tracepoint.cli.numbers import nanoseconds
from tracepoint.cli.status import EXIT_DONE, EXIT_FINDINGS, EXIT_IN_PART
from tracepoint.cli.trace.options import add_analysis_options, options_of
from tracepoint.cli.trace.recordings import (
    add_instance_argument,
    add_part_arguments,
    buffer_named,
    no_figures,
    open_file,
    warn_of_damage,
)
from tracepoint.decode.trace import Trace
from tracepoint.errors import TracepointError
from tracepoint.wording import json_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tracepoint.analysis.registry import AnalysisOption
    from tracepoint.analysis.report import Report
    from tracepoint.analysis.sections import Section
    from tracepoint.cli.output import Output


# The name of an event, which has a letter or a system that no time has.
_EVENT = re.compile(r"[A-Za-z_]\w*(?::\w+)?")


class _Help(argparse.Action):
    """Prints the help of the analysis that was named before, or that of all."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, *_given: object
    ) -> None:
        """Print it and exit."""
        name = getattr(namespace, "analysis", None)
        shown = parser if name not in ANALYSES else _parser_of(name, parser)
        shown.print_help()
        parser.exit()


def _parser_of(name: str, whole: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Return what has the help of one analysis: its own options, and what it reads."""
    answers = ANALYSES[name]
    parser = type(whole)(
        prog=f"{whole.prog} {name}",
        description=f"{answers[0].upper()}{answers[1:]}.",
        epilog="\n".join(_needs_lines(name)),
    )
    _add_common(parser, {name: OPTIONS[name]} if name in OPTIONS else {})
    return parser


def _needs_lines(name: str) -> Iterator[str]:
    try:
        needs = needs_of(name)
    except TracepointError:
        yield "needs: the events of --begin and --end"
        return
    for title, is_needed in (("needs", True), ("reads, where they were recorded", False)):
        own = [need for need in needs if need.is_needed is is_needed]
        if own:
            yield f"{title}:"
        for need in own:
            more = f" and {len(need.names) - 1} more" if len(need.names) > 1 else ""
            yield f"  {need.names[0]}{more}: {need.gives}"
    yield f"tracepoint analyse {name} --events prints all names, for tracepoint record"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "-h", "--help", action=_Help, nargs=0, help="this help, or after ANALYSIS that of one and exit"
    )
    parser.add_argument(
        "analysis",
        metavar="ANALYSIS",
        choices=tuple(ANALYSES),
        help="; ".join(f"{name}: {answers}" for name, answers in ANALYSES.items()),
    )
    _add_common(parser, OPTIONS)


def _add_common(
    parser: argparse.ArgumentParser, own_options: Mapping[str, tuple[AnalysisOption, ...]]
) -> None:
    parser.add_argument("file", nargs="?", metavar="FILE", help="a recording of any form that read takes")
    parser.add_argument(
        "--events", action="store_true", help="print the events to record for it, for tracepoint record"
    )
    parser.add_argument(
        "--format",
        choices=("text", "json", "folded"),
        default="text",
        help="default: text; folded: stacks with their time in ns, for flame graphs",
    )
    parser.add_argument("--all", action="store_true", help=f"all rows, not the first {MAX_ROWS} of a table")
    parser.add_argument("--hist", action="store_true", help="show distributions as histograms too")
    parser.add_argument("--strict", action="store_true", help="exit status 3 for damaged or lost data")
    add_analysis_options(parser, own_options)
    part = "part to show; --from and --to can name the events of --begin and --end instead"
    add_part_arguments(parser.add_argument_group(part), read=_time_or_event)
    add_instance_argument(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    """Print the figures of an analysis; the exit status is 1 when there are none of what is chosen.

    What limits them goes to stderr.
    """
    _take_events(args)
    options = options_of(args, [args.analysis])[args.analysis]
    if args.events:
        for name in needed_events(args.analysis, **options):
            out.line(name)
        return EXIT_DONE
    if args.file is None:
        raise TracepointError("no recording: give a FILE, or --events for what to record")
    with open_file(args.file) as file:
        trace = Trace(file, buffer_named(file, args.instance).name).between(args.start, args.stop)
        report = analyse(trace, args.analysis, **options)
        choice = Choice(args.cpu, args.pid, None if args.all or args.format == "json" else MAX_ROWS)
        for line in _lines(report, choice, args):
            out.line(line)
        # Those of the text are with its figures, where -q does not silence them.
        cautions = set(report.cautions()) if args.format == "text" else set()
        for note in (note for note in report.notes() if note not in cautions):
            out.say(f"tracepoint: {note}")
        warn_of_damage(args.file, file.damage, out)
        if not report.has_figures:
            out.say(f"tracepoint: {no_figures(file, args)}")
            return EXIT_FINDINGS
        if _is_choice_empty(report, choice, out):
            return EXIT_FINDINGS
        return EXIT_IN_PART if args.strict and not report.coverage.is_complete else EXIT_DONE


def _lines(report: Report, choice: Choice, args: argparse.Namespace) -> Iterable[str]:
    """Return a report in the form that was asked for."""
    if args.format == "json":
        return [json_line(report_facts(report, choice))]
    if args.format == "folded":
        return folded_lines(report)
    return report_lines(report, choice, has_histograms=args.hist)


def _time_or_event(text: str) -> int | str:
    """Read a time in seconds, or the name of an event, which some analyses take there."""
    return text if _EVENT.fullmatch(text) else nanoseconds(text)


def _take_events(args: argparse.Namespace) -> None:
    """Take events of `--from` and `--to` for those of `--begin` and `--end`; raises TracepointError."""
    taken = {option.name for option in OPTIONS.get(args.analysis, ())}
    for option, place, name in (("--from", "start", "begin"), ("--to", "stop", "end")):
        value = getattr(args, place)
        if not isinstance(value, str):
            continue
        if name not in taken:
            raise TracepointError(f"{option}: {value[:40]!r} is not a time in seconds")
        if getattr(args, name) is not None:
            raise TracepointError(f"--{name} and {option} both name an event: {option} can be a time too")
        setattr(args, name, value)
        setattr(args, place, None)


def _is_choice_empty(report: Report, choice: Choice, out: Output) -> bool:
    """Report that there are no figures of the chosen CPUs or of the chosen tasks; return it."""
    if choice.is_of_all:
        return False
    whole = [_size(section) for section in report.sections(Choice())]
    choices = {
        "CPUs": None if choice.cpus is None else Choice(cpus=choice.cpus),
        "tasks": Choice(tasks=choice.tasks) if choice.tasks else None,
    }
    is_empty = False
    for what, one in choices.items():
        if one is None:
            continue
        sizes = map(_size, report.sections(one))
        # Figures that the choice does not touch are the same as without it.
        touched = [own for own, every in zip(sizes, whole, strict=True) if own != every]
        if touched and not any(map(any, touched)):
            out.say(f"tracepoint: the chosen {what} are not in the figures")
            is_empty = True
    return is_empty


def _size(section: Section) -> list[int]:
    """Return how many rows a section has, or samples in each group."""
    if isinstance(section, TableSection):
        return [len(section.rows) + section.n_more]
    return [len(samples) for samples in section.groups.values()]
