"""`tracepoint stream`: events of the running kernel as lines, as they come."""

from __future__ import annotations

import argparse
import os
import time
from typing import TYPE_CHECKING

from tracepoint.cli import numbers
from tracepoint.cli.kernel.choosing import add_buffer_arguments, add_choice_arguments, set_filters
from tracepoint.cli.kernel.ending import EndingSignals
from tracepoint.cli.kernel.tracing import add_pid_argument, opened
from tracepoint.cli.status import EXIT_DONE

if TYPE_CHECKING:
    from tracepoint.cli.output import Output
    from tracepoint.control.follow import FollowedArray


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_choice_arguments(parser)
    parser.add_argument(
        "--seconds", type=numbers.seconds, metavar="N", help="duration (default: until Ctrl-C)"
    )
    parser.add_argument(
        "--format", choices=("text", "jsonl"), default="text", help="lines of trace_pipe, or objects of JSON"
    )
    add_buffer_arguments(parser)
    add_pid_argument(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    """Print the records of a new instance, remove it, and report what was lost."""
    # With the readers of recordings, which other commands for a running kernel do without.
    from tracepoint.cli.trace.follow import Printing, say_what_is_missing  # noqa: PLC0415

    with (
        EndingSignals() as ending,
        opened(args) as tracing,
        tracing.instance(buffer_bytes=args.buffer_kb * 1024, clock=args.clock) as array,
    ):
        array.is_on = False
        if args.pid is None and tracing.tracefs.exists(f"{array.prefix}set_event_notrace_pid"):
            # Each line that is printed would make more of them.
            array.excluded_pids = [os.getpid()]
        set_filters(array, args, out)
        array.enable(*args.pattern)
        with array.follow() as followed:
            printing = Printing(_as_read(args), followed, out, names_s=0)
            array.is_on = True
            if args.words_after:
                ending.start(args.words_after, out)
            try:
                printing.run(_End(args, ending, followed).look)
            finally:
                say_what_is_missing(followed, out)
    return ending.wait(out) or EXIT_DONE


def _as_read(args: argparse.Namespace) -> argparse.Namespace:
    """Return the arguments of `tracepoint read` that print the same."""
    from tracepoint.cli.trace.read import add_arguments as add_read_arguments  # noqa: PLC0415 - as above

    parser = argparse.ArgumentParser()
    add_read_arguments(parser)
    return parser.parse_args(["-", "--follow", "--format", args.format])


class _End:
    """When no more is recorded: after some seconds, with the command, or at a signal."""

    def __init__(self, args: argparse.Namespace, ending: EndingSignals, followed: FollowedArray) -> None:
        self._has_command = bool(args.words_after)
        self._end = None if args.seconds is None else time.monotonic() + args.seconds
        self._ending = ending
        self._followed = followed
        self._is_over = False

    def look(self) -> bool:
        """Turn the array off when it is time; what it holds comes first, so nothing stops here."""
        is_late = self._end is not None and time.monotonic() >= self._end
        has_ended = self._has_command and not self._ending.is_running
        if not self._is_over and (is_late or has_ended or self._ending.event.is_set()):
            self._is_over = True
            self._followed.end()
        return False
