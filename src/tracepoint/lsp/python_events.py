"""Events that a Python file declares, read from its text: nothing of the file is run."""

from __future__ import annotations

import ast
import inspect
from typing import TYPE_CHECKING, Any

from tracepoint.check.python_source import last_name, parse_python
from tracepoint.errors import TracepointError
from tracepoint.model.python import types
from tracepoint.source.text import SourceFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.model.event import Event


def python_event(text: str, path: str, word: str) -> Event | None:
    """Return the event that a file declares under the name of a function, None without one.

    `word` is the function's name, with `trace_` before it or without. Raises TracepointError where the
    function cannot be an event; a file that is not valid Python declares nothing.
    """
    for node, call in _declared(text, path):
        if word in (node.name, f"trace_{node.name}"):
            return _event(node, call)
    return None


def python_outline(text: str, path: str) -> list[tuple[str, int, int]]:
    """Return the events that a file declares: name, first and last line."""
    return [(node.name, node.lineno, node.end_lineno or node.lineno) for node, _ in _declared(text, path)]


def _declared(text: str, path: str) -> Iterator[tuple[ast.FunctionDef, ast.Call]]:
    try:
        tree = parse_python(SourceFile(path, text))
    except TracepointError:
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef):
            continue
        for mark in node.decorator_list:
            if isinstance(mark, ast.Call) and last_name(mark.func) == "trace_event":
                yield node, mark


def _event(node: ast.FunctionDef, call: ast.Call) -> Event:
    """Make the event of a decorated function from its signature, of which only known types are understood."""
    given = {k.arg: k.value.value for k in call.keywords if isinstance(k.value, ast.Constant)}
    missing = [word for word in ("system", "printk") if not isinstance(given.get(word), str)]
    if missing:
        raise TracepointError(f"{node.name}: {missing[0]} is not a text in the file")

    def stub() -> None:
        pass

    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    stub.__annotations__ = {a.arg: _type(a, node.name) for a in arguments}
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    stub.__signature__ = inspect.Signature([inspect.Parameter(a.arg, kind) for a in arguments])  # type: ignore[attr-defined]
    name = given.get("name")
    return types.event_from_function(
        stub,
        system=str(given["system"]),
        printk=str(given["printk"]),
        name=name if isinstance(name, str) else node.name,
    )


def _type(argument: ast.arg, function: str) -> Any:
    """Return the type of an annotation that is a known name or `char_array[N]`."""
    match argument.annotation:
        case ast.Subscript(value=base, slice=ast.Constant(value=int(length))) if (
            last_name(base) == "char_array"
        ):
            return types.char_array[length]
        case ast.Constant(value=str(name)):
            found = types.annotation_named(name.rpartition(".")[2])
        case ast.expr() as annotation:
            found = types.annotation_named(last_name(annotation))
        case _:
            found = None
    if found is None:
        raise TracepointError(f"{function}(): the type of {argument.arg!r} is not one of the file's text")
    return found
