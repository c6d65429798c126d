"""What the tests of the catalog in a browser share: one browser, one site, a page of it for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tracepoint as tp
from generate.catalog_trees import hostile_tree, new_tree, old_tree
from generate.chromium import DESKTOP, Chromium, Page
from tracepoint.generate import CatalogVersion, make_catalog, read_catalog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tracepoint.generate.catalog.data import Catalog


@pytest.fixture(scope="session")
def browser() -> Iterator[Chromium]:
    with Chromium() as chromium:
        yield chromium


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Catalog]:
    """A site of three made-up versions, the last of them hostile."""
    folder = tmp_path_factory.mktemp("site")
    trees = (("6.1", old_tree(folder)), ("6.12", new_tree(folder)), ("6.13", hostile_tree(folder)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        catalog = read_catalog([CatalogVersion(label, tp.open_tree(tree)) for label, tree in trees])
    make_catalog(catalog, title="Shop").write(folder / "site")
    return folder / "site", catalog


@pytest.fixture
def page(browser: Chromium, made: tuple[Path, Catalog]) -> Iterator[Page]:
    page = browser.page()
    page.size(*DESKTOP)
    page.site = (made[0] / "index.html").as_uri()
    yield page
    page.close()
