"""One source file: its text, its lines, and how edits are applied to it."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from tracepoint.diagnostics import Span

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracepoint.diagnostics import Edit


class SourceFile:
    r"""The text of one file with a line index.

    `path` is what findings show; `text` is the decoded text.  Use `decode` for bytes: it never
    fails, and bytes that are not UTF-8 come back unchanged from `encode`.

    >>> file = SourceFile("a.h", "int a;\nint b;\n")
    >>> str(file.span(11, 12))
    'a.h:2:5'
    """

    __slots__ = ("_line_starts", "path", "text")

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self._line_starts: list[int] | None = None

    def _starts(self) -> list[int]:
        if self._line_starts is None:
            starts = [0]
            find = self.text.find
            at = find("\n")
            while at >= 0:
                starts.append(at + 1)
                at = find("\n", at + 1)
            self._line_starts = starts
        return self._line_starts

    def position(self, offset: int) -> tuple[int, int]:
        """Return the line and column, both from 1, of a character offset."""
        starts = self._starts()
        line = bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1

    def start_of(self, line: int) -> int:
        """Return the character offset of the beginning of a line (from 1 to `n_lines`)."""
        return self._starts()[line - 1]

    def span(self, start: int, end: int) -> Span:
        """Return the span from character offset `start` to `end` (exclusive)."""
        line, column = self.position(start)
        end_line, end_column = self.position(end)
        return Span(self.path, line, column, end_line, end_column, start, end)

    def line_text(self, line: int) -> str:
        """Return line number `line` (from 1) without its line end."""
        starts = self._starts()
        if not 1 <= line <= len(starts):
            return ""
        end = starts[line] - 1 if line < len(starts) else len(self.text)
        return self.text[starts[line - 1] : end].rstrip("\r")

    @property
    def n_lines(self) -> int:
        """The number of lines; text after the last newline counts as one."""
        return len(self._starts())


def decode(data: bytes) -> str:
    r"""Decode source bytes as UTF-8, keeping other bytes so that `encode` gives them back.

    >>> encode(decode(b"caf\xe9"))
    b'caf\xe9'
    """
    return data.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """Encode text made by `decode` back to the same bytes."""
    return text.encode("utf-8", "surrogateescape")


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Apply edits to a text; of two that overlap only the first is applied.

    >>> from tracepoint.diagnostics import Edit
    >>> apply_edits("abc", [Edit("f", 1, 2, "B"), Edit("f", 3, 3, "d")])
    'aBcd'
    """
    pieces: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        if edit.start < at or edit.end > len(text):
            continue
        pieces.append(text[at : edit.start])
        pieces.append(edit.replacement)
        at = edit.end
    pieces.append(text[at:])
    return "".join(pieces)
