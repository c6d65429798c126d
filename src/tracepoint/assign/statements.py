"""C statements of `TP_fast_assign` to a small tree.

In: the expanded tokens of the assignment.  Out: a `Block`.  Text that is not balanced raises
SourceError with its place; a single statement that is beyond this reader (`goto`, inline
assembly, a local struct) becomes an `Unreadable` and the rest is still read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tracepoint.assign import declarations
from tracepoint.assign.tree import Block, Case, If, Jump, Loop, Run, Statement, Switch, Unreadable
from tracepoint.errors import SourceError
from tracepoint.source.cexpr import parse_expression
from tracepoint.source.ctype import starts_type, tokens_text
from tracepoint.source.lexer import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tracepoint.source.ast import Node
    from tracepoint.source.lexer import Token

MAX_TOKENS = 200_000
MAX_DEPTH = 40
_CLOSER = {"(": ")", "[": "]", "{": "}"}
_ASM = frozenset({"asm", "__asm__", "__asm"})
_JUMPS = frozenset({"break", "continue", "return"})


def parse_statements(tokens: Sequence[Token]) -> Block:
    """Read the statements of a `TP_fast_assign` body.

    `tokens` are its expanded tokens (at most 200 000, nested at most 40 deep).  Raises
    SourceError when brackets do not match or a cap is passed.
    """
    kept = [token for token in tokens if token.kind is not Kind.END]
    if len(kept) > MAX_TOKENS:
        raise SourceError(f"more than {MAX_TOKENS} tokens in one assignment", kept[0].root.span)
    return _Reader(kept).read_all()


class _Reader:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._match = _match_brackets(tokens)

    def read_all(self) -> Block:
        body: list[Statement] = []
        while self._at < len(self._tokens):
            body.append(self._statement())
        ends = (self._tokens[0], self._tokens[-1]) if self._tokens else (None, None)
        return Block(tuple(body), first=ends[0], last=ends[1])

    def _text(self, offset: int = 0) -> str:
        at = self._at + offset
        return self._tokens[at].text if at < len(self._tokens) else ""

    def _statement(self) -> Statement:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise SourceError(
                f"statements nested more than {MAX_DEPTH} deep", self._tokens[self._at].root.span
            )
        try:
            return self._one()
        finally:
            self._depth -= 1

    def _one(self) -> Statement:
        text = self._text()
        reader = self._readers.get(text)
        if reader is not None:
            return reader(self)
        return self._plain(text)

    def _plain(self, text: str) -> Statement:
        if text in _JUMPS:
            return self._jump()
        if text == "goto" or text in _ASM:
            return self._skip("inline assembly" if text in _ASM else "goto is not followed")
        if self._is_label():
            return self._label()
        if self._is_macro_loop():
            return self._macro_loop()
        return self._simple()

    def _empty(self) -> Block:
        self._at += 1
        return Block((), first=self._tokens[self._at - 1], last=self._tokens[self._at - 1])

    def _block(self) -> Block:
        first = self._tokens[self._at]
        close = self._match[self._at]
        self._at += 1
        body: list[Statement] = []
        while self._at < close:
            body.append(self._statement())
        self._at = close + 1
        return Block(tuple(body), first=first, last=self._tokens[close])

    def _if(self) -> Statement:
        start = self._at
        self._at += 1
        condition = self._group()
        then = self._body()
        otherwise = None
        if self._text() == "else":
            self._at += 1
            otherwise = self._body()
        if isinstance(condition, str):
            return self._unreadable(start, condition)
        return If(condition, then, otherwise, first=self._tokens[start], last=self._tokens[self._at - 1])

    def _for(self) -> Statement:
        start = self._at
        open_at = self._at + 1
        if self._text(1) != "(":
            return self._skip("for without parentheses")
        close = self._match[open_at]
        parts = self._split(open_at + 1, close, ";")
        self._at = close + 1
        body = self._body()
        if len(parts) != 3:
            return self._unreadable(start, "for needs three parts")
        initial, condition, step = parts
        try:
            return Loop(
                body,
                condition=parse_expression(condition) if condition else None,
                start=self._sub_statement(initial) if initial else None,
                step=parse_expression(step) if step else None,
                first=self._tokens[start],
                last=self._tokens[self._at - 1],
            )
        except SourceError as error:
            return self._unreadable(start, error.message)

    def _while(self) -> Statement:
        start = self._at
        self._at += 1
        condition = self._group()
        body = self._body()
        if isinstance(condition, str):
            return self._unreadable(start, condition)
        return Loop(body, condition=condition, first=self._tokens[start], last=self._tokens[self._at - 1])

    def _do(self) -> Statement:
        start = self._at
        self._at += 1
        body = self._body()
        if self._text() != "while":
            return self._unreadable(start, "do without while")
        self._at += 1
        condition = self._group()
        if self._text() == ";":
            self._at += 1
        if isinstance(condition, str):
            return self._unreadable(start, condition)
        return Loop(
            body, condition=condition, is_do=True, first=self._tokens[start], last=self._tokens[self._at - 1]
        )

    def _switch(self) -> Statement:
        start = self._at
        self._at += 1
        value = self._group()
        body = self._body()
        if isinstance(value, str) or not isinstance(body, Block):
            return self._unreadable(start, value if isinstance(value, str) else "switch without a block")
        return Switch(value, body, first=self._tokens[start], last=self._tokens[self._at - 1])

    def _case(self) -> Statement:
        start = self._at
        colon = self._find(":", self._at)
        if colon is None:
            return self._skip("case without a colon")
        inner = self._tokens[start + 1 : colon]
        self._at = colon + 1
        dots = next((i for i, token in enumerate(inner) if token.text == "..."), len(inner))
        try:
            value = parse_expression(inner[:dots]) if inner else None
            high = parse_expression(inner[dots + 1 :]) if dots < len(inner) else None
        except SourceError as error:
            return self._unreadable(start, error.message)
        return Case(value, high, first=self._tokens[start], last=self._tokens[colon])

    def _jump(self) -> Statement:
        start = self._at
        end = self._end_of_statement()
        inner = self._tokens[start + 1 : end]
        self._at = min(end + 1, len(self._tokens))
        try:
            value = parse_expression(inner) if inner else None
        except SourceError as error:
            return self._unreadable(start, error.message)
        return Jump(
            self._tokens[start].text, value, first=self._tokens[start], last=self._tokens[self._at - 1]
        )

    def _is_label(self) -> bool:
        at = self._at
        return self._tokens[at].kind is Kind.NAME and self._text(1) == ":"

    def _label(self) -> Statement:
        self._at += 2
        if self._at >= len(self._tokens) or self._text() == "}":
            return Block(())
        return self._one()

    def _is_macro_loop(self) -> bool:
        """Tell whether a macro such as `list_for_each_entry(a, b, c)` stands before a body."""
        if self._tokens[self._at].kind is not Kind.NAME or self._text(1) != "(" or starts_type(self._text()):
            return False
        after = self._match[self._at + 1] + 1
        return after < len(self._tokens) and (
            self._tokens[after].text == "{" or self._tokens[after].kind is Kind.NAME
        )

    def _macro_loop(self) -> Statement:
        start = self._at
        name = self._text()
        self._at = self._match[self._at + 1] + 1
        if "for_each" not in name and self._text() != "{":
            # A macro that needs no semicolon, as `__assign_str()` once was.
            return self._sub_statement(self._tokens[start : self._at])
        self._body()
        return self._unreadable(start, f"{name}() walks over what is not known here")

    def _simple(self) -> Statement:
        start = self._at
        end = self._end_of_statement()
        inner = self._tokens[start:end]
        self._at = min(end + 1, len(self._tokens))
        if not inner:
            raise SourceError(f"unexpected {self._tokens[start].text!r}", self._tokens[start].root.span)
        return self._sub_statement(inner)

    def _sub_statement(self, inner: list[Token]) -> Statement:
        ends = {"first": inner[0], "last": inner[-1]}
        try:
            if declarations.is_declaration(inner):
                declared = declarations.parse_declaration(inner)
                return declared[0] if len(declared) == 1 else Block(declared, is_scope=False, **ends)
            return Run(parse_expression(inner), **ends)
        except SourceError as error:
            names = frozenset(token.text for token in inner if token.kind is Kind.NAME)
            return Unreadable(tokens_text(inner)[:200], error.message, names, **ends)

    def _body(self) -> Statement:
        if self._at >= len(self._tokens):
            last = self._tokens[-1]
            raise SourceError(f"a statement is missing after {last.text!r}", last.root.span)
        return self._statement()

    def _group(self) -> Node | str:
        if self._text() != "(":
            return "an opening parenthesis is missing"
        close = self._match[self._at]
        inner = self._tokens[self._at + 1 : close]
        self._at = close + 1
        try:
            return parse_expression(inner)
        except SourceError as error:
            return error.message

    def _split(self, start: int, end: int, separator: str) -> list[list[Token]]:
        parts: list[list[Token]] = [[]]
        at = start
        while at < end:
            stop = self._match.get(at, at)
            if self._tokens[at].text == separator:
                parts.append([])
            else:
                parts[-1].extend(self._tokens[at : stop + 1])
            at = stop + 1
        return parts

    def _find(self, text: str, start: int) -> int | None:
        at, questions = start, 0
        while at < len(self._tokens) and self._tokens[at].text not in (";", "}"):
            if self._tokens[at].text == "?":
                questions += 1
            elif self._tokens[at].text == text:
                if not questions:
                    return at
                questions -= 1
            at = self._match.get(at, at) + 1
        return None

    def _end_of_statement(self) -> int:
        at = self._at
        while at < len(self._tokens) and self._tokens[at].text not in (";", "}"):
            at = self._match.get(at, at) + 1
        return at

    def _skip(self, reason: str) -> Unreadable:
        start = self._at
        self._at = min(self._end_of_statement() + 1, len(self._tokens))
        return self._unreadable(start, reason)

    def _unreadable(self, start: int, reason: str) -> Unreadable:
        inner = self._tokens[start : self._at]
        names = frozenset(token.text for token in inner if token.kind is Kind.NAME)
        return Unreadable(tokens_text(inner)[:200], reason, names, first=inner[0], last=inner[-1])

    _readers: ClassVar[dict[str, Callable[[_Reader], Statement]]] = {
        "{": _block,
        ";": _empty,
        "if": _if,
        "for": _for,
        "while": _while,
        "do": _do,
        "switch": _switch,
        "case": _case,
        "default": _case,
    }


def _match_brackets(tokens: list[Token]) -> dict[int, int]:
    match: dict[int, int] = {}
    open_at: list[int] = []
    for index, token in enumerate(tokens):
        if token.kind is not Kind.PUNCT:
            continue
        if token.text in _CLOSER:
            open_at.append(index)
        elif token.text in (")", "]", "}"):
            if not open_at or _CLOSER[tokens[open_at[-1]].text] != token.text:
                raise SourceError(f"{token.text!r} closes nothing", token.root.span)
            match[open_at.pop()] = index
    if open_at:
        token = tokens[open_at[-1]]
        raise SourceError(f"{token.text!r} is never closed", token.root.span)
    return match
