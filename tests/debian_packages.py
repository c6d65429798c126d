"""Debian packages that tests use without installing them, unpacked in the cache."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.lab.kernels import packages
from tracepoint.tree.cache import cache_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

_SECONDS = 900


def keep(made: Path, folder: Path) -> None:
    """Give a folder its place in the cache, where another process may have been first."""
    try:
        made.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise


def unpack(names: Sequence[str], label: str, apt: Sequence[str] = ()) -> Path:
    """Return packages unpacked in one folder, by the version of the first; `apt` are options of apt.

    Raises LabError when apt cannot give them.
    """
    version = packages.newest_version(names[0], apt)
    folder = cache_folder() / f"{label}-{version}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            packages.run_tool(["apt-get", *apt, "download", *names], _SECONDS, Path(scratch))
            tree = Path(scratch) / "tree"
            for deb in Path(scratch).glob("*.deb"):
                packages.run_tool(["dpkg-deb", "-x", str(deb), str(tree)], _SECONDS)
            keep(tree, folder)
    return folder
