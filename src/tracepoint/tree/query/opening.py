"""Opening a tree: from its saved index if that is still valid, else by indexing what changed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.errors import TreeError
from tracepoint.tree.index.scan import fingerprint, is_kernel_tree, list_files
from tracepoint.tree.index.store import (
    OtherVersionError,
    StoredIndex,
    StoreError,
    cache_path,
    index_folder,
    save_index,
)
from tracepoint.tree.query.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.tree.index.store import IndexData


def open_tree(
    path: Path | str,
    *,
    fresh: bool = False,
    jobs: int = 0,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> Tree:
    """Open a kernel tree, or something else with events, and index what changed since the last time.

    `path` is a source tree (`~` is expanded), a folder of modules or of format files, a file of
    BTF, or a single object.  `fresh` rebuilds the index; `jobs` is the number of processes, by
    default one a core; `on_progress` is called with stage, files done, files in all.  Raises TreeError for
    anything else.
    """
    root = os.path.realpath(Path(path).expanduser())
    if not os.path.exists(root):  # noqa: PTH110 - real paths of this room are strings
        raise TreeError(str(path), "no such file or folder")
    if not is_kernel_tree(root):
        from tracepoint.tree.index.other import read_other  # noqa: PLC0415 - a saved index needs none of it

        return Tree.of(read_other(root))
    notes: list[str] = []
    stored = None if fresh else _open_stored(root, notes)
    if stored is not None:
        try:
            if stored.mark == fingerprint(list_files(root)):
                return _saved_tree(stored)
            return _updated(root, stored.whole(), notes, jobs, on_progress)
        except StoreError as error:
            notes.append(f"{error}; the index was rebuilt")
    return _updated(root, None, notes, jobs, on_progress)


def open_saved(path: Path | str) -> Tree | None:
    """Open the saved index of a source tree if it exists and is still valid; nothing is indexed."""
    root = os.path.realpath(path)
    stored = _open_stored(root, [])
    if stored is None or stored.mark != fingerprint(list_files(root)):
        return None
    return _saved_tree(stored)


def open_updated(path: Path | str) -> Tree | None:
    """Open the saved index of a source tree, updated where files changed; None where nothing was indexed."""
    root = os.path.realpath(path)
    return open_tree(root) if _open_stored(root, []) is not None else None


def saved_indexes() -> list[Path]:
    """Return the files of all saved indexes."""
    folder = index_folder()
    return sorted(folder.glob("*.index")) if folder.is_dir() else []


def open_index(file: Path) -> Tree:
    """Open an index as it was saved, even where its tree has changed; raises StoreError, OSError."""
    return _saved_tree(StoredIndex(file))


def open_searched(
    path: Path | str, *, jobs: int = 0, on_progress: Callable[[str, int, int], None] | None = None
) -> Tree:
    """Open a tree for queries of single names: like `open_tree`, but a missing index is not created.

    `on_progress` may be called later, when something is asked.
    """
    root = os.path.realpath(Path(path).expanduser())
    notes: list[str] = []
    if not is_kernel_tree(root) or _open_stored(root, notes) is not None or notes:
        return open_tree(path, jobs=jobs, on_progress=on_progress)
    from tracepoint.tree.query.search import SearchedTree  # noqa: PLC0415 - a saved index needs none of it

    return SearchedTree(root, lambda old: _updated(root, old, [], jobs, on_progress), jobs, on_progress)


def _saved_tree(stored: StoredIndex) -> Tree:
    head = stored.section("head")
    return Tree(stored.root, stored.kind, lambda: head, lambda: stored.section("more"))


def saved_identity(path: Path | str) -> str:
    """Return a mark that changes with the saved index of a tree and with its files, empty without one."""
    root = os.path.realpath(path)
    try:
        state = cache_path(root).stat()
    except OSError:
        return ""
    return f"{state.st_ino}:{state.st_size}:{state.st_mtime_ns}:{fingerprint(list_files(root))}"


def _open_stored(root: str, notes: list[str]) -> StoredIndex | None:
    try:
        stored = StoredIndex(cache_path(root))
    except (FileNotFoundError, OtherVersionError):
        # After an upgrade every saved index is old, which is as normal as a missing one.
        return None
    except (StoreError, OSError) as error:
        notes.append(f"{error}; the index was rebuilt")
        return None
    if stored.root != root or stored.kind != "source":
        notes.append(f"{stored.path}: the index of another tree; it was rebuilt")
        return None
    return stored


def _updated(
    root: str,
    old: IndexData | None,
    notes: list[str],
    jobs: int,
    on_progress: Callable[[str, int, int], None] | None,
) -> Tree:
    from tracepoint.tree.index.build import build_index  # noqa: PLC0415 - a saved index needs none of it

    data, work = build_index(root, old, jobs=jobs, on_progress=on_progress)
    notes.append(str(work))
    notes.extend(f"{name}: cannot be read, left out" for name in data.head["unreadable"])
    try:
        save_index(data, cache_path(root))
    except OSError as error:
        notes.append(f"the index could not be saved: {error}")
    return Tree.of(data, notes)
