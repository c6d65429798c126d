"""`tracepoint record --flight`: the newest records are saved when a signal or an event asks for them."""

from __future__ import annotations

import contextlib
import signal
import time
from typing import TYPE_CHECKING

from tracepoint.cli.status import EXIT_DONE, EXIT_IN_PART
from tracepoint.cli.stopping import SignalEvent
from tracepoint.control.recording import numbered
from tracepoint.errors import TracepointError
from tracepoint.tracefile.textoptions import CLOCKS_NOT_IN_NS

if TYPE_CHECKING:
    import argparse
    import threading
    from collections.abc import Iterator

    from tracepoint.cli.kernel.ending import EndingSignals
    from tracepoint.cli.output import Output
    from tracepoint.control.instance import TraceArray

_LOOK_S = 0.05


@contextlib.contextmanager
def asked_by_signal() -> Iterator[SignalEvent]:
    """Yield an event that SIGUSR1 sets.

    It is used from before anything is changed until everything is restored: by default the signal kills.
    """
    asked = SignalEvent()
    before = signal.signal(signal.SIGUSR1, lambda *_: asked.set())
    try:
        yield asked
    finally:
        signal.signal(signal.SIGUSR1, before)


def fly(
    array: TraceArray, args: argparse.Namespace, out: Output, ending: EndingSignals, asked: SignalEvent
) -> int:
    """Save the newest records each time that it is asked for and at the end; return the status.

    They go to numbered files.
    """
    if array.clock in CLOCKS_NOT_IN_NS:
        raise TracepointError(f"the clock {array.clock} does not count ns: --flight needs one that does")
    paths = numbered(args.output, replace=args.force)
    status = EXIT_DONE
    array.is_on = True
    if args.words_after:
        ending.start(args.words_after, out)
    out.say(f"keeping the last {args.flight:g} s; SIGUSR1 saves them, Ctrl-C saves them and ends")
    end = None if args.seconds is None else time.monotonic() + args.seconds
    is_over = False
    while not is_over:
        is_over = _wait(array, args, ending, asked, end)
        asked.clear()
        status = max(status, _save(array, next(paths), args, out))
    return status


def _wait(
    array: TraceArray,
    args: argparse.Namespace,
    ending: EndingSignals,
    asked: threading.Event,
    end: float | None,
) -> bool:
    """Wait until something asks for a save; return whether it is the last one."""
    while not asked.is_set():
        is_late = end is not None and time.monotonic() >= end
        has_ended = bool(args.words_after) and not ending.is_running
        if is_late or has_ended or (args.until and not array.is_on) or ending.event.wait(_LOOK_S):
            return True
    return False


def _save(array: TraceArray, path: str, args: argparse.Namespace, out: Output) -> int:
    """Save what the ring buffers hold; what fails is said, and the next time may succeed."""
    try:
        saved = array.record(
            path, 0, newest_ns=round(args.flight * 1e9), replace=args.force, compression=args.compression
        )
    except TracepointError as error:
        out.error(str(error))
        return EXIT_IN_PART
    out.say(f"{saved.name}: {saved.n_records} records")
    if saved.problem:
        out.error(f"{saved.name}: {saved.problem}")
        return EXIT_IN_PART
    return EXIT_DONE
