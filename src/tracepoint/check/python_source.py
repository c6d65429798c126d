"""A Python file being checked: its syntax tree, the events that it knows, and where they are called."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tracepoint.diagnostics import Span
from tracepoint.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.source.text import SourceFile

_DECORATOR = "trace_event"
_BASE = "TraceEvent"
_PREFIX = "trace_"


def parse_python(source: SourceFile) -> ast.Module:
    """Return the syntax tree of a file; raises SourceError, with the place, for invalid Python."""
    try:
        return ast.parse(source.text, source.path)
    except SyntaxError as error:
        line, column = max(error.lineno or 1, 1), max(error.offset or 1, 1)
        raise SourceError(
            f"not valid Python: {error.msg}", Span(source.path, line, column, line, column + 1)
        ) from None
    except (ValueError, RecursionError, MemoryError) as error:
        # NUL bytes, bytes that are not text, and nesting that is too deep for the parser.
        raise SourceError(
            f"not valid Python: {error or type(error).__name__}", Span(source.path, 1, 1, 1, 1)
        ) from None


@dataclass
class PythonFile:
    """One Python file; `tree` is the result of `parse_python`."""

    source: SourceFile
    tree: ast.Module

    @property
    def path(self) -> str:
        """The file's path, as findings show it."""
        return self.source.path

    def span(self, node: ast.expr | ast.stmt) -> Span:
        """Return the place of a node."""
        line, end_line = node.lineno, node.end_lineno or node.lineno
        column = self._column(line, node.col_offset)
        return Span(self.path, line, column, end_line, self._column(end_line, node.end_col_offset or 0))

    def _column(self, line: int, n_bytes: int) -> int:
        text = self.source.line_text(line).encode("utf-8", "surrogateescape")
        return len(text[:n_bytes].decode("utf-8", "ignore")) + 1

    @cached_property
    def events(self) -> frozenset[str]:
        """The names that this file declares as events, by decorator or class."""
        names = set()
        for node in ast.walk(self.tree):
            match node:
                case ast.FunctionDef(name=name, decorator_list=marks):
                    if any(isinstance(m, ast.Call) and last_name(m.func) == _DECORATOR for m in marks):
                        names.add(name)
                case ast.ClassDef(name=name, bases=bases) if any(last_name(b) == _BASE for b in bases):
                    names.add(name)
        return frozenset(names)

    @cached_property
    def _has_loaded(self) -> bool:
        """Whether the file imports this package, so that a `trace_x` is a tracepoint."""
        for node in ast.walk(self.tree):
            match node:
                case ast.Import(names=names) if any(n.name.split(".")[0] == "tracepoint" for n in names):
                    return True
                case ast.ImportFrom(module=str(module)) if module.split(".")[0] == "tracepoint":
                    return True
        return False

    @cached_property
    def _imported(self) -> frozenset[str]:
        """The names `trace_x` that are imported from somewhere."""
        return frozenset(
            alias.asname or alias.name
            for node in ast.walk(self.tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if alias.name.startswith(_PREFIX)
        )

    def is_event(self, function: ast.expr) -> bool:
        """Return whether what is called is an event, as far as this file shows."""
        name = last_name(function)
        if name in (_DECORATOR, "trace_calls"):
            return False
        if isinstance(function, ast.Name) and name in self.events | self._imported:
            return True
        return name.startswith(_PREFIX) and self._has_loaded

    def statements(self) -> Iterator[ast.Call]:
        """Yield the calls of events that are statements, except those guarded by `if event:`."""
        waiting: list[tuple[ast.AST, bool]] = [(self.tree, False)]
        while waiting:
            node, is_guarded = waiting.pop()
            if isinstance(node, ast.If) and self.is_event(node.test):
                waiting += [(child, True) for child in node.body]
                waiting += [(child, is_guarded) for child in node.orelse]
                continue
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and not is_guarded:
                if self.is_event(node.value.func):
                    yield node.value
                continue
            waiting += [(child, is_guarded) for child in ast.iter_child_nodes(node)]


def last_name(node: ast.expr) -> str:
    """Return `c` of the name `c` or of `a.b.c`, empty for anything else.

    >>> last_name(ast.parse("tp.trace_event", mode="eval").body)
    'trace_event'
    """
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""
