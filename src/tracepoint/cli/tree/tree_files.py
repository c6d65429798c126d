"""Files of a kernel tree to change: read only within the tree, written all or none."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.cli.files import mode_of
from tracepoint.cli.git import uncommitted
from tracepoint.errors import PlaceError, SourceError, TreeError
from tracepoint.place.kernel import TreeFile
from tracepoint.source.text import decode, encode
from tracepoint.tree.opening import read_input
from tracepoint.tree.writing import discard, write_beside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


def tree_reader(root: Path) -> Callable[[str], TreeFile | None]:
    """Return a function that reads files of a tree by their path in it.

    A symbolic link may point to another place in the tree; one that points outside, and anything that is
    not a readable file of a sane size, raises TreeError. A missing file is None.
    """
    real_root = Path(os.path.realpath(root))

    def read(path: str) -> TreeFile | None:
        file = Path(os.path.realpath(real_root / path))
        if not file.is_relative_to(real_root):
            raise TreeError(path, "a symbolic link points outside the tree")
        try:
            state = file.stat()
            if stat.S_ISDIR(state.st_mode):
                return None
            return TreeFile(decode(read_input(file)), bool(state.st_mode & stat.S_IXUSR))
        except SourceError as error:
            raise TreeError(path, str(error).removeprefix(f"{file}: ")) from None
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise TreeError(path, f"cannot be read: {error.strerror or error}") from error

    return read


def write_files(root: Path, before: Mapping[str, str | None], after: Mapping[str, str]) -> None:
    """Replace files of a tree by new texts: all of them, or none.

    `before` are the texts that the new ones were made from, None for new files. Modes
    stay. Raises PlaceError when a file has changed since or has uncommitted changes, OSError when writing
    fails.
    """
    _check_clean(root, after)
    read = tree_reader(root)
    for path in after:
        found = read(path)
        if (None if found is None else found.text) != before[path]:
            raise PlaceError(f"{path}: has changed in the meantime; nothing was written")
    written: list[tuple[Path, Path]] = []
    done: list[Path] = []
    try:
        for path, text in after.items():
            target = Path(os.path.realpath(root / path))
            target.parent.mkdir(parents=True, exist_ok=True)
            written.append((_write_beside(target, text), target))
        for fresh, target in written:
            fresh.replace(target)
            done.append(target)
    except BaseException:
        for fresh, _ in written:
            discard(fresh)
        _put_back(root, before, done)
        raise


def _write_beside(target: Path, text: str) -> Path:
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(13, os.strerror(13), str(target))
    return write_beside(target, [encode(text)], mode_of(target))


def _put_back(root: Path, before: Mapping[str, str | None], done: Iterable[Path]) -> None:
    targets = {Path(os.path.realpath(root / path)): text for path, text in before.items()}
    for target in done:
        text = targets[target]
        with contextlib.suppress(OSError):
            if text is None:
                target.unlink()
            else:
                _write_beside(target, text).replace(target)


def _check_clean(root: Path, paths: Iterable[str]) -> None:
    """Raise PlaceError when the files have uncommitted changes."""
    if not (root / ".git").exists():
        return
    dirty = uncommitted(str(root), paths)
    if dirty:
        raise PlaceError(f"{', '.join(dirty)}: has uncommitted changes; nothing was written")
