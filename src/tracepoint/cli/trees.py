"""Kernel trees on the command line: which one is meant, opened with progress and notes."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.errors import TracepointError
from tracepoint.tree.loader import find_kernel_root
from tracepoint.tree.query_open import open_tree
from tracepoint.tree.store import StoredIndex, StoreError, cache_folder

if TYPE_CHECKING:
    from tracepoint.cli.output import Output, Progress
    from tracepoint.tree.query import Tree


def open_with_progress(path: str, out: Output, *, fresh: bool = False, jobs: int = 0) -> Tree:
    """Open a tree, telling what had to be read; a rebuilt index or unreadable files are warned of."""
    with ExitStack() as stack:
        shown: dict[str, tuple[Progress, int]] = {}

        def on_progress(stage: str, done: int, total: int) -> None:
            if stage not in shown:
                stack.pop_all().close()
                shown[stage] = (stack.enter_context(out.progress(stage, total)), 0)
            progress, before = shown[stage]
            progress.step(done - before)
            shown[stage] = (progress, done)

        tree = open_tree(path, fresh=fresh, jobs=jobs, on_progress=on_progress)
    for note in tree.notes:
        if "files:" in note:
            out.detail(note)
        else:
            out.warn(note)
    return tree


def default_tree(out: Output) -> str:
    """Return the tree to ask when none is named: that of the current folder, else the last one indexed.

    Raises TracepointError when there is neither.
    """
    here = find_kernel_root(Path.cwd())
    if here is not None:
        return str(here)
    folder = cache_folder()
    indexes = list(folder.glob("*.index")) if folder.is_dir() else []
    for path in sorted(indexes, key=lambda p: p.stat().st_mtime, reverse=True):
        try:
            root = StoredIndex(path).root
        except (StoreError, OSError):
            continue
        if Path(root).is_dir():
            out.detail(f"in {root}, which was indexed last")
            return root
    raise TracepointError("no kernel tree here and none indexed; name one: --tree DIR")
