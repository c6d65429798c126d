"""What is asked of a disk, in one place, so that the answers can be kept between runs.

`Disk` asks each time. `WatchedDisk` records each question and answer, with a stamp of each path that changes
with the file: as long as all stamps, or at least all answers, are the same, results computed from the answers
are still valid.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, TypeAlias

from tracepoint.errors import TracepointError
from tracepoint.tree.opening import read_if_sane

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping

    #: A question about a file's bytes (None: it cannot be read); the answer is plain data, as in JSON.
    Question: TypeAlias = Callable[[bytes | None], Any]

#: By folder: the names in it, their stamps, and the answers by question and name.
Rows: TypeAlias = "dict[str, dict[str, Any]]"

DIGEST = "digest"
_KIND, _REAL, _LISTING, _NAMES = "kind", "real", "listing", "names"
#: These answers only save work; results from them are compared themselves.
_ONLY_KEPT = frozenset({_LISTING})
_FILE, _FOLDER = "file", "folder"
#: Clocks of file systems are coarse: anything changed this recently is checked again.
_RECENT_NS = 2_000_000_000
#: The value of `stamp_of` for a path that was just changed, and for one that does not exist.
UNTRUSTED, MISSING = -1, 0
_MASK = (1 << 60) - 1


class Disk:
    """The disk as it is now."""

    def read(self, path: str) -> bytes | None:
        """Return the bytes of a file, None if it does not exist or is not a regular file of a sane size."""
        return read_if_sane(path)

    def read_noted(self, path: str) -> bytes | None:
        """Return the same for a caller that keeps its own notes of what it made of which files."""
        return read_if_sane(path)

    def ask(self, path: str, question: Question) -> Any:
        """Return the answer to a question about a file's bytes; its name identifies it between runs."""
        return question(read_if_sane(path))

    def is_file(self, path: str) -> bool:
        """Return whether there is a file, or a link to one."""
        return os.path.isfile(path)  # noqa: PTH113 - asked very often

    def is_folder(self, path: str) -> bool:
        """Return whether there is a folder, or a link to one."""
        return os.path.isdir(path)  # noqa: PTH112 - asked very often

    def real(self, path: str) -> str:
        """Return a path without symbolic links."""
        return os.path.realpath(path)

    def listing(self, folder: str) -> tuple[list[str], list[str]]:
        """Return the names of the folders in a folder, without links, and of its C files."""
        return _listing(folder)

    def names(self, folder: str, end: str) -> list[str]:
        """Return the names in a folder with this ending, sorted; `/` selects its folders."""
        return _names(folder, end)

    def walk(self, folder: str, passed_over: Container[str] = ()) -> Iterator[tuple[str, list[str]]]:
        """Yield a folder and all folders below it with their C files, without hidden and skipped ones."""
        waiting = [folder]
        while waiting:
            top = waiting.pop()
            folders, files = self.listing(top)
            yield top, files
            wanted = [name for name in folders if not name.startswith(".") and name not in passed_over]
            waiting += [f"{top}/{name}" for name in reversed(wanted)]

    def note_found(self, folder: str, files: list[str]) -> None:
        """Take what a caller found below a folder with `walk` and `ask`; only a watched disk keeps it."""


#: The disk of callers that do not watch it.
DISK = Disk()


class WatchedDisk(Disk):
    """Records what is asked; `questions` are all that `ask` accepts, `kept` those that only save work.

    `rows` is what `rows()` returned earlier.
    """

    def __init__(
        self, questions: Iterable[Question], kept: Iterable[Question] = (), rows: Rows | None = None
    ) -> None:
        self._begin = time.time_ns()
        self._kept = _ONLY_KEPT | {question.__name__ for question in kept}
        self._questions = {question.__name__: question for question in questions}
        self._stamps: dict[str, int] = {}
        self._answers: dict[str, dict[str, Any]] = {}
        self.is_as_saved = bool(rows)
        self.changed: dict[str, dict[str, Any]] = {}
        self.shared: set[str] = set()
        self.found: dict[str, list[str]] = {}
        self._rows = rows or {}
        self._compare()

    def _compare(self) -> None:
        """Take over the answers that are still valid, and note which are not."""
        stamp = self._stamp
        fresh = {
            folder + name: new
            for folder, row in self._rows.items()
            for name, old in zip(row["names"].split("/"), row["stamps"], strict=True)
            if (new := stamp(folder + name)) != old or new == UNTRUSTED
        }
        for path, new in fresh.items():
            self._open(path)
            self._stamps[path] = new
            self._ask_again(path)

    def _open(self, path: str) -> None:
        """Take the saved answers for the folder of a path into this run, if there are any."""
        folder = path[: path.rfind("/") + 1]
        row = self._rows.pop(folder, None)
        if row is None:
            return
        names = row["names"].split("/")
        for name, stamp in zip(names, row["stamps"], strict=True):
            self._stamps[folder + name] = stamp
            self._answers[folder + name] = {}
        for question, answers in row["answers"].items():
            known = answers.items() if isinstance(answers, dict) else _flags(names, answers)
            for name, answer in known:
                self._answers[folder + name][question] = answer

    def _ask_again(self, path: str) -> None:
        self.is_as_saved = False
        old = self._answers.pop(path)
        if self._stamps[path] == MISSING and old.keys() <= self._kept:
            del self._stamps[path]
            return
        fresh = self._answers[path] = {question: self._answer(path, question) for question in old}
        changed = {q: old[q] for q, answer in fresh.items() if answer != old[q] and q not in self._kept}
        if changed:
            self.changed[path] = changed

    def _answer(self, path: str, question: str) -> Any:
        kind, _, end = question.partition(" ")
        match kind:
            case "digest":
                return _digest_of(read_if_sane(path))
            case "kind":
                return _kind(path)
            case "real":
                return os.path.realpath(path)
            case "listing":
                return list(_listing(path))
            case "names":
                return _names(path, end)
        return self._questions[question](read_if_sane(path))

    def _stamp(self, path: str) -> int:
        return stamp_of(path, self._begin)

    def _answers_of(self, path: str) -> dict[str, Any]:
        self._open(path)
        if path not in self._answers:
            self._stamps[path] = self._stamp(path)
            self._answers[path] = {}
        return self._answers[path]

    def _known(self, path: str, question: str) -> Any:
        answers = self._answers_of(path)
        if question not in answers:
            self.is_as_saved = False
            answers[question] = self._answer(path, question)
        return answers[question]

    def read(self, path: str) -> bytes | None:
        """Return the bytes of a file, on which all results depend from now on."""
        self.shared.add(path)
        return self.read_noted(path)

    def read_noted(self, path: str) -> bytes | None:
        """Return the bytes of a file and note their digest."""
        answers = self._answers_of(path)
        data = read_if_sane(path)
        digest = _digest_of(data)
        if answers.setdefault(DIGEST, digest) != digest:
            raise TracepointError(f"{path} was changed by another program during the run")
        self.is_as_saved = False
        return data

    def ask(self, path: str, question: Question) -> Any:
        """Return the answer to a question about a file's bytes, perhaps from another run."""
        return self._known(path, question.__name__)

    def is_file(self, path: str) -> bool:
        """Return whether there is a file, or a link to one."""
        return bool(self._known(path, _KIND) == _FILE)

    def is_folder(self, path: str) -> bool:
        """Return whether there is a folder, or a link to one."""
        return bool(self._known(path, _KIND) == _FOLDER)

    def real(self, path: str) -> str:
        """Return a path without symbolic links."""
        return str(self._known(path, _REAL))

    def listing(self, folder: str) -> tuple[list[str], list[str]]:
        """Return the folders and C files of a folder, perhaps from another run."""
        folders, files = self._known(folder, _LISTING)
        return folders, files

    def names(self, folder: str, end: str) -> list[str]:
        """Return the names in a folder with this ending."""
        return list(self._known(folder, f"{_NAMES} {end}"))

    def note_found(self, folder: str, files: list[str]) -> None:
        """Keep what was found below a folder."""
        self.found[folder] = files

    def digest(self, path: str) -> str | None:
        """Return the digest of a file's bytes if it is known."""
        self._open(path)
        answer = self._answers.get(path, {}).get(DIGEST)
        return answer if isinstance(answer, str) else None

    def rows(self) -> Rows:
        """Return everything that is known, as plain data."""
        rows: Rows = {}
        for path, answers in self._answers.items():
            at = path.rfind("/") + 1
            row = rows.setdefault(path[:at], {"names": [], "stamps": [], "answers": {}})
            row["names"].append(path[at:])
            row["stamps"].append(self._stamps[path])
            for question, answer in answers.items():
                row["answers"].setdefault(question, {})[path[at:]] = answer
        for row in rows.values():
            row["answers"] = {q: _packed(row["names"], known) for q, known in row["answers"].items()}
            row["names"] = "/".join(row["names"])
        return self._rows | rows


def stamp_of(path: str, now: int) -> int:
    """Return a number that changes when a path is added, removed or changed; `now` is in nanoseconds."""
    try:
        state = os.stat(path)  # noqa: PTH116 - asked very often
    except (OSError, ValueError):
        return MISSING
    modified, changed = state.st_mtime_ns, state.st_ctime_ns
    if max(modified, changed) > now - _RECENT_NS:
        return UNTRUSTED
    return hash((modified, changed, state.st_size, state.st_ino, state.st_dev)) & _MASK or 1


def digest_of(data: bytes) -> str:
    """Return a digest of the bytes of a file."""
    import hashlib  # noqa: PLC0415 - OpenSSL: most commands need no digest

    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _digest_of(data: bytes | None) -> str | None:
    return None if data is None else digest_of(data)


def _kind(path: str) -> str:
    if os.path.isfile(path):  # noqa: PTH113
        return _FILE
    return _FOLDER if os.path.isdir(path) else ""  # noqa: PTH112


def _listing(folder: str) -> tuple[list[str], list[str]]:
    folders: list[str] = []
    files: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                elif entry.name.endswith((".c", ".h")):
                    files.append(entry.name)
    except (OSError, ValueError):
        return [], []
    return sorted(folders), sorted(files)


def _names(folder: str, end: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            if end == "/":
                return sorted(entry.name for entry in entries if entry.is_dir())
            return sorted(entry.name for entry in entries if entry.name.endswith(end))
    except (OSError, ValueError):
        return []


def _packed(names: list[str], known: Mapping[str, Any]) -> Any:
    """Return answers by name, all yes or all no as one text: there are tens of thousands of them."""
    if set(map(type, known.values())) != {bool}:
        return known
    return "".join("-" if name not in known else "1" if known[name] else "0" for name in names)


def _flags(names: list[str], text: str) -> Iterable[tuple[str, bool]]:
    return ((name, flag == "1") for name, flag in zip(names, text, strict=True) if flag != "-")
