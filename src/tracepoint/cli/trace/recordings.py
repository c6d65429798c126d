"""What the commands that read recordings share: opening one, and reporting what it lacks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.decode.trace import Trace
from tracepoint.errors import TracepointError
from tracepoint.model.patterns import unmatched
from tracepoint.tracefile.opening import open_container
from tracepoint.tree.opening import check_regular
from tracepoint.wording import counted

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Sequence

    from tracepoint.cli.output import Output
    from tracepoint.tracefile.buffers import TraceBuffer
    from tracepoint.tracefile.container import Container
    from tracepoint.tracefile.damage import Damage

_MAX_SHOWN = 10
_FILE_HELP = "a trace.dat, perf.data, text of a trace or folder of trace_pipe_raw files, compressed or not"


def add_file_argument(parser: argparse.ArgumentParser, more: str = "") -> None:
    """Add FILE, which is a recording of any form."""
    parser.add_argument("file", metavar="FILE", help=_FILE_HELP + more)


def add_pattern_argument(parser: argparse.ArgumentParser) -> None:
    """Add the patterns of events."""
    parser.add_argument(
        "pattern", nargs="*", metavar="PATTERN", help="only these events: sched, sched:*_switch"
    )


def add_instance_argument(parser: argparse.ArgumentParser) -> None:
    """Add the name of an instance."""
    parser.add_argument("--instance", default="", metavar="NAME", help="the buffer of an instance")


def open_file(name: str) -> Container:
    """Open a recording; raises OSError, and TracepointError for a file without an end, such as a FIFO."""
    if not Path(name).is_dir():
        check_regular(name)
    return open_container(name)


def open_recording(args: argparse.Namespace) -> Trace:
    """Open FILE and choose the ring buffer of `--instance`."""
    file = open_file(args.file)
    try:
        return Trace(file, buffer_named(file, args.instance).name)
    except BaseException:
        file.close()
        raise


def buffer_named(trace: Container, name: str) -> TraceBuffer:
    """Return the ring buffer of an instance, the top one for an empty name; raises TracepointError."""
    for buffer in trace.buffers:
        if buffer.name == name:
            return buffer
    names = ", ".join(buffer.name or "the top one" for buffer in trace.buffers) or "none"
    wanted = f"instance {name!r}" if name else "top buffer"
    raise TracepointError(f"{trace.path}: no {wanted}; buffers: {names}")


def report_unmatched(file: str, patterns: Sequence[str], events: Collection[str], out: Output) -> bool:
    """Report patterns that match no event of a file; return whether there are any."""
    missing = unmatched(patterns, events)
    for pattern in missing:
        out.say(f"tracepoint: no event of {file} matches {pattern!r}")
    return bool(missing)


def warn_of_damage(file: str, damages: Sequence[Damage], out: Output) -> None:
    """Report the first places of a file that could not be read, and how many more there are."""
    for damage in damages[:_MAX_SHOWN]:
        cpu = "" if damage.cpu is None else f"cpu {damage.cpu}, "
        out.warn(f"{file}: {cpu}offset {damage.offset:#x}: {damage.reason}")
    if len(damages) > _MAX_SHOWN:
        out.warn(f"{counted(len(damages) - _MAX_SHOWN, 'more damaged place')}")
