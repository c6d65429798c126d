"""C statements as a tree: those of `TP_fast_assign`, and of statement expressions.

In: expanded tokens.  Out: a `Block`.  Text that is not balanced raises SourceError with its
place; a single statement that is beyond this reader (`goto`, inline assembly, a local struct)
becomes an `Unreadable` and the rest is still read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from tracepoint.errors import SourceError
from tracepoint.source import ast
from tracepoint.source.brackets import CLOSERS, find_close, match_brackets, split_arguments
from tracepoint.source.cexpr import parse_arguments, parse_expression
from tracepoint.source.ctype import QUALIFIERS, CType, scan_type, starts_type
from tracepoint.source.lexer import Kind
from tracepoint.source.macros import spell

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tracepoint.diagnostics import Span
    from tracepoint.source.lexer import Token

    Make = Callable[[], "Statement"]

MAX_TOKENS = 200_000
MAX_DEPTH = 40
_ASM = frozenset({"asm", "__asm__", "__asm"})
_DECORATION = frozenset({"auto", "__maybe_unused", "__always_unused", "__read_mostly", "__unused"})
_BETWEEN = QUALIFIERS | _DECORATION


@dataclass(frozen=True, slots=True)
class Statement(ast.Node):
    """Base of all statements; `first` and `last` are the tokens at its ends."""

    @property
    def span(self) -> Span | None:
        """The place a human wrote: that of the outermost macro call, if one was expanded."""
        return self.first.root.span if self.first is not None else None


@dataclass(frozen=True, slots=True)
class Run(Statement):
    """An expression followed by a semicolon."""

    expression: ast.Node


@dataclass(frozen=True, slots=True)
class Declare(Statement):
    """One declarator: `type name = initial`; the base may be `typeof(expression)`."""

    name: str
    ctype: CType
    initial: ast.Node | None = None


@dataclass(frozen=True, slots=True)
class Block(Statement):
    """`{ ... }`, or the whole of `TP_fast_assign`; `is_scope` is False for `int a, b;`."""

    body: tuple[Statement, ...]
    is_scope: bool = True


@dataclass(frozen=True, slots=True)
class If(Statement):
    """`if (condition) then else otherwise`."""

    condition: ast.Node
    then: Statement
    otherwise: Statement | None = None


@dataclass(frozen=True, slots=True)
class Loop(Statement):
    """`for`, `while` and `do`; a missing condition is true, `is_do` runs the body first."""

    body: Statement
    condition: ast.Node | None = None
    start: Statement | None = None
    step: ast.Node | None = None
    is_do: bool = False


@dataclass(frozen=True, slots=True)
class Switch(Statement):
    """`switch (value) body`; the labels stand in the body as `Case`."""

    value: ast.Node
    body: Block


@dataclass(frozen=True, slots=True)
class Case(Statement):
    """`case value:`, `case value ... high:`, or `default:` when `value` is None."""

    value: ast.Node | None = None
    high: ast.Node | None = None


@dataclass(frozen=True, slots=True)
class Jump(Statement):
    """`break`, `continue` or `return`."""

    kind: str
    value: ast.Node | None = None


@dataclass(frozen=True, slots=True)
class Unreadable(Statement):
    """A statement that is not followed: `text` as written, and `reason` why.

    `names` are the identifiers in it, so that what it may have stored can be named.
    """

    text: str
    reason: str
    names: frozenset[str] = frozenset()


def parse_statements(tokens: Sequence[Token]) -> Block:
    """Read the statements of a `TP_fast_assign` body.

    `tokens` are its expanded tokens (at most 200 000, nested at most 40 deep).  Raises
    SourceError when brackets do not match or a cap is passed.
    """
    kept = [token for token in tokens if token.kind is not Kind.END]
    if len(kept) > MAX_TOKENS:
        raise SourceError(f"more than {MAX_TOKENS} tokens in one assignment", kept[0].root.span)
    return Block(_Reader(kept).until(len(kept)), is_scope=True, **_ends(kept))


def statements_of(node: ast.StatementExpression) -> tuple[Statement, ...]:
    """Return the statements of a statement expression, read once; raises SourceError as `parse_statements`.

    Those of `({ int a = 1; ; a + 1; })` are two: empty ones are left out.
    """
    if not node.read:
        node.read.extend(one for one in parse_statements(node.tokens).body if one != Block(()))
    return tuple(node.read)


def _ends(tokens: Sequence[Token]) -> dict[str, Token]:
    return {"first": tokens[0], "last": tokens[-1]} if tokens else {}


def _unreadable(tokens: Sequence[Token], reason: str) -> Unreadable:
    names = frozenset(token.text for token in tokens if token.kind is Kind.NAME)
    return Unreadable(spell(tokens)[:200], reason, names, **_ends(tokens))


class _Reader:
    """Finds where statements end; what makes the node of one comes after, and may fail alone."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._match = _matched(tokens)

    def until(self, stop: int) -> tuple[Statement, ...]:
        body: list[Statement] = []
        while self._at < stop:
            body.append(self._statement())
        return tuple(body)

    def _text(self, offset: int = 0) -> str:
        at = self._at + offset
        return self._tokens[at].text if at < len(self._tokens) else ""

    def _statement(self) -> Statement:
        if self._at >= len(self._tokens):
            last = self._tokens[-1]
            raise SourceError(f"a statement is missing after {last.text!r}", last.root.span)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise SourceError(
                f"statements nested more than {MAX_DEPTH} deep", self._tokens[self._at].root.span
            )
        start = self._at
        make = self._readers.get(self._text(), _Reader._other)(self)
        self._depth -= 1
        read = self._tokens[start : self._at]
        try:
            return replace(make(), first=read[0], last=read[-1])
        except SourceError as error:
            return _unreadable(read, error.message)

    def _empty(self) -> Make:
        self._at += 1
        return lambda: Block(())

    def _block(self) -> Make:
        close = self._match[self._at]
        self._at += 1
        body = self.until(close)
        self._at = close + 1
        return lambda: Block(body)

    def _if(self) -> Make:
        self._at += 1
        condition = self._group()
        then = self._statement()
        otherwise = None
        if self._text() == "else":
            self._at += 1
            otherwise = self._statement()
        return lambda: If(_expression(condition), then, otherwise)

    def _for(self) -> Make:
        self._at += 1
        head = self._group()
        if head is None:
            return self._skip("for without parentheses")
        body = self._statement()
        parts = split_arguments(head, ";")

        def make() -> Statement:
            if len(parts) != 3:
                raise SourceError("for needs three parts", None)
            start, condition, step = parts
            return Loop(
                body,
                condition=parse_expression(condition) if condition else None,
                start=_simple_statement(start) if start else None,
                step=parse_expression(step) if step else None,
            )

        return make

    def _while(self) -> Make:
        self._at += 1
        condition = self._group()
        body = self._statement()
        return lambda: Loop(body, condition=_expression(condition))

    def _do(self) -> Make:
        self._at += 1
        body = self._statement()
        if self._text() != "while":
            return _failing("do without while")
        self._at += 1
        condition = self._group()
        if self._text() == ";":
            self._at += 1
        return lambda: Loop(body, condition=_expression(condition), is_do=True)

    def _switch(self) -> Make:
        self._at += 1
        value = self._group()
        body = self._statement()
        if not isinstance(body, Block):
            return _failing("switch without a block")
        return lambda: Switch(_expression(value), body)

    def _case(self) -> Make:
        colon = self._colon()
        if colon is None:
            return self._skip("case without a colon")
        inner = self._tokens[self._at + 1 : colon]
        self._at = colon + 1
        dots = next((i for i, token in enumerate(inner) if token.text == "..."), len(inner))
        return lambda: Case(
            parse_expression(inner[:dots]) if inner else None,
            parse_expression(inner[dots + 1 :]) if dots < len(inner) else None,
        )

    def _jump(self) -> Make:
        kind, *value = self._rest()
        return lambda: Jump(kind.text, parse_expression(value) if value else None)

    def _other(self) -> Make:
        token = self._tokens[self._at]
        if token.kind is Kind.NAME and self._text(1) == ":":
            self._at += 2
            labelled = Block(()) if self._text() in ("", "}") else self._statement()
            return lambda: labelled
        if self._is_macro_loop():
            return self._macro_loop()
        inner = self._rest()
        if not inner:
            raise SourceError(f"unexpected {token.text!r}", token.root.span)
        return lambda: _simple_statement(inner)

    def _is_macro_loop(self) -> bool:
        """Return whether a macro such as `list_for_each_entry(a, b, c)` comes before a body."""
        if self._tokens[self._at].kind is not Kind.NAME or self._text(1) != "(" or starts_type(self._text()):
            return False
        after = self._match[self._at + 1] + 1
        return after < len(self._tokens) and (
            self._tokens[after].text == "{" or self._tokens[after].kind is Kind.NAME
        )

    def _macro_loop(self) -> Make:
        start = self._at
        name = self._text()
        self._at = self._match[self._at + 1] + 1
        if "for_each" not in name and self._text() != "{":
            # A macro that needs no semicolon, as `__assign_str()` once was.
            call = self._tokens[start : self._at]
            return lambda: _simple_statement(call)
        self._statement()
        return _failing(f"{name}() walks over what is not known here")

    def _group(self) -> list[Token] | None:
        """Return the contents of the parentheses that come next, None when there are none."""
        if self._text() != "(":
            return None
        start, self._at = self._at + 1, self._match[self._at] + 1
        return self._tokens[start : self._at - 1]

    def _colon(self) -> int | None:
        at, questions = self._at, 0
        while at < len(self._tokens) and (text := self._tokens[at].text) not in (";", "}"):
            if text == ":" and not questions:
                return at
            questions += (text == "?") - (text == ":")
            at = self._match.get(at, at) + 1
        return None

    def _rest(self) -> list[Token]:
        """Return the tokens up to the semicolon, and pass over it."""
        start = at = self._at
        while at < len(self._tokens) and self._tokens[at].text not in (";", "}"):
            at = self._match.get(at, at) + 1
        self._at = min(at + 1, len(self._tokens))
        return self._tokens[start:at]

    def _skip(self, reason: str) -> Make:
        self._rest()
        return _failing(reason)

    _readers: ClassVar[dict[str, Callable[[_Reader], Make]]] = {
        "{": _block,
        ";": _empty,
        "if": _if,
        "for": _for,
        "while": _while,
        "do": _do,
        "switch": _switch,
        **dict.fromkeys(("case", "default"), _case),
        **dict.fromkeys(("break", "continue", "return"), _jump),
        "goto": lambda self: self._skip("goto is not followed"),
        **dict.fromkeys(_ASM, lambda self: self._skip("inline assembly")),
    }


def _failing(reason: str) -> Make:
    def make() -> Statement:
        raise SourceError(reason, None)

    return make


def _expression(tokens: list[Token] | None) -> ast.Node:
    if tokens is None:
        raise SourceError("an opening parenthesis is missing", None)
    return parse_expression(tokens)


def _simple_statement(tokens: Sequence[Token]) -> Statement:
    try:
        if is_declaration(tokens):
            declared = parse_declaration(tokens)
            return declared[0] if len(declared) == 1 else Block(declared, is_scope=False, **_ends(tokens))
        return Run(parse_expression(tokens), **_ends(tokens))
    except SourceError as error:
        return _unreadable(tokens, error.message)


def _matched(tokens: list[Token]) -> dict[int, int]:
    match, wrong = match_brackets(tokens)
    if wrong is not None:
        token = tokens[wrong]
        fault = "is never closed" if token.text in CLOSERS else "closes nothing"
        raise SourceError(f"{token.text!r} {fault}", token.root.span)
    return match


# Local declarations: `const struct foo *a = b, c[4];`.  Typedef names are not known here, so
# `name * name =` and `name name;` count as declarations: neither is a useful expression statement.


def is_declaration(tokens: Sequence[Token]) -> bool:
    """Tell whether a statement declares something, by its first tokens alone."""
    first = tokens[0]
    if first.kind is not Kind.NAME:
        return False
    if starts_type(first.text) or first.text in _DECORATION:
        return True
    at = 1
    while at < len(tokens) and (tokens[at].text == "*" or tokens[at].text in _BETWEEN):
        at += 1
    if at >= len(tokens) or tokens[at].kind is not Kind.NAME:
        return False
    return (
        at + 1 >= len(tokens) or tokens[at + 1].text in ("=", ",", "[") or tokens[at + 1].text in _DECORATION
    )


def parse_declaration(tokens: Sequence[Token]) -> tuple[Declare, ...]:
    """Read one declaration statement without its semicolon.

    Raises SourceError for what is beyond this reader: function pointers, a struct defined here.
    """
    kept = [token for token in tokens if token.text not in _DECORATION]
    # The stars belong to the first declarator, so the base is read without them.
    scanned = scan_type(kept, 0, len(kept))
    if scanned is None:
        raise SourceError("not a type that this reader knows", tokens[0].root.span)
    base, at = scanned
    if "{" in base.base:
        raise SourceError("a type defined inside the assignment is not followed", tokens[0].root.span)
    if at >= len(kept):
        raise SourceError("a declaration without a name", tokens[0].root.span)
    parts = split_arguments(kept[at:])
    if len(parts) > 1 and not parts[-1]:
        parts.pop()
    before = kept[at - 1]
    first = _declarator(parts[0], base, base.pointers, before)
    return (first, *(_declarator(part, base, 0, before) for part in parts[1:]))


def _declarator(tokens: Sequence[Token], base: CType, pointers: int, before: Token) -> Declare:
    at = 0
    while at < len(tokens) and (tokens[at].text == "*" or tokens[at].text in QUALIFIERS):
        pointers += tokens[at].text == "*"
        at += 1
    if at >= len(tokens) or tokens[at].kind is not Kind.NAME:
        raise SourceError("a name is expected in the declaration", before.root.span)
    name = tokens[at].text
    at += 1
    lengths: list[str] = []
    while at < len(tokens) and tokens[at].text == "[":
        close = find_close(tokens, at)
        lengths.append(spell(tokens[at + 1 : close]))
        at = close + 1
    initial = None
    if at < len(tokens):
        if tokens[at].text != "=":
            raise SourceError(f"unexpected {tokens[at].text!r} in a declaration", tokens[at].root.span)
        items = parse_arguments(tokens[at + 1 :])
        if len(items) != 1:
            raise SourceError("one initial value is expected", tokens[at].root.span)
        initial = items[0]
    ctype = CType(base.base, pointers, tuple(lengths), base.qualifiers)
    return Declare(name, ctype, initial, **_ends(tokens))
