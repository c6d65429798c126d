"""Packages of the npm registry, in the versions that tests use; kept in the user's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from tracepoint.tree.cache import cache_folder

VERSIONS = {
    "@microsoft/jest-sarif": "1.0.0-beta.0",  # carries the schema of SARIF 2.1.0
    "axe-core": "4.14.1",  # judges whether pages can be used by everyone
    "pyodide": "314.0.7",  # CPython 3.14 in WebAssembly, for the live page
}
_SECONDS = 300


class NpmError(Exception):
    """A package that cannot be had, with the reason."""


def fetch_package(name: str) -> Path:
    """Return the folder of a package's files, downloaded once; `TRACEPOINT_NPM=no` forbids that.

    Raises NpmError with the reason where it cannot be had.
    """
    version = VERSIONS[name]
    folder = cache_folder() / "npm" / f"{name.replace('/', '+')}-{version}"
    if folder.is_dir():
        return folder
    if os.environ.get("TRACEPOINT_NPM") == "no":
        raise NpmError(f"TRACEPOINT_NPM=no forbids downloading {name}")
    program = shutil.which("npm")
    if program is None:
        raise NpmError(f"no npm to download {name} with; Debian: apt-get install npm")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent) as place:
        _unpack(program, f"{name}@{version}", Path(place))
        try:
            (Path(place) / "package").rename(folder)
        except OSError:
            # Another build was first.
            if not folder.is_dir():
                raise
    return folder


def _unpack(program: str, package: str, place: Path) -> None:
    command = [program, "pack", "--silent", package]
    try:
        done = subprocess.run(
            command, cwd=place, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise NpmError(f"npm did not download {package} within {_SECONDS} s") from None
    archive = next(place.glob("*.tgz"), None)
    if done.returncode or archive is None:
        last = (done.stderr.strip() or "no message").splitlines()[-1]
        raise NpmError(f"npm cannot download {package}: {last}")
    with tarfile.open(archive) as files:
        files.extractall(place, filter="data")
