"""Where a recording may go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.errors import TracepointError
from tracepoint.tracefile.write import check_tracedat_name

if TYPE_CHECKING:
    from pathlib import Path


def check_target(target: Path, *, replace: bool) -> None:
    """Raise TracepointError where no recording may be written."""
    check_tracedat_name(target)
    if target.is_dir():
        raise TracepointError(f"{target} is a folder; nothing was saved")
    if not replace and target.exists():
        raise TracepointError(f"{target} is there already; nothing was saved (replace=True, or --force)")
