"""Statements of TP_fast_assign as C text over the variables of a `InputPlan`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracepoint.errors import GenerateError
from tracepoint.generate.inputs.rewrite import with_parentheses
from tracepoint.model.write import declare_param
from tracepoint.source import ast
from tracepoint.source.cexpr import write_expression
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

_DECLARATION = re.compile(
    r"(?!return |goto |case )(?:[A-Za-z_]\w* )+(?:\*|const )*([A-Za-z_]\w*)(?:\[[^=;]*\])*(?: = [^;]*)?;"
)


def write_statements(block: Block, rewriter: Rewriter, value: ast.Node | None = None) -> str:
    """Return the text of the statements; declarations that nothing uses any more are left out.

    `value` is the last expression of a statement expression, which stands for its value.
    """
    pieces = [_write(statement, rewriter) for statement in _flat(block.body)]
    if value is not None:
        pieces.append(rewriter.text(value) + ";")
    return " ".join(piece for piece in _without_unused(pieces) if piece)


def _flat(body: Iterable[Statement]) -> Iterator[Statement]:
    """Yield statements, those of `int a, b;` one by one: others may use the names."""
    for statement in body:
        if isinstance(statement, Block) and not statement.is_scope:
            yield from _flat(statement.body)
        else:
            yield statement


def _without_unused(pieces: list[str]) -> list[str]:
    """Drop `type name;` and `type name = value;` when no other piece has the name."""
    kept = []
    for index, piece in enumerate(pieces):
        match = _DECLARATION.fullmatch(piece)
        others = " ".join(pieces[:index] + pieces[index + 1 :])
        if match and not re.search(rf"\b{match[1]}\b", others):
            continue
        kept.append(piece)
    return kept


def _write(statement: Statement, rewriter: Rewriter) -> str:
    match statement:
        case Run(expression=expression):
            return _run(expression, rewriter)
        case Block():
            inner = write_statements(statement, rewriter)
            return f"{{ {inner} }}" if statement.is_scope else inner
        case Switch(value=value, body=body):
            return f"switch ({rewriter.text(value)}) {{ {write_statements(body, rewriter)} }}"
        case Jump(kind=kind, value=value):
            return f"{kind};" if value is None else f"{kind} {rewriter.text(value)};"
        case Unreadable(text=text, reason=reason):
            raise GenerateError(rewriter.event, f"{text[:80]}: {reason}")
    return _FORMS[type(statement)](statement, rewriter)


def _run(node: ast.Node, rewriter: Rewriter) -> str:
    if isinstance(node, ast.Cast) and node.ctype.base == "void" and not node.ctype.pointers:
        node = node.operand
    match node:
        case ast.Ternary(condition=condition, then=then, otherwise=otherwise) if then is not None:
            # Each arm is a statement of its own, and may be a call that fills the record.
            arms = f"{{ {_run(then, rewriter)} }} else {{ {_run(otherwise, rewriter)} }}"
            return f"if ({rewriter.text(condition)}) {arms}"
        case ast.Assign(op="=", target=ast.Name(name=name), value=value) if name in rewriter.kept:
            return _set_local(name, value, rewriter)
        case ast.Call() if node.name in QUIET:
            return ""
        case ast.Call() if not rewriter.is_function(node.name):
            return _filled(node, rewriter)
    return rewriter.text(node) + ";"


def _set_local(name: str, value: ast.Node, rewriter: Rewriter) -> str:
    if name in rewriter.pointers:
        text = _lead(name, value, rewriter)
    else:
        rewriter.aliases.pop(name, None)
        text = rewriter.text(value)
    return f"{name} = {text};" if text else ""


def _lead(name: str, value: ast.Node, rewriter: Rewriter) -> str:
    """Let a local pointer lead to where `value` does, and return what C stores in it (else empty)."""
    made = rewriter.rewrite(value)
    rewriter.aliases[name] = rewriter.canonical(value, looks_through=True)
    if rewriter.first_input(made) is not None:
        rewriter.hollow.add(name)
        return ""
    rewriter.hollow.discard(name)
    return write_expression(with_parentheses(made))


def _filled(call: ast.Call, rewriter: Rewriter) -> str:
    """Store what an unknown function would store in the members that it is given."""
    pieces = []
    for argument in call.arguments:
        target = argument.operand if isinstance(argument, ast.Unary) and argument.op == "&" else argument
        found = rewriter.variable_for(target)
        if isinstance(found, ast.Name):
            text = write_expression(target)
            pieces.append(f"memcpy(&{text}, {rewriter.address(found.name)}, sizeof({text}));")
    if not pieces:
        raise GenerateError(rewriter.event, f"{call.name}() does something that cannot be known here")
    return " ".join(pieces)


def _declare(statement: Declare, rewriter: Rewriter) -> str:
    name, ctype, initial = statement.name, statement.ctype, statement.initial
    rewriter.kept.add(name)
    rewriter.aliases.pop(name, None)
    if ctype.pointers and not ctype.array:
        rewriter.pointers.add(name)
    lengths = "".join(f"[{length}]" for length in ctype.array)
    declared = declare_param(str(ctype).removesuffix(lengths) + lengths, name)
    if initial is None:
        return f"{declared};"
    if name in rewriter.pointers:
        text = _lead(name, initial, rewriter)
        return f"{declared} = {text};" if text else f"{declared};"
    made = rewriter.rewrite(initial)
    text = rewriter.text(initial)
    if isinstance(made, ast.Name):
        text = rewriter.object_text(made.name, str(ctype))
        rewriter.aliases[name] = rewriter.canonical(initial, looks_through=True)
    return f"{declared} = {text};"


def _if(statement: If, rewriter: Rewriter) -> str:
    text = rewriter.text(statement.condition)
    before = dict(rewriter.aliases)
    then = _body(statement.then, rewriter)
    after_then, rewriter.aliases = rewriter.aliases, dict(before)
    otherwise = _body(statement.otherwise, rewriter) if statement.otherwise is not None else ""
    rewriter.merge(statement.condition, after_then)
    if not otherwise and _is_single(then):
        return f"if ({text}) {then}"
    return f"if ({text}) {{ {then} }}" + (f" else {{ {otherwise} }}" if otherwise else "")


def _is_single(text: str) -> bool:
    """Return whether a body is one plain statement, which stands without braces."""
    is_plain = not re.match(r"(?:if|for|while|do|switch)\b", text)
    return is_plain and text.count(";") == 1 and text.endswith(";") and "{" not in text


def _body(statement: Statement, rewriter: Rewriter) -> str:
    if isinstance(statement, Block):
        return write_statements(statement, rewriter)
    return _write(statement, rewriter)


def _loop(loop: Loop, rewriter: Rewriter) -> str:
    start = _write(loop.start, rewriter).rstrip("; ") if loop.start is not None else ""
    condition = rewriter.text(loop.condition) if loop.condition is not None else ""
    inner = _body(loop.body, rewriter)
    if loop.is_do:
        return f"do {{ {inner} }} while ({condition or '1'});"
    body = inner if _is_single(inner) else f"{{ {inner} }}"
    if loop.start is None and loop.step is None:
        return f"while ({condition or '1'}) {body}"
    step = rewriter.text(loop.step) if loop.step is not None else ""
    return f"for ({start}; {condition}; {step}) {body}"


def _case(statement: Case, rewriter: Rewriter) -> str:
    if statement.value is None:
        return "default:"
    high = f" ... {rewriter.text(statement.high)}" if statement.high is not None else ""
    return f"case {rewriter.text(statement.value)}{high}:"


_FORMS: dict[type[Statement], Callable[..., str]] = {Declare: _declare, If: _if, Loop: _loop, Case: _case}
