"""Texts that commands read and write: files, standard streams (`-`), diffs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.source.text import decode, encode
from tracepoint.tree.opening import read_input, read_stream
from tracepoint.tree.writing import write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence


def read_text(path: Path) -> str:
    """Return a file's text (`-` is stdin); bytes that are not UTF-8 survive a round trip."""
    return decode(read_bytes(path))


def read_bytes(path: Path, large: Sequence[bytes] = ()) -> bytes:
    """Return a file's bytes (`-` is stdin); `large` are the first bytes of files that may have 1 GiB.

    Raises the errors of `read_input`.
    """
    if str(path) != "-":
        return read_input(path, large)
    try:
        return read_stream(sys.stdin.buffer, "stdin", large)
    except OSError as error:
        raise OSError(error.errno, error.strerror, "stdin") from None


def write_text(path: Path, text: str) -> None:
    """Replace a file's text atomically: a reader sees either the old text or the new one.

    Permissions stay; a symbolic link is followed.
    """
    target = Path(os.path.realpath(path))
    try:
        write_whole(target, [encode(text)], mode_of(target))
    except OSError as error:
        # The error names the temporary file, which the user has never seen.
        raise OSError(error.errno, error.strerror, str(path)) from None


def mode_of(path: Path) -> int:
    """Return the permissions of a file, or those of a new one."""
    return path.stat().st_mode & 0o7777 if path.exists() else 0o644


def unified_diff(old: str, new: str, path: str) -> str:
    r"""Return the difference as a patch with `a/` and `b/` prefixes, empty when there is none.

    >>> print(unified_diff("a\nb\n", "a\nc\n", "x.h"), end="")
    --- a/x.h
    +++ b/x.h
    @@ -1,2 +1,2 @@
     a
    -b
    +c
    """
    import difflib  # noqa: PLC0415 - for diffs only

    name = path.lstrip("/")
    pieces = difflib.unified_diff(_lines(old), _lines(new), f"a/{name}", f"b/{name}")
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in pieces
    )


def _lines(text: str) -> list[str]:
    # Not splitlines(): a form feed is not a line end in C.
    *lines, last = text.split("\n")
    return [line + "\n" for line in lines] + ([last] if last else [])
