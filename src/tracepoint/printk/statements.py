"""Statement expressions `({ type name = value; ...; result; })`, where they are only that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.errors import SourceError
from tracepoint.printk.values import IntValue, Value
from tracepoint.source.statements import Block, Declare, Run, Statement, Unreadable, parse_statements

if TYPE_CHECKING:
    from tracepoint.printk.compiling import Compiling
    from tracepoint.source import ast
    from tracepoint.source.ctype import CType


def compile_statements(evaluator: Compiling, node: ast.StatementExpression) -> Value:
    """Compile a statement expression made of declarations and a final expression."""
    try:
        body = [one for one in parse_statements(node.tokens).body if one != Block(())]
    except SourceError as error:
        return evaluator.unknown(f"a statement expression: {error.message}")
    if not body:
        return evaluator.unknown("an empty statement expression")
    saved = dict(evaluator.locals)
    try:
        for statement in body[:-1]:
            if not isinstance(statement, Declare) or statement.initial is None or statement.ctype.array:
                return _unknown(evaluator, node, statement)
            value = evaluator.value(statement.initial)
            evaluator.locals[statement.name] = _stored(evaluator, statement.ctype, value)
        last = body[-1]
        return evaluator.value(last.expression) if isinstance(last, Run) else _unknown(evaluator, node, last)
    finally:
        evaluator.locals = saved


def _unknown(evaluator: Compiling, node: ast.StatementExpression, statement: Statement) -> Value:
    if isinstance(statement, Unreadable):
        return evaluator.unknown(f"a statement expression: {statement.reason}")
    return evaluator.unknown(f"a statement in `({{ {node.text[:40]} ... }})`")


def _stored(evaluator: Compiling, ctype: CType, value: Value) -> Value:
    if ctype.base.startswith("typeof"):
        return value
    return evaluator.cast(ctype, value) if isinstance(value, IntValue) or ctype.pointers else value
