"""Statements of TP_fast_assign over the variables of an `InputPlan`: trees to trees, and then to C."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from tracepoint.errors import GenerateError
from tracepoint.generate.statements import one_line
from tracepoint.source import ast
from tracepoint.source.functions import QUIET
from tracepoint.source.statements import (
    Block,
    Case,
    Declare,
    If,
    Jump,
    Loop,
    Run,
    Statement,
    Switch,
    Unreadable,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tracepoint.generate.inputs.rewrite import Rewriter


def write_statements(body: Iterable[Statement], rewriter: Rewriter, value: ast.Node | None = None) -> str:
    """Return the text of the statements; declarations that are no longer used are omitted.

    `value` is the last expression of a statement expression, which is its value.
    """
    made = _each(body, rewriter)
    if value is not None:
        made.append(Run(rewriter.known(value)))
    return _text(_used(made))


def _text(body: Iterable[Statement]) -> str:
    return one_line(body, has_braces=True)


def _each(body: Iterable[Statement], rewriter: Rewriter) -> list[Statement]:
    """Return statements that read variables; those of `int a, b;` come one by one: each may go unused."""
    return [new for statement in _flat(body) for new in _FORMS[type(statement)](statement, rewriter)]


def _used(made: list[Statement]) -> tuple[Statement, ...]:
    """Leave out declarations that nothing else mentions."""
    words = [set(re.findall(r"\w+", _text((statement,)))) for statement in made]
    return tuple(
        statement
        for at, statement in enumerate(made)
        if not isinstance(statement, Declare)
        or any(statement.name in used for other, used in enumerate(words) if other != at)
    )


def _flat(body: Iterable[Statement]) -> Iterator[Statement]:
    for statement in body:
        if isinstance(statement, Block) and not statement.is_scope:
            yield from _flat(statement.body)
        else:
            yield statement


def _inside(statement: Statement, rewriter: Rewriter) -> Block:
    """Return the statements of a body, as a block."""
    return Block(_used(_each(statement.body if isinstance(statement, Block) else (statement,), rewriter)))


def _block(statement: Block, rewriter: Rewriter) -> list[Statement]:
    return [_inside(statement, rewriter)]


def _run(statement: Run, rewriter: Rewriter) -> list[Statement]:
    return _effect(statement.expression, rewriter)


def _effect(node: ast.Node, rewriter: Rewriter) -> list[Statement]:
    if isinstance(node, ast.Cast) and node.ctype.base == "void" and not node.ctype.pointers:
        node = node.operand
    match node:
        case ast.Ternary(condition=condition, then=then, otherwise=otherwise) if then is not None:
            # Each arm is a statement of its own, and may be a call that fills the record.
            arms = [Block(tuple(_effect(arm, rewriter))) for arm in (then, otherwise)]
            return [If(rewriter.known(condition), *arms)]
        case ast.Assign(op="=", target=ast.Name(name=name), value=value) if name in rewriter.kept:
            made = _local_value(name, value, rewriter)
            return [Run(replace(node, value=made))] if made is not None else []
        case ast.Call() if node.name in QUIET:
            return []
        case ast.Call() if not rewriter.is_function(node.name):
            return _filled(node, rewriter)
    return [Run(rewriter.known(node))]


def _local_value(name: str, value: ast.Node, rewriter: Rewriter) -> ast.Node | None:
    """Return what C stores in a local, None when it only leads to inputs."""
    if name in rewriter.pointers:
        return _lead(name, value, rewriter)
    rewriter.aliases.pop(name, None)
    return rewriter.known(value)


def _lead(name: str, value: ast.Node, rewriter: Rewriter) -> ast.Node | None:
    """Let a local pointer lead to where `value` does, and return what C stores in it, if anything."""
    made = rewriter.rewrite(value)
    rewriter.aliases[name] = rewriter.canonical(value, looks_through=True)
    if rewriter.first_input(made) is not None:
        rewriter.hollow.add(name)
        return None
    rewriter.hollow.discard(name)
    return made


def _filled(call: ast.Call, rewriter: Rewriter) -> list[Statement]:
    """Store what an unknown function would store in the members that it is given."""
    made: list[Statement] = []
    for argument in call.arguments:
        target = argument.operand if isinstance(argument, ast.Unary) and argument.op == "&" else argument
        found = rewriter.variable_for(target)
        if isinstance(found, ast.Name):
            copied = (ast.Unary("&", target), rewriter.address(found), ast.SizeOf(None, target))
            made.append(Run(ast.Call(ast.Name("memcpy"), copied)))
    if not made:
        raise GenerateError(rewriter.event, f"{call.name}() does something that cannot be known here")
    return made


def _declare(statement: Declare, rewriter: Rewriter) -> list[Statement]:
    name, ctype, initial = statement.name, statement.ctype, statement.initial
    rewriter.kept.add(name)
    rewriter.aliases.pop(name, None)
    if ctype.pointers and not ctype.array:
        rewriter.pointers.add(name)
    if initial is None:
        return [statement]
    if name in rewriter.pointers:
        return [replace(statement, initial=_lead(name, initial, rewriter))]
    made = rewriter.known(initial)
    if isinstance(made, ast.Name):
        made = rewriter.object_of(made, str(ctype))
        rewriter.aliases[name] = rewriter.canonical(initial, looks_through=True)
    return [replace(statement, initial=made)]


def _if(statement: If, rewriter: Rewriter) -> list[Statement]:
    condition = rewriter.known(statement.condition)
    before = dict(rewriter.aliases)
    then = _inside(statement.then, rewriter)
    after_then, rewriter.aliases = rewriter.aliases, dict(before)
    otherwise = _inside(statement.otherwise, rewriter) if statement.otherwise is not None else None
    rewriter.merge(statement.condition, after_then)
    return [If(condition, then, otherwise if otherwise is not None and otherwise.body else None)]


def _loop(loop: Loop, rewriter: Rewriter) -> list[Statement]:
    start = Block(tuple(_each((loop.start,), rewriter)), is_scope=False) if loop.start is not None else None
    condition = rewriter.known(loop.condition) if loop.condition is not None else None
    body = _inside(loop.body, rewriter)
    step = rewriter.known(loop.step) if loop.step is not None else None
    return [Loop(body, condition, start, step, loop.is_do)]


def _switch(statement: Switch, rewriter: Rewriter) -> list[Statement]:
    return [Switch(rewriter.known(statement.value), _inside(statement.body, rewriter))]


def _values(statement: Case | Jump, rewriter: Rewriter) -> list[Statement]:
    return [ast.map_children(statement, rewriter.known)]


def _unreadable(statement: Unreadable, rewriter: Rewriter) -> list[Statement]:
    raise GenerateError(rewriter.event, f"{statement.text[:80]}: {statement.reason}")


_FORMS: dict[type[Statement], Callable[..., list[Statement]]] = {
    Block: _block,
    Run: _run,
    Declare: _declare,
    If: _if,
    Loop: _loop,
    Switch: _switch,
    Case: _values,
    Jump: _values,
    Unreadable: _unreadable,
}
