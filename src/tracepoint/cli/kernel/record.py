"""`tracepoint record`: record events of the running kernel to a trace.dat."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.cli import numbers
from tracepoint.cli.kernel.tracing import add_pid_argument, opened, run_command
from tracepoint.cli.status import EXIT_DONE
from tracepoint.cli.stopping import interrupt_ends

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.output import Output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("pattern", nargs="+", metavar="PATTERN", help="a glob for system:event, or a system")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", default=Path("trace.dat"), help="where to"
    )
    parser.add_argument(
        "--seconds", type=numbers.seconds, metavar="N", default=5.0, help="duration (default: 5)"
    )
    parser.add_argument("--clock", default="", help="the clock of the time stamps, such as mono")
    parser.add_argument(
        "--buffer-kb", type=numbers.whole(1, 1 << 30), metavar="N", default=0, help="ring buffer of each CPU"
    )
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    add_pid_argument(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    """Record in a new instance, remove it, and report what was saved and lost."""
    status = [EXIT_DONE]

    def command() -> None:
        status[0] = run_command(args.words_after, out)

    with (
        opened(args) as tracing,
        tracing.instance(buffer_bytes=args.buffer_kb * 1024, clock=args.clock) as array,
        interrupt_ends() as stop,
    ):
        array.enable(*args.pattern)
        if args.words_after:
            saved = array.record(args.output, during=command, replace=args.force)
        else:
            out.say(f"recording for {args.seconds:g} s; Ctrl-C saves what there is")
            saved = array.record(args.output, args.seconds, until=stop, replace=args.force)
    out.say(f"{saved.path}: {saved.n_records} records")
    if saved.is_cut:
        out.warn(f"process {args.pid} has ended: its last records may be missing")
    if saved.missing:
        out.warn(f"{saved.missing}: a larger --buffer-kb keeps more")
    return status[0]
