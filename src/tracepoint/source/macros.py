"""Macro definitions and their expansion, with provenance.

Tokens copied from a macro's body carry an `Expansion`; tokens of arguments keep the place where
a human wrote them.  Names in `protected` are never expanded.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracepoint.errors import SourceError
from tracepoint.source.lexer import Expansion, Kind, Token, lex
from tracepoint.source.text import SourceFile

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence

#: Bounds that no real header comes near (the largest of 6.12 expands to 200,000 tokens).
MAX_TOKENS = 3_000_000
MAX_DEPTH = 120

_NAME = Kind.NAME
_WHITE = re.compile(r"(?:\s|\\\n)+")


class Macro:
    """One `#define`: its name, parameters (None when object-like), and body tokens."""

    __slots__ = ("body", "definition", "is_variadic", "name", "params")

    def __init__(
        self,
        name: str,
        params: tuple[str, ...] | None,
        body: list[Token],
        definition: Token | None,
        *,
        is_variadic: bool = False,
    ) -> None:
        self.name = name
        self.params = params
        self.body = body
        self.definition = definition
        self.is_variadic = is_variadic

    @property
    def text(self) -> str:
        """The body as `#` would print it."""
        return spell(self.body)


def spell(tokens: Iterable[Token]) -> str:
    """Join tokens with one space where the source had white space, as the `#` operator does."""
    parts: list[str] = []
    for token in tokens:
        if token.kind is Kind.END:
            continue
        if token.space and parts:
            parts.append(" ")
        parts.append(token.text if "\\\n" not in token.text else token.text.replace("\\\n", ""))
    return "".join(parts)


def parse_define(tokens: Sequence[Token]) -> Macro:
    """Make a macro from the tokens after `#define`; raises SourceError when they are not one."""
    if not tokens or tokens[0].kind is not _NAME:
        where = tokens[0].span if tokens else None
        raise SourceError("#define needs a name", where)
    name = tokens[0]
    if len(tokens) < 2 or tokens[1].text != "(" or tokens[1].space:
        return Macro(name.text, None, list(tokens[1:]), name)
    params: list[str] = []
    is_variadic = False
    at = 2
    while at < len(tokens) and tokens[at].text != ")":
        token = tokens[at]
        if token.text == "...":
            is_variadic = True
            if not (tokens[at - 1].kind is _NAME and params):
                params.append("__VA_ARGS__")
        elif token.kind is _NAME:
            params.append(token.text)
        elif token.text != ",":
            raise SourceError(f"bad parameter list of macro {name.text}", token.span)
        at += 1
    if at >= len(tokens):
        raise SourceError(f"parameter list of macro {name.text} never ends", name.span)
    return Macro(name.text, tuple(params), list(tokens[at + 1 :]), name, is_variadic=is_variadic)


def define(name: str, value: str = "1", path: str = "<command line>") -> Macro:
    """Make a macro from a name such as `PARAMS(x...)` and a value, as `-D` does."""
    tokens = [t for t in lex(SourceFile(path, f"{name} {value}")) if t.kind is not Kind.END]
    return parse_define(tokens)


class Expander:
    """Expands token lists against a macro table.

    `lookup` finds a macro by name or returns None; `protected` names are left alone.
    """

    def __init__(self, lookup: Callable[[str], Macro | None], protected: Container[str] = ()) -> None:
        self.lookup = lookup
        self.protected = protected
        self._n_tokens = 0

    def expand(self, tokens: Sequence[Token]) -> list[Token]:
        """Expand all macros; raises SourceError when the result grows without bound."""
        self._n_tokens = 0
        return self._expand(tokens, frozenset(), 0)

    def _expand(self, tokens: Sequence[Token], active: frozenset[str], depth: int) -> list[Token]:
        """Expand a list; a macro being expanded is never entered again (C11 6.10.3.4)."""
        out: list[Token] = []
        append = out.append
        lookup = self.lookup
        protected = self.protected
        # Each level is a token list being read; a level made by a macro names it.
        levels: list[tuple[Sequence[Token], int, str]] = []
        current: Sequence[Token] = tokens
        at = 0
        owner = ""
        while True:
            if at >= len(current):
                if not levels:
                    return out
                if owner:
                    active = active - {owner}
                current, at, owner = levels.pop()
                continue
            token = current[at]
            at += 1
            if token.kind is not _NAME or token.is_painted:
                append(token)
                continue
            macro = lookup(token.text)
            if macro is None or token.text in protected:
                append(token)
                continue
            if token.text in active:
                append(_paint(token))
                continue
            if macro.params is None:
                body = self._substitute(macro, token, (), active, depth)
            else:
                taken = _take_arguments(current, at, levels)
                if taken is None:
                    append(token)
                    continue
                arguments, current, at, owner, active = self._consume(taken, owner, levels, active)
                body = self._substitute(macro, token, arguments, active, depth)
            levels.append((current, at, owner))
            if len(levels) > MAX_DEPTH * 4:
                raise SourceError(f"macro {macro.name} nests too deeply", token.root.span)
            current, at, owner = body, 0, macro.name
            active = active | {macro.name}

    @staticmethod
    def _consume(
        taken: tuple[list[list[Token]], Sequence[Token], int, int],
        owner: str,
        levels: list[tuple[Sequence[Token], int, str]],
        active: frozenset[str],
    ) -> tuple[list[list[Token]], Sequence[Token], int, str, frozenset[str]]:
        """Move to where the arguments ended, leaving the levels that were read to their end."""
        arguments, current, at, n_left = taken
        for _ in range(n_left):
            if owner:
                active = active - {owner}
            _, _, owner = levels.pop()
        return arguments, current, at, owner, active

    def _substitute(
        self,
        macro: Macro,
        call: Token,
        arguments: Sequence[list[Token]],
        active: frozenset[str],
        depth: int,
    ) -> list[Token]:
        """Return the body with its parameters replaced (C11 6.10.3.1 to 6.10.3.3)."""
        if depth > MAX_DEPTH:
            raise SourceError(f"arguments of macro {macro.name} nest too deeply", call.root.span)
        expansion = Expansion(macro.name, call, macro.definition)
        if macro.params is None:
            if not any(t.text == "##" for t in macro.body):
                return self._counted([_copy(t, expansion) for t in macro.body], call)
            bound: dict[str, list[Token]] = {}
        else:
            bound = _bind(macro, arguments)
        out = _Substitution(self, macro, bound, expansion, active, depth).run()
        return self._counted(out, call)

    def _counted(self, body: list[Token], call: Token) -> list[Token]:
        if body:
            body[0] = _with_space(body[0], space=call.space)
        self._n_tokens += len(body)
        if self._n_tokens > MAX_TOKENS:
            raise SourceError(f"macro {call.text} expands to more than {MAX_TOKENS} tokens", call.root.span)
        return body


class _Substitution:
    """One replacement list being filled in."""

    def __init__(
        self,
        expander: Expander,
        macro: Macro,
        bound: dict[str, list[Token]],
        expansion: Expansion,
        active: frozenset[str],
        depth: int,
    ) -> None:
        self.expander = expander
        self.macro = macro
        self.bound = bound
        self.expansion = expansion
        self.active = active
        self.depth = depth
        self.expanded: dict[str, list[Token]] = {}
        self.out: list[Token] = []

    def run(self) -> list[Token]:
        body = self.macro.body
        at = 0
        while at < len(body):
            token = body[at]
            following = body[at + 1].text if at + 1 < len(body) else ""
            if token.text == "#" and self.macro.params is not None and following in self.bound:
                self.out.append(_stringify(token, self.bound[following], self.expansion))
                at += 2
            elif token.text == "##" and at and at + 1 < len(body):
                self._paste(body[at + 1])
                at += 2
            else:
                self._plain(token, is_raw=following == "##")
                at += 1
        return [token for token in self.out if token.text]

    def _plain(self, token: Token, *, is_raw: bool) -> None:
        argument = self.bound.get(token.text) if token.kind is _NAME else None
        if argument is None:
            self.out.append(_copy(token, self.expansion))
            return
        if not is_raw:
            argument = self._expanded(token.text)
        if argument:
            self.out.append(_with_space(argument[0], space=token.space))
            self.out.extend(argument[1:])
        elif is_raw:
            self.out.append(_placemarker(token, self.expansion))

    def _expanded(self, name: str) -> list[Token]:
        if name not in self.expanded:
            self.expanded[name] = self.expander._expand(  # noqa: SLF001 - one machine in two classes
                self.bound[name], self.active, self.depth + 1
            )
        return self.expanded[name]

    def _paste(self, right: Token) -> None:
        """Join the last token with the first of `right`; GNU: `, ## args` drops the comma."""
        argument = self.bound.get(right.text) if right.kind is _NAME else None
        pasted = [_copy(right, self.expansion)] if argument is None else argument
        is_rest = self.macro.is_variadic and self.macro.params and right.text == self.macro.params[-1]
        if self.out and self.out[-1].text == "," and is_rest:
            if pasted:
                self.out.extend(self._expanded(right.text))
            else:
                self.out.pop()
            return
        if not pasted:
            return
        left = self.out.pop() if self.out else None
        if left is None or not left.text:
            self.out.extend(pasted)
            return
        self.out.append(_glue(left, pasted[0], self.expansion))
        self.out.extend(pasted[1:])


def _bind(macro: Macro, arguments: Sequence[list[Token]]) -> dict[str, list[Token]]:
    params = macro.params or ()
    given = list(arguments)
    if macro.is_variadic and len(given) > len(params):
        rest = given[len(params) - 1]
        for extra in given[len(params) :]:
            rest = [*rest, _comma(extra, rest), *extra]
        given[len(params) - 1 :] = [rest]
    bound: dict[str, list[Token]] = {name: [] for name in params}
    for name, argument in zip(params, given, strict=False):
        bound[name] = argument
    return bound


def _comma(extra: Sequence[Token], before: Sequence[Token]) -> Token:
    near = extra[0] if extra else before[-1] if before else None
    file = near.file if near is not None else SourceFile("<macro>", ",")
    start = near.start if near is not None else 0
    return Token(Kind.PUNCT, ",", start, start, file, expansion=near.expansion if near is not None else None)


def _take_arguments(
    current: Sequence[Token], at: int, levels: list[tuple[Sequence[Token], int, str]]
) -> tuple[list[list[Token]], Sequence[Token], int, int] | None:
    """Collect the arguments of a call, going on in outer levels when this one ends.

    Returns the arguments, where reading goes on, and how many levels were left; None when no
    call follows or it never closes.
    """
    n_left = 0
    while at >= len(current):
        if n_left >= len(levels):
            return None
        n_left += 1
        current, at, _ = levels[-n_left]
    if current[at].text != "(":
        return None
    at += 1
    depth = 0
    arguments: list[list[Token]] = [[]]
    while True:
        while at >= len(current):
            if n_left >= len(levels):
                return None
            n_left += 1
            current, at, _ = levels[-n_left]
        token = current[at]
        at += 1
        text = token.text
        if text == "(":
            depth += 1
        elif text == ")":
            if depth == 0:
                return ([] if arguments == [[]] else arguments), current, at, n_left
            depth -= 1
        elif text == "," and depth == 0:
            arguments.append([])
            continue
        elif token.kind is Kind.END:
            return None
        arguments[-1].append(token)


def _copy(token: Token, expansion: Expansion) -> Token:
    return Token(
        token.kind, token.text, token.start, token.lead, token.file, space=token.space, expansion=expansion
    )


def _with_space(token: Token, *, space: bool) -> Token:
    if token.space == space:
        return token
    new = Token(
        token.kind, token.text, token.start, token.lead, token.file, space=space, expansion=token.expansion
    )
    new.is_painted = token.is_painted
    return new


def _paint(token: Token) -> Token:
    new = Token(
        token.kind,
        token.text,
        token.start,
        token.lead,
        token.file,
        space=token.space,
        expansion=token.expansion,
    )
    new.is_painted = True
    return new


def _placemarker(token: Token, expansion: Expansion) -> Token:
    """An empty argument beside `##` (C11 6.10.3.3): a token without text."""
    return Token(Kind.PUNCT, "", token.start, token.lead, token.file, space=token.space, expansion=expansion)


def _glue(left: Token, right: Token, expansion: Expansion) -> Token:
    text = left.text + right.text
    tokens = lex(SourceFile("<paste>", text))
    kind = tokens[0].kind if len(tokens) == 2 else Kind.BAD
    # The pasted name points at the part that a human wrote, if one of the two was.
    place = left if left.expansion is None or right.expansion is not None else right
    return Token(
        kind,
        text,
        place.start,
        place.lead,
        place.file,
        space=left.space,
        expansion=place.expansion or expansion,
    )


def _stringify(token: Token, argument: Sequence[Token], expansion: Expansion) -> Token:
    parts = []
    for item in argument:
        text = item.text
        if item.kind in (Kind.STRING, Kind.CHAR):
            text = text.replace("\\", "\\\\").replace('"', '\\"')
        parts.append((" " if item.space and parts else "") + _WHITE.sub(" ", text))
    return Token(
        Kind.STRING,
        '"' + "".join(parts) + '"',
        token.start,
        token.lead,
        token.file,
        space=token.space,
        expansion=expansion,
    )
