"""Where fetched and generated files are kept, and which of them are old."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def cache_folder() -> Path:
    """Return the folder for everything that can be fetched or generated again (XDG_CACHE_HOME/tracepoint)."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "tracepoint"


def oldest_first(paths: Iterable[Path]) -> list[Path]:
    """Return files by their last change, without those that another process removes meanwhile."""
    found = []
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            found.append((path.stat().st_mtime_ns, path))
    return [path for _, path in sorted(found)]


def keep_folder(made: Path, folder: Path, mark: str) -> None:
    """Rename a complete folder to its final name, unless another process was first.

    A complete folder has the file `mark`; one with the final name and without the file is removed.  Raises
    OSError.
    """
    while not (folder / mark).exists():
        try:
            made.rename(folder)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            if not (folder / mark).exists():
                # Out of the way first: what another process puts there meanwhile is not removed.
                old = made.with_name(f"{made.name}.old")
                with contextlib.suppress(FileNotFoundError):
                    folder.rename(old)
                shutil.rmtree(old, ignore_errors=True)
