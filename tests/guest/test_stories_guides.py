"""The page about the guides: `set_event` and the states of `enable` are as it says, and foo_bar is an event."""

from __future__ import annotations

from pathlib import Path

import pytest

from guest.pages import ROOT, check_page
from tracepoint.check.engine import check_headers
from tracepoint.model.read import read_header_text

PAGE = ROOT / "docs/explanation/guides.md"
HEADER = ROOT / "examples/kernel/foo_bar.h"


@pytest.mark.guest
def test_the_page_says_what_happens(guest):
    check_page(PAGE, guest)


def test_what_the_guides_write_is_found():
    literal = HEADER.read_text().replace("__string(\tfoo,\tfoo\t\t)", "__field(\tconst char *,\tfoo\t)")
    literal = literal.replace("__assign_str(foo, foo);", "__entry->foo = foo;").replace(
        "__get_str(foo)", "__entry->foo"
    )
    assert literal != HEADER.read_text()
    found = check_headers([read_header_text(literal, "foo_bar.h")], select=("TP302",))
    assert [d.code for d in found] == ["TP302"]


@pytest.mark.parametrize("version", ["6.1", "6.12", "7.2"])
@pytest.mark.oracle
def test_who_gives_a_page_its_place_in_a_swap_area(version: str):
    from tracepoint.tree.cache import cache_folder  # noqa: PLC0415 - for this test only

    tree = cache_folder() / f"sources/linux-source-{version}"
    if not tree.is_dir():
        pytest.skip(f"no {tree}: `tracepoint lab build --kernel {version}` fetches it")
    text = "".join(Path(tree / "mm" / name).read_text() for name in ("swap_state.c", "swapfile.c"))
    assert ("bool add_to_swap(struct folio *folio)" in text) == (version != "7.2")
    assert ("int folio_alloc_swap(struct folio *folio)" in text) == (version == "7.2")
