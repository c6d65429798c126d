"""What the rules of the house look for in the sources: each file is read once, and its tree is not kept."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path


@dataclass
class Parsed:
    """Imports; calls of names and of attributes with their line and first argument; functions with their lines without the docstring."""

    imports: list[ast.Import | ast.ImportFrom] = field(default_factory=list)
    calls: list[tuple[int, str, bool, object]] = field(default_factory=list)
    functions: list[tuple[str, int]] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)


@cache
def parsed(path: Path) -> Parsed:
    found = Parsed()
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import() | ast.ImportFrom():
                found.imports.append(node)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args):
                first = args[0].value if args and isinstance(args[0], ast.Constant) else None
                found.calls.append((node.lineno, name, isinstance(node.func, ast.Name), first))
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                first = node.body[0]
                has_doc = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
                doc_lines = (first.end_lineno or 0) - first.lineno + 1 if has_doc else 0
                found.functions.append((node.name, (node.end_lineno or 0) - node.lineno + 1 - doc_lines))
            case ast.ClassDef(name=name):
                found.classes.append(name)
    return found
