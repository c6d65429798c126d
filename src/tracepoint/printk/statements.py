"""Statement expressions `({ type name = value; ...; result; })`, where they are only that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.errors import SourceError
from tracepoint.printk.values import IntValue, Value
from tracepoint.source.cexpr import parse_expression
from tracepoint.source.ctype import CType, scan_type
from tracepoint.source.lexer import Kind

if TYPE_CHECKING:
    from tracepoint.printk.compiling import Compiling
    from tracepoint.source import ast
    from tracepoint.source.lexer import Token


def _split(tokens: tuple[Token, ...]) -> list[list[Token]]:
    statements: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        if token.kind is Kind.PUNCT:
            depth += (token.text in ("(", "{", "[")) - (token.text in (")", "}", "]"))
        if token.text == ";" and depth == 0:
            statements.append([])
        else:
            statements[-1].append(token)
    return [statement for statement in statements if statement]


def _declaration(tokens: list[Token]) -> tuple[CType, str, list[Token]] | None:
    """Split `type name = value` into its parts."""
    scanned = scan_type(tokens, 0, len(tokens))
    if scanned is None:
        return None
    ctype, at = scanned
    if at + 2 >= len(tokens) or tokens[at].kind is not Kind.NAME or tokens[at + 1].text != "=":
        return None
    return ctype, tokens[at].text, tokens[at + 2 :]


def compile_statements(evaluator: Compiling, node: ast.StatementExpression) -> Value:
    """Compile a statement expression made of declarations and a final expression."""
    statements = _split(node.tokens)
    if not statements:
        return evaluator.unknown("an empty statement expression")
    saved = dict(evaluator.locals)
    try:
        for statement in statements[:-1]:
            declared = _declaration(statement)
            if declared is None:
                return evaluator.unknown(f"a statement in `({{ {node.text[:40]} ... }})`")
            ctype, name, tokens = declared
            value = evaluator.value(parse_expression(tokens))
            evaluator.locals[name] = _stored(evaluator, ctype, value)
        return evaluator.value(parse_expression(statements[-1]))
    except SourceError as error:
        return evaluator.unknown(f"a statement expression: {error.message}")
    finally:
        evaluator.locals = saved


def _stored(evaluator: Compiling, ctype: CType, value: Value) -> Value:
    if ctype.base.startswith("typeof"):
        return value
    return evaluator.cast(ctype, value) if isinstance(value, IntValue) or ctype.pointers else value
