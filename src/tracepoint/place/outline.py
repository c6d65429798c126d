"""The directives of a C file with the conditionals around them: where an include may be put."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

# Nothing repeats once a character: a line of megabytes would fill a stack with places to return to.
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


class Directive(NamedTuple):
    """One directive: what it says without comments, its lines, and how many conditionals enclose it.

    `end` is the offset behind its newline.  Of a conditional's own directives the depth is that of
    its `#if`.
    """

    keyword: str
    rest: str
    start: int
    end: int
    depth: int

    @property
    def word(self) -> str:
        """The first word of what it says: the name of a `#define`."""
        found = _WORD.match(self.rest)
        return found[0] if found else ""

    @property
    def included(self) -> str:
        """The file that an `#include` names, empty for other directives and for macros."""
        found = _INCLUDE.match(self.rest) if self.keyword == "include" else None
        return found[1] if found else ""


class Guard(NamedTuple):
    """An include guard: its macro, the end of its `#define`, the start of its `#endif`."""

    name: str
    inner_start: int
    inner_end: int


def read_directives(text: str) -> list[Directive]:
    r"""Return the directives of a C text.

    >>> [(d.keyword, d.rest, d.depth) for d in read_directives("#if A /* b */\n#define C\n#endif\n")]
    [('if', 'A', 0), ('define', 'C', 1), ('endif', '', 0)]
    """
    found: list[Directive] = []
    depth = 0
    for match in _PIECE.finditer(text):
        if match["directive"] is None:
            continue
        keyword = match["keyword"]
        if keyword in ("endif", "else", "elif"):
            depth = max(0, depth - 1)
        end = match.end() + (text[match.end() : match.end() + 1] == "\n")
        rest = _COMMENT.sub(" ", match["rest"]).strip()
        found.append(Directive(keyword, rest, match.start(), end, depth))
        if keyword in ("if", "ifdef", "ifndef", "else", "elif"):
            depth += 1
    return found


def find_guard(directives: Sequence[Directive]) -> Guard | None:
    """Return the include guard of a header, None when it has none that is closed."""
    for index, directive in enumerate(directives):
        name = ""
        if directive.depth == 0 and directive.keyword == "ifndef":
            name = directive.word
        elif directive.depth == 0 and directive.keyword == "if":
            found = _DEFINED.match(directive.rest)
            name = found[1] if found else ""
        if not name:
            continue
        inside = directives[index + 1 : index + 6]
        define = next((d for d in inside if d.keyword == "define" and d.word == name), None)
        close = next((d for d in directives[index + 1 :] if d.depth == 0 and d.keyword == "endif"), None)
        if define is not None and close is not None:
            return Guard(name, define.end, close.start)
    return None
