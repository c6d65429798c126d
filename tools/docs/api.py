"""The pages of the public names, by what they are for; Sphinx takes types and examples from them."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path
from typing import TYPE_CHECKING

import tracepoint

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Titles of the rooms that public names live in, in the order of the list.
TITLES = {
    "model": "Declare trace events",
    "check": "Check declarations",
    "layout": "Record layouts and formats",
    "printk": "Trace lines",
    "lab": "Simulate events",
    "tree": "Headers and kernel trees",
    "control": "tracefs of the running kernel",
    "decode": "Read recordings",
    "analysis": "SQL over recordings, and their spans",
    "convert": "Write other formats",
    "runtime": "Trace events of a Python process",
    "diagnostics": "Findings",
    "errors": "Errors and warnings",
}


def api_pages() -> dict[str, str]:
    """Return one page for each room with public names and their list, by their path below docs/."""
    rooms: dict[str, list[str]] = {room: [] for room in TITLES}
    for name in tracepoint.__all__:
        rooms[_home(name).split(".")[1]].append(name)
    pages = {f"reference/api/{room}.md": "\n".join(_page(room, names)) for room, names in rooms.items()}
    return {**pages, "reference/api/index.md": "\n".join(_index(rooms))}


def _home(name: str) -> str:
    thing = getattr(tracepoint, name)
    if inspect.ismodule(thing):
        return thing.__name__
    home = tracepoint._HOME_OF[name]  # noqa: SLF001 - the one list of where public names live
    return f"tracepoint.{home}"


def _index(rooms: dict[str, list[str]]) -> Iterator[str]:
    yield "# Python names\n"
    yield "All public names of `import tracepoint`; importing it loads none of them.\n"
    yield "| for | names |\n| --- | --- |"
    for room, names in rooms.items():
        yield f"| [{TITLES[room]}]({room}.md) | {', '.join(f'`{name}`' for name in names)} |"
    yield "\n```{toctree}\n:hidden:\n"
    yield from rooms
    yield "```\n"


def _page(room: str, names: list[str]) -> Iterator[str]:
    yield f"# {TITLES[room]}\n"
    shown: set[object] = set()
    for name in names:
        thing = getattr(tracepoint, name)
        yield f"## {name}\n"
        yield from _directive(f"tracepoint.{name}", thing)
        shown.add(thing)
    for home, name, thing in _returned(names):
        if thing not in shown:
            shown.add(thing)
            yield f"## {name}\n\nWhat {_list(names, name)} returns.\n"
            yield from _directive(f"{home}.{name}", thing)


def _list(names: list[str], returned: str) -> str:
    makers = [name for name in names if returned in _annotation(getattr(tracepoint, name))]
    return ", ".join(f"`{name}`" for name in makers)


def _annotation(thing: object) -> set[str]:
    """Return the names in what a function returns."""
    if not inspect.isfunction(thing):
        return set()
    tree = ast.parse(str(thing.__annotations__.get("return", "None")), mode="eval")
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _returned(names: list[str]) -> Iterator[tuple[str, str, object]]:
    """Yield home, name and class of what functions return that has no public name itself."""
    for name in names:
        function = getattr(tracepoint, name)
        for wanted in sorted(_annotation(function) - set(tracepoint.__all__)):
            source = Path(inspect.getsourcefile(function) or "").read_text(encoding="utf-8")
            defined = getattr(importlib.import_module(function.__module__), wanted, None)
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.ImportFrom) and any(one.name == wanted for one in node.names):
                    defined = getattr(importlib.import_module(str(node.module)), wanted, None)
            if inspect.isclass(defined) and defined.__module__.startswith("tracepoint."):
                yield defined.__module__, defined.__name__, defined


def _directive(path: str, thing: object) -> Iterator[str]:
    if inspect.ismodule(thing):
        public = ", ".join(one for one in tracepoint.__all__ if hasattr(thing, one))
        kind, options = "automodule", [":members:", f":exclude-members: {public}"]
        path = thing.__name__
    elif inspect.isclass(thing):
        kind, options = "autoclass", [":members:"]
    elif inspect.isfunction(thing):
        kind, options = "autofunction", []
    else:
        kind, options = "autodata", [":no-value:"]
    yield "```{eval-rst}"
    yield f".. {kind}:: {path}"
    yield from (f"   {option}" for option in options)
    yield "```\n"
