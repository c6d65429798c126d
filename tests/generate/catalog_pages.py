"""What a test does on a page of the catalog: open it, search, read, see what the browser complains of."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from generate.chromium import Page


def see(page: Page, hash_: str = "#/", *, title: str = "") -> None:
    """Open a page of the catalog and wait for it."""
    page.go(page.site + hash_)
    shown = f"document.querySelector('#view h1').textContent === {json.dumps(title)}" if title else "true"
    page.wait(f"document.getElementById('search').hidden === false && {shown}")


def search(page: Page, query: str) -> list[str]:
    """Type a query into the box as it stands and return the names found."""
    page.key("/", "/")
    page.wait("document.activeElement.id === 'query'")
    page.run("document.getElementById('query').select()")
    page.type(query)
    page.wait(f"Catalog.timing && Catalog.timing.query === {json.dumps(query)} && Catalog.timing.words")
    return page.run("[...document.querySelectorAll('#results .full-name')].map((e) => e.textContent)")


def text(page: Page, selector: str = "#view") -> str:
    return " ".join(page.run(f"document.querySelector({json.dumps(selector)}).innerText").split())


def complaints(page: Page) -> list[Any]:
    """What the browser logged: errors, refused loads, violated policies."""
    return [e for e in page.events if e["method"] in ("Log.entryAdded", "Runtime.exceptionThrown")]


def loads(page: Page) -> list[str]:
    return [e["params"]["request"]["url"] for e in page.events if e["method"] == "Network.requestWillBeSent"]
