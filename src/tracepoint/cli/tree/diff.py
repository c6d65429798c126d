"""`tracepoint diff`: what changed between two sets of events, and which readers break."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.cli import settings
from tracepoint.cli.inputs import compute_formats, open_input
from tracepoint.cli.settings import Settings
from tracepoint.cli.status import EXIT_DONE, EXIT_FINDINGS
from tracepoint.cli.tree.diff_uses import is_recording, plural, read_uses, recorded_formats
from tracepoint.cli.tree.trees import open_with_progress
from tracepoint.layout.compare import ChangeKind, compare_formats
from tracepoint.tree.index.scan import is_kernel_tree
from tracepoint.tree.query.diff import compare_trees, tree_events, tree_formats

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.output import Output
    from tracepoint.layout.compare import Change
    from tracepoint.layout.format import EventFormat
    from tracepoint.tree.query.tree import Tree
    from tracepoint.tree.uses import Uses


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    what = "a header, tree, object, format file, trace.dat, or a folder of them; FILE:EVENT for one event"
    parser.add_argument("old", metavar="OLD", help=what)
    parser.add_argument("new", metavar="NEW", help="the newer one")
    parser.add_argument(
        "--breaking", action="store_true", help="only changes that break readers; exit status 1 if any"
    )
    parser.add_argument(
        "--uses",
        metavar="FILE",
        help="only changes of what a script uses: bpftrace, BCC, BPF C, perf, trace-cmd, Python; - is stdin; "
        "or of what a trace.dat has recorded",
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
    uses = read_uses(args.uses, _known((old, new)), out) if args.uses else None
    for word, side in ((args.old, old), (args.new, new)):
        _tell_problems(word, side, uses, out)
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
        _print(shown, uses, out)
    whom = "readers" if uses is None else args.uses
    verb = "breaks" if len(breaking) == 1 else "break"
    out.say(
        f"{len(old.formats)} and {len(new.formats)} events: "
        f"{plural(len(changes), 'change')}, {len(breaking)} of them {verb} {whom}"
    )
    return EXIT_FINDINGS if args.breaking and breaking else EXIT_DONE


def _print(changes: list[Change], uses: Uses | None, out: Output) -> None:
    """Print the changes; unimportant ones are only counted, and `-v` shows them.

    These are the signs of text, thousands since 6.2, and changes that break other readers than the script.
    """
    n_signs = n_others = 0
    for change in changes:
        if change.kind is ChangeKind.SIGN_CHANGED and not change.breaks and out.verbosity <= 0:
            n_signs += 1
        elif uses is not None and not uses.is_worth_telling(change) and out.verbosity <= 0:
            n_others += 1
        else:
            out.line(_line(change, uses, out))
    if n_others:
        out.say(f"{plural(n_others, 'change')} without effect on this reader (-v)")
    if n_signs:
        out.say(f"the sign of char changed in {plural(n_signs, 'field')} with text, without effect (-v)")


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the two things compared; `tree` is set when it is a kernel source tree.

    `problems` say why events have no layout, by `system:name` if that is known; `is_part` says
    that more events may exist, as with a recording.
    """

    formats: dict[str, EventFormat]
    problems: dict[str, str]
    tree: Tree | None = None
    is_part: bool = False


def _compare(old: _Side, new: _Side) -> list[Change]:
    if len(old.formats) == len(new.formats) == 1:
        # Two single events are compared with each other, whatever their names are.
        return compare_formats(next(iter(old.formats.values())), next(iter(new.formats.values())))
    if old.tree is not None and new.tree is not None:
        return compare_trees(old.tree, new.tree)
    changes = compare_formats(old.formats, new.formats)
    unknown = {ChangeKind.EVENT_ADDED} if old.is_part else set()
    unknown |= {ChangeKind.EVENT_REMOVED, ChangeKind.EVENT_RENAMED} if new.is_part else set()
    return [change for change in changes if change.kind not in unknown]


def _known(sides: tuple[_Side, _Side]) -> dict[str, set[str]]:
    """The fields of every event of both sides; the declared ones for an event without a layout."""
    known: dict[str, set[str]] = {}
    for side in sides:
        for event, layout in side.formats.items():
            known.setdefault(event, set()).update(field.name for field in layout.fields)
        if side.tree is not None:
            for event, one in tree_events(side.tree).items():
                if event in side.problems:
                    known.setdefault(event, set()).update(field.name for field in one.fields)
    return known


def _read(word: str, chosen: Settings, out: Output) -> _Side:
    is_plain = chosen.abi == Settings().abi and not (chosen.include or chosen.define or chosen.exclude)
    if is_plain and is_kernel_tree(word):
        tree = open_with_progress(word, out)
        return _Side(*tree_formats(tree), tree)
    if is_recording(word):
        return _Side(recorded_formats(word), {}, is_part=True)
    events, problems = compute_formats(open_input(word, chosen, out), chosen)
    formats: dict[str, EventFormat] = {}
    for event in events:
        formats.setdefault(f"{event.system}:{event.name}", event)
    return _Side(formats, {str(number): problem for number, problem in enumerate(problems)})


def _tell_problems(word: str, side: _Side, uses: Uses | None, out: Output) -> None:
    """Report events without a layout; for a tree only those that a given script uses."""
    is_asked = uses is not None and side.tree is not None
    problems = [p for name, p in side.problems.items() if not is_asked or (uses and name in uses.fields)]
    if not problems:
        return
    if is_asked:
        for problem in problems:
            out.warn(f"{word}: {problem}: its record is not compared")
        return
    n = plural(len(problems), "event")
    have = "has" if len(problems) == 1 else "have"
    out.warn(f"{word}: {n} {have} no layout: not compared by record (-v names them)")
    for problem in problems:
        out.detail(problem)


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
