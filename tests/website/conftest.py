"""What the tests of the site share: the site, built once and served on the loopback, and a browser."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from generate.chromium import DESKTOP, Chromium, Page
from oracles import ROOT

sys.path.insert(0, str(ROOT / "tools/docs"))

from kernels import add_catalog, kernels_page, missing_because
from links import broken_links
from npm import NpmError, fetch_node, fetch_package, install_package
from reached import reached_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = [
    "add_catalog",
    "broken_links",
    "build",
    "installed_package",
    "kernels_page",
    "missing_because",
    "node_program",
    "npm_package",
    "reached_files",
]


def build(*folders: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "tools/docs/build.py", *map(str, folders)]
    # Indexing two kernels takes a minute where it was not done before: `test_kernels.py` does it.
    env = os.environ | {"TRACEPOINT_DOCS_CATALOG": "no"}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def _had(fetch: Callable[..., Path], *name: str) -> Path:
    try:
        return fetch(*name)
    except NpmError as error:
        pytest.skip(str(error))


def npm_package(name: str) -> Path:
    """The package's folder; skips with the reason where it cannot be had."""
    return _had(fetch_package, name)


def installed_package(name: str) -> Path:
    """The package's folder, beside those that it needs; skips with the reason where it cannot be had."""
    return _had(install_package, name)


def node_program() -> Path:
    """A Node.js that is new enough for installed packages; skips with the reason where it cannot be had."""
    return _had(fetch_node)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sphinx", reason="Sphinx is not installed: make setup")
    folder = tmp_path_factory.mktemp("docs")
    done = build(folder)
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "html"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="session")
def served(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="session")
def browser() -> Iterator[Chromium]:
    with Chromium() as chromium:
        yield chromium


@pytest.fixture
def page(browser: Chromium, served: str) -> Iterator[Page]:
    page = browser.page()
    page.size(*DESKTOP)
    page.site = served
    yield page
    page.close()
