"""`tracepoint index`: index a kernel tree, or bring its index up to date."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tracepoint.cli import numbers
from tracepoint.cli.status import EXIT_DONE
from tracepoint.cli.tree.trees import open_with_progress
from tracepoint.tree.callsites.calls import SiteKind
from tracepoint.tree.query.tree import CALLING

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.output import Output
    from tracepoint.tree.query.tree import Tree


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "tree", metavar="TREE", help="a kernel source tree; or a folder of modules or format files, or BTF"
    )
    parser.add_argument("--fresh", action="store_true", help="rebuild the index")
    numbers.add_jobs_argument(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")


def run(args: argparse.Namespace, out: Output) -> int:
    """Index the tree and print what is in it."""
    tree = open_with_progress(args.tree, out, fresh=args.fresh, jobs=args.jobs)
    counts = count(tree)
    if args.json:
        data = {"schema": "tracepoint.index/1", "tree": tree.root, "kind": tree.kind, **counts}
        out.line(json.dumps(data, indent=1))
        return EXIT_DONE
    out.line(f"{args.tree} ({tree.kind})")
    width = max(len(str(n)) for n in counts.values())
    for name, number in counts.items():
        out.line(f"  {number:{width}} {name.replace('_', ' ')}")
    return EXIT_DONE


def count(tree: Tree) -> dict[str, int]:
    """Return how many of each thing a tree has, without what only sources show if it has none."""
    events = tree.events()
    syscalls = sum(event.is_syscall for event in events)
    counts = {"events": len(events) - syscalls, "systems": len(tree.systems())}
    if tree.kind != "source":
        return counts
    sites, n_hidden = tree.count_sites()
    return {
        **counts,
        "events_of_system_calls": syscalls,
        "events_from_wrapper_macros": sum(bool(event.via) for event in events),
        "tracepoints_without_event": len(tree.tracepoints()),
        "headers": len(tree.headers()),
        "calls": sum(number for kind, number in sites.items() if kind in CALLING),
        "calls_hidden_in_macros": n_hidden,
        "questions_whether_enabled": sites[SiteKind.ENABLED],
        "probes_registered": sites[SiteKind.REGISTER],
        "events_without_a_caller": len(tree.unused_events()),
        "names_declared_twice": len(tree.duplicates()),
        "headers_not_named_as_their_system": len(tree.misnamed_headers()),
    }
