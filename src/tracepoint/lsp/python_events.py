"""Events that a Python file declares, read from its text: nothing of the file is run."""

from __future__ import annotations

import ast
import inspect
from typing import TYPE_CHECKING, Any, cast

from tracepoint.check.python_source import last_name, parse_python
from tracepoint.errors import TracepointError
from tracepoint.model.python import types
from tracepoint.source.text import SourceFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import FunctionType

    from tracepoint.model.event import Event


_EVENT_CLASS = "TraceEvent"


def python_event(text: str, path: str, word: str) -> Event | None:
    """Return the event that a file declares under the name of a function or class, None without one.

    `word` is that name, or a function's with `trace_` before it. Raises TracepointError where it cannot be
    an event; a file that is not valid Python declares nothing.
    """
    for node in _declared(text, path):
        if word in (node.name, f"trace_{node.name}"):
            return _event_of_class(node) if isinstance(node, ast.ClassDef) else _event(node, _mark(node))
    return None


def python_outline(text: str, path: str) -> list[tuple[str, int, int]]:
    """Return the events that a file declares: name, first and last line."""
    return [(node.name, node.lineno, node.end_lineno or node.lineno) for node in _declared(text, path)]


def _declared(text: str, path: str) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    try:
        tree = parse_python(SourceFile(path, text))
    except TracepointError:
        return
    for node in ast.walk(tree):
        if (isinstance(node, ast.FunctionDef) and _mark(node) is not None) or (
            isinstance(node, ast.ClassDef) and any(last_name(base) == _EVENT_CLASS for base in node.bases)
        ):
            yield node


def _mark(node: ast.FunctionDef) -> ast.Call | None:
    """Return the decorator that makes a function an event."""
    marks = (mark for mark in node.decorator_list if isinstance(mark, ast.Call))
    return next((mark for mark in marks if last_name(mark.func) == "trace_event"), None)


def _event(node: ast.FunctionDef, call: ast.Call | None) -> Event:
    """Make the event of a decorated function from its signature, of which only known types are understood."""
    given = _texts((k.arg, k.value) for k in call.keywords) if call is not None else {}
    missing = [word for word in ("system", "printk") if word not in given]
    if missing:
        raise TracepointError(f"{node.name}: {missing[0]} is not a text in the file")
    arguments = _arguments(node)
    stub = _stub({a.arg: _type(a, f"{node.name}(): the type of {a.arg!r}") for a in arguments})
    return types.event_from_function(
        stub, system=given["system"], printk=given["printk"], name=given.get("name", node.name)
    )


def _event_of_class(node: ast.ClassDef) -> Event:
    """Make the event of a class: annotations are fields, `assign` has the parameters if it is there."""
    given = _texts((k.arg, k.value) for k in node.keywords)
    fields: dict[str, Any] = {}
    methods: dict[str, Any] = {}
    for part in node.body:
        match part:
            case ast.AnnAssign(target=ast.Name(id=name)):
                fields[name] = _type(part, f"class {node.name}: the type of field {name!r}")
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                given = _texts([(name, value)]) | given
            case ast.FunctionDef(name="assign"):
                methods["assign"] = _stub({a.arg: _known(a.annotation) or _name(a) for a in _arguments(part)})
    texts: dict[str, Any] = {word: given[word] for word in ("system", "printk") if word in given}
    stub = type(node.name, (), {"__annotations__": fields, **texts, **methods})
    return types.event_from_class(stub, name=given.get("name", ""))


def _texts(pairs: Iterable[tuple[str | None, ast.expr]]) -> dict[str, str]:
    """Return the names whose values are texts in the file."""
    return {
        name: value.value
        for name, value in pairs
        if name is not None and isinstance(value, ast.Constant) and isinstance(value.value, str)
    }


def _arguments(node: ast.FunctionDef) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _stub(hints: dict[str, Any]) -> FunctionType:
    """Return a function with these parameters; None is a type that is not known."""

    def stub() -> None:
        pass

    stub.__annotations__ = {name: hint for name, hint in hints.items() if hint is not None}
    kind, empty = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
    parameters = [inspect.Parameter(n, kind, annotation=empty if h is None else h) for n, h in hints.items()]
    stub.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return cast("FunctionType", stub)


def _type(thing: ast.arg | ast.AnnAssign, what: str) -> Any:
    found = _known(thing.annotation)
    if found is None:
        raise TracepointError(f"{what} is not one of the file's text")
    return found


def _name(argument: ast.arg) -> str | None:
    """Return the name of a class that cannot be a field's type: its objects are passed by address."""
    return last_name(argument.annotation) or None if argument.annotation is not None else None


def _known(annotation: ast.expr | None) -> Any:
    """Return the type of an annotation that is a known name or `char_array[N]`, else None."""
    match annotation:
        case ast.Subscript(value=base, slice=ast.Constant(value=int(length))) if (
            last_name(base) == "char_array"
        ):
            return types.char_array[length]
        case ast.Constant(value=str(name)):
            return types.annotation_named(name.rpartition(".")[2])
        case ast.expr():
            return types.annotation_named(last_name(annotation))
    return None
