"""The output of a command: data to stdout, messages to stderr."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from argparse import SUPPRESS
from io import RawIOBase

from tracepoint.cli.streams import refusal
from tracepoint.errors import TracepointError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator
    from types import TracebackType
    from typing import IO, Any, Self, TextIO, TypeVar

    _Thing = TypeVar("_Thing")

# All but what moves to the next line or column.
_KEPT = re.compile(r"[^\n\t]+")
_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
_PROGRESS_DELAY_S = 0.5
_PROGRESS_PERIOD_S = 0.1


class Output:
    """The two streams of one run, with colour and verbosity decided once.

    `verbosity` is -1 for `-q`, 0, or the number of `-v`; it changes stderr only.  `color` is
    `auto`, `always` or `never`; with `auto`, NO_COLOR and FORCE_COLOR decide before the
    terminal does.
    """

    def __init__(
        self,
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
        *,
        verbosity: int = 0,
        color: str = "auto",
    ) -> None:
        self.stdout = stdout if stdout is not None else sys.stdout
        self.stderr = stderr if stderr is not None else sys.stderr
        self.configure(verbosity=verbosity, color=color)

    def configure(self, *, verbosity: int = 0, color: str = "auto") -> None:
        """Set what the command line asks for."""
        self.verbosity = verbosity
        self.has_color = wants_color(color, self.stdout)
        self.has_color_on_stderr = wants_color(color, self.stderr)

    def write(self, text: str) -> None:
        """Write data to stdout unchanged; raises StreamError on failure."""
        try:
            self.stdout.write(text)
        except OSError as error:
            raise refusal(error) from error

    def write_utf8(self, data: bytes | memoryview) -> None:
        """Write text that is encoded already; raises StreamError on failure."""
        encoding = (getattr(self.stdout, "encoding", None) or "").lower().replace("_", "-")
        raw = getattr(self.stdout, "buffer", None) if encoding in ("utf-8", "utf8") else None
        if raw is None:
            self.write(str(data, "utf-8", "surrogateescape"))
            return
        try:
            self.stdout.flush()
            raw.write(data)
        except OSError as error:
            raise refusal(error) from error

    def binary(self) -> IO[bytes]:
        """Return stdout for bytes that are not text; raises TracepointError where it takes or shows text."""
        raw: IO[bytes] | None = getattr(self.stdout, "buffer", None)
        if raw is None or is_terminal(self.stdout):
            raise TracepointError("stdout is a terminal, which cannot show this format: redirect it")
        self.stdout.flush()
        return _Stdout(raw)  # type: ignore[return-value]

    def line(self, text: str = "") -> None:
        """Write one line of data to stdout."""
        self.write(text + "\n")

    def say(self, text: str) -> None:
        """Write a message to stderr; `-q` silences it."""
        if self.verbosity >= 0:
            self._to_stderr(_visible_lines(text))

    def detail(self, text: str) -> None:
        """Write a message to stderr that only `-v` shows."""
        if self.verbosity > 0:
            self._to_stderr(_visible_lines(text))

    def warn(self, text: str) -> None:
        """Write a warning to stderr; `-q` silences it."""
        if self.verbosity >= 0:
            self._to_stderr(f"tracepoint: {self._err_style('warning:', 'yellow')} {_visible_lines(text)}")

    def error(self, text: str) -> None:
        """Write to stderr why the run fails; nothing silences it."""
        self._to_stderr(f"tracepoint: {self._err_style('error:', 'red')} {_visible_lines(text)}")

    def style(self, text: str, *names: str) -> str:
        """Return the text in the named styles (`bold`, `red`, ...) when stdout shows colour."""
        return paint(text, names) if self.has_color else text

    def diff(self, text: str) -> None:
        """Write a unified diff, coloured as git colours it when stdout shows colour."""
        for line in text.splitlines(keepends=True):
            self.write(self.style(line.rstrip("\n"), *_diff_style(line)) + "\n"[: line.endswith("\n")])

    def progress(self, what: str, total: int) -> Progress:
        """Return a context manager whose `step()` counts `total` things; silent off a terminal."""
        return Progress(self, what, total)

    def _err_style(self, text: str, *names: str) -> str:
        return paint(text, names) if self.has_color_on_stderr else text

    def flush(self) -> None:
        """Flush stdout; raises StreamError on failure."""
        try:
            self.stdout.flush()
        except OSError as error:
            raise refusal(error) from error

    def _to_stderr(self, text: str) -> None:
        self.flush()
        # A message that cannot be written must not stop the work, and nothing could report it.
        with contextlib.suppress(OSError):
            self.stderr.write(text + "\n")
            self.stderr.flush()


class _Stdout(RawIOBase):
    """Stdout for bytes: a failure to write them is the same error as for text."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        try:
            written = self._raw.write(data)
            self._raw.flush()
        except OSError as error:
            raise refusal(error) from error
        return written


class Progress:
    """A counter on stderr: on a terminal only, after half a second, with a rate and the total."""

    def __init__(self, out: Output, what: str, total: int) -> None:
        self._stream = out.stderr
        self._what = what
        self._total = total
        self._done = 0
        self._is_shown = False
        self._is_wanted = out.verbosity >= 0 and is_terminal(out.stderr)
        self._begin = self._last = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def step(self, n: int = 1) -> None:
        """Count `n` more things done."""
        self._done += n
        now = time.monotonic()
        is_early = now - self._begin < _PROGRESS_DELAY_S or now - self._last < _PROGRESS_PERIOD_S
        if is_early or not self._is_wanted:
            return
        self._last = now
        self._is_shown = True
        rate = self._done / (now - self._begin)
        text = f"{self._what}: {self._done} of {self._total}, {rate:.0f} a second"
        self._stream.write(f"\r\x1b[K{one_line(text, self._stream)}")
        self._stream.flush()

    def over(self, things: Iterable[_Thing]) -> Iterator[_Thing]:
        """Yield the things and count each once it is done."""
        for thing in things:
            yield thing
            self.step()


class StatusLine:
    """What goes on, on stderr: one line, rewritten, at a terminal, else a line at times; `-q`: none."""

    def __init__(self, out: Output, period_s: float = 10.0) -> None:
        self._out = out
        self._period_s = period_s
        self._last = time.monotonic()
        self._is_terminal = is_terminal(out.stderr)
        self._is_shown = False
        self.is_wanted = out.verbosity >= 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def clear(self) -> None:
        """Erase the line, for another message; the next one is shown again."""
        if self._is_shown:
            self._put("\r\x1b[K")

    def show(self, text: str) -> None:
        """Show a line in the place of the last one; without a terminal only when some seconds have passed."""
        if self._is_terminal:
            self._is_shown = True
            self._put(f"\r\x1b[K{one_line(text, self._out.stderr)}")
        elif time.monotonic() - self._last >= self._period_s:
            self._last = time.monotonic()
            self._put(text + "\n")

    def _put(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self._out.stderr.write(text)
            self._out.stderr.flush()


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that every command has; they may come before or after its name and its verb."""
    group = parser.add_argument_group("output")
    group.add_argument("-q", "--quiet", action="store_true", default=SUPPRESS, help="only errors on stderr")
    group.add_argument("-v", "--verbose", action="count", default=SUPPRESS, help="more on stderr")
    group.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default=SUPPRESS,
        help="colour (default: auto; NO_COLOR and FORCE_COLOR are respected)",
    )


def _diff_style(line: str) -> tuple[str, ...]:
    if line.startswith(("--- ", "+++ ")):
        return ("bold",)
    return {"+": ("green",), "-": ("red",), "@": ("cyan",)}.get(line[:1], ())


def example_text(lines: Iterable[str]) -> str:
    """Return the examples at the end of a help text."""
    return "examples:\n" + "\n".join(f"  {line}" for line in lines)


def paint(text: str, names: Iterable[str]) -> str:
    r"""Wrap a text in ANSI styles.

    >>> paint("a", ["bold", "red"])
    '\x1b[1;31ma\x1b[0m'
    """
    codes = ";".join(_STYLES[name] for name in names)
    return f"\x1b[{codes}m{text}\x1b[0m" if codes and text else text


def _visible_lines(text: str) -> str:
    r"""Return a message with escapes for what a terminal would act on, such as in the name of a file.

    >>> _visible_lines("a\x1b[1m.dat:\n\tno")
    'a\\x1b[1m.dat:\n\tno'
    """
    if text.isprintable():
        return text
    from tracepoint.wording import visible  # noqa: PLC0415 - most messages need none of it

    return _KEPT.sub(lambda found: visible(found[0]), text)


def one_line(text: str, stream: TextIO) -> str:
    """Return as much of a text as fits on one line of a terminal: a wrapped line cannot be erased."""
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return text
    return text[: columns - 1] if columns > 1 else text


def is_terminal(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that understands cursor movement."""
    try:
        return stream.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:
        return False


def wants_color(choice: str, stream: TextIO) -> bool:
    """Decide on colour: the option, then NO_COLOR, then FORCE_COLOR, then the terminal."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal(stream)
