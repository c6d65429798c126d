"""Offsets in a text to the lines and columns of the Language Server Protocol, and back.

The protocol counts both from 0, and columns in units of an encoding that client and server agree on:
UTF-16 unless they agree on another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from tracepoint.source.text import SourceFile

if TYPE_CHECKING:
    from tracepoint.diagnostics import Span

_BYTES_A_UNIT = {"utf-8": 1, "utf-16": 2, "utf-32": 4}


class Positions:
    r"""The positions of one text; `encoding` is `utf-8`, `utf-16` or `utf-32`.

    >>> positions = Positions("int a;\n/* \U0001f600 */ int b;\n")
    >>> positions.at(14)
    1:8
    >>> positions.offset(positions.at(14))
    14
    """

    def __init__(self, text: str, encoding: str = "utf-16") -> None:
        self._file = SourceFile("", text)
        self._codec = "utf-8" if encoding == "utf-8" else f"{encoding}-le"
        self._bytes = _BYTES_A_UNIT[encoding]

    def at(self, offset: int) -> types.Position:
        """Return the position of a character offset."""
        line, column = self._file.position(offset)
        return types.Position(line - 1, self._units(self._file.line_text(line)[: column - 1]))

    def offset(self, position: types.Position) -> int:
        """Return the character offset of a position; one after the end of its line means that end."""
        text = self._file.text
        if position.line >= self._file.n_lines:
            return len(text)
        line = self._file.line_text(position.line + 1)
        start = self._file.start_of(position.line + 1)
        if line.isascii():
            return start + min(position.character, len(line))
        n_units = n_characters = 0
        for character in line:
            if n_units >= position.character:
                break
            n_units += self._units(character)
            n_characters += 1
        return start + n_characters

    def range(self, start: int, end: int) -> types.Range:
        """Return the range of the characters from `start` to `end` (exclusive)."""
        return types.Range(self.at(start), self.at(end))

    def of_span(self, span: Span) -> types.Range:
        """Return the range of a span of this text, also of one that has only lines and columns."""
        if span.start >= 0:
            return self.range(span.start, span.end)
        return types.Range(
            self._of_column(span.line, span.column), self._of_column(span.end_line, span.end_column)
        )

    def _of_column(self, line: int, column: int) -> types.Position:
        return types.Position(max(line - 1, 0), self._units(self._file.line_text(line)[: max(column - 1, 0)]))

    def _units(self, text: str) -> int:
        if text.isascii():
            return len(text)
        return len(text.encode(self._codec, "surrogatepass")) // self._bytes
