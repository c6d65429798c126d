"""The catalog of two whole kernels: its size, how soon it answers, its formats."""

from __future__ import annotations

import re
import statistics
from typing import TYPE_CHECKING

import pytest

import tracepoint as tp
from generate.catalog_pages import search, see
from generate.chromium import DESKTOP, Chromium, Page
from oracles import kernel_source
from pace import fewer_turns
from tracepoint.cli.main import main
from tracepoint.generate.catalog.constants import work_out
from tracepoint.layout.format import write_format

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.oracle
FRAME_MS = 16
NAMED = re.compile(r'\{([^{}"]+),\s*"')
NAME = re.compile(
    r"\b(?!0x|unsigned\b|long\b|int\b|gfp_t\b|blk_opf_t\b|fmode_t\b|__kernel_rwf_t\b)[A-Za-z_]\w*"
)
#: Types that are unsigned int, and no word of C.
PLAIN_TYPES = re.compile(
    r"\b(?:__force\s+)?(?:gfp_t|blk_opf_t|fmode_t|vm_fault_t|u32|__u32|__kernel_rwf_t)\b"
)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The catalog of 6.1 and 6.12, made by the command."""
    trees = [kernel_source("linux-source-6.1"), kernel_source("linux-source-6.12")]
    folder = tmp_path_factory.mktemp("kernels") / "site"
    for tree in trees:
        tp.open_tree(tree)  # how long the index takes is measured elsewhere
    with fewer_turns(1200):
        assert main(["catalog", *map(str, trees), "-o", str(folder), "-q"]) == 0
    return folder


def test_catalog_of_two_kernels_is_small(kernels: Path) -> None:
    sizes = {
        path.relative_to(kernels).as_posix(): path.stat().st_size
        for path in kernels.rglob("*")
        if path.is_file()
    }
    first = sum(
        n
        for name, n in sizes.items()
        if name.startswith("assets/") or name in ("index.html", "data/start.js")
    )
    assert first < 200_000
    assert sum(sizes.values()) < 40_000_000


def script_ms(page: Page) -> float:
    """The time of the processor that the page's scripts took, whatever else the machine does."""
    metrics = page.call("Performance.getMetrics")["metrics"]
    return next(1000 * one["value"] for one in metrics if one["name"] == "ScriptDuration")


def test_search_answers_while_typing(browser: Chromium, kernels: Path) -> None:
    page = browser.page()
    page.size(*DESKTOP)
    page.site = (kernels / "index.html").as_uri()
    see(page)
    assert search(page, "sched_switch")[0] == "sched:sched_switch"
    assert page.run("Catalog.timing.count") > 7000
    page.call("Performance.enable", timeDomain="threadTicks")
    times = []
    for query in (
        "sched_switch",
        "field:pid system:signal",
        "page fault",
        "file:mm/ caller:fault",
        "e",
        "unused: xfs",
    ):
        page.run("document.getElementById('query').select()")
        for letter in query:
            before = script_ms(page)
            page.key(letter, letter)
            times.append(script_ms(page) - before)
    # A slow search would be slow at every key; at one of them the browser may collect garbage.
    assert statistics.median(times) < FRAME_MS / 2
    assert sorted(times)[len(times) * 9 // 10] < FRAME_MS
    page.close()


def test_format_texts_of_a_kernel(browser: Chromium, kernels: Path) -> None:
    tree = tp.open_tree(kernel_source("linux-source-6.12"))
    page = browser.page()
    page.site = (kernels / "index.html").as_uri()
    see(page)
    for event in tree.events()[::97]:
        if event.format is None or len(tree.events(event.full_name)) > 1:
            continue
        see(page, f"#/event/{event.full_name}", title=event.name)
        assert page.run("document.querySelector('pre.scroll').textContent") == write_format(event.format)
    page.close()


def test_the_constants_of_a_kernel_are_worked_out() -> None:
    """Of every expression that a print format of the kernel gives a name; those with names of enumerators stay."""
    tree = tp.open_tree(kernel_source("linux-source-6.12"))
    prints = {event.format.print_fmt for event in tree.events() if event.format is not None}
    texts = sorted({text.strip() for print_fmt in prints for text in NAMED.findall(print_fmt)})
    assert len(texts) > 2000
    left = [
        text for text in texts if re.search("[(|<~]", text) and work_out(f"{{ ({text}), 0 }}").count("(") > 0
    ]
    assert [text for text in left if not NAME.search(PLAIN_TYPES.sub("", text))] == ["(-1)"]
    assert len(left) < len(texts) // 2
