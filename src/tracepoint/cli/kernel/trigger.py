"""`tracepoint trigger`: what happens when an event fires."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.cli.kernel.tracing import add_array_arguments, change, existing_array, opened
from tracepoint.cli.status import EXIT_DONE

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.output import Output
    from tracepoint.control.instance import TraceArray


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("event", metavar="EVENT", help="system:event")
    parser.add_argument(
        "trigger",
        nargs="?",
        metavar="TRIGGER",
        help="such as traceoff:1 if FILTER, stacktrace, hist:keys=FIELD; ! removes it; none shows them",
    )
    parser.add_argument("--clear", action="store_true", help="remove all triggers of the event")
    parser.add_argument("--unchecked", action="store_true", help="leave checking the trigger to the kernel")
    add_array_arguments(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    """Add, remove or show a trigger; it stays unless a command follows `--`."""
    if args.trigger is None and not args.clear:
        with opened(args) as tracing:
            out.write(existing_array(tracing, args).event(args.event).trigger)
        return EXIT_DONE

    def act(array: TraceArray) -> None:
        event = array.event(args.event)
        if args.clear:
            event.remove_triggers()
        if args.trigger is not None:
            event.add_trigger(args.trigger, is_checked=not args.unchecked)

    return change(args, out, act)
