"""`tracepoint fleet`: one analysis over the recordings of many machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracepoint.analysis.sections import MAX_ROWS
from tracepoint.analysis.summarise import KINDS, kind_of
from tracepoint.analysis.text import section_lines
from tracepoint.cli.output import add_output_arguments
from tracepoint.cli.status import EXIT_DONE, EXIT_IN_PART
from tracepoint.errors import TracepointError
from tracepoint.fleet.engines import ENGINES, dask_at
from tracepoint.fleet.opening import open_fleet
from tracepoint.fleet.result import FleetResult, merge_blocks
from tracepoint.fleet.sections import result_notes, result_sections
from tracepoint.wording import counted

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from tracepoint.cli.output import Output
    from tracepoint.fleet.opening import Fleet

_MOST_SKIPPED = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    run_verb = verbs.add_parser("run", help="read recordings, and put their figures together")
    run_verb.add_argument("analysis", metavar="ANALYSIS", choices=tuple(KINDS), help=", ".join(KINDS))
    run_verb.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="a recording, a pattern, a folder or a prefix (s3://traces/): these stand for *.dat below",
    )
    keys = "; ".join(f"{name}: {', '.join(kind.keys)}" for name, kind in KINDS.items())
    run_verb.add_argument("--by", default="", metavar="KEYS", help=f"figures for each host,comm; {keys}")
    run_verb.add_argument(
        "--engine", choices=[name for name in ENGINES if name], help="default: one recording after the other"
    )
    run_verb.add_argument("--scheduler", metavar="ADDRESS", help="the Dask cluster, tcp://HOST:8786")
    merge_verb = verbs.add_parser("merge", help="put results of --format json together")
    merge_verb.add_argument("paths", nargs="+", metavar="RESULT", help="what run --format json printed")
    for verb in (run_verb, merge_verb):
        add_output_arguments(verb)
        verb.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
        verb.add_argument("--all", action="store_true", help=f"all rows, not the first {MAX_ROWS} of a table")
        verb.add_argument("--strict", action="store_true", help="exit status 3 for damaged or lost data too")


def run(args: argparse.Namespace, out: Output) -> int:
    """Print what was found; what limits it goes to stderr."""
    result = _run(args, out) if args.verb == "run" else _merge(args.paths)
    if args.format == "json":
        out.line(json.dumps(result.facts()))
    else:
        shown = (one for one in result_sections(result, None if args.all else MAX_ROWS) if one.rows)
        for number, section in enumerate(shown):
            if number:
                out.line("")
            out.line(section.title)
            for line in section_lines(section):
                out.line(line)
    for note in result_notes(result):
        out.say(f"tracepoint: {note}")
    if not result.n_read:
        raise TracepointError("no recording could be read")
    is_damaged = any(
        summary.counts["traces_with_losses"] or summary.counts["damaged_places"]
        for summary in result.groups.values()
    )
    return EXIT_IN_PART if result.unread or (args.strict and is_damaged) else EXIT_DONE


def _run(args: argparse.Namespace, out: Output) -> FleetResult:
    by = [word for word in map(str.strip, args.by.split(",")) if word]
    try:
        kind_of(args.analysis, by)
    except KeyError as error:
        raise TracepointError(f"--by {args.by}: {error.args[0]}") from None
    if args.scheduler is None:
        return _run_all(open_fleet(args.paths, args.engine), args.analysis, by, out)
    if args.engine not in (None, "dask"):
        raise TracepointError(f"--scheduler is of Dask, not of {args.engine}")
    with dask_at(args.scheduler) as client:
        return _run_all(open_fleet(args.paths, "dask", client), args.analysis, by, out)


def _run_all(fleet: Fleet, analysis: str, by: Sequence[str], out: Output) -> FleetResult:
    if n := len(fleet.skipped):
        first = ", ".join(fleet.skipped[:_MOST_SKIPPED])
        names = f"{first}, ..." if n > _MOST_SKIPPED else first
        out.say(f"tracepoint: {counted(n, 'file')} not read, a folder stands for *.dat: name others, {names}")
    return fleet.run(analysis, by)


def _merge(paths: Sequence[str]) -> FleetResult:
    try:
        return merge_blocks([_saved(path) for path in paths])
    except ValueError as error:
        raise TracepointError(str(error)) from None


def _saved(path: str) -> FleetResult:
    try:
        facts: Any = json.loads(Path(path).read_bytes())
    except ValueError as error:
        raise TracepointError(f"{path}: no JSON of a result: {error}") from None
    try:
        return FleetResult.from_facts(facts)
    except TracepointError as error:
        raise TracepointError(f"{path}: {error}") from None
