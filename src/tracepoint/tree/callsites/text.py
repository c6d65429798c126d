"""C text prepared for finding call sites: comments blanked, directives separated, functions named.

There is no real parsing: kernel code closes its functions in the first column, which
is enough to name the function around a place, even in files whose macros no C parser can follow.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING

from tracepoint.named import NamedTuple
from tracepoint.source.brackets import find_close_in_text

if TYPE_CHECKING:
    from collections.abc import Iterator

_NOISE = re.compile(r'/\*.*?(?:\*/|\Z)|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', re.DOTALL)
_NOT_NEWLINE = re.compile(r"[^\n]+")
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(\w+)((?:[^\n\\]|\\.|\\\n)*)", re.MULTILINE)
_DEFINE = re.compile(r"[ \t]*([A-Za-z_]\w*)(\([^)]*\))?")
_CLOSE = re.compile(r"^\}", re.MULTILINE)
_OPEN = re.compile(r"^\{", re.MULTILINE)
_GROUP = re.compile(r"(\w+)\s*\(")
_WORD = re.compile(r"[A-Za-z_]\w*")
_AT_LINE_START = re.compile(r"(?:\s*\n)?\S")
_BRACES = re.compile(r"[{}]")
_BRACE = re.compile(r"[{};]")
_ATTRIBUTES = frozenset(
    "__acquires __releases __must_hold __cond_acquires __printf __scanf __attribute__ __alloc_size "
    "__aligned __section __realloc_size __no_sanitize __nocfi typeof __typeof__ __counted_by "
    "__assume_aligned __acquire __release __cond_lock __context__ _Pragma".split()
)
_MODIFIERS = re.compile(r"\b(?:static|inline|noinstr|noinline|notrace|__always_inline|__init|__visible)\b")
#: No function header is longer; anything longer is other text.
_MAX_HEAD = 8000
_MAX_BLOCKS = 4
#: Characters; the longest function of 6.12 has 60,000.
_MAX_FUNCTION = 200_000
#: The number of characters searched in a file for unusual function headers: seconds at worst.
_MAX_SEARCHED = 20_000_000


class Define(NamedTuple):
    """One `#define`: its name, everything after the word `define`, and its line from 1."""

    name: str
    text: str
    line: int


class BlankedText(NamedTuple):
    """A C text with comments, literals, directives and `#if 0` blanked; offsets are those of the text."""

    text: str
    code: str
    defines: tuple[Define, ...]


def read_code(text: str) -> BlankedText:
    r"""Blank everything of a C text that is not code.

    >>> code = read_code('a(); /* b() */ "c()";\n#define D e()\n')
    >>> code.code.split("\n"), code.defines
    (['a();                ;', '             ', ''], (Define(name='D', text=' D e()', line=2),))
    """
    bare = _NOISE.sub(_blank, text)
    pieces: list[str] = []
    defines: list[Define] = []
    at = 0
    for start, end, define in _dead_text(text, bare):
        pieces.append(bare[at:start])
        pieces.append(_NOT_NEWLINE.sub(_blank, bare[start:end]))
        at = end
        if define is not None:
            defines.append(define)
    pieces.append(bare[at:])
    return BlankedText(text, "".join(pieces), tuple(defines))


def _blank(match: re.Match[str]) -> str:
    found = match[0]
    if "\n" not in found:
        return " " * len(found)
    return _NOT_NEWLINE.sub(lambda m: " " * len(m[0]), found)


def _dead_text(text: str, bare: str) -> Iterator[tuple[int, int, Define | None]]:
    """Yield the ranges of directives and of text under `#if 0`, and what is defined in them."""
    if "#" not in bare:
        return
    depth = 0  # of conditionals below an `#if 0`
    dead_from = -1
    line, counted = 1, 0
    for match in _DIRECTIVE.finditer(bare):
        keyword, rest = match[1], match[2]
        if dead_from >= 0:
            if keyword.startswith("if"):
                depth += 1
            elif keyword == "endif" or (depth == 1 and keyword in ("else", "elif")):
                depth -= keyword == "endif"
                if depth == 0 or keyword != "endif":
                    yield dead_from, match.end(), None
                    dead_from, depth = -1, 0
            continue
        if keyword == "if" and rest.strip() == "0":
            dead_from, depth = match.start(), 1
            continue
        define = None
        if keyword == "define":
            line += text.count("\n", counted, match.start())
            counted = match.start()
            define = _define(text, match, line)
        yield match.start(), match.end(), define
    if dead_from >= 0:
        yield dead_from, len(bare), None


def _define(text: str, match: re.Match[str], line: int) -> Define | None:
    named = _DEFINE.match(match[2])
    if named is None:
        return None
    return Define(named[1], text[match.start(2) : match.end(2)], line)


class Functions:
    r"""Names the function around an offset of blanked code.

    >>> Functions("int f(void)\n{\n\ta();\n}\n").around(17)
    'f'
    """

    def __init__(self, code: str) -> None:
        self._code = code
        self._closes: list[int] | None = None
        self._opens: list[int] = []
        self._names: dict[int, str] = {}
        self._budget = _MAX_SEARCHED

    def around(self, offset: int) -> str:
        """Return the function's name, empty outside functions."""
        if self._closes is None:
            self._closes = [m.start() for m in _CLOSE.finditer(self._code)]
            self._opens = [m.start() for m in _OPEN.finditer(self._code)]
        index = bisect_left(self._closes, offset)
        at = bisect_left(self._opens, offset)
        opening = self._opens[at - 1] if at else -1
        # A brace in the first column may close a mere block (fs/smb/client/transport.c in 6.12).
        for back in range(_MAX_BLOCKS):
            begin = self._closes[index - 1 - back] + 1 if index > back else 0
            begin = max(begin, offset - _MAX_FUNCTION)
            if opening >= begin and (back == 0 or self._is_open(opening, offset)):
                return self._name_at(opening)
            name = self._named_otherwise(begin, offset)
            if name is not None or begin == 0:
                return name or ""
        return ""

    def _name_at(self, opening: int) -> str:
        """Name the function whose body a brace in the first column opens."""
        if opening not in self._names:
            head = self._code[max(0, opening - _MAX_HEAD) : opening]
            self._names[opening] = function_name(_head_before(head))
        return self._names[opening]

    def _is_open(self, opening: int, offset: int) -> bool:
        region = self._searched(opening, offset)
        return region.count("{") > region.count("}")

    def _named_otherwise(self, begin: int, offset: int) -> str | None:
        """Name a function that begins after `begin` and continues at `offset`, its brace on the same line."""
        region = self._searched(begin, offset)
        opening = _outermost(region)
        head = _head_before(region[:opening]) if opening >= 0 else ""
        return function_name(head) if _AT_LINE_START.match(head) else None

    def _searched(self, begin: int, offset: int) -> str:
        """Return a range to search; nothing once an unusual file has cost too much."""
        if offset - begin > self._budget:
            return ""
        self._budget -= offset - begin
        return self._code[begin:offset]


def _outermost(region: str) -> int:
    """Return the offset of the outermost brace that is still open at the end, or -1."""
    depth = 0
    found = -1
    for match in reversed(list(_BRACES.finditer(region))):
        if match[0] == "}":
            depth += 1
        elif depth:
            depth -= 1
        else:
            found = match.start()
    return found


def _head_before(text: str) -> str:
    text = text[-_MAX_HEAD:]
    return text[max(text.rfind(";"), text.rfind("}")) + 1 :]


def function_name(head: str) -> str:
    """Name the function that a piece of text before a brace declares, empty if it declares none.

    For macros that define functions, this is the name in their first argument.

    >>> function_name("static int __init foo(int (*cb)(void)) __acquires(lock)")
    'foo'
    >>> function_name("SYSCALL_DEFINE3(open, const char __user *, name, int, flags, umode_t, mode)")
    'sys_open'
    >>> function_name("DEFINE_IDTENTRY(exc_divide_error)")
    'exc_divide_error'
    >>> function_name("static __be32 STALE_CLIENTID(clientid_t *clid)")
    'STALE_CLIENTID'
    >>> function_name("static int FNAME(fetch)(struct kvm_vcpu *vcpu)")
    'fetch'
    >>> function_name("struct foo x =")
    ''
    """
    groups = [g for g in _groups(head) if g[0] not in _ATTRIBUTES]
    begin = 0
    # A macro without semicolon before the function, such as `LIST_HEAD(x)` or `EXPORT_SYMBOL(y)`.
    while len(groups) > 1 and not head[begin : groups[0][2]].strip():
        begin = groups[0][3]
        if head[begin:].lstrip()[:1] == "(":
            break
        del groups[0]
    if not groups or "=" in head[: groups[0][2]]:
        return ""
    name, inner, start, end = groups[0]
    is_made = not _MODIFIERS.sub("", head[begin:start]).strip() or head[end:].lstrip()[:1] == "("
    if not name.isupper() or not is_made:
        return name
    words = _WORD.findall(inner.split(",", 1)[0])
    if not words:
        return name
    if name.startswith("SYSCALL_DEFINE"):
        return f"sys_{words[-1]}"
    if name.startswith("COMPAT_SYSCALL_DEFINE"):
        return f"compat_sys_{words[-1]}"
    return str(words[-1])


def _groups(head: str) -> list[tuple[str, str, int, int]]:
    """Return each `name(inner)` that is in no other parentheses, with its start and end."""
    groups = []
    at = 0
    while (match := _GROUP.search(head, at)) is not None:
        end = find_close_in_text(head, match.end() - 1)
        if end < 0:
            break
        groups.append((match[1], head[match.end() : end], match.start(), end + 1))
        at = end + 1
    return groups


def functions_of(code: str) -> Iterator[tuple[str, int, int]]:
    """Yield name, start and end of each function of a text by counting braces alone.

    For the output of macros, where line ends mean nothing.
    """
    depth = 0
    start = at = 0
    name = ""
    for match in _BRACE.finditer(code):
        at = match.end()
        if match[0] == "{":
            if depth == 0:
                name = function_name(code[start : match.start()])
            depth += 1
        elif match[0] == "}":
            depth = max(0, depth - 1)
            if depth == 0:
                if name:
                    yield name, start, at
                start = at
        elif depth == 0:
            start = at
