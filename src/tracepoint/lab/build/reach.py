"""The folders of a kernel build that a change cannot affect, so that make need not enter them.

make enters every folder and reads the dependencies of each object there, which is more work than compiling
one file. The `.NAME.cmd` files that make keeps have the same information, and all of them are read in a
fraction of that time.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

# make leaves one of them in each folder that it enters for objects.
_LEFT = frozenset({"built-in.a", "modules.order"})
# With this option, in kernels such as 6.1, what an object exports depends on the modules of all folders.
_EXPORTS = "include/config/TRIM_UNUSED_KSYMS"
_KERNEL = b" -D__KERNEL__ "
_PLAIN = re.compile(r"[A-Za-z0-9_./+-]+")


def unreached_folders(objects: Path, source: Path, changed: Collection[str]) -> list[str]:
    """Return the topmost folders of `objects` in which nothing depends on the `changed` files of `source`.

    All objects must be those of a make that ended well, with the same configuration.  Empty when a change may
    affect more than objects of the kernel: a file that is new, removed, or named by no object, such as a
    Makefile; one that a program of the build or a generated file depends on.
    """
    unseen = set(changed)
    if not all((source / path).is_file() for path in unseen) or (objects / _EXPORTS).exists():
        return []
    # By name alone: a path may contain `..`.
    mentioned = _any_of([f"/{PurePosixPath(path).name}" for path in unseen])
    exact = {path: _any_of([f"{source.name}/{path}"]) for path in unseen}
    entered: set[str] = set()
    reached = {str(PurePosixPath(path).parent) for path in unseen}
    for folder, _, names in os.walk(objects):
        inside = os.path.relpath(folder, objects)
        if not _LEFT.isdisjoint(names):
            entered.add(inside)
        for name in names if changed else ():
            if not (name.startswith(".") and name.endswith(".cmd")):
                continue
            made_of = Path(folder, name).read_bytes()
            if not mentioned.search(made_of):
                continue
            if not name.endswith(".o.cmd") or _KERNEL not in made_of:
                return []
            reached.add(inside)
            unseen -= {path for path in unseen if exact[path].search(made_of)}
    return [] if unseen else _topmost(entered, reached)


def _any_of(paths: Collection[str]) -> re.Pattern[bytes]:
    """Return what finds one of the paths as a whole word that may begin earlier."""
    return re.compile(b"(?:" + b"|".join(re.escape(os.fsencode(path)) for path in paths) + rb")(?=[\s\\)]|$)")


def _topmost(entered: set[str], reached: set[str]) -> list[str]:
    """Return the topmost folders of `entered` that neither are in `reached` nor hold one that is."""
    needed = {"."}.union(*({path, *map(str, PurePosixPath(path).parents)} for path in reached))
    found: set[str] = set()
    for folder in sorted(entered - needed, key=len):
        if found.isdisjoint(map(str, PurePosixPath(folder).parents)) and _PLAIN.fullmatch(folder):
            found.add(folder)
    return sorted(found)
