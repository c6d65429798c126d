"""Brackets of C: where one closes, what is outside of them, and the parts between commas.

Tokens are whatever has a `text`: those of the lexer, or the pieces of a formatter.  The text of a literal
has its quotes, and that of a comment its slash, so neither is taken for a bracket.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol, TypeVar

from tracepoint.source.lexer import Kind

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

    from tracepoint.source.lexer import Token

CLOSERS = {"(": ")", "[": "]", "{": "}"}
OPENERS = {closer: opener for opener, closer in CLOSERS.items()}
_STEPS = dict.fromkeys(CLOSERS, 1) | dict.fromkeys(OPENERS, -1)
_ROUND_STEPS = {"(": 1, ")": -1}
_PUNCT = Kind.PUNCT
_PAIRS = {opener: re.compile(f"[\\{opener}\\{closer}]") for opener, closer in CLOSERS.items()}


class HasText(Protocol):
    """A token, as far as brackets go."""

    @property
    def text(self) -> str:
        """What is written."""


T = TypeVar("T", bound=HasText)


def step(text: str) -> int:
    """Return 1 for an opening bracket, -1 for a closing one, 0 for any other text."""
    return _STEPS.get(text, 0)


def find_close(tokens: Sequence[HasText], at: int, stop: int | None = None) -> int:
    """Return the index of the bracket that closes the one at `at`, or -1; kinds must match.

    `stop` is the index to stop before, the end without it.
    """
    expected: list[str] = []
    for index in range(at, len(tokens) if stop is None else stop):
        text = tokens[index].text
        if text in CLOSERS:
            expected.append(CLOSERS[text])
        elif text in OPENERS:
            if expected.pop() != text:
                return -1
            if not expected:
                return index
    return -1


def find_parenthesis(tokens: Sequence[HasText], at: int) -> int:
    """Return the index of the `)` that closes the `(` at `at`, or -1, whatever other brackets do."""
    depth = 0
    for index in range(at, len(tokens)):
        text = tokens[index].text
        if text in _ROUND_STEPS:
            depth += _ROUND_STEPS[text]
            if not depth:
                return index
    return -1


def match_brackets(tokens: Sequence[HasText]) -> tuple[dict[int, int], int | None]:
    """Return the index of the closer for that of each opener, and of the first bracket without a partner.

    What follows such a closer is not looked at; of openers that nothing closes, the last counts.
    """
    match: dict[int, int] = {}
    open_at: list[int] = []
    for index, token in enumerate(tokens):
        text = token.text
        if text in CLOSERS:
            open_at.append(index)
        elif text in OPENERS:
            if not open_at or tokens[open_at[-1]].text != OPENERS[text]:
                return match, index
            match[open_at.pop()] = index
    return match, open_at[-1] if open_at else None


def pair_brackets(texts: Sequence[str]) -> tuple[dict[int, int], list[int]]:
    """Pair brackets where not all have a partner; return the pairs in both directions, and the others.

    What is still open in a block ends with it, so that one missing `)` leaves the blocks around it in pairs.

    >>> pair_brackets(["{", "(", "}", "]"])
    ({0: 2, 2: 0}, [1, 3])
    """
    match: dict[int, int] = {}
    unmatched: list[int] = []
    open_at: list[int] = []
    for at, text in enumerate(texts):
        if text in CLOSERS:
            open_at.append(at)
        elif text in OPENERS:
            while text == "}" and open_at and texts[open_at[-1]] != "{":
                unmatched.append(open_at.pop())
            if open_at and texts[open_at[-1]] == OPENERS[text]:
                begin = open_at.pop()
                match[begin], match[at] = at, begin
            else:
                unmatched.append(at)
    return match, sorted(unmatched + open_at)


def outside(
    tokens: Sequence[HasText], texts: Container[str], start: int = 0, stop: int | None = None
) -> Iterator[int]:
    """Yield the indices from `start` up to `stop` of tokens with one of the texts that no bracket encloses.

    A bracket counts as outside of itself; one that closes nothing ends the search.
    """
    depth = 0
    for index in range(start, len(tokens) if stop is None else stop):
        text = tokens[index].text
        if text in OPENERS:
            if not depth:
                if text in texts:
                    yield index
                return
            depth -= 1
        if not depth and text in texts:
            yield index
        if text in CLOSERS:
            depth += 1


def split_arguments(tokens: Sequence[T], separator: str = ",") -> list[Sequence[T]]:
    """Split tokens at the commas, or another separator, that no bracket encloses."""
    return _split(tokens, separator, _STEPS)


def split_macro_arguments(tokens: Sequence[T]) -> list[Sequence[T]]:
    """Split tokens at commas outside parentheses.

    Braces and square brackets do not protect a comma: the preprocessor does not know them.
    """
    return _split(tokens, ",", _ROUND_STEPS)


def read_macro_arguments(
    tokens: Sequence[Token], at: int
) -> tuple[tuple[tuple[Token, ...], ...], int] | None:
    """Return the arguments in the parentheses that open at `at`, and where they close; None if never.

    It is `find_parenthesis` and `split_macro_arguments` in one go: all of a header is read so.
    """
    parts: list[tuple[Token, ...]] = []
    depth, begin = 0, at + 1
    for index in range(at, len(tokens)):
        token = tokens[index]
        if token.kind is not _PUNCT:
            continue
        text = token.text
        if text == "(":
            depth += 1
        elif text == ")":
            depth -= 1
            if not depth:
                parts.append(tuple(tokens[begin:index]))
                return tuple(parts), index
        elif text == "," and depth == 1:
            parts.append(tuple(tokens[begin:index]))
            begin = index + 1
    return None


def _split(tokens: Sequence[T], separator: str, steps: Mapping[str, int]) -> list[Sequence[T]]:
    parts: list[Sequence[T]] = []
    depth = begin = 0
    for index, token in enumerate(tokens):
        text = token.text
        if text == separator:
            if not depth:
                parts.append(tokens[begin:index])
                begin = index + 1
        elif text in steps:
            depth += steps[text]
    parts.append(tokens[begin:])
    return parts


def find_close_in_text(text: str, at: int, limit: int = 20_000) -> int:
    """Return the offset of the bracket that closes the one at an offset, or -1 when none within `limit` does.

    Only brackets of the same kind count; comments and literals must have been blanked out before.

    >>> find_close_in_text("f(a(b), c) d", 1)
    9
    """
    opener = text[at]
    depth = 0
    for found in _PAIRS[opener].finditer(text, at, at + limit):
        depth += 1 if found[0] == opener else -1
        if not depth:
            return found.start()
    return -1
