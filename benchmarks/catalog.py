"""The catalog of 6.1 and 6.12: how long making it takes, what its first page weighs, how soon a key is answered."""

from __future__ import annotations

import atexit
import re
import statistics
import tempfile
from functools import cache
from pathlib import Path

import pytest
from tests.generate.chromium import Chromium, Page

from benchmarks.harness import MissingError, Row, wall_and_cpu
from tracepoint.tree.cache import cache_folder

SERIES = ("6.1", "6.12")
QUERIES = (
    "sched_switch",
    "field:pid system:signal",
    "page fault",
    "file:mm/ caller:fault",
    "e",
    "unused: xfs",
)
#: A processor four times as slow is about that of a phone.
SLOWER = 4


def _trees() -> list[str]:
    trees = [cache_folder() / "sources" / f"linux-source-{series}" for series in SERIES]
    for tree in trees:
        if not (tree / "Makefile").is_file():
            raise MissingError(f"no kernel source in {tree}: `make test` as root fetches it")
    return [str(tree) for tree in trees]


@cache
def _made() -> tuple[Path, tuple[float, float], tuple[float, float]]:
    """The site; wall and CPU seconds of making it without saved indexes; the same with them, best of three."""
    folder = tempfile.TemporaryDirectory(prefix="tp-bench-")
    atexit.register(folder.cleanup)
    site = Path(folder.name, "site")
    words = ["catalog", *_trees(), "-o", str(site), "--quiet"]
    cold = wall_and_cpu(words, folder.name)
    return site, cold, min(wall_and_cpu(words, folder.name) for _ in range(3))


@cache
def _keys() -> dict[int, list[float]]:
    """By how much the processor is slowed: milliseconds from each key of some queries to the new list."""
    site = _made()[0]
    try:
        browser = Chromium()
    except pytest.skip.Exception as skipped:
        raise MissingError(str(skipped)) from None
    with browser:
        page = browser.page()
        page.size(1280, 800)
        page.go((site / "index.html").as_uri())
        page.wait("document.getElementById('search').hidden === false")
        page.key("/", "/")
        page.type("e")
        page.wait("Catalog.timing && Catalog.timing.words")
        return {slower: _typed(page, slower) for slower in (1, SLOWER)}


def _typed(page: Page, slower: int) -> list[float]:
    page.call("Emulation.setCPUThrottlingRate", rate=slower)
    times = []
    for query in QUERIES:
        page.run("document.getElementById('query').select()")
        for letter in query:
            page.key(letter, letter)
            times.append(page.run("Catalog.timing.whole"))
    return times


def catalog_cold() -> Row:
    """Wall seconds of the catalog of two kernels that were never indexed."""
    wall, cpu = _made()[1]
    return Row("catalog of 6.1 and 6.12, nothing saved", wall, "s", 60, True, f"{cpu:.1f} s CPU")


def catalog_warm() -> Row:
    """Wall seconds of the catalog of two kernels whose indexes are saved."""
    wall, cpu = _made()[2]
    return Row("catalog of 6.1 and 6.12, indexes saved", wall, "s", 60, True, f"{cpu:.1f} s CPU")


def catalog_first_page() -> Row:
    """Kilobytes of everything that the first page loads."""
    site = _made()[0]
    page = (site / "index.html").read_text()
    loads = ["index.html", "data/start.js", *re.findall(r'\b(?:src|href)="(assets/[^"]+)"', page)]
    size = sum((site / name).stat().st_size for name in loads)
    return Row("catalog, first page", size / 1000, "KB", 200, True, f"{len(loads)} files, not compressed")


def _key_row(name: str, times: list[float], floor: float) -> Row:
    times = sorted(times)
    told = f"median {statistics.median(times):.1f} ms of {len(times)} keys, slowest {times[-1]:.1f} ms"
    return Row(name, times[len(times) * 9 // 10], "ms", floor, True, told)


def catalog_key() -> Row:
    """Milliseconds from a key to the list of what was found, 9 of 10 keys: one frame."""
    return _key_row("catalog, a key of a search (9 of 10)", _keys()[1], 16)


def catalog_key_slow() -> Row:
    """The same with the processor slowed to a quarter: what still feels at once."""
    return _key_row("catalog, a key, processor slowed 4 times", _keys()[SLOWER], 100)


ROWS = (catalog_cold, catalog_warm, catalog_first_page, catalog_key, catalog_key_slow)
