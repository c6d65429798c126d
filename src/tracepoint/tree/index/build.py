"""The index of a kernel source tree: built in parallel, and brought up to date file by file.

The index is plain data (dicts, lists, strings, numbers), so that it can be passed between processes
and saved; `query` makes objects of it.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Self, TypeVar

from tracepoint.errors import TreeError
from tracepoint.source.text import decode
from tracepoint.tree.callsites.calls import read_facts
from tracepoint.tree.callsites.macros import HiddenCalls, Hider, find_hiders
from tracepoint.tree.callsites.pasted import find_pastes, fired_by_pastes
from tracepoint.tree.callsites.rust import find_rust_sites
from tracepoint.tree.callsites.text import Define
from tracepoint.tree.creators import created_headers
from tracepoint.tree.headers import paused_collector
from tracepoint.tree.index.headers import HeaderIndexer
from tracepoint.tree.index.rows import EventRow, FileRow, TracepointRow
from tracepoint.tree.index.scan import (
    Holds,
    fingerprint,
    is_kernel_tree,
    list_files,
    look_at,
    read_bytes,
)
from tracepoint.tree.index.store import IndexData
from tracepoint.tree.index.syscalls import COPIES, TABLE, read_copied_arguments, read_syscalls
from tracepoint.tree.makefiles import TREE_MARK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tracepoint.tree.index.headers import Record

_Row = TypeVar("_Row")
#: Fewer files than this are read in this process: starting others takes longer.
_WORTH_PROCESSES = 200
_PIECES_PER_JOB = 8
#: More cores gain nothing: the rest runs in one process.
_MAX_JOBS = 8


@dataclass(slots=True)
class Work:
    """The work of building an index: files listed, searched, headers and C files read."""

    n_files: int = 0
    n_searched: int = 0
    n_headers: int = 0
    n_sources: int = 0

    def __str__(self) -> str:
        return (
            f"{self.n_files} files: {self.n_searched} searched, {self.n_headers} headers and "
            f"{self.n_sources} C files read"
        )


def build_index(
    root: str,
    old: IndexData | None = None,
    *,
    jobs: int = 0,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> tuple[IndexData, Work]:
    """Index the tree at `root`, reading only what changed since `old`.

    `jobs` is the number of processes, by default one a core; `on_progress` is called with stage,
    files done, files in all.  Raises TreeError for a folder that is not a kernel tree.
    """
    if not is_kernel_tree(root):
        raise TreeError(root, f"not a kernel source tree ({TREE_MARK} is missing)")
    _indexer.cache_clear()  # it caches the texts of files, which may have changed
    with paused_collector(), Builder(root, old, jobs, on_progress) as builder:
        return builder.run(), builder.work


class Builder:
    """Does the steps of building an index: `search` the files, read the `headers`, `index` what they call."""

    def __init__(
        self,
        root: str,
        old: IndexData | None = None,
        jobs: int = 0,
        on_progress: Callable[[str, int, int], None] | None = None,
    ) -> None:
        self.root = root
        self.old = old or IndexData(root, "source", {}, {})
        self.jobs = min(jobs or os.cpu_count() or 1, _MAX_JOBS)
        self.on_progress = on_progress
        self.work = Work()
        self.files = list_files(root)
        self._pool: ProcessPoolExecutor | None = None
        self._old_files = {p: FileRow(*row) for p, row in self.old.state.get("files", {}).items()}
        self.changed = {p for p, stat in self.files.items() if self._old_files.get(p, ())[:2] != stat}
        self.gone = set(self._old_files) - set(self.files)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def run(self) -> IndexData:
        """Do all steps and return the index."""
        holds = self.search()
        index = self.index(holds, self.headers(holds, holding(holds, Holds.CREATES)), holds)
        index.head["creators"] = self.creators(holds)
        index.state["files"] = self.searched(holds)
        return index

    def index(
        self, chosen: Mapping[str, int], headers: Mapping[str, Record], holds: Mapping[str, int]
    ) -> IndexData:
        """Index the chosen files, some or all of the tree, with their headers read.

        `holds` are all files, which may use macros of the chosen ones. The result does not include which
        file creates what, nor the state of the files.
        """
        names = sorted(_call_names(headers))
        facts = self._facts(chosen, names)
        head = {
            "headers": {path: record["head"] for path, record in headers.items()},
            "sites": {p: fact["sites"] for p, fact in facts.items() if fact["sites"]}
            | self._rust_sites(chosen, names),
            "hidden": self._hidden(holds, facts, names),
            "pasted": self._pasted(chosen, headers, names),
            "exports": {path: fact["exports"] for path, fact in facts.items() if fact["exports"]},
            "creators": {},
            "syscalls": self._syscalls(chosen),
            "copied": read_copied_arguments(_text(self.root, COPIES), _text(self.root, TABLE)),
            "unreadable": sorted(p for p, flags in chosen.items() if flags & Holds.UNREADABLE),
        }
        state = {
            "files": {},
            "deps": {path: record["deps"] for path, record in headers.items()},
            "words": {path: fact["words"] for path, fact in facts.items()},
            "defines": {path: fact["defines"] for path, fact in facts.items() if fact["defines"]},
            "names": names,
        }
        more = {path: record["more"] for path, record in headers.items()}
        return IndexData(self.root, "source", head, more, state, fingerprint(self.files))

    def searched(self, holds: Mapping[str, int]) -> dict[str, list[int]]:
        """Return size, time and contents of every file, as stored."""
        return {path: [*FileRow(*stat, int(holds.get(path, 0)))] for path, stat in self.files.items()}

    # The steps.

    def search(self) -> dict[str, int]:
        """Return the contents of the files that have any."""
        self.work.n_files = len(self.files)
        holds = {
            path: row.holds
            for path, row in self._old_files.items()
            if path in self.files and path not in self.changed
        }
        self.work.n_searched = len(self.changed)
        holds.update(self._each("searching", look_at, self.changed))
        return {path: flags for path, flags in holds.items() if flags}

    def headers(self, holds: Mapping[str, int], creating: Sequence[str]) -> dict[str, Record]:
        """Read the trace headers; `creating` are all files of the tree that create tracepoints."""
        wanted = holding(holds, Holds.DECLARATIONS)
        old = self._old_headers(creating)
        asked = [path for path in wanted if path not in old]
        self.work.n_headers += len(asked)
        read = dict(self._each("reading headers", _read_headers, asked, tuple(creating)))
        return {path: read[path] if path in read else old[path] for path in wanted}

    def _old_headers(self, creating: Sequence[str]) -> dict[str, Record]:
        """The records that are still valid: neither the header nor its includes have changed."""
        state, touched = self.old.state, self.changed | self.gone
        came_or_went = {p for p in touched if p in self.gone or p not in self._old_files}
        was_creating = sorted(p for p, row in self._old_files.items() if row.holds & Holds.CREATES)
        if any(p.endswith(".h") for p in came_or_went) or was_creating != list(creating):
            return {}
        return {
            path: {"head": head, "more": self.old.more[path], "deps": state["deps"][path]}
            for path, head in self.old.head.get("headers", {}).items()
            if path not in touched and touched.isdisjoint(state["deps"][path])
        }

    def _facts(self, holds: Mapping[str, int], names: Sequence[str]) -> dict[str, dict[str, Any]]:
        old = self._old_facts(names)
        wanted = holding(holds, Holds.TRACE)
        asked = [path for path in wanted if path not in old]
        self.work.n_sources += len(asked)
        read = dict(self._each("finding call sites", _read_sources, asked, tuple(names)))
        return {path: read[path] if path in read else old[path] for path in wanted}

    def _old_facts(self, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        state, head = self.old.state, self.old.head
        different = set(state.get("names", ())) ^ set(names)
        return {
            path: {
                "words": words,
                "sites": head["sites"].get(path, []),
                "exports": head["exports"].get(path, []),
                "defines": state["defines"].get(path, []),
            }
            for path, words in state.get("words", {}).items()
            if path not in self.changed and not any(_mentions(word, different) for word in words)
        }

    def _rust_sites(self, holds: Mapping[str, int], names: Sequence[str]) -> dict[str, Any]:
        """The calls in Rust files; functions of one are called in others, so either all are read or none."""
        touched = any(path.endswith(".rs") for path in self.changed | self.gone)
        if not touched and names == self.old.state.get("names"):
            return {p: rows for p, rows in self.old.head["sites"].items() if p.endswith(".rs")}
        texts = {path: _text(self.root, path) for path in holding(holds, Holds.RUST)}
        found = find_rust_sites(texts, set(names))
        return {path: [list(site) for site in sites] for path, sites in found.items()}

    def _hidden(
        self, holds: Mapping[str, int], facts: Mapping[str, dict[str, Any]], names: Sequence[str]
    ) -> dict[str, Any]:
        defines = {path: fact["defines"] for path, fact in facts.items() if fact["defines"]}
        hiders = _hiders(defines)
        is_same = names == self.old.state.get("names") and hiders == _hiders(
            self.old.state.get("defines", {})
        )
        if not hiders:
            return {}
        hidden = HiddenCalls(hiders, names)
        flags = {path: holds.get(path, 0) for path in (self.changed if is_same else self.files)}
        asked = [
            path
            for path, flag in flags.items()
            if not (flag & Holds.NO_CODE or path.endswith(".rs"))
            and hidden.may_hide(path, has_trace=bool(flag & Holds.TRACE))
        ]
        kept = {p: rows for p, rows in self.old.head["hidden"].items() if p in self.files} if is_same else {}
        read = dict(self._each("looking through macros", _read_hidden, asked, tuple(hiders), tuple(names)))
        kept = {path: rows for path, rows in kept.items() if path not in self.changed}
        return {**kept, **read}

    def _pasted(
        self, holds: Mapping[str, int], headers: Mapping[str, Record], names: Sequence[str]
    ) -> dict[str, list[list[Any]]]:
        """The calls whose name a macro pastes together; searched each time, as there are hardly any."""
        pasting = holding(holds, Holds.PASTES)
        pastes = [paste for path in pasting for paste in find_pastes(path, _text(self.root, path))]
        prefixes = tuple({paste.prefix for paste in pastes})
        # Their includers are searched for near the headers that declare the events that they may fire.
        folders = {
            f"{path.rpartition('/')[0]}/"
            for path, record in headers.items()
            if prefixes and any(EventRow(*row).name.startswith(prefixes) for row in record["head"]["events"])
        }
        sources = (
            [p for p in self.files if p.endswith(".c") and p.startswith(tuple(folders))] if folders else []
        )
        read = cache(lambda path: _text(self.root, path) if path in self.files else "")
        found = fired_by_pastes(pastes, sources, read, set(names))
        return {path: [list(site) for site in sites] for path, sites in found.items()}

    def creators(self, holds: Mapping[str, int]) -> dict[str, list[str]]:
        """Return the trace headers whose tracepoints each C file creates."""
        headers = set(holding(holds, Holds.DECLARATIONS))
        old = self.old.head.get("creators", {})
        found = {}
        for path in holding(holds, Holds.CREATES):
            is_old = path in old and path not in self.changed and headers.issuperset(old[path])
            made = old[path] if is_old else created_headers(self.root, path, headers)
            found[path] = made
        return found

    def _syscalls(self, holds: Mapping[str, int]) -> dict[str, Any]:
        old = self.old.head.get("syscalls", {})
        found = {}
        for path in holding(holds, Holds.SYSCALLS):
            if path in old and path not in self.changed:
                found[path] = old[path]
            else:
                found[path] = [list(row) for row in read_syscalls(_text(self.root, path))]
        return {path: rows for path, rows in found.items() if rows}

    # Doing it in parallel.

    def _each(
        self, stage: str, work: Callable[..., list[_Row]], paths: Iterable[str], *extra: object
    ) -> Iterator[_Row]:
        """Give every path to `work(root, paths, *extra)` and yield the rows it returns."""
        todo = sorted(paths, key=lambda p: self.files[p], reverse=True)
        if len(todo) < _WORTH_PROCESSES or self.jobs == 1:
            return iter(work(self.root, sorted(todo), *extra) if todo else [])
        n_pieces = self.jobs * _PIECES_PER_JOB
        # Each gets files of all sizes; the kernel finds files of one folder faster in sequence.
        pieces = [sorted(todo[i::n_pieces]) for i in range(n_pieces)]
        pool = self._processes()
        running = [pool.submit(work, self.root, piece, *extra) for piece in pieces]
        return chain.from_iterable(self._watched(stage, [f.result for f in running], len(todo)))

    def _watched(
        self, stage: str, results: Sequence[Callable[[], list[_Row]]], total: int
    ) -> Iterator[list[_Row]]:
        for number, result in enumerate(results, 1):
            yield result()
            if self.on_progress is not None:
                self.on_progress(stage, total * number // len(results), total)

    def _processes(self) -> ProcessPoolExecutor:
        if self._pool is None:
            # A fork is ten times faster, but must not copy the locks of other threads.
            can_fork = "fork" in multiprocessing.get_all_start_methods() and threading.active_count() == 1
            context = multiprocessing.get_context("fork" if can_fork else "spawn")
            self._pool = ProcessPoolExecutor(self.jobs, mp_context=context, initializer=_start_process)
        return self._pool


def _start_process() -> None:
    # The parent handles interrupts; the process is too short-lived to collect garbage.
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process when the one that started it has ended, also by SIGKILL: nothing waits for it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def holding(holds: Mapping[str, int], flag: Holds) -> list[str]:
    """Return the files that contain something, sorted."""
    return sorted(path for path, flags in holds.items() if flags & flag)


def _text(root: str, path: str) -> str:
    return decode(read_bytes(root, path) or b"")


def _call_names(headers: Mapping[str, Record]) -> set[str]:
    names = {EventRow(*row).name for record in headers.values() for row in record["head"]["events"]}
    names.update(
        TracepointRow(*row).call_name for record in headers.values() for row in record["head"]["tracepoints"]
    )
    return names


def _mentions(word: str, names: set[str]) -> bool:
    """Return whether a word may mean one of some names: prefix and suffix are not separated exactly."""
    if not names:
        return False
    rest = word.partition("trace_")[2] or word
    forms = (rest, rest.removesuffix("_enabled"), rest.removesuffix("_rcuidle"), rest.removeprefix("call__"))
    return any(form in names for form in (word, *forms, rest.removeprefix("prio_")))


def _hiders(defines: Mapping[str, Iterable[Sequence[Any]]]) -> list[Hider]:
    return find_hiders((path, Define(*row)) for path, rows in defines.items() for row in rows)


# The work of the processes; each creates the tables once.


@lru_cache(1)
def _indexer(root: str, creating: tuple[str, ...]) -> HeaderIndexer:
    return HeaderIndexer(root, creating)


def _read_headers(root: str, paths: Sequence[str], creating: tuple[str, ...]) -> list[tuple[str, Record]]:
    indexer = _indexer(root, creating)
    return [(path, indexer.record(path)) for path in paths]


@lru_cache(1)
def _name_set(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(names)


def _read_sources(
    root: str, paths: Sequence[str], names: tuple[str, ...]
) -> list[tuple[str, dict[str, Any]]]:
    known = _name_set(names)
    found = []
    for path in paths:
        facts = read_facts(_text(root, path), known)
        rows = {key: [list(row) for row in getattr(facts, key)] for key in ("sites", "defines", "exports")}
        found.append((path, {"words": facts.words, **rows}))
    return found


@lru_cache(1)
def _hidden_calls(hiders: tuple[Hider, ...], names: tuple[str, ...]) -> HiddenCalls:
    return HiddenCalls(hiders, _name_set(names))


def _read_hidden(
    root: str, paths: Sequence[str], hiders: tuple[Hider, ...], names: tuple[str, ...]
) -> list[tuple[str, list[list[Any]]]]:
    hidden = _hidden_calls(hiders, names)
    found = []
    for path in paths:
        data = read_bytes(root, path) or b""
        if hidden.may_hold(path, data):
            rows = [list(site) for site in hidden.find(path, decode(data))]
            if rows:
                found.append((path, rows))
    return found
