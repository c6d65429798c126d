"""`tracepoint list`: the events of the running kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.cli.kernel.tracing import DEFAULT_INSTANCE, add_array_arguments, opened
from tracepoint.cli.status import EXIT_DONE, EXIT_FINDINGS
from tracepoint.control.names import no_such_event
from tracepoint.model.patterns import matches

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.output import Output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "pattern", nargs="*", metavar="PATTERN", help="a glob: sched, sched:*_switch, *:*wake*"
    )
    parser.add_argument(
        "--state",
        action="store_true",
        help="the state before each name: 0, 1, and * if a trigger controls it",
    )
    parser.add_argument("--dynamic", action="store_true", help="events that were defined at run time")
    add_array_arguments(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    """Print one event per line; the exit status is 1 when a pattern matches none."""
    with opened(args) as tracing:
        if args.dynamic:
            out.write(tracing.tracefs.read("dynamic_events"))
            return EXIT_DONE
        names = tracing.event_names
        missing = [p for p in args.pattern if not any(matches(p, name) for name in names)]
        for pattern in missing:
            out.say(f"tracepoint: {no_such_event(pattern, names)}")
        wanted = [name for name in names if not args.pattern or any(matches(p, name) for p in args.pattern)]
        instance = args.instance or (DEFAULT_INSTANCE if DEFAULT_INSTANCE in tracing.instances else "")
        array = tracing.instance(instance) if instance and args.state and not args.top else tracing
        if args.state:
            out.detail(f"states in {array.path}")
        for name in wanted:
            out.line(f"{array.event(name).state:2} {name}" if args.state else name)
    return EXIT_FINDINGS if missing else EXIT_DONE
