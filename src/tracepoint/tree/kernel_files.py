"""Header texts of a kernel: from a source tree, or from an installed headers package."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracepoint.errors import TracepointError
from tracepoint.source.text import decode
from tracepoint.tree.opening import read_input

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_INCLUDE = re.compile(r"^include[ \t]+(\S.*/Makefile)$", re.MULTILINE)
_HERE = "$(dir $(lastword $(MAKEFILE_LIST)))"
_MARK = "include/linux/tracepoint.h"


def find_source_root(folder: Path) -> Path:
    """Return the folder with `include/linux` of a kernel's headers.

    `folder` is a source tree or a headers package: Debian's has the files that all flavours share in
    another one, which its Makefile includes; others have a link called `source`.  Raises TracepointError when
    there are no tracing headers.
    """
    places = [folder, folder / "source"]
    makefile = folder / "Makefile"
    if makefile.is_file():
        included = _INCLUDE.findall(decode(read_input(makefile)))
        places += [(folder / name.replace(_HERE, "")).parent for name in included]
    for place in places:
        if (place / _MARK).is_file():
            return place
    raise TracepointError(f"{folder}: no kernel headers here ({_MARK} is missing)")


def read_kernel_files(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the texts of the files `names` below a kernel's header folder; without missing ones."""
    root = find_source_root(folder)
    paths = {name: root / name for name in names}
    return {name: decode(read_input(path)) for name, path in paths.items() if path.is_file()}
