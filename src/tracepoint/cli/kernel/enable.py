"""`tracepoint enable`: enable events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.cli.kernel.tracing import add_array_arguments, change

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.output import Output
    from tracepoint.control.instance import TraceArray


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "pattern", nargs="+", metavar="PATTERN", help="a glob: sched, sched:*_switch, *:*wake*"
    )
    add_array_arguments(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    """Enable events, permanently unless a command follows `--`."""

    def act(array: TraceArray) -> None:
        names = array.enable(*args.pattern)
        out.say(f"enabled {len(names)} events in {array.path}")

    return change(args, out, act)
