"""Lines of C in the kernel's style, and templates with `@NAME@` places."""

from __future__ import annotations

import re
from contextlib import contextmanager
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from tracepoint.errors import GenerateError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

TAB = 8
WIDTH = 80
_PLACE = re.compile(r"@([A-Z][A-Z_]*)@")
_EVENT_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,120}")
_INCLUDE = re.compile(r'<[\w./+-]+>|"[\w./+-]+"')
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


class CodeWriter:
    r"""Collects lines, one tab per level.

    >>> code = CodeWriter()
    >>> with code.block("if (error)"):
    ...     code.line("return error;")
    >>> code.text
    'if (error)\n\treturn error;\n'
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._level = 0

    @property
    def text(self) -> str:
        """All lines, each with its end."""
        return "".join(line + "\n" for line in self._lines)

    def line(self, text: str = "") -> None:
        """Add one line; an empty one has no tabs."""
        self._lines.append("\t" * self._level + text if text else "")

    def lines(self, texts: Iterable[str]) -> None:
        """Add several lines."""
        for text in texts:
            self.line(text)

    @contextmanager
    def block(self, head: str, tail: str = "") -> Iterator[None]:
        """Indent what is added inside; `head` and `tail`, if not empty, go around it."""
        self.line(head)
        self._level += 1
        yield
        self._level -= 1
        if tail:
            self.line(tail)

    def call(self, head: str, arguments: Sequence[str], tail: str = ");") -> None:
        """Add `head(a, b, c);`, broken after commas at column 80 and aligned to the parenthesis."""
        self.lines(break_call(head, arguments, tail, self._level * TAB))


def break_call(head: str, arguments: Sequence[str], tail: str, column: int = 0) -> list[str]:
    """Return the lines of a call that begins at `column`; those that follow are aligned by tabs and blanks.

    >>> break_call("f", ["a", "b"], ");")
    ['f(a, b);']
    """
    indent = len(head) + 1
    room = WIDTH - column
    lines, line = [], head + "("
    for index, argument in enumerate(arguments):
        piece = argument + (tail if index == len(arguments) - 1 else ",")
        if len(line) + 1 + len(piece) > room and not line.endswith("("):
            lines.append(line.rstrip())
            line = " " * indent
        line += piece if line.endswith("(") or not line.strip() else " " + piece
    if not arguments:
        line += tail
    return [lines_with_tabs(text, column) for text in [*lines, line]]


def lines_with_tabs(text: str, column: int) -> str:
    """Replace leading blanks by tabs, as they fall when the line begins at `column`."""
    n_blanks = len(text) - len(text.lstrip(" "))
    if n_blanks == 0 or column % TAB:
        return text
    return "\t" * (n_blanks // TAB) + " " * (n_blanks % TAB) + text.lstrip(" ")


@lru_cache(maxsize=32)
def _template(name: str) -> str:
    return files(__package__).joinpath("templates", f"{name}.in").read_text("utf-8")


def fill_template(template: str, /, **values: str) -> str:
    """Return a template with every `@PLACE@` replaced by the value of that name in lower case.

    A place alone on its line removes the line if its value is empty.  Raises KeyError
    for a place without a value.
    """
    lines = []
    for line in _template(template).split("\n"):
        alone = _PLACE.fullmatch(line.strip())
        if alone:
            value = values[alone[1].lower()].rstrip("\n")
            if not value:
                continue
            lines.append(value)
        else:
            lines.append(_PLACE.sub(lambda m: values[m[1].lower()], line))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


def check_name(name: str, what: str = "module") -> str:
    """Return a name that is valid in C and the kernel; raises GenerateError for any other.

    >>> check_name("sample_trace")
    'sample_trace'
    """
    if len(name) > 40 or not _IDENTIFIER.fullmatch(name) or not name.isascii():
        raise GenerateError(
            "", f"{name[:60]!r} is not a valid name for a {what}: use letters, digits and _, at most 40"
        )
    return name


def check_include(one: str) -> str:
    """Return what can follow `#include`; raises GenerateError for anything else.

    >>> check_include("<linux/mm.h>")
    '<linux/mm.h>'
    """
    if not _INCLUDE.fullmatch(one):
        raise GenerateError("", f'{one[:60]!r} cannot be included: write <file.h> or "file.h"')
    return one


def check_event(system: str, name: str) -> None:
    """Raise GenerateError unless system and name can stand in C, a path and a shell's word."""
    if not (_EVENT_WORD.fullmatch(system) and _EVENT_WORD.fullmatch(name)):
        shown = f"{system[:40]}:{name[:60]}"
        raise GenerateError(shown, "system and event are names of letters, digits, _ and - here")
