"""Where processes that may be controlled put their sockets: a folder for each user."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from tracepoint.errors import TracepointError

PRIVATE = 0o700


class ProcessError(TracepointError):
    """A process that cannot be found, asked, or served."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process that listens: its pid, its socket, its command line."""

    pid: int
    path: Path

    @property
    def command(self) -> str:
        """The command line, as far as it can be read."""
        try:
            raw = Path(f"/proc/{self.pid}/cmdline").read_bytes()
        except OSError:
            return ""
        return " ".join(raw.replace(b"\0", b" ").decode(errors="replace").split())

    @property
    def is_alive(self) -> bool:
        """Whether there is a process of this number."""
        return Path(f"/proc/{self.pid}").exists()

    @property
    def ancestors(self) -> tuple[int, ...]:
        """The ids of its parent, of the parent of that, and so on, as far as they can be read."""
        found, pid = [], self.pid
        while pid := _parent_of(pid):
            if pid in found:
                break
            found.append(pid)
        return tuple(found)

    @property
    def is_mine(self) -> bool:
        """Whether both the process and its socket belong to this user."""
        try:
            owners = {Path(f"/proc/{self.pid}").stat().st_uid, self.path.lstat().st_uid}
        except OSError:
            return False
        return owners == {os.geteuid()}


def _parent_of(pid: int) -> int:
    """Return the id of the process that a process is a child of, 0 where it is not known."""
    try:
        status = Path(f"/proc/{pid}/stat").read_bytes()
        # The name of the process before it may have any character (proc(5)).
        return int(status.rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def socket_folder(uid: int | None = None) -> Path:
    """Return the folder of a user's sockets.

    `TRACEPOINT_SOCKETS` names another one; else it lies below XDG_RUNTIME_DIR, or /tmp.
    """
    given = os.environ.get("TRACEPOINT_SOCKETS")
    if given:
        return Path(given)
    uid = os.geteuid() if uid is None else uid
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and uid == os.geteuid():
        return Path(runtime) / "tracepoint"
    return Path(f"/tmp/tracepoint-{uid}")  # noqa: S108 - made with mode 0700 and its owner checked


def check_folder(folder: Path, *, make: bool = False) -> bool:
    """Return whether the folder is there; raises ProcessError when others may put sockets into it."""
    if make:
        folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return False
    if found.st_uid not in (os.geteuid(), 0):
        raise ProcessError(f"{folder} belongs to user {found.st_uid}: set TRACEPOINT_SOCKETS")
    if not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o022:
        raise ProcessError(f"{folder} may be written by others: remove it, or set TRACEPOINT_SOCKETS")
    return True


def socket_path(pid: int, folder: Path | None = None) -> Path:
    """Return where the socket of a process is."""
    return (folder or socket_folder()) / f"{pid}.socket"


def find_processes() -> list[Process]:
    """Return the processes of this user that listen, by pid; sockets of dead ones are removed."""
    folder = socket_folder()
    if not check_folder(folder):
        return []
    found = []
    for path in sorted(folder.glob("*.socket")):
        if not path.stem.isdigit():
            continue
        process = Process(int(path.stem), path)
        if process.is_alive:
            found.append(process)
        else:
            path.unlink(missing_ok=True)
    return sorted(found, key=lambda process: process.pid)


def find_process(pid: int) -> Process:
    """Return one process; raises ProcessError when there is none of this number, or it does not listen."""
    if not Process(pid, Path()).is_alive:
        raise ProcessError(f"there is no process {pid}; `tracepoint ps` lists those that can be traced")
    folder = socket_folder()
    if not check_folder(folder) or not socket_path(pid, folder).exists():
        raise ProcessError(
            f"process {pid} does not listen: start it with TRACEPOINT=1, or call tracepoint.listen() in it"
        )
    return Process(pid, socket_path(pid, folder))
