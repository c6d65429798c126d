"""The catalogue of two kernels in the site: searched with slips, its addresses whole, usable by everyone."""

from __future__ import annotations

from functools import partial
from http.server import ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from generate.catalog_pages import search, see
from website.conftest import Quiet, add_catalog, broken_links, kernels_page, missing_because, npm_package
from website.lighthouse import check
from website.test_axe import VIOLATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from generate.chromium import Chromium, Page

SLIPS = {
    "shced_switch": "sched:sched_switch",
    "sched_swich": "sched:sched_switch",
    "sched_wakup": "sched:sched_wakeup",
    "kmaloc": "kmem:kmalloc",
    "page_falt_user": "exceptions:page_fault_user",
    "irq_hander_entry": "irq:irq_handler_entry",
    "hrtimer_exipre_entry": "timer:hrtimer_expire_entry",
}


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if reason := missing_because():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("site")
    add_catalog(folder)
    return folder


@pytest.fixture
def page(browser: Chromium, catalog: Path) -> Iterator[Page]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(catalog))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        page = browser.page()
        page.site = f"http://127.0.0.1:{server.server_address[1]}/catalog/index.html"
        yield page
        page.close()
        server.shutdown()


@pytest.mark.slow
@pytest.mark.oracle
def test_slips_find_the_event_first(page: Page) -> None:
    see(page)
    assert {typed: (search(page, typed) or [""])[0] for typed in SLIPS} == SLIPS


@pytest.mark.slow
@pytest.mark.oracle
def test_all_addresses_lead_somewhere(catalog: Path) -> None:
    assert broken_links(catalog) == []


@pytest.mark.slow
@pytest.mark.oracle
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "place", ["#/", "#/event/sched:sched_switch", "#/search/sched_swich", "#/system/kmem"]
)
def test_it_can_be_used_by_everyone(page: Page, place: str, scheme: str) -> None:
    script = (npm_package("axe-core") / "axe.min.js").read_text(encoding="utf-8")
    page.scheme(scheme)
    page.go(page.site + place)
    page.wait("document.getElementById('search').hidden === false")
    page.run(f"{script};0")
    assert page.run(VIOLATIONS) == []


@pytest.mark.slow
@pytest.mark.oracle
def test_lighthouse_gives_it_full_scores(page: Page, tmp_path: Path) -> None:
    check(page.site, tmp_path)


def test_without_sources_the_page_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert "the sources linux-source-6.1 and linux-source-6.12 are missing" in kernels_page()
    (tmp_path / "tracepoint/sources/linux-source-6.1").mkdir(parents=True)
    assert "the sources linux-source-6.12 are missing" in kernels_page()
    monkeypatch.setenv("TRACEPOINT_DOCS_CATALOG", "no")
    assert "TRACEPOINT_DOCS_CATALOG=no" in kernels_page()
