"""The page of what is supported, from the lists that the package, its set-up and its tests use."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tracepoint.lab.kernels.supported import KERNELS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent.parent
PROJECT = ROOT / "pyproject.toml"
CI = ROOT / ".github/workflows/ci.yml"


def tested_pythons(job: str) -> list[str]:
    """Return the Pythons that a job of CI runs with."""
    jobs: dict[str, Any] = yaml.safe_load(CI.read_text(encoding="utf-8"))["jobs"]
    return [str(version) for version in jobs[job]["strategy"]["matrix"]["python"]]


def support_page() -> str:
    """Return the page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    settings = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    project, wheels = settings["project"], settings["tool"]["cibuildwheel"]
    yield "# What is supported\n"
    yield "Made from the lists that the package, its set-up, its tests and its CI use.\n"
    yield "## Python\n"
    versions = ", ".join(tested_pythons("python"))
    free = ", ".join(tested_pythons("free-threaded"))
    yield f"The workflows test CPython {versions} on Linux; it needs Python {project['requires-python']}."
    yield f"On free-threaded builds ({free}) the package is installed and tried: neither C module turns the"
    yield "GIL on again. In an interpreter of a process that is not its main one, events run in Python.\n"
    images = sorted({value for key, value in wheels["linux"].items() if key.endswith("-image")})
    yield f"Wheels: {', '.join(f'`{name}`' for name in wheels['build'])} for {' and '.join(images)},"
    yield "on x86_64 and aarch64. Debian packages: built, checked and installed on Debian 13.\n"
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
