"""axe-core, run in a real browser, finds nothing to complain of in the site's main pages, light and dark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from website.conftest import npm_package

if TYPE_CHECKING:
    from generate.chromium import Page

pytestmark = [pytest.mark.oracle, pytest.mark.programs]
PAGES = (
    "index",
    "live",
    "architecture",
    "explanation/records",
    "explanation/disabled-events",
    "tutorial/first-event",
    "howto/sched",
    "reference/options",
    "reference/rules/index",
    "reference/glossary",
)
VIOLATIONS = "axe.run().then((r) => r.violations.map((v) => [v.id, v.nodes.map((n) => n.target.join(' '))]))"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_pages_can_be_used_by_everyone(page: Page, name: str, scheme: str) -> None:
    script = (npm_package("axe-core") / "axe.min.js").read_text(encoding="utf-8")
    page.scheme(scheme)
    page.go(f"{page.site}/{name}.html")
    if page.run("document.getElementById('live-run') !== null"):
        page.wait("!document.getElementById('live-run').disabled", 60)
    page.run(f"{script};0")
    assert page.run(VIOLATIONS) == []
