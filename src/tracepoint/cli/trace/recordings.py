"""What the commands that read recordings share: opening one, and reporting what it lacks."""

from __future__ import annotations

import argparse
import contextlib
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.cli.numbers import nanoseconds
from tracepoint.decode.trace import Trace
from tracepoint.errors import TracepointError
from tracepoint.filter.numbers import MAX_CPUS, read_cpulist
from tracepoint.model.patterns import unmatched
from tracepoint.tracefile.filebytes import STDIN
from tracepoint.tracefile.opening import is_process, open_container
from tracepoint.tracefile.sieve import ALL_TIMES
from tracepoint.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from tracepoint.cli.output import Output
    from tracepoint.tracefile.buffers import TraceBuffer
    from tracepoint.tracefile.container import Container
    from tracepoint.tracefile.damage import Damage

_MAX_SHOWN, _MAX_REASONS = 10, 3
_MAX_PID_DIGITS = 10
_BLOCK = 1 << 20
_FILE_HELP = (
    "a trace.dat, perf.data, text of a trace, folder of trace_pipe_raw files, or CTF trace, compressed or "
    "not; a folder of rings of Python processes, or pid:N for those of a running one; - for stdin"
)


def add_file_argument(parser: argparse.ArgumentParser) -> None:
    """Add FILE, which is a recording of any form."""
    parser.add_argument("file", metavar="FILE", help=_FILE_HELP)


def add_selection_arguments(parser: argparse.ArgumentParser, stop: str = "--to") -> None:
    """Add what chooses records: patterns of events, times, CPUs, tasks and a filter."""
    parser.add_argument(
        "pattern", nargs="*", metavar="PATTERN", help="only these events: sched, sched:*_switch"
    )
    add_filter_arguments(parser, stop)


def add_filter_arguments(parser: argparse.ArgumentParser, stop: str = "--to") -> None:
    """Add what chooses records of any event: times (`stop` names their end), CPUs, tasks and a filter."""
    group = parser.add_argument_group("records to read")
    add_part_arguments(group, stop)
    group.add_argument(
        "--where",
        action="append",
        type=_filter,
        default=[],
        metavar="FILTER",
        help="that pass this filter in the kernel's language: 'prev_prio < 100 && next_comm ~ \"k*\"'; an "
        "event that lacks one of the fields is left out",
    )


def add_part_arguments(
    group: argparse._ArgumentGroup, stop: str = "--to", read: Callable[[str], int | str] = nanoseconds
) -> None:
    """Add what chooses a part of a recording: CPUs, tasks, and times, as `read` reads them."""
    group.add_argument("--from", dest="start", type=read, metavar="S", help="from this second on")
    # In convert, --to is the format; --until is the same everywhere.
    group.add_argument(
        *dict.fromkeys((stop, "--until")), dest="stop", type=read, metavar="S", help="before this second"
    )
    group.add_argument("--cpu", type=_cpus, metavar="LIST", help="of these CPUs: 0-3,8")
    group.add_argument(
        "--pid",
        action="append",
        type=_task,
        default=[],
        metavar="TASK",
        help="of this task: its id, or its name, kworker*, '<idle>'; can be given several times",
    )


def _cpus(text: str) -> frozenset[int]:
    mask = read_cpulist(text.encode(errors="replace"), MAX_CPUS)
    if not mask:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a list of CPUs, such as 0-3,8")
    return frozenset(cpu for cpu in range(mask.bit_length()) if mask >> cpu & 1)


def _task(text: str) -> int | str:
    if not text:
        raise argparse.ArgumentTypeError("an empty task: give its id or its name")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_PID_DIGITS else text


def _filter(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("an empty filter: name a field and its value, 'prev_prio < 100'")
    return text


def narrowed(trace: Trace, args: argparse.Namespace) -> Trace:
    """Return a trace with the records that the arguments choose."""
    trace = trace.between(args.start, args.stop).select(*getattr(args, "pattern", ()))
    if args.cpu is not None:
        trace = trace.on_cpus(*args.cpu)
    if args.pid:
        trace = trace.of_tasks(*args.pid)
    for text in args.where:
        trace = trace.where(text)
    return trace


def add_instance_argument(parser: argparse.ArgumentParser) -> None:
    """Add the name of an instance."""
    parser.add_argument("--instance", default="", metavar="NAME", help="the buffer of an instance")


def check_output(output: Path, inputs: Iterable[str]) -> None:
    """Raise TracepointError where a recording that is read would be written over."""
    for name in inputs:
        with contextlib.suppress(OSError, ValueError):
            if output.samefile(name):
                raise TracepointError(f"{output}: the recording that is read; write to another file")


@contextlib.contextmanager
def writing_to(output: Path, out: Output, *, is_text: bool = False) -> Iterator[Path]:
    """Give the path of a file to write; `-` is stdout, which gets the file when it is complete.

    Raises TracepointError where stdout is a terminal and what is written no text.
    """
    if str(output) != "-":
        yield output
        return
    from tempfile import TemporaryDirectory  # noqa: PLC0415 - for stdout only

    stream = None if is_text else out.binary()
    with TemporaryDirectory(prefix="tracepoint-") as folder:
        made = Path(folder) / "out"
        yield made
        with made.open("rb") as file:
            # Whole lines: a block of bytes may end in the middle of a character.
            for lines in iter(lambda: file.readlines(_BLOCK), []):
                if stream is None:
                    out.write_utf8(b"".join(lines))
                else:
                    stream.write(b"".join(lines))


def open_file(name: str) -> Container:
    """Open a recording; pipes and stdin (`-`) are read to their end.

    Raises OSError, and TracepointError for a file that is not a recording, a device or a socket.
    """
    if name != STDIN and not is_process(name):
        mode = Path(name).stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISFIFO(mode)):
            raise TracepointError(
                f"{name}: a device or a socket: pipe what comes from it into -, "
                "or into `tracepoint read --follow -`"
            )
    return open_container(name)


def open_recording(args: argparse.Namespace) -> Trace:
    """Open FILE and choose the ring buffer of `--instance` and the records that the arguments choose."""
    file = open_file(args.file)
    try:
        return narrowed(Trace(file, buffer_named(file, args.instance).name), args)
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
    reasons = [f"{damage.reason} (offset {damage.offset:#x})" for damage in trace.damage[:_MAX_REASONS]]
    raise TracepointError("\n".join([f"{trace.path}: no {wanted}; buffers: {names}", *reasons]))


def report_unmatched(file: str, patterns: Sequence[str], events: Collection[str], out: Output) -> bool:
    """Report patterns that match no event of a file; return whether there are any."""
    missing = unmatched(patterns, events)
    for pattern in missing:
        out.say(f"tracepoint: no event of {file} matches {pattern!r}")
    return bool(missing)


def has_choice(args: argparse.Namespace) -> bool:
    """Return whether the arguments choose records, by whatever."""
    limits = (args.start, args.stop, args.cpu)
    chosen = (getattr(args, "pattern", ()), args.pid, args.where)
    return any(chosen) or any(limit is not None for limit in limits)


def report_empty(trace: Trace, out: Output) -> bool:
    """Report which choice of events, CPUs, times, tasks or filters left no records, if one did; return it."""
    chosen = trace.selection
    if trace.n_records or (not chosen.is_by_record and chosen.window == ALL_TIMES):
        return False
    every = Trace(trace.file, trace.instance)
    known = [] if every.buffer is None else sorted({cpu.cpu for cpu in every.buffer.cpus})
    (first, last), window = every.span, chosen.window
    if chosen.cpus is not None and chosen.cpus.isdisjoint(known):
        numbers = ", ".join(map(str, sorted(chosen.cpus)[:_MAX_SHOWN]))
        out.say(
            f"tracepoint: no records of CPU {numbers}: the recording has CPU {', '.join(map(str, known))}"
        )
    elif window.start > last or window.stop <= first:
        span = f"{first / 1e9:.6f} to {last / 1e9:.6f} s"
        out.say(f"tracepoint: no records in this range of times: the recording is from {span}")
    elif chosen.where:
        filters = " and ".join(repr(text) for text in chosen.where)
        out.say(f"tracepoint: no record that is chosen passes {filters}")
    elif chosen.pids is not None:
        out.say("tracepoint: no record that is chosen is of these tasks")
    else:
        out.say("tracepoint: no record that is chosen is of these events")
    return True


def no_figures(file: Container, args: argparse.Namespace) -> str:
    """Return why an analysis has no figures: there is nothing to compute them from in the chosen time."""
    if args.start is None and args.stop is None:
        return "there is nothing to compute figures from"
    first, last = Trace(file, args.instance).span
    return (
        "there is nothing to compute figures from in this time: "
        f"the recording is from {first / 1e9:.6f} to {last / 1e9:.6f} s"
    )


def warn_of_losses(n_lost: int, *, is_more: bool, out: Output) -> None:
    """Report how many events were lost, where any were; `is_more` when more of them were not counted."""
    if n_lost or is_more:
        counted_words = f"{n_lost} or more events were" if n_lost else "an unknown number of events was"
        out.warn(f"{counted_words if is_more else f'{n_lost} events were'} lost while recording")


def warn_of_damage(file: str, damages: Sequence[Damage], out: Output) -> None:
    """Report the first places of a file that could not be read, and how many more there are."""
    for damage in damages[:_MAX_SHOWN]:
        cpu = "" if damage.cpu is None else f"cpu {damage.cpu}, "
        out.warn(f"{file}: {cpu}offset {damage.offset:#x}: {damage.reason}")
    if len(damages) > _MAX_SHOWN:
        out.warn(f"{counted(len(damages) - _MAX_SHOWN, 'more damaged place')}")
