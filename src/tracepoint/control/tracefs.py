"""Reading and writing tracefs: one way in, one way out, every change undoable.

`Tracefs.write` is the only function of this room that changes anything, along with `make_instance`
and `remove_instance` for the folders of instances.  Before the change it keeps what was there in the
journal.  What is undone are settings: records that are cleared, or go with their instance, do not come back.
"""

from __future__ import annotations

import errno
import os

from tracepoint.control.settings import INSTANCE_MADE, capture, read_instance, split_array, touched_by
from tracepoint.errors import TracefsError, TracefsNotFound, TracefsPermission

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tracepoint.control.journal import Journal
    from tracepoint.control.operations import Files

HOW_TO_BE_ALLOWED = (
    "tracefs belongs to root: run as root, or let a group in with "
    "`mount -o remount,mode=0750,gid=GROUP {root}` and `chmod -R g+rw`"
)


class Tracefs:
    """The tracefs below `files.root`, with a journal of what was changed.

    Paths are relative to the mount.  Every failure is a TracefsError.
    """

    def __init__(self, files: Files, journal: Journal) -> None:
        self.files = files
        self.journal = journal
        self._own: set[str] = set()

    def read(self, path: str) -> str:
        """Return the content of a file."""
        try:
            return self.files.read(path)
        except OSError as error:
            raise self.explain(error, path) from error

    def names(self, path: str) -> list[str]:
        """Return the names in a folder, sorted."""
        try:
            return self.files.names(path)
        except OSError as error:
            raise self.explain(error, path) from error

    def exists(self, path: str) -> bool:
        """Return whether a file or folder is there."""
        try:
            return self.files.exists(path)
        except OSError as error:
            raise self.explain(error, path) from error

    def write(self, path: str, text: str, *, truncate: bool = False) -> None:
        """Write `text` to a file, after its present value is in the journal.

        With `truncate` the file is opened as a shell's `>` does, which many files take as
        "forget the old contents"; without it as `>>`. Raises TracefsError with the kernel's message.
        """
        self._remember(path, text)
        try:
            self.files.write(path, text, truncate=truncate)
        except OSError as error:
            raise self.explain(error, path, text) from error

    def make_instance(self, name: str) -> None:
        """Make the instance `name`; what is changed inside it goes with it and needs no journal.

        Unless one of that name was removed before: that one comes back in its place.
        """
        array = f"instances/{name}/"
        self._remember(array, "")
        is_own = self.journal.entries.get(array) == INSTANCE_MADE
        try:
            self.files.make_folder(array.rstrip("/"))
        except OSError as error:
            if is_own:
                self.journal.forget(array)
            raise self.explain(error, array.rstrip("/")) from error
        if is_own:
            self._own.add(array)

    def remove_instance(self, name: str) -> None:
        """Remove the instance `name`; undone, one that was not made here has its settings again."""
        array = f"instances/{name}/"
        kept = [] if array in self._own else self._remember_instance(array)
        try:
            self.files.remove_folder(array.rstrip("/"))
        except (FileNotFoundError, ProcessLookupError):
            # Gone already, maybe with the process that it was in.
            pass
        except OSError as error:
            for path in kept:
                self.journal.forget(path)
            if error.errno == errno.EBUSY:
                busy = "another program still reads a file of it; end that program first"
                raise TracefsError(busy, array.rstrip("/"), "", error.errno) from error
            raise self.explain(error, array.rstrip("/")) from error
        self._own.discard(array)
        if self.journal.entries.get(array) == INSTANCE_MADE:
            self.journal.forget(array)

    def _remember_instance(self, array: str) -> list[str]:
        try:
            is_there = self.files.exists(array.rstrip("/"))
            found = read_instance(self.files, array) if is_there else {}
        except (FileNotFoundError, ProcessLookupError):
            return []
        except OSError as error:
            raise self.explain(error, array.rstrip("/")) from error
        kept = [path for path in found if path not in self.journal.entries]
        self.journal.record(found)
        return kept

    def explain(self, error: OSError, path: str, wrote: str = "") -> TracefsError:
        """Return the error to raise for a failed system call, with the kernel's own message."""
        number = error.errno or errno.EIO
        if number in (errno.EACCES, errno.EPERM) and not self._says_more(path):
            advice = HOW_TO_BE_ALLOWED.format(root=self.files.root)
            return TracefsPermission(f"{os.strerror(number)}: {advice}", path, wrote, number)
        if number == errno.ENOENT and not path:
            return TracefsNotFound(f"no tracefs at {self.files.root}")
        # Who gave no answer is not asked again.
        words = self.kernel_words(path, wrote) if wrote and number != errno.ETIMEDOUT else ""
        what = f"the kernel refuses {wrote.strip()!r}: " if wrote else ""
        return TracefsError(f"{what}{error.strerror or os.strerror(number)}", path, wrote, number, words)

    def kernel_words(self, path: str, wrote: str) -> str:
        """Return the last entry of `error_log` about a text that was written, with the caret line."""
        array, _ = split_array(path)
        for log_path in dict.fromkeys((array + "error_log", "error_log")):
            try:
                entries = self.files.read(log_path).split("\n[")
            except OSError:
                continue
            said = entries[-1].rstrip("\n")
            # The log outlives the write: an older entry must not be mistaken for an answer.
            if said and _command(said) and _command(said) in wrote.strip():
                return said if said.startswith("[") else "[" + said
        return ""

    @staticmethod
    def _says_more(path: str) -> bool:
        """A filter that cannot be parsed fails with EPERM too."""
        return path.endswith(("/filter", "/trigger"))

    def _remember(self, path: str, text: str) -> None:
        array, _ = split_array(path)
        if array in self._own:
            return
        try:
            wanted = [p for p in touched_by(self.files, path, text) if p not in self.journal.entries]
            values = {p: capture(self.files, p) for p in wanted}
        except OSError as error:
            raise self.explain(error, path, text) from error
        self.journal.record({p: value for p, value in values.items() if value is not None})


def _command(entry: str) -> str:
    """Return the text after `Command:` in an entry of `error_log`."""
    for line in entry.splitlines():
        if line.startswith("  Command: "):
            return line.removeprefix("  Command: ").strip()
    return ""
