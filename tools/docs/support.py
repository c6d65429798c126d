"""The page of what is supported, from the lists that the package, its set-up and its tests use."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.lab.kernels.supported import KERNELS

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = Path(__file__).resolve().parent.parent.parent / "pyproject.toml"
PYTHON = "Programming Language :: Python :: 3."


def support_page() -> str:
    """Return the page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    yield "# What is supported\n"
    yield "Made from the lists that the package, its set-up and its tests use.\n"
    yield "## Python\n"
    versions = [
        f"3.{line.removeprefix(PYTHON)}" for line in project["classifiers"] if line.startswith(PYTHON)
    ]
    yield f"CPython {', '.join(versions)} on Linux; `requires-python` is {project['requires-python']}."
    yield "The C modules are optional: without them their twins in Python run, slower.\n"
    yield "## Kernels\n"
    yield "`make test` boots each of them with Debian's package; any `linux-image` package can be named.\n"
    yield "| name | Debian suite | drivers | package |\n| --- | --- | --- | --- |"
    for kernel in KERNELS:
        pattern = kernel.package_pattern.replace("|", "\\|")
        yield f"| `{kernel.name}` | {kernel.suite} | {kernel.flavour} | `{pattern}` |"
    yield "\n## Extras\n"
    yield "The base install requires nothing else.\n"
    yield "| `tracepoint[...]` | installs |\n| --- | --- |"
    for name, wanted in project["optional-dependencies"].items():
        yield f"| `{name}` | {', '.join(f'`{one}`' for one in wanted)} |"
