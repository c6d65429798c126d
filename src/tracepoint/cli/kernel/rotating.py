"""`tracepoint record --rotate`: files one after the other, of which the newest are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from tracepoint.cli.status import EXIT_DONE
from tracepoint.errors import TracepointError
from tracepoint.wording import counted

if TYPE_CHECKING:
    import argparse
    import threading
    from collections.abc import Callable

    from tracepoint.cli.output import Output
    from tracepoint.control.instance import TraceArray
    from tracepoint.control.status import RecordStatus
    from tracepoint.tracefile.recording import Recording


class Choices(TypedDict):
    """What a recording of one file and one of several have in common."""

    seconds: float | None
    until: threading.Event
    during: Callable[[], object] | None
    starts: bool
    replace: bool
    max_bytes: int | None
    compression: str
    while_on: bool
    watch: Callable[[RecordStatus], None] | None


def check_rotation(args: argparse.Namespace) -> None:
    """Raise TracepointError for what does not go together with several files."""
    if args.max_size is None and args.rotate_time is None:
        raise TracepointError("--rotate needs --max-size or --rotate-time: when the next file begins")
    if args.flight is not None:
        raise TracepointError("--flight saves the newest records when it is asked to: --rotate is not for it")
    if args.py:
        raise TracepointError("--py makes one file of all records: --rotate is not for it")
    if args.output.endswith(".parquet"):
        raise TracepointError("--rotate saves trace.dat files: `tracepoint convert` makes Parquet of one")


def record_files(
    array: TraceArray,
    args: argparse.Namespace,
    out: Output,
    choices: Choices,
    report: Callable[[Recording], int],
) -> int:
    """Record, `report` each file when it is complete, and return the worst status of that."""
    statuses = [EXIT_DONE]

    def tell(saved: Recording) -> None:
        statuses.append(report(saved))

    files = array.record_files(
        args.output, **choices, n_kept=args.rotate or 0, file_seconds=args.rotate_time, tell=tell
    )
    n_removed = max(len(files) - args.rotate, 0) if args.rotate else 0
    gone = f"; {counted(n_removed, 'older file')} removed" if n_removed else ""
    out.say(f"{sum(saved.n_records for saved in files)} records in {len(files)} files{gone}")
    return max(statuses)
