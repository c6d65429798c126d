"""C expressions to a small tree: casts, `?:`, string concatenation, calls, `{value, "name"}` lists.

There is no symbol table, so whether `(x)` is a cast is decided by what is known of kernel
types, by `type_names`, and by what follows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracepoint.errors import SourceError
from tracepoint.source import ast
from tracepoint.source.brackets import find_close
from tracepoint.source.ctype import (
    is_type,
    is_typedef_name,
    scan_type,
    starts_type,
)
from tracepoint.source.cwrite import (
    ASSIGN,
    BINARY_PRECEDENCE,
    COMMA,
    TERNARY,
    decode_string,
    write_expression,
)
from tracepoint.source.lexer import Kind, Token, lex
from tracepoint.source.macros import spell
from tracepoint.source.text import SourceFile

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from tracepoint.source.ctype import CType

__all__ = ["decode_string", "parse_arguments", "parse_expression", "write_expression"]

MAX_NESTING = 150
MAX_HEIGHT = 200
_ASSIGN_OPS = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "^=", "|=", "<<=", ">>="})
_PREFIX_OPS = frozenset({"+", "-", "!", "~", "&", "*", "++", "--"})
# The helpers of a record's dynamic members; their first argument is the member's name.
_OF_MEMBERS = ("__get_", "__assign_")
_MAY_BEGIN_OPERAND = _PREFIX_OPS | {"("}
_SIZEOF = {"sizeof": "sizeof", "_Alignof": "_Alignof", "__alignof__": "_Alignof", "__alignof": "_Alignof"}
_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)([uUlL]{0,3})\Z")


class _Parser:
    """Precedence climbing over `tokens[at:stop]`; `height` is that of the node parsed last."""

    def __init__(self, tokens: Sequence[Token], type_names: Container[str]) -> None:
        self.tokens = tokens
        self.at = 0
        self.stop = len(tokens)
        while self.stop and tokens[self.stop - 1].kind is Kind.END:
            self.stop -= 1
        self.type_names = type_names
        self.nesting = 0
        self.height = 0

    # -- tokens ---------------------------------------------------------------------------

    def is_known_type(self, name: str) -> bool:
        return name in self.type_names or is_typedef_name(name)

    def peek(self) -> str:
        return self.tokens[self.at].text if self.at < self.stop else ""

    def peek_kind(self, ahead: int = 0) -> Kind:
        index = self.at + ahead
        return self.tokens[index].kind if index < self.stop else Kind.END

    def wrong(self, message: str, token: Token | None = None) -> SourceError:
        if token is None and self.tokens:
            token = self.tokens[min(self.at, len(self.tokens) - 1)]
        return SourceError(message, token.root.span if token is not None else None)

    def expect(self, text: str, opener: Token | None = None) -> Token:
        if self.peek() != text or self.at >= self.stop:
            if self.at >= self.stop and opener is not None:
                raise self.wrong(f"`{opener.text}` is never closed, `{text}` expected", opener)
            raise self.wrong(
                f"`{text}` expected, not `{self.peek()[:40]}`" if self.peek() else f"`{text}` expected"
            )
        token = self.tokens[self.at]
        self.at += 1
        return token

    def grow(self, *heights: int) -> None:
        self.height = max(heights, default=0) + 1
        if self.height > MAX_HEIGHT:
            raise self.wrong(f"expression with more than {MAX_HEIGHT} operators in a row")

    def before(self) -> Token:
        return self.tokens[self.at - 1]

    # -- operators ------------------------------------------------------------------------

    def expression(self, least: int = COMMA) -> ast.Node:
        """Read an expression whose operators bind at least as tightly as `least`."""
        if self.nesting >= MAX_NESTING:
            raise self.wrong(f"expression nested more than {MAX_NESTING} deep")
        self.nesting += 1
        node = self.unary()
        while self.at < self.stop and self.tokens[self.at].kind is Kind.PUNCT:
            op = self.tokens[self.at].text
            level = BINARY_PRECEDENCE.get(op)
            if level is not None:
                if level < least:
                    break
                node = self.binary(node, op, level + 1)
            elif op == "?" and least <= TERNARY:
                node = self.ternary(node)
            elif (op in _ASSIGN_OPS and least <= ASSIGN) or (op == "," and least <= COMMA):
                node = self.binary(node, op, ASSIGN)
            else:
                break
        self.nesting -= 1
        return node

    def binary(self, left: ast.Node, op: str, least: int) -> ast.Node:
        height = self.height
        self.at += 1
        right = self.expression(least)
        self.grow(height, self.height)
        first, last = left.first, right.last
        if op == ",":
            return ast.Comma(left, right, first=first, last=last)
        if op in _ASSIGN_OPS:
            return ast.Assign(op, left, right, first=first, last=last)
        return ast.Binary(op, left, right, first=first, last=last)

    def ternary(self, condition: ast.Node) -> ast.Node:
        height = self.height
        self.at += 1
        then: ast.Node | None = None
        if self.peek() != ":":
            then = self.expression(COMMA)
            height = max(height, self.height)
        self.expect(":")
        otherwise = self.expression(TERNARY)
        self.grow(height, self.height)
        return ast.Ternary(condition, then, otherwise, first=condition.first, last=otherwise.last)

    def unary(self) -> ast.Node:
        """Read prefix operators, casts and sizeof, then a postfix expression."""
        if self.at >= self.stop:
            raise self.wrong("an expression is missing here")
        token = self.tokens[self.at]
        if token.kind is Kind.PUNCT and token.text in _PREFIX_OPS:
            self.at += 1
            operand = self.nested_unary()
            return ast.Unary(token.text, operand, first=token, last=operand.last)
        if token.kind is Kind.NAME:
            if token.text in _SIZEOF:
                return self.sizeof(token)
            if token.text == "__extension__":
                self.at += 1
                return self.nested_unary()
        elif token.text == "(" and (cast := self.cast(token)) is not None:
            return cast
        return self.postfix(self.primary(token))

    def nested_unary(self) -> ast.Node:
        if self.nesting >= MAX_NESTING:
            raise self.wrong(f"expression nested more than {MAX_NESTING} deep")
        self.nesting += 1
        operand = self.unary()
        self.nesting -= 1
        self.grow(self.height)
        return operand

    def cast(self, opener: Token) -> ast.Node | None:
        """Read `(type)operand` or `(type){...}`, or nothing when the parentheses hold no type."""
        if self.peek_kind(1) is not Kind.NAME:
            return None
        close = find_close(self.tokens, self.at, self.stop)
        if close < 0 or not self.is_cast(close):
            return None
        scanned = scan_type(self.tokens, self.at + 1, close)
        if scanned is None or scanned[1] != close:
            return None
        self.at = close + 1
        ctype = scanned[0]
        if self.peek() == "{":
            items = self.init_list()
            literal = ast.CompoundLiteral(ctype, items, first=opener, last=items.last)
            return self.postfix(literal)
        operand = self.nested_unary()
        return ast.Cast(ctype, operand, first=opener, last=operand.last)

    def is_cast(self, close: int) -> bool:
        """Decide whether the parentheses from `at` to `close` hold a type."""
        if close + 1 >= self.stop:
            return False
        after = self.tokens[close + 1]
        begins_operand = after.kind in (Kind.NAME, Kind.NUMBER, Kind.CHAR) or after.text in ("{", "~", "!")
        if is_type(self.tokens, self.at + 1, close, self.is_known_type):
            # `(count_t) + 1` could be a sum; names of kernel types end so, names of variables do not.
            return begins_operand or after.kind is Kind.STRING or after.text in _MAY_BEGIN_OPERAND
        return begins_operand and close == self.at + 2

    def sizeof(self, word: Token) -> ast.Node:
        self.at += 1
        op = _SIZEOF[word.text]
        if self.peek() == "(" and (close := find_close(self.tokens, self.at, self.stop)) > 0:
            ctype = self.type_between(self.at + 1, close)
            if ctype is not None and not (close + 1 < self.stop and self.tokens[close + 1].text == "{"):
                self.at = close + 1
                self.height = 0
                return ast.SizeOf(ctype, None, op, first=word, last=self.before())
        operand = self.nested_unary()
        return ast.SizeOf(None, operand, op, first=word, last=self.before())

    def type_between(self, at: int, stop: int) -> CType | None:
        if not is_type(self.tokens, at, stop, self.is_known_type):
            return None
        scanned = scan_type(self.tokens, at, stop)
        return scanned[0] if scanned else None

    # -- operands -------------------------------------------------------------------------

    def primary(self, token: Token) -> ast.Node:
        self.height = 0
        match token.kind:
            case Kind.NAME:
                if starts_type(token.text):
                    raise self.wrong(f"a type where a value is expected: `{token.text}`", token)
                self.at += 1
                name = ast.Name(token.text, first=token, last=token)
                return self.concatenation([name]) if self.peek_kind() is Kind.STRING else name
            case Kind.NUMBER:
                self.at += 1
                return self.number(token)
            case Kind.STRING:
                return self.concatenation([])
            case Kind.CHAR:
                self.at += 1
                return self.char(token)
        if token.text == "(":
            return self.parenthesised(token)
        if token.text == "{":
            return self.init_list()
        if token.kind is Kind.BAD:
            raise self.wrong(f"this does not belong in C text: `{token.text[:20]}`", token)
        raise self.wrong(f"an expression is expected, not `{token.text}`", token)

    def parenthesised(self, opener: Token) -> ast.Node:
        self.at += 1
        if self.peek() == "{":
            close = find_close(self.tokens, self.at, self.stop)
            if close < 0:
                raise self.wrong("`({` is never closed", opener)
            inside = tuple(self.tokens[self.at + 1 : close])
            self.at = close + 1
            last = self.expect(")", opener)
            return ast.StatementExpression(inside, spell(inside), first=opener, last=last)
        node = self.expression(COMMA)
        self.expect(")", opener)
        return node

    def number(self, token: Token) -> ast.Node:
        text = token.text
        match = _INTEGER.match(text)
        if match is None:
            return self.floating(token)
        digits, suffix = match.groups()
        is_decimal = not digits.startswith("0") or digits == "0"
        if len(digits) > 70:
            raise self.wrong("integer constant too large", token)
        try:
            value = int(digits, 0) if is_decimal or digits[1] in "xXbB" else int(digits, 8)
        except ValueError:
            raise self.wrong(f"not a number: `{text[:40]}`", token) from None
        return ast.Number(value, suffix.lower(), is_decimal, first=token, last=token)

    def floating(self, token: Token) -> ast.Node:
        text = token.text.rstrip("fFlL")
        try:
            value = float.fromhex(text) if text[:2] in ("0x", "0X") else float(text)
        except (ValueError, OverflowError):
            raise self.wrong(f"not a number: `{token.text[:40]}`", token) from None
        return ast.Float(value, first=token, last=token)

    def char(self, token: Token) -> ast.Node:
        value = 0
        body = decode_string(token.text[1:-1])
        if not body or len(body) > 4:
            raise self.wrong(f"not a character constant: {token.text[:20]}", token)
        for byte in body:
            value = value << 8 | ord(byte)
        if len(body) == 1 and value > 127:
            value -= 256
        return ast.Char(value, first=token, last=token)

    def concatenation(self, pieces: list[ast.Node]) -> ast.Node:
        """Join adjacent literals and names of macros that stand for literals."""
        while self.at < self.stop:
            token = self.tokens[self.at]
            if token.kind is Kind.STRING:
                self.at += 1
                value = decode_string(token.text[1:-1])
                if pieces and isinstance(pieces[-1], ast.String):
                    value = pieces[-1].value + value
                    pieces[-1] = ast.String(value, first=pieces[-1].first, last=token)
                else:
                    pieces.append(ast.String(value, first=token, last=token))
            elif token.kind is Kind.NAME:
                self.at += 1
                name: ast.Node = ast.Name(token.text, first=token, last=token)
                pieces.append(self.call(name) if self.peek() == "(" else name)
            else:
                break
        self.height = 0
        first = pieces[0]
        if len(pieces) == 1 and isinstance(first, ast.String):
            return first
        text = "".join(p.value for p in pieces if isinstance(p, ast.String))
        return ast.String(text, tuple(pieces), first=first.first, last=pieces[-1].last)

    def postfix(self, node: ast.Node) -> ast.Node:
        while self.at < self.stop:
            token = self.tokens[self.at]
            height = self.height
            match token.text if token.kind is Kind.PUNCT else "":
                case "(":
                    node = self.call(node)
                    if self.peek_kind() is Kind.STRING:
                        node = self.concatenation([node])
                case "[":
                    self.at += 1
                    index = self.expression(COMMA)
                    height = max(height, self.height)
                    last = self.expect("]", token)
                    node = ast.Index(node, index, first=node.first, last=last)
                case "." | "->":
                    self.at += 1
                    if self.peek_kind() is not Kind.NAME:
                        raise self.wrong(f"a member's name is expected after `{token.text}`")
                    last = self.tokens[self.at]
                    self.at += 1
                    node = ast.Member(node, last.text, token.text == "->", first=node.first, last=last)
                case "++" | "--":
                    self.at += 1
                    node = ast.Unary("p" + token.text, node, first=node.first, last=token)
                case _:
                    return node
            self.grow(height, self.height)
        return node

    def call(self, function: ast.Node) -> ast.Node:
        opener = self.tokens[self.at]
        self.at += 1
        arguments: list[ast.Node] = []
        height = 0
        if self.peek() != ")":
            is_field = isinstance(function, ast.Name) and function.name.startswith(_OF_MEMBERS)
            arguments, height = self.argument_list({",", ")"}, is_field=is_field)
        last = self.expect(")", opener)
        self.height = height + 1
        return ast.Call(function, tuple(arguments), first=function.first, last=last)

    def argument_list(self, enders: set[str], *, is_field: bool = False) -> tuple[list[ast.Node], int]:
        first = self.field_name() if is_field else None
        arguments = [first or self.argument(enders)]
        height = self.height
        while self.peek() == "," and self.at < self.stop:
            self.at += 1
            arguments.append(self.argument(enders))
            height = max(height, self.height)
        return arguments, height

    def field_name(self) -> ast.Node | None:
        """Read the name of a record's member where it is alone; it may end in `_t` as types do."""
        token = self.tokens[self.at]
        is_alone = self.at + 1 < self.stop and self.tokens[self.at + 1].text in (",", ")")
        if token.kind is not Kind.NAME or not is_alone:
            return None
        self.at += 1
        self.height = 0
        return ast.Name(token.text, first=token, last=token)

    def argument(self, enders: set[str]) -> ast.Node:
        """Read one argument, which may be a type as in `offsetof(struct a, b)`."""
        if self.peek_kind() is Kind.NAME:
            name = self.peek()
            if (
                starts_type(name)
                or self.is_known_type(name)
                or (self.at + 1 < self.stop and self.tokens[self.at + 1].text == "*")
            ):
                scanned = scan_type(self.tokens, self.at, self.stop)
                if scanned is not None and self.is_type_argument(scanned[1], enders):
                    first = self.tokens[self.at]
                    self.at = scanned[1]
                    self.height = 0
                    return ast.TypeName(scanned[0], first=first, last=self.before())
        return self.expression(ASSIGN)

    def is_type_argument(self, end: int, enders: set[str]) -> bool:
        if end < self.stop and self.tokens[end].text not in enders:
            return False
        return is_type(self.tokens, self.at, end, self.is_known_type)

    def init_list(self) -> ast.InitList:
        opener = self.tokens[self.at]
        if self.nesting >= MAX_NESTING:
            raise self.wrong(f"initialiser nested more than {MAX_NESTING} deep", opener)
        self.nesting += 1
        self.at += 1
        items: list[ast.Node] = []
        height = 0
        while self.at < self.stop and self.peek() != "}":
            items.append(self.init_item())
            height = max(height, self.height)
            if self.peek() != ",":
                break
            self.at += 1
        last = self.expect("}", opener)
        self.nesting -= 1
        self.grow(height)
        return ast.InitList(tuple(items), first=opener, last=last)

    def init_item(self) -> ast.Node:
        first = self.tokens[self.at]
        target: ast.Node | None = None
        while self.peek() in (".", "["):
            token = self.tokens[self.at]
            self.at += 1
            base = target if target is not None else ast.Name("", first=token, last=token)
            if token.text == "[":
                target = ast.Index(base, self.range_index(), first=first, last=self.expect("]", token))
                continue
            if self.peek_kind() is not Kind.NAME:
                raise self.wrong("a member's name is expected after `.`")
            name = self.tokens[self.at]
            self.at += 1
            target = (
                ast.Name(name.text, first=first, last=name)
                if target is None
                else ast.Member(base, name.text, is_arrow=False, first=first, last=name)
            )
        if target is None:
            return self.expression(ASSIGN)
        self.expect("=")
        value = self.expression(ASSIGN)
        return ast.Assign("=", target, value, first=first, last=value.last)

    def range_index(self) -> ast.Node:
        index = self.expression(COMMA)
        if self.peek() == "...":
            self.at += 1
            high = self.expression(COMMA)
            return ast.Binary("...", index, high, first=index.first, last=high.last)
        return index


def _tokens_of(source: Sequence[Token] | str) -> Sequence[Token]:
    return lex(SourceFile("<expression>", source)) if isinstance(source, str) else source


def parse_expression(source: Sequence[Token] | str, *, type_names: Container[str] = ()) -> ast.Node:
    """Parse one C expression, given as tokens or text, comma operator included.

    `type_names` are names to be taken as types beside the kernel's usual ones (`u8`, `..._t`,
    `__le16`); tokens may come from macro expansion, and a trailing END is ignored.  Raises
    `SourceError` with the place when it is not an expression, or nested absurdly deep.

    >>> parse_expression("(u8)flags & 3")
    Binary(op='&', left=Cast(ctype=CType(base='u8', pointers=0, array=(), qualifiers=frozenset()), \
operand=Name(name='flags')), right=Number(value=3, suffix='', is_decimal=True))
    """
    parser = _Parser(_tokens_of(source), type_names)
    node = parser.expression(COMMA)
    if parser.at < parser.stop:
        raise parser.wrong(f"unexpected `{parser.peek()[:40]}` after the expression")
    return node


def parse_arguments(
    source: Sequence[Token] | str, *, type_names: Container[str] = ()
) -> tuple[ast.Node, ...]:
    """Parse a comma-separated list at top level, as after a print format; empty text gives ().

    Raises `SourceError` as `parse_expression` does.

    >>> [write_expression(a) for a in parse_arguments('"%d", a = (b, c), { 1, "x" }')]
    ['"%d"', 'a = (b, c)', '{ 1, "x" }']
    """
    parser = _Parser(_tokens_of(source), type_names)
    if parser.at >= parser.stop:
        return ()
    arguments, _ = parser.argument_list({","})
    if parser.at < parser.stop:
        raise parser.wrong(f"unexpected `{parser.peek()[:40]}` in the list of arguments")
    return tuple(arguments)
