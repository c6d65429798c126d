"""Where a kernel's source comes from: a folder of the user's, or Debian's linux-source package."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tracepoint.errors import LabError
from tracepoint.lab.build.sync import check_tree
from tracepoint.lab.kernels.packages import download, newest_version, run_tool
from tracepoint.source.text import decode
from tracepoint.tree.cache import cache_folder
from tracepoint.tree.opening import read_input

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_SERIES = re.compile(r"\d+\.\d+")
_ROOM = 3 << 30
_SECONDS = 600


def find_source(
    kernel: str | Path, say: Callable[[str], None] = lambda _words: None
) -> tuple[str, Path, bool]:
    """Return a name for a kernel's builds, its source tree, and whether the tree may change.

    `kernel` is a series such as 6.12, whose linux-source package is downloaded and unpacked when
    the cache has no such tree, or a folder.  `say` is called with what is fetched.  Raises LabError for
    a folder that is not a kernel tree, and when apt or the disk fails.
    """
    if isinstance(kernel, str) and _SERIES.fullmatch(kernel):
        tree = fetch_source(kernel, say)
        check_tree(tree)
        return kernel, tree.resolve(), False
    folder = Path(kernel)
    check_tree(folder)
    name = re.sub(r"[^A-Za-z0-9._-]", "-", folder.resolve().name) or "tree"
    return name, folder.resolve(), True


def fetch_source(
    series: str,
    say: Callable[[str], None] = lambda _words: None,
    apt: Sequence[str] = (),
    version: str = "",
) -> Path:
    """Return the unpacked source of a series from the cache, fetching Debian's package if it is missing.

    With a package's `version` the source is that of its point release: a tree of another one is replaced.
    `apt` are options for apt (`tracepoint.lab.kernels.suites`).  Raises LabError when apt has none,
    or less than 3 GB are free.
    """
    package = f"linux-source-{series}"
    tree = cache_folder() / "sources" / package
    if tree.is_dir() and (not version or tree_version(tree) == point_release(version)):
        return tree
    tree.parent.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(tree.parent).free < _ROOM:
        raise LabError(f"less than 3 GB free in {tree.parent}: no room to unpack {package}")
    version = version or newest_version(package, apt)
    with TemporaryDirectory(prefix="unpack-", dir=tree.parent) as scratch:
        folder = Path(scratch)
        say(f"fetching {package} {version} (about 150 MB) and unpacking it")
        run_tool(["dpkg-deb", "-x", str(download(package, version, folder, apt)), scratch], _SECONDS)
        archives = sorted((folder / "usr/src").glob("linux-source-*.tar.*"))
        if not archives:
            raise LabError(f"{package} {version} holds no usr/src/linux-source-*.tar.*")
        run_tool(["tar", "-xf", str(archives[0]), "-C", scratch, "--exclude=*/Documentation/*"], _SECONDS)
        if tree.is_dir():
            tree.rename(folder / "replaced")
        (folder / package).rename(tree)
    return tree


def point_release(version: str) -> str:
    """Return the point release that a Debian kernel package's version names.

    >>> point_release("6.1.192-2"), point_release("7.2-1~exp1")
    ('6.1.192', '7.2.0')
    """
    found = re.match(r"(\d+\.\d+)(\.\d+)?", version)
    if found is None:
        raise LabError(f"{version!r} is not the version of a kernel package")
    return found[1] + (found[2] or ".0")


def tree_version(source: Path) -> str:
    """Return the version in a tree's Makefile, such as 6.12.5; LabError when it has none."""
    text = decode(read_input(source / "Makefile"))
    found = dict(re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL) *= *(\d+)$", text, re.MULTILINE))
    if len(found) != 3:
        raise LabError(f"{source}: not a kernel tree: its Makefile says no VERSION, PATCHLEVEL, SUBLEVEL")
    return f"{found['VERSION']}.{found['PATCHLEVEL']}.{found['SUBLEVEL']}"
