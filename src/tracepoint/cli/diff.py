"""`tracepoint diff`: what changed between two sets of events, and whom it breaks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.cli import settings
from tracepoint.cli.files import read_text
from tracepoint.cli.inputs import compute_formats, open_input
from tracepoint.cli.settings import Settings
from tracepoint.cli.status import EXIT_DONE, EXIT_FINDINGS
from tracepoint.cli.trees import open_with_progress
from tracepoint.layout.compare import compare_formats
from tracepoint.tree.index_scan import is_kernel_tree
from tracepoint.tree.query_diff import compare_trees, find_uses, tree_formats

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.output import Output
    from tracepoint.layout.compare import Change
    from tracepoint.layout.format import EventFormat
    from tracepoint.tree.query import Tree
    from tracepoint.tree.query_diff import Uses


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    what = "a header, tree, object, format file, or a folder of them; FILE:EVENT for one event"
    parser.add_argument("old", metavar="OLD", help=what)
    parser.add_argument("new", metavar="NEW", help="the same, later")
    parser.add_argument(
        "--breaking", action="store_true", help="only what breaks readers; exit status 1 when there is any"
    )
    parser.add_argument(
        "--uses",
        metavar="FILE",
        help="only what a script uses: bpftrace, BPF C, trace-cmd, Python text; - is stdin",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")
    settings.add_arguments(parser, "include", "define", "exclude", "abi")


def run(args: argparse.Namespace, out: Output) -> int:
    """Print the changes; with `--breaking` the exit status is 1 when a reader breaks."""
    chosen = settings.read_settings(args)
    if settings.shows_settings(args, chosen, out):
        return EXIT_DONE
    old, new = (_read(word, chosen, out) for word in (args.old, args.new))
    changes = _compare(old, new)
    uses = _uses(args.uses, old, new, out) if args.uses else None
    if uses is not None:
        changes = [change for change in changes if uses.concerns(change)]
    breaking = [c for c in changes if (c.breaks_readers if uses is None else uses.broken_by(c))]
    shown = breaking if args.breaking else changes
    if args.json:
        data: dict[str, object] = {"schema": "tracepoint.diff/1", "changes": [_as_data(c) for c in shown]}
        if uses is not None:
            data["uses"] = {event: sorted(fields) for event, fields in uses.fields.items()}
        out.line(json.dumps(data, indent=1))
    else:
        for change in shown:
            out.line(_line(change, uses, out))
    whom = "readers" if uses is None else args.uses
    out.say(
        f"{len(old.formats)} and {len(new.formats)} events: "
        f"{len(changes)} changes, {len(breaking)} of them break {whom}"
    )
    return EXIT_FINDINGS if args.breaking and breaking else EXIT_DONE


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the two things compared; `tree` is set when it is a kernel source tree."""

    formats: dict[str, EventFormat]
    tree: Tree | None = None


def _compare(old: _Side, new: _Side) -> list[Change]:
    if len(old.formats) == len(new.formats) == 1:
        # Two single events are compared with each other, whatever they are called.
        return compare_formats(next(iter(old.formats.values())), next(iter(new.formats.values())))
    if old.tree is not None and new.tree is not None:
        return compare_trees(old.tree, new.tree)
    return compare_formats(old.formats, new.formats)


def _uses(name: str, old: _Side, new: _Side, out: Output) -> Uses:
    known: dict[str, set[str]] = {}
    for event, layout in (*old.formats.items(), *new.formats.items()):
        known.setdefault(event, set()).update(field.name for field in layout.fields)
    uses = find_uses(read_text(Path(name)), known)
    for event in uses.unknown:
        out.warn(f"{name}: {event} is in neither of them")
    n_fields = sum(map(len, uses.fields.values()))
    out.say(
        f"{name} uses {len(uses.fields)} events and {n_fields} fields, by {', '.join(sorted(uses.readers))}"
    )
    if not uses.fields:
        out.warn(f"{name}: no event of either is named in it")
    return uses


def _read(word: str, chosen: Settings, out: Output) -> _Side:
    is_plain = chosen.abi == Settings().abi and not (chosen.include or chosen.define or chosen.exclude)
    if is_plain and is_kernel_tree(word):
        tree = open_with_progress(word, out)
        formats, problems = tree_formats(tree)
    else:
        tree = None
        events, problems = compute_formats(open_input(word, chosen, out), chosen)
        formats = {}
        for event in events:
            formats.setdefault(f"{event.system}:{event.name}", event)
    if problems:
        out.warn(
            f"{word}: {len(problems)} events have no layout: their records are not compared (-v names them)"
        )
        for problem in problems:
            out.detail(problem)
    return _Side(formats, tree)


def _line(change: Change, uses: Uses | None, out: Output) -> str:
    text = str(change)
    broken = change.breaks if uses is None else uses.broken_by(change)
    if not broken:
        return text
    readers = ", ".join(sorted(broken))
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
