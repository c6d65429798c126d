"""What `tracepoint check` keeps between runs: results, and everything they depend on.

One file holds the results of one command line in one folder: those of every header, and
a stamp and the contents of each file and folder that was read. The file is not trusted: it is JSON with
checksums, it must belong to our own user, and anything that does not fit is ignored.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tracepoint
from tracepoint.check.saved import from_row, to_row
from tracepoint.diagnostics import Diagnostic
from tracepoint.named import NamedTuple
from tracepoint.tree.cache import cache_folder, oldest_first
from tracepoint.tree.creators import creates, creating_files, included, included_after
from tracepoint.tree.disk import DIGEST, DISK, Disk, WatchedDisk
from tracepoint.tree.makefiles import include_words, macro_words
from tracepoint.tree.scan import declares
from tracepoint.tree.tracing_macros import assign_str_arity, has_tp_suffix
from tracepoint.tree.writing import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tracepoint.check.checked import Checked

_FORMAT = "tracepoint check cache 1"
_MAX_BYTES = 1 << 28
#: The number of command lines that are remembered; the least recently used one goes first.
_MAX_FILES = 100
_KEPT = (creates, declares)
_QUESTIONS = (*_KEPT, included, included_after, include_words, macro_words, assign_str_arity, has_tp_suffix)
_ERRORS = (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError)


class FoundHeader(NamedTuple):
    """What is known about a header without its text: whether it is one, and the digest of its bytes."""

    is_trace_header: bool
    digest: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One header: the result of checking it, and the files that the result depends on."""

    checked: Checked
    header: FoundHeader
    files: frozenset[str]
    strings: tuple[str, ...] = ()
    callers: dict[str, bool] = field(default_factory=dict)
    """What the index of the tree said about the events in `strings`."""


@dataclass(frozen=True, slots=True)
class Results:
    """Everything a run found: headers by path, and findings."""

    headers: dict[str, FoundHeader]
    findings: list[Diagnostic]


class CheckCache:
    """What an earlier run with the same key kept; `file` is None when nothing is to be kept."""

    def __init__(self, file: Path | None, key: dict[str, Any]) -> None:
        self._file = file
        self._key = key
        self._lines: list[bytes] = []
        self._head: dict[str, Any] = {}
        self.disk: Disk = DISK
        if file is not None:
            try:
                self._open(file)
            except _ERRORS:
                self._forget()

    @property
    def is_on(self) -> bool:
        """Whether anything is kept."""
        return self._file is not None

    def _open(self, file: Path) -> None:
        self._lines = _read_lines(file)
        self._head = json.loads(self._lines[0]) if self._lines else {}
        if self._head.get("key") != self._key:
            self._forget()
            return
        disk = self.disk = WatchedDisk(_QUESTIONS, _KEPT, self._head["rows"])
        disk.shared.update(self._head["shared"])
        disk.found.update(self._head["found"])
        if not disk.is_as_saved and any(creating_files(f, disk) != files for f, files in disk.found.items()):
            self._forget()

    def _forget(self) -> None:
        self._lines, self._head = [], {}
        self.disk = WatchedDisk(_QUESTIONS, _KEPT)

    def paths(self) -> list[Path] | None:
        """Return the headers that the command line named, if no file was touched since."""
        if not (isinstance(self.disk, WatchedDisk) and self.disk.is_as_saved and self._head):
            return None
        return [Path(path) for path in self._head["paths"]]

    def results(self, paths: Iterable[Path], identity: Callable[[str], str]) -> Results | None:
        """Return what the earlier run found, or None when the result may have changed.

        `identity` is that of the saved index of a tree.
        """
        if not self._head or not isinstance(self.disk, WatchedDisk) or self.disk.changed:
            return None
        if [str(path) for path in paths] != self._head["paths"]:
            return None
        try:
            if any(identity(root) != known for root, known in self._head["index"].items()):
                return None
            data = json.loads(self._lines[1])
            headers = {path: FoundHeader(*found) for path, found in data["headers"].items()}
            found = Results(headers, [from_row(Diagnostic, row) for row in data["findings"]])
        except _ERRORS:
            return None
        if not self.disk.is_as_saved:
            # The files were touched, not changed: with new stamps they need not be read next time.
            self._write({**self._head, "rows": self.disk.rows()}, *self._lines[1:])
        return found

    def entry(self, path: str) -> Entry | None:
        """Return what an earlier run kept of a header, or None when a file that it depends on has changed."""
        return self._earlier.get(path)

    @cached_property
    def _earlier(self) -> dict[str, Entry]:
        if not self._head or not isinstance(self.disk, WatchedDisk):
            return {}
        try:
            return self._unpack(json.loads(self._lines[2]), self.disk)
        except _ERRORS:
            return {}

    def _unpack(self, data: dict[str, Any], disk: WatchedDisk) -> dict[str, Entry]:
        from tracepoint.check.checked import Checked  # noqa: PLC0415 - not needed when nothing has changed

        files: list[str] = data["files"]
        stale = set()
        for path, old in disk.changed.items():
            if path in disk.shared or old.keys() != {DIGEST} or old[DIGEST] is None:
                return {}
            stale.add(path)
        entries = {}
        for path, (deps, row, header, strings, callers) in data["entries"].items():
            own = _members(files, deps)
            if not own & stale:
                checked = from_row(Checked, row)
                entries[path] = Entry(checked, FoundHeader(*header), own, tuple(strings), callers)
        return entries

    def save(
        self, paths: Iterable[Path], entries: dict[str, Entry], results: Results, index: dict[str, str]
    ) -> None:
        """Keep the results of a run and of each header; if that is impossible, nothing is kept."""
        disk = self.disk
        if not isinstance(disk, WatchedDisk):
            return
        files = sorted(set().union(*(entry.files for entry in entries.values())))
        numbers = {name: number for number, name in enumerate(files)}
        rows = {
            path: (_bits(numbers, e.files), to_row(e.checked), e.header, e.strings, e.callers)
            for path, e in entries.items()
        }
        head = {
            "key": self._key,
            "rows": disk.rows(),
            "shared": sorted(disk.shared),
            "found": disk.found,
            "paths": [str(path) for path in paths],
            "index": index,
        }
        findings = [to_row(finding) for finding in results.findings]
        whole = _line({"headers": results.headers, "findings": findings})
        self._write(head, whole, _line({"files": files, "entries": rows}))

    def _write(self, head: dict[str, Any], *lines: bytes) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                _write_lines(self._file, [_line(head), *lines])


def open_cache(words: Sequence[str], settings: Sequence[object], *, is_wanted: bool) -> CheckCache:
    """Open the kept results of `tracepoint check WORDS` with these settings in this folder."""
    key = {
        "version": tracepoint.__version__,
        "code": _code_stamp(),
        "python": sys.version,
        "folder": os.getcwd(),  # noqa: PTH109 - as text
        "words": list(words),
        "settings": repr(settings),
    }
    try:
        folder = cache_folder() / "checks"
    except RuntimeError:  # the user's home is not known
        is_wanted = False
    if not is_wanted:
        return CheckCache(None, key)
    named = json.dumps([key[name] for name in ("folder", "words", "settings")])
    digest = hashlib.blake2b(named.encode(), digest_size=12).hexdigest()
    return CheckCache(folder / f"{digest}.json", key)


def _code_stamp() -> str:
    """Return a value that changes with our own code: an editable install keeps its version."""
    digest = hashlib.blake2b(digest_size=16)
    waiting = [str(Path(tracepoint.__file__).parent)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.is_dir():
                    waiting += [entry.path] if entry.name != "__pycache__" else []
                elif entry.name.endswith((".py", ".so")):
                    state = entry.stat()
                    digest.update(f"{entry.path} {state.st_size} {state.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _read_lines(file: Path) -> list[bytes]:
    """Return the lines of a file that is ours and complete, no lines for any other."""
    try:
        with file.open("rb") as stream:
            state = os.fstat(stream.fileno())
            if state.st_uid != os.geteuid() or state.st_mode & 0o022 or state.st_size > _MAX_BYTES:
                return []
            first, *lines = stream.read(_MAX_BYTES).splitlines()
    except (OSError, ValueError):
        return []
    return lines if first == _first_line(lines) else []


def _first_line(lines: Sequence[bytes]) -> bytes:
    digests = (hashlib.blake2b(line, digest_size=16).hexdigest() for line in lines)
    return " ".join((_FORMAT, *digests)).encode()


def _line(data: object) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode()


def _write_lines(file: Path, lines: Sequence[bytes]) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(file, [b"\n".join((_first_line(lines), *lines))])
    for old in oldest_first(file.parent.glob("*.json"))[:-_MAX_FILES]:
        old.unlink(missing_ok=True)


def _bits(numbers: dict[str, int], names: Iterable[str]) -> str:
    """Return a set as one number: headers include thousands of files, mostly the same ones."""
    bits = bytearray(len(numbers) // 8 + 1)
    for name in names:
        number = numbers[name]
        bits[number >> 3] |= 1 << (number & 7)
    return bits.hex()


def _members(names: Sequence[str], bits: str) -> frozenset[str]:
    data = bytes.fromhex(bits)
    return frozenset(name for number, name in enumerate(names) if data[number >> 3] >> (number & 7) & 1)
