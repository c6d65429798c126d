"""`tracepoint find`: events of an indexed tree by name, with their callers or without any."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from tracepoint.cli.status import EXIT_DONE, EXIT_FINDINGS
from tracepoint.cli.tree.trees import default_tree, searching
from tracepoint.tree.callsites.calls import SiteKind

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.output import Output
    from tracepoint.tree.query.tree import Tree, TreeEvent


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "pattern",
        nargs="?",
        default="*",
        metavar="PATTERN",
        help="an event, system:event or system: with *, ? and []; default: all",
    )
    parser.add_argument("--tree", metavar="DIR", help="the tree (default: the one here, or indexed last)")
    parser.add_argument(
        "--callers", action="store_true", help="also show where they are called, tested and probed"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--unused", action="store_true", help="only events that nothing in the tree fires")
    which.add_argument(
        "--duplicates", action="store_true", help="only names that more than one header declares"
    )
    which.add_argument(
        "--misnamed", action="store_true", help="only events of headers whose name is not their TRACE_SYSTEM"
    )
    parser.add_argument(
        "--system", action="store_true", help="show the systems of the events instead of the events"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")


def run(args: argparse.Namespace, out: Output) -> int:
    """Print what matches; the exit status is 1 when nothing does."""
    with searching(args.tree or default_tree(out), out) as tree:
        return _find(tree, args, out)


def _find(tree: Tree, args: argparse.Namespace, out: Output) -> int:
    events = _chosen(tree, args)
    systems = dict(sorted(Counter(event.system for event in events).items()))
    if args.json:
        data: dict[str, Any] = {"schema": "tracepoint.find/1", "tree": tree.root}
        if args.system:
            data["systems"] = systems
        else:
            data["events"] = [_as_data(tree, event, has_callers=args.callers) for event in events]
        out.line(json.dumps(data, indent=1))
    elif args.system:
        for system, number in systems.items():
            out.line(f"{system} {number}")
    else:
        for event in events:
            _print(tree, event, out, has_callers=args.callers)
    if not events:
        out.say(f"no event matches {args.pattern!r} in {tree.root}{_guess(tree, args.pattern)}")
    return EXIT_DONE if events else EXIT_FINDINGS


def _chosen(tree: Tree, args: argparse.Namespace) -> list[TreeEvent]:
    events = tree.events(args.pattern)
    if args.unused:
        kept = {id(event) for event in tree.unused_events()}
    elif args.duplicates:
        kept = {id(event) for some in tree.duplicates().values() for event in some}
    elif args.misnamed:
        misnamed = set(tree.misnamed_headers())
        return [event for event in events if (event.header, event.system) in misnamed]
    else:
        return events
    return [event for event in events if id(event) in kept]


def _print(tree: Tree, event: TreeEvent, out: Output, *, has_callers: bool) -> None:
    via = f" via {event.via[-1]}" if event.via else ""
    where = f"{event.file}:{event.line}" if event.line else event.header
    out.line(f"{out.style(event.full_name, 'bold')} {where}{via}")
    if not has_callers:
        return
    for site in tree.call_sites(event, SiteKind):
        kind = "" if site.kind is SiteKind.CALL else f"[{site.kind}] "
        out.line(f"    {kind}{site}")
    for path, line, is_gpl in tree.exports(event):
        out.line(f"    [exported{' to GPL modules' if is_gpl else ''}] {path}:{line}")
    for path in tree.creators(event.header):
        out.line(f"    [created] {path}")


def _as_data(tree: Tree, event: TreeEvent, *, has_callers: bool) -> dict[str, Any]:
    data: dict[str, Any] = {
        "event": event.full_name,
        "header": event.header,
        "file": event.file,
        "line": event.line,
        "macro": event.macro,
        "via": list(event.via),
        "class": event.class_name,
        "proto": event.proto,
        "fields": [field._asdict() for field in event.fields],
    }
    if has_callers:
        data["created"] = tree.creators(event.header)
        data["exports"] = [{"path": p, "line": n, "gpl": g} for p, n, g in tree.exports(event)]
        data["sites"] = [
            {
                "kind": site.kind,
                "path": site.span.path,
                "line": site.span.line,
                "column": site.span.column,
                "function": site.function,
                "text": site.text,
                "via": site.via,
            }
            for site in tree.call_sites(event, SiteKind)
        ]
    return data


def _guess(tree: Tree, pattern: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only a typing error needs it

    system, colon, name = pattern.rpartition(":")
    systems = tree.systems()
    if colon and system not in systems:
        close = get_close_matches(system, systems, n=1)
        return f"; did you mean {close[0]}:{name}?" if close else ""
    close = get_close_matches(
        name, {event.name for event in tree.events(f"{system}:" if colon else "*")}, n=1
    )
    return f"; did you mean {system}{colon}{close[0]}?" if close else ""
