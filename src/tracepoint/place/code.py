"""The tokens of a C file, with directives separated, brackets matched, and the `#if` around each token."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.errors import PlaceError, SourceError
from tracepoint.source.brackets import CLOSERS, pair_brackets
from tracepoint.source.lexer import Kind, lex

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.diagnostics import Span
    from tracepoint.source.lexer import Token
    from tracepoint.source.text import SourceFile

#: Nested conditionals; fs/ and kernel/ of 6.1 have 5.
_MAX_CONDITIONS = 64
_REST_OF_LINE = re.compile(r"(?:[ \t\f\v\r]|/\*[^*]*(?:\*(?!/)[^*]*)*\*/|//[^\n]*|\\\r?\n)*(?:\n|\Z)")


@dataclass(slots=True, eq=False)
class Arm:
    """One branch of a conditional: from its `#if`, `#elif` or `#else` to the next directive of the group.

    `text` is the directive as written; `parent` is the branch around the conditional.
    """

    text: str
    start: int
    parent: Arm | None

    def holds(self, other: Arm | None) -> bool:
        """Return whether another branch is this one or is inside it."""
        while other is not None and other is not self:
            other = other.parent
        return other is self


@dataclass(frozen=True, slots=True)
class DirectiveLine:
    """A line that begins with `#`; `end` is the offset after its newline."""

    start: int
    end: int
    keyword: str
    tokens: tuple[Token, ...]
    arm: Arm | None


@dataclass(slots=True)
class SourceCode:
    """A C file as `place` sees it.

    `tokens` are those outside directives, without the branches in `unseen`; `texts` their texts;
    `arms` the branch of a conditional that each is in; `match` pairs brackets both ways, and
    `unmatched` are those without a partner.
    """

    file: SourceFile
    tokens: list[Token]
    texts: list[str]
    arms: list[Arm | None]
    directives: list[DirectiveLine]
    unseen: list[tuple[int, int, str]]
    match: dict[int, int]
    unmatched: list[int]
    _positions: dict[str, list[int]] = field(default_factory=dict)

    def uses(self, name: str, first: int, last: int, limit: int = 1) -> Sequence[int]:
        """Return the first tokens from `first` up to `last` (exclusive) that are this name, in order."""
        if not self._positions:
            for at, text in enumerate(self.texts):
                if self.tokens[at].kind is Kind.NAME:
                    self._positions.setdefault(text, []).append(at)
        found = self._positions.get(name, [])
        begin = bisect_left(found, first)
        return found[begin : min(bisect_left(found, last), begin + limit)]

    def span(self, first: int, last: int) -> Span:
        """Return the span of the tokens `first` to `last`, both included."""
        return self.file.span(self.tokens[first].start, self.tokens[last].end)

    def line(self, at: int) -> int:
        """Return the line of a token."""
        return self.file.position(self.tokens[at].start)[0]

    def is_name(self, at: int) -> bool:
        """Return whether a token is an identifier or keyword."""
        return self.tokens[at].kind is Kind.NAME

    def floor(self, at: int) -> int:
        """Return the offset after which there are only white space and comments before a token."""
        start = self.tokens[at].lead
        index = bisect_right(self.directives, start, key=lambda d: d.start) - 1
        if index >= 0:
            start = max(start, self.directives[index].end)
        return min(start, self.tokens[at].start)

    def directives_between(self, start: int, end: int) -> Sequence[DirectiveLine]:
        """Return the directives that begin between two offsets."""
        first = bisect_right(self.directives, start - 1, key=lambda d: d.start)
        last = bisect_right(self.directives, end - 1, key=lambda d: d.start)
        return self.directives[first:last]

    def error(self, reason: str, at: int) -> PlaceError:
        """Return an error at a token."""
        return PlaceError(reason, self.tokens[at].span)


def read_code(file: SourceFile) -> SourceCode:
    r"""Lex a C file for placing calls.

    Raises PlaceError when the text is not a C source file: a NUL byte, more tokens than any file of the
    kernel has, or unterminated conditionals.

    >>> from tracepoint.source.text import SourceFile
    >>> code = read_code(SourceFile("a.c", "#ifdef A\nint a;\n#endif\nint b[2];\n"))
    >>> code.texts[:4], code.arms[0].text, code.match
    (['int', 'a', ';', 'int'], '#ifdef A', {5: 7, 7: 5})
    """
    nul = file.text.find("\0")
    if nul >= 0:
        raise PlaceError("a NUL byte: this is not a C source file", file.span(nul, nul + 1))
    try:
        raw = lex(file)
    except SourceError as error:
        raise PlaceError("the file has too many tokens to be a C file of a kernel", error.span) from None
    reader = _Conditionals(file)
    reader.read(raw)
    tokens = [token for token, _ in reader.kept]
    arms = [arm for _, arm in reader.kept]
    texts = [token.text for token in tokens]
    return SourceCode(file, tokens, texts, arms, reader.directives, reader.unseen, *pair_brackets(texts))


class _Conditionals:
    """Sorts tokens into directives and code, and follows `#if` to `#endif`."""

    def __init__(self, file: SourceFile) -> None:
        self.file = file
        self.kept: list[tuple[Token, Arm | None]] = []
        self.directives: list[DirectiveLine] = []
        self.unseen: list[tuple[int, int, str]] = []
        self.groups: list[list[tuple[Arm, int, int]]] = []  # arm, its first kept token, offset of its code

    @property
    def arm(self) -> Arm | None:
        return self.groups[-1][-1][0] if self.groups else None

    def read(self, raw: list[Token]) -> None:
        at = 0
        while at < len(raw):
            token = raw[at]
            if token.first and token.text == "#":
                at = self._directive(raw, at)
            else:
                self.kept.append((token, self.arm))
                at += 1
        if self.groups:
            start = self.groups[-1][0][0].start
            raise PlaceError("this conditional has no #endif", self.file.span(start, start + 1))

    def _directive(self, raw: list[Token], at: int) -> int:
        begin = at
        at += 1
        while not raw[at].first and raw[at].kind is not Kind.END:
            at += 1
        tokens = tuple(raw[begin:at])
        keyword = tokens[1].text if len(tokens) > 1 else ""
        rest = _REST_OF_LINE.match(self.file.text, tokens[-1].end)
        end = rest.end() if rest else tokens[-1].end
        start = tokens[0].start
        if keyword == "endif":
            self._end(start)
        elif keyword in ("if", "ifdef", "ifndef"):
            if len(self.groups) >= _MAX_CONDITIONS:
                raise PlaceError(f"more than {_MAX_CONDITIONS} nested conditionals", tokens[0].span)
            self.groups.append([(self._arm(tokens, self.arm), len(self.kept), end)])
        elif keyword in ("else", "elif") and self.groups:
            arm = self._arm(tokens, self.groups[-1][0][0].parent)
            self.groups[-1].append((arm, len(self.kept), end))
        self.directives.append(DirectiveLine(start, end, keyword, tokens, self.arm))
        return at

    def _arm(self, tokens: tuple[Token, ...], parent: Arm | None) -> Arm:
        text = self.file.text[tokens[0].start : tokens[-1].end]
        return Arm(" ".join(text.replace("\\\n", " ").split()), tokens[0].start, parent)

    def _end(self, endif: int) -> None:
        """Close a group: drop branches that are never compiled, and all but one that share brackets."""
        if not self.groups:
            raise PlaceError("#endif without #if", self.file.span(endif, endif + 1))
        group = self.groups.pop()
        starts = [first for _, first, _ in group] + [len(self.kept)]
        dead = _dead_arms([arm for arm, _, _ in group])
        alive = [index for index in range(len(group)) if index not in dead]
        is_split = any(self._is_open(starts[index], starts[index + 1]) for index in alive)
        keep = alive[:1] if is_split else alive
        ends = [arm.start for arm, _, _ in group[1:]] + [endif]
        for index in reversed(range(len(group))):
            if index in keep:
                continue
            del self.kept[starts[index] : starts[index + 1]]
            text = group[index][0].text
            why = f"is under `{text}`, which is never compiled"
            if index not in dead:
                why = f"is under `{text}`, whose branches open and close brackets differently"
            self.unseen.append((group[index][2], ends[index], why))

    def _is_open(self, first: int, last: int) -> bool:
        texts = [token.text for token, _ in self.kept[first:last]]
        return any(texts.count(opener) != texts.count(closer) for opener, closer in CLOSERS.items())


def _dead_arms(arms: list[Arm]) -> set[int]:
    first = arms[0].text.replace(" ", "")
    if first == "#if0":
        return {0}
    if first == "#if1":
        return set(range(1, len(arms)))
    return set()
