"""What the command line says of a new array: its events, filters, clock and buffers."""

from __future__ import annotations

from tracepoint.cli import numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.output import Output
    from tracepoint.control.instance import TraceArray


def add_choice_arguments(parser: argparse.ArgumentParser, patterns: str = "+") -> None:
    """Add the events, `patterns` of them as argparse counts arguments, and `--filter`."""
    parser.add_argument(
        "pattern", nargs=patterns, metavar="PATTERN", help="a glob for system:event, or a system"
    )
    parser.add_argument(
        "--filter",
        nargs=2,
        action="append",
        default=[],
        metavar=("EVENT", "EXPR"),
        help="only those of EVENT (or of a system) that EXPR chooses; may be given several times",
    )


def add_buffer_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the clock and the size of the ring buffers."""
    parser.add_argument("--clock", default="", help="the clock of the time stamps, such as mono")
    parser.add_argument(
        "--buffer-kb", type=numbers.whole(1, 1 << 30), metavar="N", default=0, help="ring buffer of each CPU"
    )


def set_filters(array: TraceArray, args: argparse.Namespace, out: Output) -> None:
    """Set the filters, which comes before any event is enabled."""
    for event, expression in args.filter:
        for name in array[event].set_filter(expression) or ():
            out.warn(f"{name} does not have all fields of this filter: all of its records are kept")
