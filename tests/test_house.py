"""The rules of the house that a machine can check: style, types, imports, size of files and functions."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tracepoint
from parsed import parsed

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
SOURCES = sorted((ROOT / "src/tracepoint").rglob("*.py"))
MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 40
PURE_ROOMS = (
    "source",
    "model",
    "layout",
    "printk",
    "assign",
    "filter",
    "trigger",
    "check",
    "generate",
    "place",
)
IMPURE_CALLS = {"open", "print", "input", "breakpoint"}
IMPURE_MODULES = {"os", "subprocess", "socket", "time", "tempfile", "shutil", "sys", "random"}
# Texts of error numbers, nothing else; FileSet.write, which only the caller of a generator calls.
ALLOWED = {"src/tracepoint/filter/error.py: os", "src/tracepoint/generate/fileset.py: Path"}


def run(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ruff_finds_nothing() -> None:
    run(str(BIN / "ruff"), "check", ".")


def test_ruff_would_format_nothing() -> None:
    run(str(BIN / "ruff"), "format", "--check", ".")


def test_mypy_strict_finds_nothing() -> None:
    run(sys.executable, "-m", "mypy", "src")


def test_imports_flow_one_way() -> None:
    run(str(BIN / "lint-imports"), "--no-cache")


def test_base_package_requires_nothing() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["dependencies"] == []
    assert "all" in project["optional-dependencies"]


def test_files_are_small() -> None:
    long = {str(p.relative_to(ROOT)): n for p in SOURCES if (n := p.read_text().count("\n")) > MAX_FILE_LINES}
    assert long == {}


def test_functions_are_small() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{name} {n}"
        for path in SOURCES
        for name, n in parsed(path).functions
        if n > MAX_FUNCTION_LINES
    ]
    assert long == []


def test_pure_rooms_touch_nothing_outside() -> None:
    bad = []
    for path in SOURCES:
        room = path.relative_to(ROOT / "src/tracepoint").parts[0]
        if room not in PURE_ROOMS:
            continue
        for line, name, is_bare, _ in parsed(path).calls:
            if is_bare and name in IMPURE_CALLS:
                bad.append(f"{path.relative_to(ROOT)}:{line} {name}()")
        for node in parsed(path).imports:
            match node:
                case ast.Import(names=names):
                    bad += [f"{path.relative_to(ROOT)}: {a.name}" for a in names if a.name in IMPURE_MODULES]
                case ast.ImportFrom(module="pathlib", names=names):
                    # Arithmetic on paths is pure, files are not.
                    bad += [
                        f"{path.relative_to(ROOT)}: {a.name}" for a in names if not a.name.startswith("Pure")
                    ]
                case ast.ImportFrom(module=str(name)) if name.split(".")[0] in IMPURE_MODULES:
                    bad.append(f"{path.relative_to(ROOT)}: from {name}")
    assert set(bad) <= ALLOWED


def imports_of(path: Path, modules: set[str]) -> set[str]:
    """The modules of the package that a file names, under TYPE_CHECKING, in functions and as words too."""
    named = {
        first
        for _, name, _, first in parsed(path).calls
        if name == "import_module" and isinstance(first, str)
    }
    for node in parsed(path).imports:
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                named |= {f"{module}.{a.name}" if f"{module}.{a.name}" in modules else module for a in names}
            case ast.Import(names=names):
                named |= {a.name for a in names}
    return named & modules


def test_no_imports_go_in_circles() -> None:
    """The contract of layers does not look into rooms, nor at what only type checkers import."""
    paths = {
        ".".join(p.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__"): p
        for p in SOURCES
    }
    # The package itself names the homes of public names; nothing below needs it.
    left = {name: imports_of(path, set(paths)) - {name, "tracepoint"} for name, path in paths.items()}
    del left["tracepoint"]
    while free := {name for name, others in left.items() if not others & left.keys()}:
        left = {name: others for name, others in left.items() if name not in free}
    assert left == {}


def test_nothing_is_left_for_later() -> None:
    words = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    bad = [f"{p.relative_to(ROOT)}: {m[0]}" for p in SOURCES for m in words.finditer(p.read_text())]
    assert bad == []


@pytest.mark.parametrize("name", tracepoint.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    thing = getattr(tracepoint, name)
    assert name in dir(tracepoint)
    assert thing.__doc__ if callable(thing) else thing


def test_dir_of_the_package_shows_public_names_only() -> None:
    assert {name for name in dir(tracepoint) if not name.startswith("__")} == {
        name for name in tracepoint.__all__ if not name.startswith("__")
    }


def test_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        tracepoint.no_such_name  # noqa: B018 - the access is the test


def test_package_carries_its_type_marker() -> None:
    assert (ROOT / "src/tracepoint/py.typed").exists()
