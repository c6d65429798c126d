"""What the commands for a running kernel share: choosing a trace array, running a command in between."""

from __future__ import annotations

import contextlib
import signal

from tracepoint.cli import numbers
from tracepoint.cli.status import EXIT_DONE, EXIT_TOOL_FAILED
from tracepoint.control.session import open_tracefs, signals_held
from tracepoint.errors import TracefsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from tracepoint.cli.output import Output
    from tracepoint.control.instance import TraceArray
    from tracepoint.control.session import TracefsSession

DEFAULT_INSTANCE = "tracepoint"


def add_array_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose a trace array."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--instance",
        metavar="NAME",
        default="",
        help=f"use this instance (default: {DEFAULT_INSTANCE}; with -- COMMAND: a new one)",
    )
    group.add_argument("--top", action="store_true", help="use the top level, which other programs share")
    add_pid_argument(parser)


def add_pid_argument(parser: argparse.ArgumentParser) -> None:
    """Add the option that names a process instead of the kernel."""
    parser.add_argument(
        "--pid",
        type=numbers.whole(1, 1 << 22),
        metavar="N",
        help="use the events of this Python process (see `tracepoint ps`), in its top level",
    )


@contextlib.contextmanager
def opened(args: argparse.Namespace) -> Iterator[TracefsSession]:
    """Yield the running kernel's tracing, or that of the process that `--pid` names."""
    if args.pid is None:
        with open_tracefs() as tracing:
            yield tracing
        return
    # The client is imported only for a process.
    from tracepoint.runtime.remote.client import ANSWER_WAIT_S, RemoteFiles  # noqa: PLC0415
    from tracepoint.runtime.remote.files import ProcessFiles  # noqa: PLC0415

    with (
        RemoteFiles(args.pid, ANSWER_WAIT_S) as files,
        open_tracefs(ProcessFiles(files, args.pid), keeps_journal=False) as tracing,
    ):
        yield tracing


def is_top(args: argparse.Namespace) -> bool:
    """Return whether to use the top level: other programs share the kernel's, but not a process's."""
    return bool(args.top) or (args.pid is not None and not args.instance)


def existing_array(tracing: TracefsSession, args: argparse.Namespace) -> TraceArray:
    """Return the chosen array; raises TracefsError when the instance does not exist."""
    name = args.instance or DEFAULT_INSTANCE
    if is_top(args):
        return tracing
    if name not in tracing.instances:
        there = ", ".join(tracing.instances) or "none"
        raise TracefsError(
            f"no instance {name!r} (there are: {there}): nothing was enabled in it; --top for the top level"
        )
    return tracing.instance(name)


def change(args: argparse.Namespace, out: Output, act: Callable[[TraceArray], None]) -> int:
    """Make a permanent change, or with `-- COMMAND` one that lasts as long as the command."""
    if args.words_after:
        return during(args, out, act)
    with opened(args) as tracing:
        array = tracing if is_top(args) else tracing.instance(args.instance or DEFAULT_INSTANCE)
        act(array)
        tracing.keep()
        if not is_top(args):
            out.detail(f"in instance {array.name}; its trace: {array.path}/trace")
    return EXIT_DONE


def during(args: argparse.Namespace, out: Output, act: Callable[[TraceArray], None]) -> int:
    """Make the change, run the command, show what was recorded, and restore everything."""
    with opened(args) as tracing, chosen_array(tracing, args) as array:
        act(array)
        status = run_command(args.words_after, out)
        if not args.top and not args.instance:
            # The instance is removed with its buffer: this is the only chance to see it.
            out.write(array.text)
    return status


@contextlib.contextmanager
def chosen_array(tracing: TracefsSession, args: argparse.Namespace) -> Iterator[TraceArray]:
    """Yield the chosen array, or a new instance that is removed at the end."""
    if args.top:
        yield tracing
        return
    with tracing.instance(args.instance) as made:
        yield made


def run_command(words: list[str], out: Output) -> int:
    """Run a command to its end; a status other than 0 counts as a failed tool."""
    from tracepoint.cli.child import ChildProcess  # noqa: PLC0415 - most runs have no command

    out.stdout.flush()
    child: ChildProcess | None = None
    try:
        # A signal that comes while it is started finds it.
        with signals_held() as held:
            child = ChildProcess(words, held)
        status = child.wait()
    except BaseException:
        if child is not None:
            # A signal ends us, and restores what was changed: the command must not go on without it.
            child.send_signal(signal.SIGKILL)
            child.wait()
        raise
    if status:
        out.warn(f"{words[0]} ended with status {status}")
        return EXIT_TOOL_FAILED
    return EXIT_DONE
