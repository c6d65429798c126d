"""Which files of a kernel tree can matter to its index: all are listed, a byte search chooses."""

from __future__ import annotations

import enum
import os
import zlib
from typing import TYPE_CHECKING

from tracepoint.tree.callsites.pasted import is_pasting
from tracepoint.tree.makefiles import TREE_MARK
from tracepoint.tree.scan import is_machinery, is_trace_header

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_ENDS = (".c", ".h", ".rs")
#: Folders of a kernel tree in which no tracepoint is declared or called.
_PASSED_OVER = frozenset({"Documentation", "LICENSES", "scripts", "tools"})
#: No source file comes near; what is larger is not read.
_MAX_BYTES = 64 << 20
#: The largest Rust file that somebody wrote has 100 KB; larger ones are made while building.
_MAX_RUST = 1 << 20
_MORE_MACHINERY = ("include/trace/perf.h", "include/trace/bpf_probe.h")
_MASK = (1 << 64) - 1
Stat = tuple[int, int]


class Holds(enum.IntFlag):
    """What a byte search found in a file."""

    NOTHING = 0
    TRACE = 1
    DECLARATIONS = 2
    CREATES = 4
    SYSCALLS = 8
    UNREADABLE = 16
    RUST = 32
    PASTES = 64
    NO_CODE = 128


def is_kernel_tree(path: str) -> bool:
    """Return whether a folder is the root of a kernel source tree."""
    return os.path.isfile(f"{path}/{TREE_MARK}")  # noqa: PTH113 - the rest of this room works on strings


def list_files(root: str) -> dict[str, Stat]:
    """Return size and modification time (ns) of every C and Rust file, by path relative to `root`."""
    found: dict[str, Stat] = {}
    folders = [""]
    while folders:
        folder = folders.pop()
        try:
            entries = list(os.scandir(f"{root}/{folder}"))
        except OSError:
            continue
        for entry in entries:
            name = entry.name
            if name.endswith(_ENDS):
                if entry.is_file(follow_symlinks=False):
                    stat = entry.stat(follow_symlinks=False)
                    found[folder + name] = (stat.st_size, stat.st_mtime_ns)
            elif (
                entry.is_dir(follow_symlinks=False)
                and name[0] != "."
                and (folder or name not in _PASSED_OVER)
            ):
                folders.append(f"{folder}{name}/")
    return found


def fingerprint(files: Mapping[str, Stat]) -> int:
    """Return a number that changes when a file comes, goes, or is changed.

    >>> fingerprint({"a.c": (1, 2)}) == fingerprint({"a.c": (1, 3)})
    False
    """
    total = len(files)
    for path, (size, mtime) in files.items():
        total += (zlib.crc32(path.encode("utf-8", "surrogateescape")) + 1) * (size * 1_000_003 + mtime)
    return total & _MASK


def look_at(root: str, paths: Iterable[str]) -> list[tuple[str, int]]:
    """Return what the files hold, those that hold nothing left out."""
    found = []
    for path in paths:
        data = read_bytes(root, path)
        holds = Holds.UNREADABLE if data is None else _holds(path, data)
        if holds:
            found.append((path, int(holds)))
    return found


def read_bytes(root: str, path: str) -> bytes | None:
    """Return a file's bytes, None when it cannot be read."""
    try:
        # 57,000 of them: Path costs a second, a buffer and room for the largest file cost four.
        with open(f"{root}/{path}", "rb", buffering=0) as file:  # noqa: PTH123
            return file.read(min(os.fstat(file.fileno()).st_size, _MAX_BYTES))
    except OSError:
        return None


def _is_user(path: str) -> bool:
    return not is_machinery(path) and path not in _MORE_MACHINERY


def _holds(path: str, data: bytes) -> Holds:
    if path.endswith(".rs"):
        return Holds.RUST if b"trace" in data and len(data) <= _MAX_RUST else Holds.NOTHING
    # Two fifths of a tree's bytes are lists of registers: no semicolon, so no statement that fires anything.
    holds = Holds.NOTHING if b";" in data else Holds.NO_CODE
    # Most files have neither word, so that what begins with one need not be looked for.
    is_lower, is_upper = b"trace" in data, b"TRACE" in data
    if (is_lower and (b"trace_" in data or b"tracepoint_enabled" in data)) or (
        is_upper and b"EXPORT_TRACEPOINT" in data
    ):
        holds |= Holds.TRACE
        if is_pasting(data):
            holds |= Holds.PASTES
    if path.endswith(".h"):
        if (is_upper or b"_EVENT" in data) and is_trace_header(data) and _is_user(path):
            holds |= Holds.DECLARATIONS
        return holds
    if is_upper and (b"CREATE_TRACE_POINTS" in data or b"CREATE_CUSTOM_TRACE_EVENTS" in data):
        holds |= Holds.CREATES
    if b"SYSCALL_DEFINE" in data:
        holds |= Holds.SYSCALLS
    return holds
