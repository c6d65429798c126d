"""The three standard streams of the process, made safe: closed ones, full disks, unusual locales."""

from __future__ import annotations

import io
import os
import sys

from tracepoint.errors import TracepointError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO


class StreamError(TracepointError):
    """The output could not be written; the message says why."""


def prepare() -> None:
    """Make the streams of this process usable, whatever it was started with.

    A stream that was closed (`>&-`) is replaced by a file that refuses every use: otherwise the next opened
    file would get its number, and with it the output. Output to stdout is text of files (sources, patches),
    so it has their encoding, not the locale's: UTF-8, with other bytes unchanged, since kernel headers
    contain Latin-1 names.
    """
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _replace_closed()
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is None:
            continue
        if stream is sys.stdout:
            reconfigure(encoding="utf-8", errors="surrogateescape")
        else:
            reconfigure(errors="backslashreplace")


def refusal(error: OSError) -> OSError | StreamError:
    """Return the exception to raise for an error of writing to stdout.

    A reader that went away stays a BrokenPipeError.
    """
    if isinstance(error, BrokenPipeError):
        return error
    return StreamError(f"cannot write to stdout: {error.strerror or error}")


def flush_stdout() -> None:
    """Flush the buffer; raises StreamError, or BrokenPipeError when the reader went away."""
    try:
        sys.stdout.flush()
    except OSError as error:
        raise refusal(error) from error


def discard_stdout() -> None:
    """Drop what is still buffered: flushing it at exit would fail again."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - lives until exit


def _replace_closed() -> None:
    # Each but stderr is opened in the wrong direction; errors on stderr could not be reported anyway.
    sys.stdin = _put(0, os.O_WRONLY, "r", sys.stdin)
    sys.stdout = _put(1, os.O_RDONLY, "w", sys.stdout)
    sys.stderr = _put(2, os.O_WRONLY, "w", sys.stderr)


def _put(number: int, flags: int, mode: str, stream: TextIO | None) -> TextIO:
    if stream is not None:
        return stream
    opened = os.open(os.devnull, flags)
    if opened != number:
        os.dup2(opened, number)
        os.close(opened)
    raw = io.FileIO(number, mode, closefd=False)
    return io.TextIOWrapper(io.BufferedReader(raw) if mode == "r" else io.BufferedWriter(raw), "utf-8")
