"""Whether every address in a built site leads somewhere in it: files, and places in pages.

Run: `python tools/docs/links.py SITE`
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from posixpath import dirname, join, normpath
from urllib.parse import unquote, urlsplit

_ADDRESSES = frozenset({"href", "src", "srcset", "poster"})


class _Page(HTMLParser):
    """The addresses in a page and the names that an address may end in."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: set[str] = set()
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for key, value in attrs:
            if value and key in _ADDRESSES and tag != "base":
                self.addresses.add(value)
            elif value and (key == "id" or (key == "name" and tag == "a")):
                self.names.add(value)


def broken_links(site: Path) -> list[str]:
    """Return `PAGE: ADDRESS: what is missing` for each address that leads nowhere in the site, sorted.

    Addresses of other sites are not followed.  A fragment that begins with `/` is read by the page's script.
    """
    files = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    pages = {
        name: _Page((site / name).read_text(encoding="utf-8", errors="replace"))
        for name in sorted(files)
        if name.endswith(".html")
    }
    broken = []
    for name, page in pages.items():
        for address in sorted(page.addresses):
            problem = _problem(name, address, files, pages)
            if problem:
                broken.append(f"{name}: {address}: {problem}")
    return broken


def _problem(page: str, address: str, files: set[str], pages: dict[str, _Page]) -> str:
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return ""
    target = normpath(join("/", dirname(page), unquote(parts.path)))[1:] if parts.path else page
    index = join(target, "index.html")
    if target not in files and index not in files:
        return "there is no such file"
    name = unquote(parts.fragment)
    known = pages.get(target) or pages.get(index)
    if name and not name.startswith("/") and known and name not in known.names:
        return f"{target} has no place of this name"
    return ""


if __name__ == "__main__":
    found = broken_links(Path(sys.argv[1]).resolve())
    print("\n".join(found) or "links: all lead somewhere")
    sys.exit(1 if found else 0)
