"""The values of settings before we changed them, kept where they survive a killed process.

A journal is a file of JSON lines.  The first names the writer (process, start time, boot);
each other line has the value of a setting before its first change.  A line is on disk
before the change is made, so however the process ends, the file has enough to restore everything.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.errors import TracefsError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SCHEMA = "tracepoint.journal/1"
_PROC = Path("/proc")


class Journal:
    """The settings that one session has changed, with their first values; `folder` None keeps no file.

    The file is created with the first entry and removed when the session has restored everything.
    """

    def __init__(self, folder: Path | None, root: str = "") -> None:
        self.entries: dict[str, str] = {}
        self.root = root
        self.path = None if folder is None else folder / f"{os.getpid()}-{id(self):x}.journal"
        self._handle = -1
        self._is_made = False

    def record(self, values: Mapping[str, str]) -> None:
        """Keep the values of settings that have not been kept yet; on return they are on disk."""
        new = {path: value for path, value in values.items() if path not in self.entries}
        if not new:
            return
        lines = [[path, value] for path, value in new.items()]
        if self.path is not None:
            if self._handle < 0:
                self._open(self.path)
            self._append(lines)
        self.entries.update(new)

    def forget(self, path: str) -> None:
        """Remove a setting again, because its change was not made."""
        if self.entries.pop(path, None) is not None and self._handle >= 0:
            self._append([[path, None]])

    def close(self) -> None:
        """Drop the journal: everything is as it was, or as it shall stay."""
        self.entries.clear()
        self.leave()
        if self.path is not None and self._is_made:
            self.path.unlink(missing_ok=True)

    def leave(self) -> None:
        """Close the file and keep it for `tracepoint restore`."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _open(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
            self._is_made = True
        except OSError as error:
            raise TracefsError(
                f"cannot keep a journal of changes in {path.parent}: {error.strerror}; nothing was changed"
            ) from error
        head = {"schema": SCHEMA, "root": self.root, "pid": os.getpid(), **identity(os.getpid())}
        self._append([head])
        with contextlib.suppress(OSError):
            folder = os.open(path.parent, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)

    def _append(self, lines: Sequence[object]) -> None:
        data = "".join(json.dumps(line) + "\n" for line in lines).encode()
        try:
            while data:
                data = data[os.write(self._handle, data) :]
            os.fsync(self._handle)
        except OSError as error:
            raise TracefsError(
                f"cannot write the journal of changes {self.path}: {error.strerror}; nothing was changed"
            ) from error


def journal_folder() -> Path:
    """Return where journals are kept.

    `XDG_STATE_HOME/tracepoint` when that variable is set; else `/run/tracepoint` for root, because
    both it and tracefs forget everything at the next boot; else `~/.local/state/tracepoint`.
    """
    base = os.environ.get("XDG_STATE_HOME", "")
    if Path(base).is_absolute():
        return Path(base) / "tracepoint"
    run = Path("/run")
    if os.geteuid() == 0 and os.access(run, os.W_OK):
        return run / "tracepoint"
    return Path.home() / ".local/state/tracepoint"


def identity(pid: int) -> dict[str, str]:
    """Return what distinguishes process `pid` from a later one of the same number: boot and start time."""
    with contextlib.suppress(OSError, IndexError):
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        # The command's name is in parentheses and may hold anything, blanks and `)` too.
        after_name = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2]
        return {"boot": boot, "start": after_name.split()[19]}
    return {"boot": "", "start": ""}


def read_journal(path: Path) -> tuple[dict[str, object], dict[str, str]]:
    """Return the first line and the entries of a journal; a half-written last line does not count.

    Raises TracefsError when the file is not a journal.
    """
    head: dict[str, object] = {}
    entries: dict[str, str] = {}
    for line in path.read_bytes().decode(errors="replace").splitlines():
        try:
            item = json.loads(line)
        except (ValueError, RecursionError):
            break
        match item:
            case {"schema": str()} if not head:
                head = item
            case [str(setting), None]:
                entries.pop(setting, None)
            case [str(setting), str(value)] if head:
                entries.setdefault(setting, value)
            case _:
                break
    if path.stat().st_size and head.get("schema") != SCHEMA:
        raise TracefsError(f"{path} is not a journal of this program ({SCHEMA})")
    return head, entries


def is_running(head: Mapping[str, object]) -> bool:
    """Return whether the process that wrote a journal still runs."""
    pid = head.get("pid")
    if not isinstance(pid, int) or not head.get("start"):
        return False
    now = identity(pid)
    return bool(now["start"]) and (now["boot"], now["start"]) == (head.get("boot"), head.get("start"))


def is_of_this_boot(head: Mapping[str, object]) -> bool:
    """Return whether a journal is about the running kernel; one from before a boot is meaningless."""
    return head.get("boot") in ("", None, identity(os.getpid())["boot"])
