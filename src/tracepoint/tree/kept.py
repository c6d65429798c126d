"""Files shared by successive calls: a file whose stamp has changed is read again."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracepoint.source.closure import names_in
from tracepoint.source.text import SourceFile, decode
from tracepoint.tree.disk import MISSING, UNTRUSTED, Disk, stamp_of
from tracepoint.tree.opening import read_if_sane

if TYPE_CHECKING:
    from tracepoint.source.closure import FileNames
    from tracepoint.tree.disk import Question

#: The trace headers of a kernel tree are read with 1,200 files around them, of 13 million characters.
MAX_KEPT_CHARS = 1 << 24
#: Short answers about this many files are kept: a tree has 30,000 C files, a few thousand of which are
#: queried.
MAX_ANSWERS = 1 << 15


@dataclass(slots=True)
class _Kept:
    """A file, its stamp when it was read, and the names in it once they were asked for."""

    stamp: int
    file: SourceFile
    names: FileNames | None = None


class KeptFiles:
    """The most recently read files, up to `most` characters in total; any thread may use it.

    Every question is answered from what is on disk now: a file that was changed, or so recently that its
    stamp may be that of another change too, is read again.
    """

    def __init__(self, most: int = MAX_KEPT_CHARS) -> None:
        self._most = most
        self._n_chars = 0
        self._files: dict[str, _Kept] = {}
        self._lock = threading.Lock()

    def read(self, path: str) -> SourceFile | None:
        """Return the file at a path, None if it does not exist or is not a regular file of a sane size."""
        stamp = stamp_of(path, time.time_ns())
        if stamp == MISSING:
            return None
        with self._lock:
            kept = self._take(path)
            if kept is not None and kept.stamp == stamp != UNTRUSTED:
                self._put(path, kept)
                return kept.file
        data = read_if_sane(path)
        if data is None:
            return None
        file = SourceFile(path, decode(data))
        if stamp != UNTRUSTED:
            with self._lock:
                self._take(path)
                self._put(path, _Kept(stamp, file))
        return file

    def names(self, file: SourceFile) -> FileNames:
        """Return what a file includes and the names in it."""
        kept = self._files.get(file.path)
        if kept is None or kept.file is not file:
            return names_in(file)
        if kept.names is None:
            kept.names = names_in(file)
        return kept.names

    def _take(self, path: str) -> _Kept | None:
        kept = self._files.pop(path, None)
        if kept is not None:
            self._n_chars -= len(kept.file.text)
        return kept

    def _put(self, path: str, kept: _Kept) -> None:
        """Keep a file as the newest; the least recently used ones are dropped when there is no room."""
        self._files[path] = kept
        self._n_chars += len(kept.file.text)
        while self._n_chars > self._most:
            self._take(next(iter(self._files)))


class KeptAnswers(Disk):
    """The disk as it is now; a question about a file's bytes is asked again when its stamp has changed."""

    def __init__(self, most: int = MAX_ANSWERS) -> None:
        self._most = most
        self._answers: dict[tuple[str, Question], tuple[int, Any]] = {}

    def ask(self, path: str, question: Question) -> Any:
        """Return the answer to a question about a file's bytes."""
        stamp = stamp_of(path, time.time_ns())
        known = self._answers.get((path, question))
        if known is not None and known[0] == stamp != UNTRUSTED:
            return known[1]
        answer = super().ask(path, question)
        if stamp != UNTRUSTED:
            if len(self._answers) >= self._most:
                self._answers.clear()
            self._answers[path, question] = stamp, answer
        return answer
