"""`tracepoint filter`: which records of an event are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.cli.kernel.tracing import add_array_arguments, change, existing_array, opened
from tracepoint.cli.status import EXIT_DONE
from tracepoint.control.events import SystemControl, TracefsEvent

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.output import Output
    from tracepoint.control.instance import TraceArray


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("event", metavar="EVENT", help="system:event, or a system for all its events")
    parser.add_argument(
        "expression", nargs="?", metavar="EXPR", help="the filter; 0 clears it; without EXPR it is shown"
    )
    parser.add_argument(
        "--unchecked", action="store_true", help="leave checking the expression to the kernel"
    )
    add_array_arguments(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    """Set, clear or show a filter; it stays unless a command follows `--`."""
    if args.expression is None:
        return _show(args, out)

    def act(array: TraceArray) -> None:
        found = array[args.event]
        if isinstance(found, SystemControl):
            for name in found.set_filter(args.expression):
                out.warn(f"{name} does not have all fields of this filter: no filter was set")
        else:
            found.set_filter(args.expression or "0", is_checked=not args.unchecked)

    return change(args, out, act)


def _show(args: argparse.Namespace, out: Output) -> int:
    with opened(args) as tracing:
        array = existing_array(tracing, args)
        found = array[args.event]
        names = found.events if isinstance(found, SystemControl) else [f"{found.system}:{found.name}"]
        for name in names:
            event = array[name]
            if isinstance(event, TracefsEvent) and event.filter:
                out.line(f"{name} {event.filter}")
    return EXIT_DONE
