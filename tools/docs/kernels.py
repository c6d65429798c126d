"""The catalogue of Debian's kernels as a part of the site, where their sources are in the user's cache."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from tracepoint.tree.cache import cache_folder

if TYPE_CHECKING:
    from pathlib import Path

KERNELS = ("6.1", "6.12")
_WEB = "https://git.kernel.org/pub/scm/linux/kernel/git/stable/linux.git/tree/{file}?h=v{version}#n{line}"
_PAGE = """# The tracepoints of Linux {versions}

{first}

The search takes names, fields, callers, files and words of descriptions, and forgives slips: [what a search
can ask](howto/catalog.md). `tracepoint catalog` makes [the same of your own kernels](howto/catalog.md).
"""
_LINK = """```{raw} html
<p><a class="reference" href="catalog/index.html">Search all tracepoints</a>: records, print formats,
descriptions, callers with links to the sources, and what changed between the versions.
<a class="reference" href="catalog/json/index.json">As JSON</a> for programs.</p>
```"""
_MISSING = """```{{warning}}
This copy of the site was built without the catalogue: {reason}.
```"""


def _trees() -> list[Path]:
    return [cache_folder() / "sources" / f"linux-source-{version}" for version in KERNELS]


def missing_because() -> str:
    """Return why the catalogue cannot be made, empty when it can."""
    if os.environ.get("TRACEPOINT_DOCS_CATALOG") == "no":
        return "TRACEPOINT_DOCS_CATALOG=no leaves it out"
    missing = " and ".join(tree.name for tree in _trees() if not tree.is_dir())
    return missing and f"the sources {missing} are missing; `make debian` as root gets them"


def kernels_page() -> str:
    """Return the page that leads to the catalogue, or says why it is missing."""
    reason = missing_because()
    first = _MISSING.format(reason=reason) if reason else _LINK
    return _PAGE.format(versions=" and ".join(KERNELS), first=first)


def add_catalog(site: Path) -> None:
    """Make the catalogue below `site`/catalog; raises SystemExit with the messages when it fails."""
    reason = missing_because()
    if reason:
        print(f"docs: the site is built without the catalogue of kernels: {reason}")
        return
    command = [sys.executable, "-m", "tracepoint", "catalog", *map(str, _trees()), "-q", "--source-url", _WEB]
    command += ["-o", str(site / "catalog")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"docs: the catalogue cannot be made:\n{done.stderr[-2000:]}")
