"""Macro expansion with provenance.

Tokens copied from a macro's body carry an `Expansion`; tokens of arguments keep the place where
a human wrote them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracepoint.errors import SourceError
from tracepoint.named import NamedTuple
from tracepoint.source.lexer import Expansion, Kind, Token, lex
from tracepoint.source.text import SourceFile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tracepoint.source.macros import Macro

#: Bounds that no real header comes near: the largest of 6.12 expands to 200,000 tokens.
MAX_TOKENS = 500_000
MAX_DEPTH = 120
MAX_PASTED = 65_536
MAX_LEVELS = 500
#: Tokens looked at for calls that turn out never to close; without it `F(F(F(...` is quadratic.
MAX_WASTED = 5_000_000

_NAME = Kind.NAME
_WHITE = re.compile(r"(?:\s|\\\n)+")


class _Arguments(NamedTuple):
    """The arguments of a call, and the commas between them (a variadic macro keeps those)."""

    parts: list[list[Token]]
    commas: list[Token]


_NO_ARGUMENTS = _Arguments([], [])


class Expander:
    """Expands token lists against a macro table; `lookup` finds a macro by name or returns None.

    `uncalled` collects function-like macros that were met without a call.
    """

    def __init__(self, lookup: Callable[[str], Macro | None]) -> None:
        self.lookup = lookup
        self._n_tokens = 0
        self._n_wasted = 0
        self.uncalled: set[str] = set()

    def expand(self, tokens: Sequence[Token]) -> list[Token]:
        """Expand all macros; raises SourceError when the result grows without bound."""
        return self.expand_within(tokens, frozenset(), 0)

    def expand_within(self, tokens: Sequence[Token], active: frozenset[str], depth: int) -> list[Token]:
        """Expand tokens inside the macros `active`, which are not entered again (C11 6.10.3.4)."""
        out: list[Token] = []
        stream = _Stream(tokens, active)
        while True:
            found = stream.next_macro(out, self.lookup)
            if found is None:
                return out
            token, macro = found
            arguments = _NO_ARGUMENTS
            if macro.params is not None:
                taken = stream.take_arguments()
                if taken is None:
                    self._waste(stream, token)
                    self.uncalled.add(token.text)
                    out.append(token)
                    continue
                arguments = taken
            body = self._substitute(macro, token, arguments, stream.active, depth)
            stream.push(body, macro, token)

    def _waste(self, stream: _Stream, token: Token) -> None:
        self._n_wasted += stream.n_looked_at
        if self._n_wasted > MAX_WASTED:
            raise SourceError(f"too many calls of macro {token.text} never close", token.root.span)

    def _substitute(
        self, macro: Macro, call: Token, arguments: _Arguments, active: frozenset[str], depth: int
    ) -> list[Token]:
        """Return the body with its parameters replaced (C11 6.10.3.1 to 6.10.3.3)."""
        if depth > MAX_DEPTH:
            raise SourceError(f"arguments of macro {macro.name} nest too deeply", call.root.span)
        expansion = Expansion(macro.name, call, macro.definition)
        if macro.params is None and not any(t.text == "##" for t in macro.body):
            body = [_copy(t, expansion) for t in macro.body]
        else:
            bound = _bind(macro, arguments)
            body = _Substitution(self, macro, bound, expansion, active=active, depth=depth).run()
        if body:
            body[0] = _with_space(body[0], space=call.space)
        self._n_tokens += len(body)
        if self._n_tokens > MAX_TOKENS:
            raise SourceError(f"macro {call.text} expands to more than {MAX_TOKENS} tokens", call.root.span)
        return body


class _Stream:
    """A token list being read, with the bodies of the macros found in it on top.

    `active` are the macros whose bodies are being read.
    """

    def __init__(self, tokens: Sequence[Token], active: frozenset[str]) -> None:
        self.active = active
        self.current: Sequence[Token] = tokens
        self.at = 0
        self.owner = ""
        self.levels: list[tuple[Sequence[Token], int, str]] = []
        self.n_looked_at = 0

    def push(self, body: Sequence[Token], macro: Macro, call: Token) -> None:
        """Go on reading in the body of a macro."""
        self.levels.append((self.current, self.at, self.owner))
        if len(self.levels) > MAX_LEVELS:
            raise SourceError(f"macro {macro.name} nests too deeply", call.root.span)
        self.current, self.at, self.owner = body, 0, macro.name
        self.active = self.active | {macro.name}

    def _pop(self) -> None:
        if self.owner:
            self.active = self.active - {self.owner}
        self.current, self.at, self.owner = self.levels.pop()

    def next_macro(
        self, out: list[Token], lookup: Callable[[str], Macro | None]
    ) -> tuple[Token, Macro] | None:
        """Copy tokens to `out` up to the next macro name; None at the end of all levels."""
        append = out.append
        while True:
            current = self.current
            for at in range(self.at, len(current)):
                token = current[at]
                if token.kind is _NAME and not token.is_painted:
                    macro = lookup(token.text)
                    if macro is not None:
                        if token.text not in self.active:
                            self.at = at + 1
                            return token, macro
                        token = _paint(token)
                append(token)
            if not self.levels:
                return None
            self._pop()

    def take_arguments(self) -> _Arguments | None:
        """Read the arguments of a call, going on in outer levels when this one ends.

        Returns None, and leaves the stream where it is, when no call follows or it never closes.
        """
        self.n_looked_at = 0
        current, at, n_left = self.current, self.at, 0
        taken = _Arguments([[]], [])
        depth = -1
        while True:
            while at >= len(current):
                if n_left >= len(self.levels):
                    return None
                n_left += 1
                current, at, _ = self.levels[-n_left]
            token = current[at]
            at += 1
            self.n_looked_at += 1
            text = token.text
            if depth < 0:
                if text != "(":
                    return None
                depth = 0
                continue
            if text == ")" and depth == 0:
                self._leave(n_left, at)
                return _NO_ARGUMENTS if taken.parts == [[]] else taken
            if text == "," and depth == 0:
                taken.commas.append(token)
                taken.parts.append([])
                continue
            if token.kind is Kind.END:
                return None
            depth += (text == "(") - (text == ")")
            taken.parts[-1].append(token)

    def _leave(self, n_levels: int, at: int) -> None:
        for _ in range(n_levels):
            self._pop()
        self.at = at


class _Substitution:
    """One replacement list being filled in."""

    def __init__(
        self,
        expander: Expander,
        macro: Macro,
        bound: dict[str, list[Token]],
        expansion: Expansion,
        *,
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
            self.expanded[name] = self.expander.expand_within(self.bound[name], self.active, self.depth + 1)
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


def _bind(macro: Macro, arguments: _Arguments) -> dict[str, list[Token]]:
    """Give each parameter its tokens; a variadic one takes the rest with the commas."""
    params = macro.params or ()
    n_params = len(params)
    given = arguments.parts[:n_params]
    if macro.is_variadic and len(arguments.parts) > n_params:
        rest = list(given[-1])
        for comma, extra in zip(arguments.commas[n_params - 1 :], arguments.parts[n_params:], strict=True):
            rest.append(comma)
            rest.extend(extra)
        given[-1] = rest
    given += [[] for _ in range(n_params - len(given))]
    return dict(zip(params, given, strict=True))


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
    if len(text) > MAX_PASTED:
        raise SourceError(f"## makes a name of more than {MAX_PASTED} characters", left.root.span)
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
    parts: list[str] = []
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
