"""The files that a command refers to: those named, and in folders those with trace declarations."""

from __future__ import annotations

import os
import re
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.tree.disk import DISK
from tracepoint.tree.opening import read_found

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tracepoint.tree.disk import Disk

# A byte search decides: 1 header in 60 of a kernel tree declares events, and reading the others would waste
# time.
_SYSTEM = b"TRACE_SYSTEM"
#: Searching for a word takes a hundredth of the time of a pattern; all declarations but one kind have
#: `_EVENT`.
_TRACEPOINT, _EVENT = b"DECLARE_TRACE", b"_EVENT"
_EVENTS, _END = (b"TRACE_EVENT", b"DECLARE_EVENT", b"DEFINE_EVENT"), b"E_EVENT"
_CUSTOM = b"CUSTOM_EVENT"
_DECLARES = re.compile(
    rb"^[ \t]*(?:TRACE_EVENT|DECLARE_EVENT|DEFINE_EVENT|DECLARE_TRACE(?!POINT)|TRACE_CUSTOM_EVENT"
    rb"|DECLARE_CUSTOM_EVENT|DEFINE_CUSTOM_EVENT)\w*[ \t]*\(",
    re.MULTILINE,
)
_BEGINNING = 1 << 16
_SETS_SYSTEM = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+TRACE_SYSTEM[ \t]+\w", re.MULTILINE)
# rvgen and dot2k of tools/verification generate headers from templates with such marks.
_TEMPLATE = re.compile(rb"%%[A-Z_]+%%")
_MACHINERY = (
    "include/linux/tracepoint.h",
    "include/trace/define_trace.h",
    "include/trace/define_custom_trace.h",
    "include/trace/trace_events.h",
    "include/trace/trace_custom_events.h",
)


def find_headers(words: Iterable[str], exclude: Iterable[str] = (), disk: Disk = DISK) -> list[Path]:
    """Return the files to read, in a fixed order and each once.

    Files are taken as named, folders are walked (without hidden ones) for trace headers.
    Raises `FileNotFoundError` for a path that does not exist.
    """
    patterns = tuple(exclude)
    found: dict[Path, None] = {}
    for word in words:
        path = Path(word)
        if disk.is_folder(str(path)):
            for file in _walk(path, disk):
                if not any(fnmatch(str(file), pattern) for pattern in patterns):
                    found[file] = None
        elif path.exists() or word == "-":
            found[path] = None
        else:
            raise FileNotFoundError(2, "no such file or folder", word)
    return list(found)


def is_trace_header(data: bytes) -> bool:
    """Return whether a header's bytes set TRACE_SYSTEM or declare tracepoints, and are not a template.

    >>> is_trace_header(b"TRACE_EVENT(foo, ...")
    True
    >>> is_trace_header(b"#define TRACE_EVENT(name, ...)")
    False
    """
    is_one = (_SYSTEM in data and _SETS_SYSTEM.search(data)) or (
        _may_declare(data) and _DECLARES.search(data)
    )
    return bool(is_one) and not _TEMPLATE.search(data)


def has_word(text: str, word: str) -> bool:
    """Return whether a text contains a word by itself; a pattern for that takes ten times as long.

    >>> has_word("trace_foo(a)", "foo"), has_word("EVENT(foo, a)", "foo")
    (False, True)
    """
    at = text.find(word)
    while at >= 0:
        after = text[at + len(word) : at + len(word) + 1]
        if not (after.isalnum() or after == "_"):
            before = text[at - 1 : at] if at else ""
            if not (before.isalnum() or before == "_"):
                return True
        at = text.find(word, at + 1)
    return False


def _may_declare(data: bytes) -> bool:
    return _TRACEPOINT in data or (
        _EVENT in data and (_CUSTOM in data or (_END in data and any(word in data for word in _EVENTS)))
    )


def is_machinery(path: str) -> bool:
    """Return whether a file is part of the macros that make events, rather than a user of them.

    >>> is_machinery("include/trace/stages/init.h"), is_machinery("include/trace/events/sched.h")
    (True, False)
    """
    return path.endswith(_MACHINERY) or "include/trace/stages/" in path


def declares(data: bytes | None) -> bool | None:
    """Return whether a file is a trace header; None when it cannot be read like others."""
    return None if data is None else is_trace_header(data)


def _walk(folder: Path, disk: Disk) -> Iterator[Path]:
    for top, names in disk.walk(str(folder)):
        if top.replace(os.sep, "/").endswith("include/trace/stages"):
            continue
        for name in names:
            file = os.path.join(top, name)  # noqa: PTH118 - a kernel tree has 23,000 of them
            if not name.endswith(".h") or file.endswith(_MACHINERY):
                continue
            answer = disk.ask(file, declares)
            if is_trace_header(_beginning(file)) if answer is None else answer:
                yield Path(file)


def _beginning(file: str) -> bytes:
    try:
        # A larger one is refused when it is read as a header, if it begins like one.
        return read_found(file, _BEGINNING) or b""
    except FileNotFoundError:  # a dangling link
        return b""
