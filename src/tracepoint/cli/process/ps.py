"""`tracepoint ps`: the Python processes that can be traced, and controlling one of them."""

from __future__ import annotations

import re
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.cli import numbers
from tracepoint.cli.status import EXIT_DONE, EXIT_FINDINGS
from tracepoint.errors import LossWarning
from tracepoint.runtime.remote.client import ANSWER_WAIT_S, RemoteFiles, SilentError
from tracepoint.runtime.remote.registry import Process, ProcessError, find_process, find_processes
from tracepoint.runtime.rings.mapped import open_rings
from tracepoint.tracefile.recording import losses_of
from tracepoint.tracefile.tracedat import read_tracedat
from tracepoint.tracefile.write import check_tracedat_name

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.output import Output

# A process that has not answered by then is stopped, or holds the GIL.
LIST_WAIT_S = 2.0


def add_pid_argument(parser: argparse.ArgumentParser) -> None:
    """Add `--pid`."""
    parser.add_argument(
        "--pid",
        type=numbers.whole(1, 1 << 22),
        metavar="N",
        help="the process; optional when only one listens",
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_pid_argument(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true", help="list its events with their states")
    what.add_argument("--enable", nargs="+", metavar="EVENT", help="record these, as set_event takes them")
    what.add_argument("--disable", nargs="+", metavar="EVENT", help="stop recording these")
    what.add_argument("--filter", nargs=2, metavar=("EVENT", "FILTER"), help="record only what passes")
    what.add_argument("--cat", metavar="FILE", help="print a control file, such as trace or error_log")
    what.add_argument("--write", nargs=2, metavar=("FILE", "TEXT"), help="write to a control file")
    what.add_argument("--record", metavar="FILE", type=Path, help="save what was recorded as trace.dat")
    parser.add_argument(
        "--seconds", type=numbers.seconds, default=0.0, metavar="S", help="wait before --record saves"
    )
    parser.add_argument(
        "--children",
        action="store_true",
        help="save with --record what its children and other processes recorded that share its "
        "TRACEPOINT_DIRECTORY",
    )
    parser.add_argument("--version-6", action="store_true", help="write trace.dat version 6")


def the_process(pid: int | None) -> Process:
    """Return the process with this id, or the only one of this user that listens.

    Raises ProcessError when there is none, or several; a process of another user is never chosen implicitly.
    """
    if pid is not None:
        return find_process(pid)
    found = find_processes()
    mine = [process for process in found if process.is_mine]
    if len(mine) == 1:
        return mine[0]
    if mine:
        raise ProcessError(f"name one with --pid: {', '.join(str(process.pid) for process in mine)}")
    others = ", ".join(str(process.pid) for process in found)
    hint = f" (of other users: {others})" if others else ""
    raise ProcessError(
        f"no process of yours listens{hint}: start one with TRACEPOINT=1, or name it with --pid"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """List the processes, or do one thing with one of them; the status is 1 when none listens."""
    chosen = ("list", "enable", "disable", "filter", "cat", "write", "record")
    if args.pid is None and not any(getattr(args, name) for name in chosen):
        return _list_processes(out)
    # Making a trace.dat may take long.
    wait_s = None if args.record else ANSWER_WAIT_S
    with RemoteFiles(the_process(args.pid).pid, wait_s) as files:
        _act(args, files, out)
    return EXIT_DONE


def _list_processes(out: Output) -> int:
    found = find_processes()
    out.line(f"{'PID':>7}  {'EVENTS':>6}  {'ENABLED':>7}  COMMAND") if found else out.say(
        "no process listens"
    )
    for process in found:
        try:
            with RemoteFiles(process.pid, LIST_WAIT_S) as files:
                told = files.hello()
        except SilentError as error:
            out.say(str(error))
            continue
        except ProcessError:
            # It has ended, or another process has the id of one that was killed.
            continue
        out.line(f"{process.pid:7}  {told['n_events']:6}  {told['n_enabled']:7}  {process.command}")
    return EXIT_DONE if found else EXIT_FINDINGS


def _write(files: RemoteFiles, path: str, text: str) -> None:
    """Write as `>>` does; raises ProcessError with the text of `error_log`."""
    known = _log_entries(files)
    try:
        files.write_text(path, text, append=True)
    except OSError as error:
        said = "".join(entry for entry in _log_entries(files) if entry not in known)
        what = f"{path}: the process refuses {text.strip()!r}: {error.strerror}\n{said}"
        raise ProcessError(what.rstrip()) from error


def _log_entries(files: RemoteFiles) -> list[str]:
    return re.split(r"^(?=\[)", files.read_text("error_log"), flags=re.MULTILINE)


def _act(args: argparse.Namespace, files: RemoteFiles, out: Output) -> None:
    if args.enable or args.disable:
        words = args.enable or [f"!{word}" for word in args.disable]
        for word in words:
            _write(files, "set_event", word)
    elif args.filter:
        event, text = args.filter
        _write(files, f"events/{event.replace(':', '/', 1)}/filter", text)
    elif args.cat:
        out.write(files.read_text(args.cat))
    elif args.write:
        _write(files, args.write[0], args.write[1])
    elif args.record:
        check_tracedat_name(args.record)
        time.sleep(args.seconds)
        if args.children:
            _save_all(args, files, out)
            return
        data = files.save(6 if args.version_6 else 7)
        args.record.write_bytes(data)
        out.say(f"{args.record}: {len(data)} bytes")
        with read_tracedat(data, str(args.record)) as trace:
            lost = [losses_of(trace.options, buffer.name) for buffer in trace.buffers]
        n_overrun, n_dropped = sum(one.overrun for one in lost), sum(one.dropped for one in lost)
        if n_overrun or n_dropped:
            out.warn(f"{n_overrun} events overwritten, {n_dropped} dropped before this was saved")
    else:
        enabled = set(files.read_text("set_event").split())
        for name in files.read_text("available_events").split():
            out.line(f"{'1' if name in enabled else '0'}  {name}")


def _save_all(args: argparse.Namespace, files: RemoteFiles, out: Output) -> None:
    directory = files.directory()
    if not directory:
        raise ProcessError(
            "the process keeps its rings in memory, where those of its children are not: start it with "
            "TRACEPOINT_DIRECTORY=DIRECTORY"
        )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", LossWarning)
        rings = open_rings(directory)
        saved = rings.save(args.record, version=6 if args.version_6 else 7)
    n_processes = len({ring.pid for ring in rings.rings})
    out.say(f"{args.record}: {saved.n_records} records of {n_processes} processes")
    for warning in told:
        out.warn(str(warning.message))
