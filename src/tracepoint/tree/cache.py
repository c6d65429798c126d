"""Where fetched and generated files are kept."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return the folder for everything that can be fetched or generated again (XDG_CACHE_HOME/tracepoint)."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "tracepoint"
