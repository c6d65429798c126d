"""`tracepoint record`: record events of the running kernel to a trace.dat."""

from __future__ import annotations

import contextlib

from tracepoint.cli import numbers
from tracepoint.cli.kernel.choosing import add_buffer_arguments, add_choice_arguments, set_filters
from tracepoint.cli.kernel.ending import EndingSignals
from tracepoint.cli.kernel.tracing import add_pid_argument, opened
from tracepoint.cli.output import StatusLine
from tracepoint.cli.status import EXIT_DONE, EXIT_IN_PART
from tracepoint.errors import TracepointError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from tracepoint.cli.kernel.rotating import Choices
    from tracepoint.cli.kernel.together import PythonProcesses
    from tracepoint.cli.output import Output
    from tracepoint.control.instance import TraceArray
    from tracepoint.tracefile.recording import Recording

_COMPRESSIONS = ("none", "zlib", "zstd")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_choice_arguments(parser, "*")
    _add_analyses(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=_file_name,
        default="trace.dat",
        help="where to; a name that ends with .parquet gets a Parquet dataset (needs pyarrow)",
    )
    parser.add_argument(
        "--seconds",
        type=numbers.seconds,
        metavar="N",
        help="duration (default: 5; with -- COMMAND: until it ends)",
    )
    parser.add_argument(
        "--max-size",
        type=numbers.size,
        metavar="N",
        help="end where the file has N bytes, such as 200M; with --rotate, go on in the next file",
    )
    _add_rotation(parser)
    _add_times(parser)
    add_buffer_arguments(parser)
    parser.add_argument(
        "--compression", choices=_COMPRESSIONS, default="none", help="of the file (default: none)"
    )
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    parser.add_argument(
        "--py",
        type=numbers.whole(1, 1 << 22),
        action="append",
        default=[],
        metavar="PID",
        help="put what this Python process and its children record meanwhile into the same file, with the "
        "clock mono; may be given several times",
    )
    add_pid_argument(parser)


def _file_name(name: str) -> str:
    """Return a name without the slash that a shell adds to that of a folder, such as a dataset."""
    return name.rstrip("/") or name


def _add_analyses(parser: argparse.ArgumentParser) -> None:
    """Add the option that names events by what they are for."""
    parser.add_argument(
        "--for",
        dest="analyses",
        action="append",
        default=[],
        metavar="ANALYSIS",
        help="the events that `tracepoint analyse ANALYSIS` reads and this kernel has, such as sched; "
        "may be given several times",
    )


def _add_rotation(parser: argparse.ArgumentParser) -> None:
    """Add the options that make several files."""
    parser.add_argument(
        "--rotate",
        type=numbers.whole(0, 1 << 20),
        metavar="N",
        help="write FILE.001.dat and so on, each of --max-size or --rotate-time; keep the newest N (0: all)",
    )
    parser.add_argument(
        "--rotate-time",
        type=numbers.duration,
        metavar="TIME",
        help="go on in the next file after this time, such as 10m",
    )


def _add_times(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose records by their time: the newest, those before an event."""
    parser.add_argument(
        "--flight",
        type=numbers.duration,
        metavar="TIME",
        help="keep the newest records, such as 10s; SIGUSR1 and the end save them, each in a file of its own",
    )
    parser.add_argument(
        "--until", metavar="EVENT[ if FILTER]", help="end when this event fires (with its filter), and save"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Record in a new instance, remove it, and report what was saved and lost."""
    if not args.pattern and not args.analyses:
        raise TracepointError("nothing to record: name events, such as 'sched:*', or --for an ANALYSIS")
    if args.flight is not None:
        _check_flight(args)
    is_rotated = args.rotate is not None or args.rotate_time is not None
    if is_rotated:
        from tracepoint.cli.kernel.rotating import check_rotation  # noqa: PLC0415 - few recordings are

        check_rotation(args)
    dataset = args.output if args.output.endswith(".parquet") else ""
    if dataset:
        from tracepoint.cli.kernel.dataset import recording_of  # noqa: PLC0415 - with all readers

        args.output = recording_of(dataset, replace=args.force)
    programs = _programs(args, out) if args.py else None
    with EndingSignals() as ending:
        with programs or contextlib.nullcontext():
            status = _run(args, out, ending, dataset)
        if programs is not None:
            programs.join(args.output, args.compression, dataset or args.output)
        if dataset:
            from tracepoint.cli.kernel.dataset import write_dataset  # noqa: PLC0415 - as above

            write_dataset(args.output, dataset)
            out.say(f"{dataset}: the recording as a Parquet dataset")
        return ending.wait(out) or status


def _check_flight(args: argparse.Namespace) -> None:
    if args.max_size is not None:
        raise TracepointError(
            "--flight saves files as large as the buffers (--buffer-kb): --max-size is not for it"
        )
    if args.py:
        raise TracepointError("--flight saves the newest records of a kernel: --py is not for it")
    if args.output.endswith(".parquet"):
        raise TracepointError("--flight saves trace.dat files: `tracepoint convert` makes Parquet of one")


def _run(args: argparse.Namespace, out: Output, ending: EndingSignals, dataset: str) -> int:
    """Record, with everything restored at the end; return the status."""
    if args.flight is not None:
        from tracepoint.cli.kernel.flight import asked_by_signal, fly  # noqa: PLC0415 - few recordings are one

        with asked_by_signal() as asked, _chosen(args, out) as array:
            return fly(array, args, out, ending, asked)
    with _chosen(args, out) as array, StatusLine(out) as line:
        choices = _choices(args, out, ending, line)
        if args.rotate is not None or args.rotate_time is not None:
            from tracepoint.cli.kernel.rotating import record_files  # noqa: PLC0415 - as above

            def report(saved: Recording) -> int:
                line.clear()
                return _report(saved, args, out)

            return record_files(array, args, out, choices, report)
        saved = array.record(args.output, **choices)
    return _report(saved, args, out, dataset)


def _programs(args: argparse.Namespace, out: Output) -> PythonProcesses:
    """Return the processes of --py, which record with the clock that is chosen for the kernel."""
    from tracepoint.cli.kernel.together import PythonProcesses  # noqa: PLC0415 - few recordings are one

    if args.pid is not None:
        raise TracepointError("--pid records in a process only: choose it or --py")
    args.clock = args.clock or "mono"
    return PythonProcesses(args.py, args.clock, out)


def _report(saved: Recording, args: argparse.Namespace, out: Output, name: str = "") -> int:
    """Say what was saved and lost, in the file or in `name`, which is made of it; return the status."""
    name = name or saved.name
    out.say(f"{name}: {saved.n_records} records")
    if saved.is_cut:
        out.warn(f"process {args.pid} has ended: its last records may be missing")
    if saved.missing:
        out.warn(f"{saved.missing}: a larger --buffer-kb keeps more")
    if saved.problem:
        out.error(f"{name} has what was recorded until this happened: {saved.problem}")
        return EXIT_IN_PART
    return EXIT_DONE


@contextlib.contextmanager
def _chosen(args: argparse.Namespace, out: Output) -> Iterator[TraceArray]:
    """Yield an array with the events and their filters, which is off until all readers wait."""
    with (
        opened(args) as tracing,
        tracing.instance(buffer_bytes=args.buffer_kb * 1024, clock=args.clock) as array,
    ):
        array.is_on = False
        set_filters(array, args, out)
        if args.until:
            event, _, expression = args.until.partition(" if ")
            array.event(event.strip()).add_trigger("traceoff" + (f" if {expression}" if expression else ""))
        array.enable(*args.pattern, *_events_for(args.analyses, array, out))
        yield array


def _events_for(analyses: Sequence[str], array: TraceArray, out: Output) -> list[str]:
    """Return the events that analyses read and the kernel has; say which it does not have."""
    if not analyses:
        return []
    from tracepoint.analysis.registry import needs_of  # noqa: PLC0415 - with all readers

    has, found = set(array.event_names), []
    for analysis in analyses:
        needs = needs_of(analysis)
        own = [name for need in needs for name in need.names if name in has]
        if not own:
            raise TracepointError(f"this kernel has none of the events that {analysis} reads")
        lacks = [need.names[0] for need in needs if not has.intersection(need.names)]
        if lacks:
            out.say(f"not recorded for {analysis}, as this kernel does not have it: {', '.join(lacks)}")
        found += own
    return found


def _choices(args: argparse.Namespace, out: Output, ending: EndingSignals, line: StatusLine) -> Choices:
    words = args.words_after
    seconds = 5.0 if args.seconds is None and not words and not args.until else args.seconds
    if not words:
        how_long = f"for {seconds:g} s" if seconds is not None else f"until {args.until}"
        out.say(f"recording {how_long}; Ctrl-C saves what there is")
    return {
        "seconds": None if words else seconds,
        "until": ending.event,
        "during": (lambda: ending.run(words, out, seconds)) if words else None,
        "starts": True,
        "replace": args.force,
        "max_bytes": args.max_size,
        "compression": args.compression,
        "while_on": bool(args.until),
        "watch": (lambda status: line.show(status.text)) if line.is_wanted else None,
    }
