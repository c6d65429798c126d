"""What in a Python expression changes something: assignments, waiting, and calls that are known to."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tracepoint.check.python_source import last_name

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Built-in functions that change their argument, the program or the world.
FUNCTIONS = frozenset(
    ["next", "anext", "print", "input", "open", "setattr", "delattr", "exec", "eval", "exit"]
)
#: Methods that change their object, wherever they have that name.
METHODS = frozenset(
    (
        "pop popleft popitem append appendleft extend extendleft insert remove discard clear update "
        "setdefault sort reverse write writelines read readline readlines readinto recv recv_into send "
        "sendall sendto seek truncate flush close acquire release put put_nowait get_nowait commit "
        "rollback execute executemany fetchone fetchmany fetchall notify notify_all cancel __next__ "
        "__anext__ __setitem__ __delitem__ __iadd__ intersection_update difference_update "
        "symmetric_difference_update"
    ).split()
)
_MAX_DEPTH = 4

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Effects:
    """Finds effects in expressions of one file, also through functions that the file defines."""

    def __init__(self, tree: ast.Module) -> None:
        self._functions: dict[str, Function | None] = {}
        for node in ast.walk(tree):
            if isinstance(node, Function):
                # Two functions of one name, such as methods of two classes: it is not known which one is
                # called.
                self._functions[node.name] = None if node.name in self._functions else node

    def in_expression(self, expression: ast.expr) -> Iterator[tuple[ast.expr, str]]:
        """Yield the parts of an expression that change something, with a word for what they do."""
        yield from self._in_nodes(_evaluated(expression), 0)

    def _in_nodes(self, nodes: Iterator[ast.AST], depth: int) -> Iterator[tuple[ast.expr, str]]:
        for node in nodes:
            match node:
                case ast.NamedExpr(target=target):
                    yield node, f"assigns to {target.id!r}"
                case ast.Await():
                    yield node, "waits"
                case ast.Yield() | ast.YieldFrom():
                    yield node, "yields"
                case ast.Call(func=function) if self._has_effect(function, depth):
                    yield node, "changes something"

    def _has_effect(self, function: ast.expr, depth: int) -> bool:
        name = last_name(function)
        if isinstance(function, ast.Attribute):
            # A method of this file, if it is called on self; others are known by their names only.
            if name in METHODS:
                return True
            if last_name(function.value) not in ("self", "cls"):
                return False
        elif name in FUNCTIONS and name not in self._functions:
            return True
        body = self._functions.get(name)
        return body is not None and depth < _MAX_DEPTH and self._changes_something(body, depth + 1)

    def _changes_something(self, function: Function, depth: int) -> bool:
        """Return whether a function assigns to more than its own variables, or calls such functions."""
        if any(isinstance(node, ast.Yield | ast.YieldFrom) for node in _own_nodes(function)):
            return False  # calling it only makes a generator
        shared = {
            name
            for node in _own_nodes(function)
            if isinstance(node, ast.Global | ast.Nonlocal)
            for name in node.names
        }
        given = {argument.arg for argument in (*function.args.posonlyargs, *function.args.args)}
        for node in _own_nodes(function):
            for target in _targets(node):
                if isinstance(target, ast.Name) and target.id in shared:
                    return True
                if isinstance(target, ast.Attribute | ast.Subscript) and _root(target) in given | shared:
                    return True
            if isinstance(node, ast.Call) and self._has_shared_effect(node.func, given | shared, depth):
                return True
        return False

    def _has_shared_effect(self, function: ast.expr, shared: set[str], depth: int) -> bool:
        """Return whether a call in a function changes more than the function's own variables."""
        if isinstance(function, ast.Attribute) and _root(function) not in shared:
            return False
        return self._has_effect(function, depth)


def _evaluated(expression: ast.expr) -> Iterator[ast.AST]:
    """Yield the nodes that evaluating an expression evaluates: not the body of a lambda."""
    waiting: list[ast.AST] = [expression]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.Lambda):
            waiting += list(ast.iter_child_nodes(node))[::-1]


def _own_nodes(function: Function) -> Iterator[ast.AST]:
    """Yield the nodes of a function's body, without the functions inside it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, Function | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)


def _targets(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            return targets
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            return [target]
    return []


def _root(node: ast.expr) -> str:
    """Return the name that `a.b[c].d` begins with, empty when there is none."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
