"""The catalog's files: what they say, that nothing in a tree gets out of its text, that they are the same twice."""

from __future__ import annotations

import html
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracepoint as tp
from generate.catalog_trees import BAD, make_tree, make_trees, old_tree, received
from tracepoint.errors import GenerateError
from tracepoint.generate import CatalogVersion, make_catalog, read_catalog
from tracepoint.generate.catalog.data import Catalog
from tracepoint.generate.catalog.history import BREAKS, LAYOUT, PRINT, PROTOTYPE
from tracepoint.generate.catalog.text import clean, escape, slugs, summary
from tracepoint.layout.format import write_format

ASSETS = Path(__file__).parents[2] / "src/tracepoint/generate/catalog/assets"
VOID = {"meta", "link", "input", "br", "img"}


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_trees(tmp_path_factory.mktemp("trees"))


@pytest.fixture
def catalog(trees: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    names = (("6.1", "old"), ("6.12", "new"))
    return read_catalog([CatalogVersion(label, tp.open_tree(trees / name), "") for label, name in names])


def events_of(catalog: Catalog) -> dict[str, dict]:
    files = make_catalog(catalog)
    rows = [row for name in files if "/events-" in name for row in received(files[name])[1]]
    return {f"{row['system']}:{row['name']}": row for row in rows}


# What is in it.


def test_every_tracepoint_is_there(catalog: Catalog) -> None:
    assert [event.full_name for event in catalog.events] == [
        "oven:oven_hot",
        "shop:order_placed",
        "shop:refund",
        "shop:shop_bare",
        "shop:till_closed",
        "shop:till_opened",
        "shop:till_shut",
        "syscalls:sys_enter_shop",
        "syscalls:sys_exit_shop",
    ]


def test_what_an_event_says(catalog: Catalog) -> None:
    event = events_of(catalog)["shop:order_placed"]
    new = event["seen"][1]
    assert (new["file"], new["created"]) == ("include/trace/events/shop.h", ["kernel/shop.c"])
    assert new["exports"] == [["kernel/shop.c", 3, 1]]
    assert [site[:3] for site in new["sites"]] == [
        ["enabled", "kernel/shop.c", "place_order"],
        ["call", "kernel/shop.c", "place_order"],
    ]
    fields, size = event["records"][new["record"]]
    assert [(name, offset, n) for name, _, offset, n, _ in fields] == [
        ("lane", 8, 2),
        ("extra", 12, 4),
        ("id", 16, 8),
        ("comm", 24, 40),
        ("name", 64, 4),
    ]
    assert size == 72
    assert event["docs"][new["doc"]].startswith("order_placed - called when")
    assert events_of(catalog)["shop:refund"]["seen"][1]["condition"] == "amount > 0"


def test_bare_tracepoints_and_unused_events(catalog: Catalog) -> None:
    events = {event.full_name: event.newest for event in catalog.events}
    bare = events["shop:shop_bare"]
    assert (bare.kind, bare.proto, bare.format, bare.is_unused) == ("bare", "int depth", None, False)
    assert [site.function for site in bare.sites] == ["give_back"]
    assert [name for name, one in events.items() if one.is_unused] == [
        "oven:oven_hot",
        "shop:till_closed",
        "shop:till_shut",
    ]


def test_history(catalog: Catalog) -> None:
    events = {event.full_name: event for event in catalog.events}
    bits = dict.fromkeys(events, 0)
    for name, event in events.items():
        for change in event.changes:
            bits[name] |= change.bits
    assert {name: bit for name, bit in bits.items() if bit} == {
        "shop:order_placed": LAYOUT | PRINT | BREAKS,
        "shop:refund": PROTOTYPE | BREAKS,
    }
    renamed = [(c.target, c.change.kind.value) for c in events["shop:till_closed"].changes]
    assert renamed == [("shop:till_shut", "event perhaps renamed")]
    assert [c.target for c in events["shop:till_shut"].changes] == ["shop:till_closed"]
    assert [one is not None for one in events["oven:oven_hot"].seen] == [False, True]


def test_sign_of_text_is_no_change_of_the_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    old, new = old_tree(tmp_path), old_tree(tmp_path / "b")
    with (new / "Makefile").open("a") as file:
        file.write("KBUILD_CFLAGS += -funsigned-char\n")
    catalog = read_catalog([CatalogVersion(str(n), tp.open_tree(tree)) for n, tree in enumerate((old, new))])
    placed = next(event for event in catalog.events if event.name == "order_placed")
    assert [(c.change.field, c.bits) for c in placed.changes] == [("comm", 0), ("name", 0)]


def test_start_says_how_many(catalog: Catalog) -> None:
    page = make_catalog(catalog, title="Shop & more")["index.html"]
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())
    assert "Shop & more 6.1 \N{EN DASH} 6.12" in text
    assert "9 tracepoints in 3 systems" in text
    assert "6.12 8 2 1 2 2" in text  # all, added, removed, changed, breaking


def test_plain_page_has_everything_of_a_system(catalog: Catalog) -> None:
    page = make_catalog(catalog)["plain/shop.html"]
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", "", page)).split())
    assert "order_placed Record, print format changed in 6.12." in text
    assert "Declared in include/trace/events/shop.h:" in text
    assert "field:unsigned long id; offset:16; size:8; signed:0;" in text
    assert "place_order() kernel/shop.c:" in text
    assert "till_closed Removed in 6.12." in text


def test_search_words(catalog: Catalog) -> None:
    words = received(make_catalog(catalog)["data/words.js"])[1]
    number = [event.name for event in catalog.events].index("order_placed")

    def of(column: str) -> str:
        return words[column]["values"][words[column]["of"][number]]

    assert of("fields").split("\n") == ["lane", "id", "comm", "name", "extra"]
    assert of("callers") == "place_order"
    assert of("files").split("\n") == ["include/trace/events/shop.h", "kernel/shop.c"]
    assert of("summaries") == "called when an order is placed"


def test_chunks_begin_where_the_start_says(trees: Path, tmp_path: Path) -> None:
    body = "\n".join(
        f"TRACE_EVENT(e{n}, TP_PROTO(int {'p' * 90}{n}), TP_ARGS(x), TP_STRUCT__entry(__field(int, a)),"
        f' TP_fast_assign(), TP_printk("{"t" * 300}%d", __entry->a));'
        for n in range(400)
    )
    tree = make_tree(tmp_path / "many", "6.1.0", {"many": body}, "")
    catalog = read_catalog([CatalogVersion("6.1", tp.open_tree(tree))])
    files = make_catalog(catalog)
    starts = received(files["data/start.js"])[1]["chunks"]
    assert len(starts) > 2
    for number, start in enumerate(starts):
        first = received(files[f"data/events-{number}.js"])[1][0]
        assert first["name"] == catalog.events[start].name
    assert all(len(files[f"data/events-{n}.js"]) < 200_000 for n in range(len(starts)))


def test_nothing_to_show_is_an_error() -> None:
    with pytest.raises(GenerateError, match="no tracepoints"):
        make_catalog(Catalog((), ()))


def test_catalog_of_format_files_and_of_btf(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = next(e.newest.format for e in catalog.events if e.name == "refund")
    assert layout is not None
    path = tmp_path / "events/shop/refund/format"
    path.parent.mkdir(parents=True)
    path.write_text(write_format(layout))
    other = read_catalog([CatalogVersion("formats", tp.open_tree(tmp_path / "events"))])
    one = other.events[0].newest
    assert (one.proto, one.is_unused, one.file) == (None, False, "shop/refund/format")
    page = make_catalog(other)["plain/shop.html"]
    assert "long long amount" in page
    assert "trace_refund(" not in page
    assert "from a kernel&#39;s own formats" in make_catalog(other)["index.html"]


# Nothing of a tree gets out of its text.


class Strict(HTMLParser):
    """Elements closed in order, ids once, links and scripts collected."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.texts: list[str] = []
        self.tags: set[str] = set()
        self.handlers: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                assert value not in self.ids
                self.ids.add(value or "")
            if name.startswith("on") or name == "style":
                self.handlers.append(name)
            if name == "href" and tag == "a":
                self.links.append(value or "")
            if name == "src" or (name == "href" and tag == "link"):
                self.loads.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def check_site(files: dict[str, str]) -> None:
    """Every page is well formed, every link and load leads to a file of the site."""
    pages = {name: Strict(text) for name, text in files.items() if name.endswith(".html")}
    for name, page in pages.items():
        assert page.handlers == []
        folder = name.rpartition("/")[0]
        for load in page.loads:
            assert load == "data:," or os.path.normpath(f"{folder}/{load}".lstrip("/")) in files, load
        for link in page.links:
            path, _, place = link.partition("#")
            if path:
                target = os.path.normpath(f"{folder}/{path}".lstrip("/"))
                assert target in files
            else:
                assert place == "/" or place in page.ids
        assert "default-src 'none'" in files[name]
    for name, text in files.items():
        assert not re.search(r"\b(?:https?|ftp|wss?)://", text), name


def test_pages_are_well_formed_and_lead_somewhere(catalog: Catalog) -> None:
    check_site(dict(make_catalog(catalog)))


def test_hostile_tree_stays_text(trees: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    label = "<b>&'\"@TITLE@"
    catalog = read_catalog([CatalogVersion(label, tp.open_tree(trees / "hostile"), BAD)])
    files = dict(make_catalog(catalog, title=BAD))
    check_site(files)
    page = Strict(files["plain/shop.html"])
    assert "img" not in page.tags
    assert "script" not in page.tags
    shown = "".join(page.texts)
    assert f"{BAD}<img src=x onerror=alert(1)> \ufffd[31m \ufffd end & \"quotes\" 'single'" in shown
    start = Strict(files["index.html"])
    assert label in "".join(start.texts)  # and a place in a value is not filled again
    for text in files.values():
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\u2028]", text)
    rows = received(files["data/events-0.js"])[1]
    assert rows[0]["name"] == "constructor"
    assert rows[0]["records"][0][0][0][0] == "__proto__"


def test_hostile_names_of_systems(tmp_path: Path) -> None:
    for system in ("CON", "con", "..", "a b", "<b>", "é"):
        path = tmp_path / "events" / f"{system}_" / "x" / "format"
        path.parent.mkdir(parents=True)
        path.write_text(
            'name: x"><i>\nID: 1\nformat:\n\tfield:int a<b>;\toffset:0;\tsize:4;\tsigned:1;\n\nprint fmt: ""\n'
        )
    catalog = read_catalog([CatalogVersion("here", tp.open_tree(tmp_path / "events"))])
    files = dict(make_catalog(catalog))
    check_site(files)
    lower = [name.lower() for name in files]
    assert len(set(lower)) == len(lower)
    assert all(re.fullmatch(r"[a-z0-9_./-]+", name) for name in lower)


@given(st.text())
def test_any_text_is_shown_as_it_is(text: str) -> None:
    page = Strict(f'<p title="{escape(text)}">{escape(text)}</p>')
    assert "".join(page.texts) == clean(text)
    assert page.tags == {"p"}


@given(st.lists(st.text(), unique=True))
def test_slugs_are_different_file_names(names: list[str]) -> None:
    found = slugs(names)
    assert len({slug.lower() for slug in found.values()}) == len(names)
    assert all(re.fullmatch(r"[a-z0-9_-]{1,70}", slug) for slug in found.values())


@given(st.text(), st.text())
def test_a_summary_is_one_short_line(prose: str, name: str) -> None:
    text = summary(prose, name)
    assert "\n" not in text
    assert len(text) <= 160


def test_scripts_make_no_markup_and_ask_for_nothing() -> None:
    forbidden = re.compile(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|\bfetch\(|XMLHttp|WebSocket"
        r"|importScripts|\bimport\b|sendBeacon|srcdoc|setTimeout\(\s*[\"'`]"
    )
    for path in sorted(ASSETS.iterdir()):
        text = path.read_text()
        assert not (
            path.suffix == ".js" and forbidden.search(re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))
        )
        assert "url(" not in text
        assert "@import" not in text
        assert text.count("\n") < 500
