"""Which modules of the package a program can import, so that the live page loads no others."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCES = Path(__file__).resolve().parent.parent.parent / "src"


def reached_files(*roots: str) -> list[Path]:
    """Return the files of the modules that `roots` import, at any depth and in any function, sorted.

    Imports for type checkers only do not count, nor modules that are imported by a name made at run time.

    >>> any(path.name == "wording.py" for path in reached_files("tracepoint.errors"))
    True
    """
    waiting, found = list(roots), {}
    while waiting:
        name = waiting.pop()
        path = _file(name)
        if path is None or name in found:
            continue
        found[name] = path
        waiting += _imported(path, name if path.name == "__init__.py" else name.rpartition(".")[0])
        if "." in name:
            waiting.append(name.rpartition(".")[0])
    return sorted(found.values())


def _file(name: str) -> Path | None:
    place = SOURCES / name.replace(".", "/")
    return next((path for path in (place / "__init__.py", place.with_suffix(".py")) if path.exists()), None)


def _imported(path: Path, package: str) -> list[str]:
    names = []
    waiting: list[ast.AST] = [ast.parse(path.read_bytes())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            waiting += node.orelse
            continue
        waiting += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.rsplit(".", node.level - 1)[0] if node.level else ""
            home = ".".join(filter(None, (above, node.module)))
            names += [home, *(f"{home}.{alias.name}" for alias in node.names)]
    return [name for name in names if name.partition(".")[0] == "tracepoint"]
