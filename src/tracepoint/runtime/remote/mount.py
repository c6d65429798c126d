"""The control files as a directory, so that `echo 1 > DIR/events/...` and `cat DIR/trace` work.

FUSE is served by a process of its own, which asks the traced one through its socket: libfuse takes
over signals and would hang a program that reads its own mount.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

from tracepoint.closing import Closing
from tracepoint.runtime.remote.registry import ProcessError
from tracepoint.runtime.remote.server import listen
from tracepoint.wording import tail

START_S = 15.0


def why_not() -> str:
    """Return the reason why nothing can be mounted here, or an empty string."""
    if importlib.util.find_spec("mfusepy") is None:
        return "mfusepy is missing: pip install 'tracepoint[mount]'"
    if not Path("/dev/fuse").exists():
        return "there is no /dev/fuse: load the module fuse, or use `tracepoint ps`"
    return ""


class Mount(Closing):
    """A mounted directory; `close()` unmounts it, as leaving a `with` does."""

    def __init__(self, directory: Path, server: subprocess.Popen[bytes]) -> None:
        self.directory = directory
        self._server = server

    def __repr__(self) -> str:
        return f"<Mount {tail(str(self.directory))}>"

    def close(self) -> None:
        """Unmount and wait for the server."""
        unmount(self.directory)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._server.wait(5)
        if self._server.poll() is None:
            self._server.terminate()
            self._server.wait()


def unmount(directory: Path) -> None:
    """Unmount a directory, lazily when it is in use; does nothing when nothing is mounted."""
    for command in (["fusermount3", "-u", "-z"], ["fusermount", "-u", "-z"], ["umount", "-l"]):
        with contextlib.suppress(FileNotFoundError):
            done = subprocess.run([*command, str(directory)], capture_output=True, check=False)  # noqa: S603 - fixed words and a path
            if done.returncode == 0:
                return


def mount(directory: str | os.PathLike[str]) -> Mount:
    """Show this process's events below `directory`, which is made when it is missing.

    Starts listening (see `listen`).  Raises ProcessError with the reason when it cannot be mounted.
    """
    reason = why_not()
    if reason:
        raise ProcessError(reason)
    path = Path(directory).absolute()
    path.mkdir(parents=True, exist_ok=True)
    listen()
    command = [sys.executable, "-m", "tracepoint", "mount", str(path), "--pid", str(os.getpid())]
    server = subprocess.Popen(  # noqa: S603 - this interpreter and a path
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    end = time.monotonic() + START_S
    while not path.is_mount():
        if server.poll() is not None or time.monotonic() > end:
            server.kill()
            told = server.stderr.read().decode(errors="replace") if server.stderr else ""
            server.wait()
            raise ProcessError(f"cannot mount {path}: {told.strip() or 'it takes too long'}")
        time.sleep(0.02)
    return Mount(path, server)
