"""`tracepoint disable`: stop events from recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.cli.kernel.tracing import add_array_arguments, during, existing_array, opened
from tracepoint.cli.status import EXIT_CANNOT_RUN, EXIT_DONE

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.output import Output
    from tracepoint.control.instance import TraceArray


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("pattern", nargs="*", metavar="PATTERN", help="a glob: sched, sched:*_switch, *:*")
    parser.add_argument("--remove", action="store_true", help="remove the instance and everything in it")
    add_array_arguments(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    """Disable events, permanently unless a command follows `--`."""
    if not args.pattern and not args.remove:
        out.error("which events? a pattern such as sched, or --remove for the whole instance")
        return EXIT_CANNOT_RUN

    def act(array: TraceArray) -> None:
        names = array.disable(*args.pattern)
        out.say(f"disabled {len(names)} events in {array.path}")

    if args.words_after:
        return during(args, out, act)
    with opened(args) as tracing:
        array = existing_array(tracing, args)
        if args.pattern:
            act(array)
        if args.remove and array is not tracing:
            tracing.remove_instance(array.name)
            out.say(f"removed {array.path}")
        tracing.keep()
    return EXIT_DONE
