"""A command that runs beside us; not `subprocess`, which takes 3 ms to import."""

from __future__ import annotations

import contextlib
import os
import signal
import time

from tracepoint.errors import TracepointError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

_LOOK_S = 0.05
# What Python ignores and a command should not.
_RESTORED = (signal.SIGPIPE, signal.SIGXFSZ)


class ChildProcess:
    """A command that was started, with our streams and environment; `returncode` is None until it has ended.

    `held` are the signals that are blocked in it; the default is those of this thread.  Raises
    TracepointError where it cannot be run.
    """

    def __init__(self, words: list[str], held: Collection[int] | None = None) -> None:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ()) if held is None else held
        try:
            self.pid = os.posix_spawnp(words[0], words, os.environ, setsigmask=mask, setsigdef=_RESTORED)
        except OSError as error:
            raise TracepointError(f"cannot run {words[0]}: {error.strerror}") from error
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the status of the command, minus the signal that ended it; None while it runs."""
        return self._reap(os.WNOHANG)

    def wait(self, seconds: float | None = None) -> int | None:
        """Return what `poll` does when the command has ended, or `seconds` have passed."""
        if seconds is None:
            return self._reap(0)
        end = time.monotonic() + seconds
        while self.poll() is None and (left := end - time.monotonic()) > 0:
            self._sleep(left)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the command has ended."""
        if self.poll() is None:
            # The handler of another signal may have reaped it in between.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _sleep(self, seconds: float) -> None:
        """Sleep until the command ends; before Linux 5.3, which cannot tell that, for a moment."""
        try:
            handle = os.pidfd_open(self.pid)
        except OSError:
            time.sleep(min(seconds, _LOOK_S))
            return
        try:
            import select  # noqa: PLC0415 - most commands are waited for without a time

            ended = select.poll()
            ended.register(handle, select.POLLIN)
            ended.poll(seconds * 1000)
        finally:
            os.close(handle)

    def _reap(self, options: int) -> int | None:
        if self.returncode is None:
            try:
                # Its number stays in use until the status is kept: a handler may still send to it.
                ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | options)
            except ChildProcessError:
                # A signal came, and what handles it has reaped the command.
                return self.returncode
            if ended is not None:
                has_exited = ended.si_code == os.CLD_EXITED
                self.returncode = ended.si_status if has_exited else -ended.si_status
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(self.pid, 0)
        return self.returncode
