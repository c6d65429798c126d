"""Where a recording may go."""

from __future__ import annotations

import os
from itertools import count

from tracepoint.errors import TracepointError
from tracepoint.tracefile.write import check_tracedat_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def check_target(target: str, *, replace: bool) -> None:
    """Raise TracepointError where no recording may be written."""
    check_tracedat_name(target)
    if os.path.isdir(target or "."):
        raise TracepointError(f"{target or repr(target)} is a folder; nothing was saved")
    if not replace and os.path.exists(target):
        raise TracepointError(f"{target} is there already; nothing was saved (replace=True, or --force)")


def numbered(target: str, *, replace: bool) -> Iterator[str]:
    """Yield the names of several recordings: `trace.001.dat` and so on for `trace.dat`.

    Those that are there are passed over unless `replace`.
    """
    stem, suffix = os.path.splitext(target)
    for number in count(1):
        path = f"{stem}.{number:03}{suffix}"
        if replace or not os.path.exists(path):
            yield path
