"""Signals that end a recording and save it, and the command that is recorded."""

from __future__ import annotations

import contextlib
import os
import signal

from tracepoint.cli.child import ChildProcess
from tracepoint.cli.status import EXIT_DONE, EXIT_TOOL_FAILED
from tracepoint.cli.stopping import SignalEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Self

    from tracepoint.cli.output import Output

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class EndingSignals:
    """SIGINT, SIGTERM and SIGHUP as the end of a recording, while this is a context.

    `event` is set by the first of them; a command that runs then gets it too, and a second one kills it.
    A signal that is ignored (nohup) stays ignored.
    """

    def __init__(self) -> None:
        self.event = SignalEvent()
        self._child: ChildProcess | None = None
        # The first that came before there was a command.
        self._early = 0
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._come)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _come(self, number: int, _frame: FrameType | None) -> None:
        is_second, child = self.event.is_set(), self._child
        self.event.set()
        if child is None:
            self._early = self._early or number
            return
        if child.returncode is not None:
            return
        if is_second:
            child.send_signal(signal.SIGKILL)
        elif number != signal.SIGINT or not _is_in_foreground():
            # A terminal sends SIGINT to the command itself.
            child.send_signal(number)

    def run(self, words: list[str], out: Output, seconds: float | None) -> None:
        """Run a command, and return at its end or when `seconds` have passed."""
        # This sleeps until the command ends: polling would add CPU time to what is recorded.
        self.start(words, out)
        if self._child is not None:
            self._child.wait(seconds)

    def start(self, words: list[str], out: Output) -> None:
        """Start a command, unless a signal came already; raises TracepointError where it cannot be run."""
        out.stdout.flush()
        if self._early:
            return
        self._child = ChildProcess(words)
        if self._early:
            # It came while the command was started.
            self._child.send_signal(self._early)

    @property
    def is_running(self) -> bool:
        """Whether the command that was started has not ended."""
        return self._child is not None and self._child.poll() is None

    def wait(self, out: Output) -> int:
        """Wait for the command if its recording ended earlier; a status other than 0 is a failed tool."""
        child = self._child
        if child is None:
            return EXIT_DONE
        if child.poll() is None:
            out.say("waiting for the command, which is no longer recorded")
        if not child.wait() or self.event.is_set():
            return EXIT_DONE
        out.warn(f"the command ended with status {child.returncode}")
        return EXIT_TOOL_FAILED


def _is_in_foreground() -> bool:
    """Return whether a terminal sends its Ctrl-C to our processes."""
    for handle in range(3):
        with contextlib.suppress(OSError):
            return os.tcgetpgrp(handle) == os.getpgrp()
    return False
