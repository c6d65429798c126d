"""Facts about the tracing macros of a kernel tree, read from its headers.

Never from a version number: distributions backport.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.tree.alternatives import Alternatives
from tracepoint.tree.disk import DISK
from tracepoint.tree.loader import find_kernel_root
from tracepoint.tree.opening import read_if_sane
from tracepoint.tree.tracing_macros import (
    CALLBACK_FILES,
    SUFFIX_FILE,
    TreeFacts,
    assign_str_arity,
    has_tp_suffix,
)

if TYPE_CHECKING:
    from pathlib import PurePath

    from tracepoint.tree.disk import Disk


def read_facts(root: Path | None, disk: Disk = DISK) -> TreeFacts:
    """Return the facts of a kernel tree (or headers package); no facts without one."""
    if root is None:
        return TreeFacts()
    arities = (disk.ask(str(root / name), assign_str_arity) for name in CALLBACK_FILES)
    return TreeFacts(
        assign_str_arity=next((arity for arity in arities if arity is not None), None),
        has_tp_suffix=disk.ask(str(root / SUFFIX_FILE), has_tp_suffix),
        are_alternatives=Alternatives(root, disk).are,
    )


def read_facts_around(path: PurePath | str) -> TreeFacts:
    """Return the facts of the tree that contains a header."""
    return read_facts(find_kernel_root(Path(path).resolve().parent))


def char_sign(path: str) -> bool | None:
    """Return False when a header's kernel makes `char` unsigned, None when the ABI decides."""
    root = find_kernel_root(Path(path).absolute().parent)
    data = read_if_sane(root / "Makefile") if root is not None else None
    return False if data is not None and b"-funsigned-char" in data else None
