"""The directives of a C file with the conditionals around them: where an include may be put."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

# No group repeats per character: a line of megabytes would overflow the stack of backtracking.
_PIECE = re.compile(
    r"^(?P<directive>[ \t]*\#[ \t]*(?P<keyword>\w*)"
    r"(?P<rest>[^\n\\/]*(?:(?:\\[\s\S]|/\*[\s\S]*?(?:\*/|\Z)|/)[^\n\\/]*)*))"
    r"|/\*[\s\S]*?(?:\*/|\Z)"
    r"|//[^\n\\]*(?:\\[\s\S][^\n\\]*)*"
    r'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
    r"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'",
    re.MULTILINE,
)
_COMMENT = re.compile(r"/\*[\s\S]*?(?:\*/|\Z)|//.*")
_INCLUDE = re.compile(r'[<"]([^>"\n]+)[>"]')
_DEFINED = re.compile(r"!\s*defined\s*\(?\s*(\w+)")
_WORD = re.compile(r"\w+")


class ScopedDirective(NamedTuple):
    """One directive: its text without comments, its lines, and how many conditionals enclose it.

    `end` is the offset after its newline.  A conditional's own directives have the depth of
    its `#if`.
    """

    keyword: str
    rest: str
    start: int
    end: int
    depth: int

    @property
    def word(self) -> str:
        """The first word of its text: the name of a `#define`."""
        found = _WORD.match(self.rest)
        return found[0] if found else ""

    @property
    def included(self) -> str:
        """The file that an `#include` names, empty for other directives and for macros."""
        found = _INCLUDE.match(self.rest) if self.keyword == "include" else None
        return found[1] if found else ""


class Guard(NamedTuple):
    """An include guard: its macro, the end of its `#define`, the start of its `#endif`.

    `is_reread` says whether TRACE_HEADER_MULTI_READ opens it; `outer` is the conditional around it,
    empty if there is none.
    """

    name: str
    inner_start: int
    inner_end: int
    is_reread: bool = False
    outer: str = ""


def read_directives(text: str) -> list[ScopedDirective]:
    r"""Return the directives of a C text.

    >>> [(d.keyword, d.rest, d.depth) for d in read_directives("#if A /* b */\n#define C\n#endif\n")]
    [('if', 'A', 0), ('define', 'C', 1), ('endif', '', 0)]
    """
    found: list[ScopedDirective] = []
    depth = 0
    for match in _PIECE.finditer(text):
        if match["directive"] is None:
            continue
        keyword = match["keyword"]
        if keyword in ("endif", "else", "elif"):
            depth = max(0, depth - 1)
        end = match.end() + (text[match.end() : match.end() + 1] == "\n")
        rest = _COMMENT.sub(" ", match["rest"]).strip()
        found.append(ScopedDirective(keyword, rest, match.start(), end, depth))
        if keyword in ("if", "ifdef", "ifndef", "else", "elif"):
            depth += 1
    return found


def find_guard(directives: Sequence[ScopedDirective]) -> Guard | None:
    """Return the include guard of a header, or None if there is no complete one.

    Some guards of trace headers define another name than they test (drivers/gpu/drm/lima): they count
    as guards because they can be read again.
    """
    open_ifs: list[ScopedDirective] = []
    for index, directive in enumerate(directives):
        del open_ifs[directive.depth :]
        if directive.keyword in ("if", "ifdef", "ifndef", "else", "elif"):
            guard = _guard_at(directives, index, open_ifs)
            if guard is not None:
                return guard
            open_ifs.append(directive)
    return None


def _guard_at(
    directives: Sequence[ScopedDirective], index: int, open_ifs: Sequence[ScopedDirective]
) -> Guard | None:
    opening = directives[index]
    found = _DEFINED.match(opening.rest) if opening.keyword == "if" else None
    name = opening.word if opening.keyword == "ifndef" else found[1] if found else ""
    if not name:
        return None
    is_reread = "TRACE_HEADER_MULTI_READ" in opening.rest
    rest = directives[index + 1 :]
    define = next((d for d in rest[:5] if d.keyword == "define" and (d.word == name or is_reread)), None)
    close = next((d for d in rest if d.depth == opening.depth and d.keyword == "endif"), None)
    if define is None or close is None or define.start > close.start:
        return None
    outer = f"#{open_ifs[-1].keyword} {open_ifs[-1].rest}".rstrip() if open_ifs else ""
    return Guard(name, define.end, close.start, is_reread, outer)
