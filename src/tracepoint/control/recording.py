"""Where a recording may go."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from tracepoint.errors import TracepointError
from tracepoint.tracefile.write import check_tracedat_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def check_target(target: Path, *, replace: bool) -> None:
    """Raise TracepointError where no recording may be written."""
    check_tracedat_name(target)
    if target.is_dir():
        raise TracepointError(f"{target} is a folder; nothing was saved")
    if not replace and target.exists():
        raise TracepointError(f"{target} is there already; nothing was saved (replace=True, or --force)")


def numbered(target: Path, *, replace: bool) -> Iterator[Path]:
    """Yield the names of several recordings: `trace.001.dat` and so on for `trace.dat`.

    Those that are there are passed over unless `replace`.
    """
    for number in count(1):
        path = target.with_name(f"{target.stem}.{number:03}{target.suffix}")
        if replace or not path.exists():
            yield path
