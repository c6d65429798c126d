"""What a catalog gives to others: a file of JSON for each tracepoint, and links to its sources."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tracepoint as tp
from generate.catalog_trees import BAD, hostile_tree, make_trees
from tracepoint.errors import GenerateError
from tracepoint.generate import CatalogVersion, make_catalog, read_catalog
from tracepoint.generate.catalog.data import Catalog

SOURCE = "https://example.org/{file}?h=v{version}#n{line}"


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    trees = make_trees(tmp_path)
    names = (("6.1", "old", "6.1.187"), ("6.12", "new", ""))
    return read_catalog(
        [CatalogVersion(label, tp.open_tree(trees / name), full) for label, name, full in names]
    )


def test_each_tracepoint_has_a_file_of_all_its_versions(catalog: Catalog) -> None:
    files = dict(make_catalog(catalog))
    index = json.loads(files["json/index.json"])
    assert list(index["events"]) == [event.full_name for event in catalog.events]
    for event in catalog.events:
        facts = json.loads(files[f"json/{index['events'][event.full_name]}"])
        assert (facts["system"], facts["name"]) == (event.system, event.name)
        seen = [label for label, one in zip(index["versions"], event.seen, strict=True) if one is not None]
        assert list(facts["versions"]) == seen
    placed = json.loads(files["json/shop/order_placed.json"])["versions"]["6.12"]
    assert placed["prototype"] == "unsigned int id, const char *name"
    assert placed["callers"] == [{"function": "place_order", "file": "kernel/shop.c", "line": 7}]
    fields = {field["name"]: field for field in placed["record"]["fields"]}
    assert (fields["extra"]["offset"], fields["extra"]["size"]) == (12, 4)
    bare = json.loads(files["json/shop/shop_bare.json"])["versions"]["6.12"]
    assert (bare["kind"], bare["record"]) == ("bare", None)


def test_plain_pages_lead_to_the_newest_version_that_has_an_event(catalog: Catalog) -> None:
    page = make_catalog(catalog, source=SOURCE)["plain/shop.html"]
    assert 'href="https://example.org/kernel/shop.c?h=v6.12#n7"' in page
    assert "?h=v6.1.187#" in page
    assert "example.org" not in make_catalog(catalog)["plain/shop.html"]


@pytest.mark.parametrize("source", ["javascript:alert({file})", "https://example.org/", "{file}", BAD])
def test_other_addresses_are_refused(catalog: Catalog, source: str) -> None:
    with pytest.raises(GenerateError, match="not an address"):
        make_catalog(catalog, source=source)


def test_hostile_names_stay_in_their_addresses_and_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = read_catalog([CatalogVersion(BAD, tp.open_tree(hostile_tree(tmp_path)))])
    files = dict(make_catalog(made, source=SOURCE))
    for path, text in files.items():
        assert ".." not in Path(path).parts
        assert not path.startswith("json/") or json.loads(text)
    index = json.loads(files["json/index.json"])["events"]
    assert len(set(index.values())) == len(index)
