"""The values of settings before we changed them, kept where they survive a killed process.

A journal is a file of lines; tabs separate the words, which Python's `unicode_escape` writes.  The first line
names the form and the writer (mount, process, boot, start time); each other one has a setting and its
value before the first change, or only a setting whose change was not made.  A line is on disk before the
change is made, so however the process ends, the file has enough to restore everything.
"""

from __future__ import annotations

import contextlib
import os
from codecs import unicode_escape_decode, unicode_escape_encode

from tracepoint.errors import TracefsError
from tracepoint.named import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

FORM = "tracepoint.journal/2"
_PROC = "/proc"


class Journal:
    """The settings that one session has changed, with their first values; `folder` None keeps no file.

    The file is created with the first entry and removed when the session has restored everything.
    """

    def __init__(self, folder: str | os.PathLike[str] | None, root: str = "") -> None:
        self.entries: dict[str, str] = {}
        self.root = root
        self.path = None if folder is None else f"{os.fspath(folder)}/{os.getpid()}-{id(self):x}.journal"
        self._handle = -1
        self._is_made = False

    def record(self, values: Mapping[str, str]) -> None:
        """Keep the values of settings that have not been kept yet; on return they are on disk."""
        new = {path: value for path, value in values.items() if path not in self.entries}
        if not new:
            return
        if self.path is not None:
            if self._handle < 0:
                self._open(self.path)
            self._append(new.items())
        self.entries.update(new)

    def forget(self, path: str) -> None:
        """Remove a setting again, because its change was not made."""
        if self.entries.pop(path, None) is not None and self._handle >= 0:
            self._append([(path,)])

    def close(self) -> None:
        """Drop the journal: everything is as it was, or as it shall stay."""
        self.entries.clear()
        self.leave()
        if self.path is not None and self._is_made:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path)

    def leave(self) -> None:
        """Close the file and keep it for `tracepoint restore`."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _open(self, path: str) -> None:
        parent = os.path.dirname(path)
        try:
            os.makedirs(parent, exist_ok=True, mode=0o700)
            self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
            self._is_made = True
        except OSError as error:
            raise TracefsError(
                f"cannot keep a journal of changes in {parent}: {error.strerror}; nothing was changed"
            ) from error
        pid = os.getpid()
        self._append([(FORM, self.root, str(pid), *identity(pid))])
        with contextlib.suppress(OSError):
            folder = os.open(parent, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)

    def _append(self, lines: Iterable[Sequence[str]]) -> None:
        data = b"".join(b"\t".join(unicode_escape_encode(word)[0] for word in line) + b"\n" for line in lines)
        try:
            while data:
                data = data[os.write(self._handle, data) :]
            os.fsync(self._handle)
        except OSError as error:
            raise TracefsError(
                f"cannot write the journal of changes {self.path}: {error.strerror}; nothing was changed"
            ) from error


def journal_folder() -> str:
    """Return where journals are kept.

    `XDG_STATE_HOME/tracepoint` when that variable is set; else `/run/tracepoint` for root, because
    both it and tracefs forget everything at the next boot; else `~/.local/state/tracepoint`.
    """
    base = os.environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(base):
        return os.path.join(base, "tracepoint")
    if os.geteuid() == 0 and os.access("/run", os.W_OK):
        return "/run/tracepoint"
    return os.path.expanduser("~/.local/state/tracepoint")


def identity(pid: int) -> tuple[str, str]:
    """Return what distinguishes process `pid` from a later one of the same number: boot and start time."""
    with contextlib.suppress(OSError, IndexError):
        boot = _text(f"{_PROC}/sys/kernel/random/boot_id").strip()
        # The command's name is in parentheses and may hold anything, blanks and `)` too.
        after_name = _text(f"{_PROC}/{pid}/stat").rpartition(")")[2]
        return boot, after_name.split()[19]
    return "", ""


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as stream:
        return stream.read()


class JournalHead(NamedTuple):
    """Who wrote a journal: the mount of its tracefs, the process, the boot and the start time of that."""

    root: str
    pid: int
    boot: str
    start: str

    @property
    def is_running(self) -> bool:
        """Whether the process that wrote it still runs."""
        return bool(self.start) and identity(self.pid) == (self.boot, self.start)

    @property
    def is_of_this_boot(self) -> bool:
        """Whether it is about the running kernel; one from before a boot is meaningless."""
        return self.boot in ("", identity(os.getpid())[0])


def running_writer(path: str | os.PathLike[str]) -> int:
    """Return the process that the name of a journal has, 0 where no process has that number."""
    number = os.path.basename(path).partition("-")[0]
    is_running = number.isascii() and number.isdigit() and os.path.exists(f"{_PROC}/{number}")
    return int(number) if is_running else 0


def read_journal(path: str | os.PathLike[str]) -> tuple[JournalHead | None, dict[str, str]]:
    """Return the first line and the entries of a journal; a half-written last line does not count.

    The first line is None where it was not written.  Raises TracefsError when the file is not a journal.
    """
    with open(path, "rb") as stream:
        data = stream.read()
    # What follows the last newline is half written.
    lines = data.split(b"\n")[:-1]
    head = _head(lines[0]) if lines else None
    entries: dict[str, str] = {}
    if head is None:
        if not lines and data[: len(FORM)] == FORM.encode()[: len(data)]:
            return None, {}
        raise TracefsError(f"{os.fspath(path)} is not a journal of this program ({FORM})")
    for line in lines[1:]:
        try:
            setting, *values = _words(line)
        except UnicodeDecodeError:
            break
        if not values:
            entries.pop(setting, None)
        elif len(values) == 1:
            entries.setdefault(setting, values[0])
        else:
            break
    return head, entries


def _words(line: bytes) -> list[str]:
    return [unicode_escape_decode(word)[0] for word in line.split(b"\t")]


def _head(line: bytes) -> JournalHead | None:
    """Read the first line of a journal; None for another file."""
    try:
        form, root, pid, boot, start = _words(line)
    except ValueError:
        return None
    is_ours = form == FORM and pid.isascii() and pid.isdigit() and len(pid) < 10
    return JournalHead(root, int(pid), boot, start) if is_ours else None
