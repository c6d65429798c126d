"""Where fetched and generated files are kept, and which of them are old."""

from __future__ import annotations

import contextlib
import os
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
