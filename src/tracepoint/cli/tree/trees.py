"""Kernel trees on the command line: finding and opening them, with progress and notes."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tracepoint.errors import TracepointError
from tracepoint.tree.cache import oldest_first
from tracepoint.tree.index.store import StoredIndex, StoreError, index_folder
from tracepoint.tree.loader import find_kernel_root
from tracepoint.tree.query.opening import open_searched, open_tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tracepoint.cli.output import Output, Progress
    from tracepoint.tree.query.tree import Tree


class _Stages:
    """Shows the progress of the stages in turn."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._shown: dict[str, tuple[Progress, int]] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def show(self, stage: str, done: int, total: int) -> None:
        """Show the progress of a stage; the previous one, and a finished one, is no longer shown."""
        if stage not in self._shown:
            self._stack.close()
            self._shown[stage] = (self._stack.enter_context(self._out.progress(stage, total)), 0)
        progress, before = self._shown[stage]
        progress.step(done - before)
        self._shown[stage] = (progress, done)
        if done == total:
            self._stack.close()


def open_with_progress(path: str, out: Output, *, fresh: bool = False, jobs: int = 0) -> Tree:
    """Open a tree and report what had to be read, with warnings about a rebuilt index or unreadable files."""
    with _Stages(out) as stages:
        tree = open_tree(path, fresh=fresh, jobs=jobs, on_progress=stages.show)
    _tell(tree.notes, out)
    return tree


@contextmanager
def searching(path: str, out: Output) -> Iterator[Tree]:
    """Open a tree for queries of single names, which do not create a missing index."""
    with _Stages(out) as stages:
        tree = open_searched(path, on_progress=stages.show)
        try:
            yield tree
        finally:
            _tell(tree.notes, out)


def _tell(notes: Iterable[str], out: Output) -> None:
    for note in notes:
        if "files:" in note:
            out.detail(note)
        else:
            out.warn(note)


def default_tree(out: Output) -> str:
    """Return the tree to use when none is named: that of the current folder, else the last one indexed.

    Raises TracepointError when there is neither.
    """
    here = find_kernel_root(Path.cwd())
    if here is not None:
        return str(here)
    folder = index_folder()
    indexes = list(folder.glob("*.index")) if folder.is_dir() else []
    for path in reversed(oldest_first(indexes)):
        try:
            root = StoredIndex(path).root
        except (StoreError, OSError):
            continue
        if Path(root).is_dir():
            out.detail(f"in {root}, which was indexed last")
            return root
    raise TracepointError("no kernel tree here and none indexed; name one: --tree DIR")
