"""Write an expression tree as C text, with as few parentheses as C needs; string literals both ways."""

from __future__ import annotations

import re

from tracepoint.source import ast

COMMA, ASSIGN, TERNARY, UNARY, POSTFIX = 1, 2, 3, 14, 15
BINARY_PRECEDENCE = {
    "||": 4,
    "&&": 5,
    "|": 6,
    "^": 7,
    "&": 8,
    "==": 9,
    "!=": 9,
    "<": 10,
    ">": 10,
    "<=": 10,
    ">=": 10,
    "<<": 11,
    ">>": 11,
    "+": 12,
    "-": 12,
    "*": 13,
    "/": 13,
    "%": 13,
}
_ESCAPE = re.compile(r"\\(\r?\n|[0-7]{1,3}|x[0-9a-fA-F]+|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[\s\S])")
_SIMPLE_ESCAPES = {"n": 10, "t": 9, "r": 13, "a": 7, "b": 8, "f": 12, "v": 11, "e": 27, "E": 27}
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


def _unescape(match: re.Match[str]) -> str:
    body = match[1]
    if body[-1] == "\n":
        return ""
    if body[0] in "01234567":
        return chr(int(body, 8) & 0xFF)
    if body[0] == "x" and len(body) > 1:
        return chr(int(body[1:], 16) & 0xFF)
    if body[0] in "uU" and len(body) > 1:
        code = int(body[1:], 16)
        text = chr(code) if code < 0x110000 else "?"
        return text.encode("utf-8", "surrogatepass").decode("latin-1")
    code = _SIMPLE_ESCAPES.get(body, ord(body))
    return chr(code)


def decode_string(body: str) -> str:
    r"""Decode the text between the quotes of a C literal to one character a byte (latin-1).

    >>> decode_string(r"a\tb\x41\101")
    'a\tbAA'
    """
    if not body.isascii():
        body = body.encode("utf-8", "surrogateescape").decode("latin-1")
    return _ESCAPE.sub(_unescape, body) if "\\" in body else body


def quote(value: str) -> str:
    r"""Return a string value (one character a byte) as a C string literal.

    >>> print(quote('a"b' + chr(10)))
    "a\"b\n"
    """
    return (
        '"' + "".join(_ESCAPES.get(c) or (c if " " <= c <= "~" else f"\\{ord(c):03o}") for c in value) + '"'
    )


def _number(node: ast.Number) -> str:
    digits = str(node.value) if node.is_decimal else hex(node.value)
    return digits + node.suffix


def _char(value: int) -> str:
    byte = value & 0xFF
    if byte in (0x27, 0x5C):
        return f"'\\{chr(byte)}'"
    return f"'{chr(byte)}'" if 0x20 <= byte < 0x7F else f"'\\{byte:03o}'"


def _designator(target: ast.Node) -> str:
    match target:
        case ast.Name(name=""):
            return ""
        case ast.Name(name=name):
            return f".{name}"
        case ast.Member(base=base, name=name):
            return f"{_designator(base)}.{name}"
        case ast.Index(base=base, index=ast.Binary(op="...", left=left, right=right)):
            return f"{_designator(base)}[{_write(left, TERNARY)} ... {_write(right, TERNARY)}]"
        case ast.Index(base=base, index=index):
            return f"{_designator(base)}[{_write(index, COMMA)}]"
    return _write(target, UNARY)


def _item(node: ast.Node) -> str:
    if (
        isinstance(node, ast.Assign)
        and node.op == "="
        and isinstance(node.target, ast.Name | ast.Member | ast.Index)
    ):
        return f"{_designator(node.target)} = {_write(node.value, ASSIGN)}"
    return _write(node, ASSIGN)


def _init_list(node: ast.InitList) -> str:
    return "{ " + ", ".join(map(_item, node.items)) + " }" if node.items else "{}"


def _unary(node: ast.Unary) -> tuple[str, int]:
    if node.op.startswith("p"):
        return _write(node.operand, POSTFIX) + node.op[1:], POSTFIX
    operand = _write(node.operand, UNARY)
    # `- -x` and `& &x` must not become `--x` and `&&x`.
    gap = " " if operand[:1] == node.op[-1] and operand[0] in "+-&" else ""
    return node.op + gap + operand, UNARY


def _sizeof(node: ast.SizeOf) -> tuple[str, int]:
    inside = str(node.ctype) if node.ctype is not None else _write(node.operand, COMMA)
    return f"{node.op}({inside})", UNARY


def _compound(node: ast.Node) -> tuple[str, int]:
    match node:
        case ast.Comma(left=left, right=right):
            return f"{_write(left, COMMA)}, {_write(right, ASSIGN)}", COMMA
        case ast.Assign(op=op, target=target, value=value):
            return f"{_write(target, TERNARY + 1)} {op} {_write(value, ASSIGN)}", ASSIGN
        case ast.Ternary(condition=condition, then=then, otherwise=otherwise):
            middle = f" ? {_write(then, COMMA)} : " if then is not None else " ?: "
            return _write(condition, TERNARY + 1) + middle + _write(otherwise, TERNARY), TERNARY
        case ast.Binary(op=op, left=left, right=right):
            level = BINARY_PRECEDENCE[op]
            return f"{_write(left, level)} {op} {_write(right, level + 1)}", level
        case ast.Cast(ctype=ctype, operand=operand):
            return f"({ctype}){_write(operand, UNARY)}", UNARY
        case ast.Call(function=function, arguments=arguments):
            inside = ", ".join(
                _init_list(a) if isinstance(a, ast.InitList) else _write(a, ASSIGN) for a in arguments
            )
            return f"{_write(function, POSTFIX)}({inside})", POSTFIX
        case ast.Member(base=base, name=name, is_arrow=is_arrow):
            # A number before a point would swallow it.
            level = POSTFIX + 1 if isinstance(base, ast.Number | ast.Float) else POSTFIX
            return f"{_write(base, level)}{'->' if is_arrow else '.'}{name}", POSTFIX
        case ast.Index(base=base, index=index):
            return f"{_write(base, POSTFIX)}[{_write(index, COMMA)}]", POSTFIX
        case ast.CompoundLiteral(ctype=ctype, items=items):
            return f"({ctype}){_init_list(items)}", POSTFIX
    raise TypeError(f"not a node of an expression: {node!r}")


def _parts(node: ast.Node | None) -> tuple[str, int]:  # noqa: C901  one case a kind of node
    match node:
        case ast.Number():
            return _number(node), POSTFIX
        case ast.Float(value=value):
            return repr(value), POSTFIX
        case ast.Char(value=value):
            return _char(value), POSTFIX
        case ast.String(value=value, pieces=pieces):
            return " ".join(_write(p, POSTFIX) for p in pieces) if pieces else quote(value), POSTFIX
        case ast.Name(name=name):
            return name, POSTFIX
        case ast.TypeName(ctype=ctype):
            return str(ctype), POSTFIX
        case ast.StatementExpression(text=text):
            return f"({{ {text} }})", POSTFIX
        case ast.InitList():
            return _init_list(node), POSTFIX
        case ast.Unary():
            return _unary(node)
        case ast.SizeOf():
            return _sizeof(node)
        case ast.Node():
            return _compound(node)
    raise TypeError("a node is missing")


def _write(node: ast.Node | None, least: int) -> str:
    text, level = _parts(node)
    return f"({text})" if level < least else text


def write_expression(node: ast.Node) -> str:
    """Return the canonical C text of an expression; parsing it gives an equal tree.

    >>> from tracepoint.source.cexpr import parse_expression
    >>> write_expression(parse_expression("((a)+(b*c))"))
    'a + b * c'
    """
    return _write(node, 0)
