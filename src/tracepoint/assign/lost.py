"""What is lost when a piece of an assignment cannot be followed: the fields and locals it may store to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.assign.machine import Local, Machine, Unfollowed
from tracepoint.assign.values import Lost
from tracepoint.source import ast
from tracepoint.source.statements import Declare, Statement, Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator


def lose(machine: Machine, statement: Statement, text: str, reason: str, *parts: Statement | None) -> None:
    """Name what is not followed, and mark what `parts` may have stored as unknown."""
    known = {f.name for f in machine.inputs.layout.event_fields}
    targets = {target for part in parts if part is not None for target in _targets(part)}
    if "goto" in targets:
        reason = "goto is not followed, so the fields from here on are not known"
        lost = tuple(sorted(known))
    else:
        lost = tuple(sorted(known & targets))
    for name in targets & machine.locals.keys():
        machine.locals[name] = Local(machine.locals[name].ctype, value=Lost(reason))
    for name in lost:
        machine.unknown.setdefault(name, reason)
    machine.unfollowed.setdefault(Unfollowed(statement.span, text, reason, lost))


def _targets(node: ast.Node) -> Iterator[str]:
    """Yield the fields and locals that a statement may store to."""
    for item in ast.walk(node):
        match item:
            case ast.Assign(target=target) | ast.Call(arguments=(target, *_)):
                yield from _bases(target)
            case ast.Unary(op="++" | "--" | "p++" | "p--", operand=operand):
                yield from _bases(operand)
            case Declare(name=name):
                yield name
            case Unreadable(names=names):
                yield from names


def _bases(node: ast.Node) -> Iterator[str]:
    """Yield what is stored to: `__entry->a.b[i]` gives a, `__get_str(x)` gives x."""
    for item in ast.walk(node):
        match item:
            case ast.Member(base=ast.Name(name="__entry" | "entry"), name=name):
                yield name
                return
            case ast.Call(arguments=(ast.Name(name=name), *_)):
                yield name
                return
    for item in ast.walk(node):
        if isinstance(item, ast.Name):
            yield item.name
