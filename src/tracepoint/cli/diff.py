"""`tracepoint diff`: what changed between two sets of events, and whom it breaks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tracepoint.cli import settings
from tracepoint.cli.inputs import compute_formats, open_input
from tracepoint.cli.status import EXIT_DONE, EXIT_FINDINGS
from tracepoint.layout.compare import compare_formats

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.output import Output
    from tracepoint.cli.settings import Settings
    from tracepoint.layout.compare import Change
    from tracepoint.layout.format import EventFormat


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    what = "a header, tree, object, format file, or a folder of them; FILE:EVENT for one event"
    parser.add_argument("old", metavar="OLD", help=what)
    parser.add_argument("new", metavar="NEW", help="the same, later")
    parser.add_argument(
        "--breaking", action="store_true", help="only what breaks readers; exit status 1 when there is any"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")
    settings.add_arguments(parser, "include", "define", "exclude", "abi")


def run(args: argparse.Namespace, out: Output) -> int:
    """Print the changes; with `--breaking` the exit status is 1 when a reader breaks."""
    chosen = settings.read_settings(args)
    if settings.shows_settings(args, chosen, out):
        return EXIT_DONE
    old, new = (_formats(word, chosen, out) for word in (args.old, args.new))
    if len(old) == len(new) == 1:
        # Two single events are compared with each other, whatever they are called.
        changes = compare_formats(next(iter(old.values())), next(iter(new.values())))
    else:
        changes = compare_formats(old, new)
    breaking = [change for change in changes if change.breaks_readers]
    shown = breaking if args.breaking else changes
    if args.json:
        out.line(
            json.dumps({"schema": "tracepoint.diff/1", "changes": [_as_data(c) for c in shown]}, indent=1)
        )
    else:
        for change in shown:
            out.line(_line(change, out))
    out.say(
        f"{len(old)} and {len(new)} events: {len(changes)} changes, {len(breaking)} of them break readers"
    )
    return EXIT_FINDINGS if args.breaking and breaking else EXIT_DONE


def _formats(word: str, chosen: Settings, out: Output) -> dict[str, EventFormat]:
    formats, problems = compute_formats(open_input(word, chosen, out), chosen)
    if problems:
        out.warn(f"{word}: {len(problems)} events have no layout and are not compared (-v names them)")
        for problem in problems:
            out.detail(problem)
    named: dict[str, EventFormat] = {}
    for event in formats:
        named.setdefault(f"{event.system}:{event.name}", event)
    return named


def _line(change: Change, out: Output) -> str:
    text = str(change)
    if not change.breaks_readers:
        return text
    readers = ", ".join(sorted(change.breaks))
    return f"{out.style(text, 'bold')} [breaks {readers}]"


def _as_data(change: Change) -> dict[str, object]:
    return {
        "kind": change.kind.value,
        "event": change.event,
        "field": change.field,
        "before": change.before,
        "after": change.after,
        "breaks": sorted(change.breaks),
        "sentence": change.sentence,
    }
