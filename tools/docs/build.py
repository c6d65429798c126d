"""Build the documentation site into build/docs/html: the pages of docs/, and those made from the code.

    python tools/docs/build.py [TARGET [SOURCE]]

A warning of Sphinx is an error, and so is an address in the built pages that leads nowhere in the site.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from api import api_pages
from commands import command_pages
from kernels import add_catalog, kernels_page
from links import broken_links
from live import add_live_files, live_form
from support import support_page

ROOT = Path(__file__).resolve().parent.parent.parent
#: What the theme's pages lack for screen readers and the keyboard.
_ADDED = {
    'role="heading">': 'role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<aside class="toc-drawer">': '<aside class="toc-drawer" aria-label="This page">',
    # Pages that Sphinx lists and does not write.
    '<li><a href="builtins.html">builtins</a></li>': "",
    '<li><a href="namedtuple_SpanPair.html">namedtuple_SpanPair</a></li>': "",
    '<div class="highlight"><pre>': '<div class="highlight"><pre tabindex="0">',
}
_BACK_LINK = re.compile(r'href="(?P<path>[^"]*reference/api/\w+\.html)#tracepoint\.(?P<name>[\w.]+)"')


def generated_pages() -> dict[str, str]:
    """Return the pages that are made from the code, by their path below docs/."""
    return {
        **api_pages(),
        **command_pages(),
        "reference/support.md": support_page(),
        "decisions/index.md": _decisions(),
        "architecture.md": _architecture(),
        "kernels.md": kernels_page(),
    }


def _architecture() -> str:
    """Return ARCHITECTURE.md with its links as they are seen from docs/."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    return text.replace("](docs/decisions)", "](decisions/index.md)").replace("](docs/", "](")


def _decisions() -> str:
    """Return the list of decision records, in their order."""
    lines = ["# Decisions", "", "Why things are as they are, in the order they were decided.", ""]
    lines += ["```{toctree}", ":maxdepth: 1", ":glob:", "", "0*", "```", ""]
    return "\n".join(lines)


def stage(folder: Path) -> Path:
    """Copy docs/ and write the generated pages below `folder`; links out of docs/ keep their targets."""
    shutil.rmtree(folder, ignore_errors=True)
    docs = folder / "docs"
    shutil.copytree(ROOT / "docs", docs, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "examples").symlink_to(ROOT / "examples")
    _append(docs / "reference/rules/index.md", "\n```{toctree}\n:hidden:\n:glob:\n\nTP*\n```\n")
    _append(docs / "live.md", live_form())
    for name, text in generated_pages().items():
        path = docs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            raise SystemExit(f"docs: {name} is generated, and stands in docs/ too: remove it there")
        path.write_text(text, encoding="utf-8")
    return docs


def _append(page: Path, text: str) -> None:
    page.write_text(page.read_text(encoding="utf-8") + text, encoding="utf-8")


def run_sphinx(source: Path, target: Path) -> subprocess.CompletedProcess[bytes]:
    """Make `target`/html from the pages in `source`."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    command += ["-d", str(target / "doctrees"), str(source), str(target / "html")]
    return subprocess.run(command, cwd=ROOT, env=os.environ | {"LC_ALL": "C.UTF-8"}, check=False)


def label_pages(site: Path) -> None:
    """Give landmarks their names, headings their level, and blocks that scroll to the keyboard."""
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        labelled = text
        for bare, full in _ADDED.items():
            labelled = labelled.replace(bare, full)
        if labelled != text:
            page.write_text(labelled, encoding="utf-8")


def correct_back_links(site: Path) -> None:
    """Let sources lead to classes that have their full name as anchor: Sphinx takes one prefix for a page."""
    for page in (site / "_modules").rglob("*.html"):
        module = page.relative_to(site / "_modules").with_suffix("").as_posix().replace("/", ".")

        def corrected(link: re.Match[str], page: Path = page, module: str = module) -> str:
            documented = (page.parent / link["path"]).read_text(encoding="utf-8")
            is_there = f'id="tracepoint.{link["name"]}"' in documented
            return link[0] if is_there else f'href="{link["path"]}#{module}.{link["name"]}"'

        text = page.read_text(encoding="utf-8")
        page.write_text(_BACK_LINK.sub(corrected, text), encoding="utf-8")


if __name__ == "__main__":
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/docs"
    pages = Path(sys.argv[2]) if len(sys.argv) > 2 else stage(place / "source")
    status = run_sphinx(pages, place).returncode
    if status == 0:
        label_pages(place / "html")
        correct_back_links(place / "html")
        if (pages / "live.md").exists():
            add_live_files(place / "html")
            add_catalog(place / "html")
        broken = broken_links(place / "html")
        for line in broken:
            print(f"docs: {line}", file=sys.stderr)
        status = 1 if broken else 0
    if status == 0:
        print(f"docs: {place / 'html/index.html'}")
    sys.exit(status)
