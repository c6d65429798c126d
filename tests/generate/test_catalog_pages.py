"""The pages of the catalog in a real browser: what they say, what they load, how they look on a phone."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from generate.catalog_pages import complaints, loads, search, see, text
from generate.catalog_trees import BAD
from generate.chromium import DESKTOP, PHONE, Chromium, Page
from tracepoint.cli.main import main
from tracepoint.generate import make_catalog
from tracepoint.generate.catalog.text import clean
from tracepoint.layout.format import write_format

if TYPE_CHECKING:
    from pathlib import Path

    from tracepoint.generate.catalog.data import Catalog

pytestmark = pytest.mark.oracle


# Goes to an address; what is shown for it gives the document a title again.
GO = """(link) => {
  document.title = "";
  if (location.hash === link) dispatchEvent(new Event("hashchange"));
  else location.hash = link;
}"""


def test_every_page_that_is_linked_is_there(page: Page, made: tuple[Path, Catalog]) -> None:
    see(page)
    todo, seen = ["#/"], set()
    while todo:
        link = todo.pop()
        if link in seen:
            continue
        seen.add(link)
        page.run(f"({GO})({json.dumps(link)})")
        if link.startswith("#/search/"):
            page.wait("!document.getElementById('found').hidden")
            continue
        page.wait("document.title")
        heading = text(page, "#view h1")
        assert not heading.startswith(("No such", "Something")), link
        todo += page.run(
            "[...document.querySelectorAll('#view a[href^=\"#\"]')].map((a) => a.getAttribute('href'))"
        )
    events = {f"#/event/{event.full_name}" for event in made[1].events}
    assert {f"{link}" for link in seen if "/event/" in link and "@" not in link} >= events
    assert "#/history/6.12" in seen
    assert complaints(page) == []


def test_page_of_an_event(page: Page) -> None:
    see(page, "#/event/shop:order_placed", title="order_placed")
    shown = text(page)
    for part in (
        "called when an order is placed",
        "id number of the order",
        "72 bytes, 1 hole (2 bytes at 10), 4 bytes of padding at the end, then the data of name.",
        "lane was 1 byte unsigned short 8 2 no",
        "extra new u32 12 4 no",
        "Called from 1 place place_order() kernel/shop.c:7",
        "gone in 6.13",
        "trace_order_placed(unsigned int id, const char *name)",
        "echo 1 > /sys/kernel/tracing/events/shop/order_placed/enable",
        "bpftrace -e 'tracepoint:shop:order_placed {",
        "Declared in include/trace/events/shop.h:",
        "to GPL modules",
        "Removed: enabling it fails.",
        "breaks ",
    ):
        assert part in shown
    see(page, "#/event/shop:order_placed@6.1", title="order_placed")
    assert "lane unsigned char 8 1 no" in text(page)
    assert "extra" not in text(page, ".fields")


def test_places_lead_to_the_sources_of_their_version(
    browser: Chromium, made: tuple[Path, Catalog], tmp_path: Path
) -> None:
    make_catalog(made[1], source="https://example.org/{file}?h=v{version}#n{line}").write(tmp_path / "site")
    page = browser.page()
    page.size(*DESKTOP)
    page.site = (tmp_path / "site/index.html").as_uri()
    for version in ("6.1", "6.12"):
        see(page, f"#/event/shop:order_placed@{version}", title="order_placed")
        found = page.run("[...document.querySelectorAll('a.path')].map((a) => a.getAttribute('href'))")
        assert f"https://example.org/kernel/shop.c?h=v{version}#n7" in found
    assert complaints(page) == []
    page.close()


@pytest.mark.parametrize("has_clipboard", [True, False])
def test_copy_buttons(page: Page, has_clipboard: bool) -> None:
    see(page, "#/event/shop:order_placed", title="order_placed")
    page.run("window.copied = []")
    if has_clipboard:
        page.run("navigator.clipboard.writeText = async (text) => { copied.push(text); }")
    else:
        page.run("navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed'))")
        page.run("document.execCommand = () => copied.push(document.activeElement.value)")
    # The buttons say it for a moment only.
    page.run("window.setTimeout = () => 0")
    page.run("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    page.run("document.querySelectorAll('button.copy').forEach((button) => button.click())")
    page.wait("[...document.querySelectorAll('button.copy')].every((b) => b.textContent === 'Copied')")
    lines = page.run("copied")
    assert lines[0] == "echo 1 > /sys/kernel/tracing/events/shop/order_placed/enable"
    assert lines[1] == (
        'bpftrace -e \'tracepoint:shop:order_placed { printf("%s lane=%lu extra=%lu id=%lu comm=%s\\n", '
        "comm, args->lane, args->extra, args->id, args->comm); }'"
    )
    assert lines[2] == "trace-cmd record -e shop:order_placed sleep 10"
    assert lines[3] == "perf record -a -e shop:order_placed -- sleep 10"
    assert lines[4].startswith("name: order_placed\nID: 0\nformat:\n\tfield:unsigned short common_type;")
    assert page.run("document.querySelectorAll('textarea').length") == 0


def test_format_text_is_that_of_the_kernel(page: Page, made: tuple[Path, Catalog]) -> None:
    see(page)
    n_compared = 0
    for event in made[1].events:
        layout = event.newest.format
        if layout is None:
            continue
        see(page, f"#/event/{event.full_name}", title=event.name)
        assert page.run("document.querySelector('pre.scroll').textContent") == clean(write_format(layout))
        n_compared += 1
    assert n_compared == 9


def test_map_covers_every_byte_once(page: Page) -> None:
    see(page)
    script = """(() => {
      const { makeFields, inOrder, pieces } = Catalog.record;
      const own = [["a", "u8", 8, 1, 0], ["b", "char[300]", 9, 300, 0], ["c", "u64", 312, 8, 0]];
      const fields = makeFields([["t", "u64", 0, 8, 0]], own);
      const bytes = inOrder(fields, 328).items.flatMap((item) => pieces(item).flatMap((piece) =>
        Array.from({ length: piece.length }, (_, i) => piece.from + i)));
      return [bytes.length, new Set(bytes).size, Math.max(...bytes)];
    })()"""
    assert page.run(script) == [328, 328, 327]
    huge = "Catalog.record.byteMap(Catalog.record.makeFields([], [['a', 'x', 3, 2000000000, 0], ['b', 'y', 5, 1, 0]]), 0)"
    assert page.run(f"{huge}.querySelectorAll('.cell').length") <= 5
    assert "Shares its bytes with others: b" in page.run(f"{huge}.textContent")


def test_history_keeps_the_names_of_functions(page: Page) -> None:
    see(page, "#/event/shop:refund", title="refund")
    shown = text(page, ".history")
    assert "trace_refund(int amount) is now trace_refund(s64 amount)." in shown
    assert page.run("document.querySelectorAll('.history code').length") == 2


def test_what_is_no_call_is_folded_away(page: Page) -> None:
    see(page, "#/event/shop:order_placed", title="order_placed")
    part = "document.querySelector('details.mentions')"
    assert page.run(f"{part}.open") is False
    assert (
        page.run(f"{part}.querySelector('summary').textContent")
        == "Also mentioned: asked whether enabled (1)"
    )
    assert page.run(f"{part}.querySelectorAll('li').length") == 1


def test_the_line_for_a_system_call_prints_its_texts(page: Page) -> None:
    see(page, "#/event/syscalls:sys_enter_shop", title="sys_enter_shop")
    assert (
        'tracepoint:syscalls:sys_enter_shop { printf("%s id=%lu name=0x%lx\\n", comm, args->id, args->name); }'
    ) in text(page)


def test_hostile_text_is_shown_and_never_run(page: Page) -> None:
    see(page, "#/event/shop:constructor", title="constructor")
    shown = text(page)
    assert f"{BAD}<img src=x onerror=alert(1)>" in shown
    assert "trace_constructor(int __proto__)" in shown
    assert BAD in text(page, "pre.code")
    search(page, "script")
    assert BAD in text(page, "#results")
    see(page, "#/event/%3Cimg%20src=x%20onerror=alert(1)%3E%zz", title="No such tracepoint")
    see(page, "#/system/constructor", title="No such system")
    see(page, "#/history/__proto__", title="No such page")
    assert page.run("window.pwned") is None
    assert complaints(page) == []


def test_names_that_a_shell_would_run_get_no_commands(browser: Chromium, tmp_path: Path) -> None:
    path = tmp_path / "events/shop/x/format"
    path.parent.mkdir(parents=True)
    path.write_text(
        'name: a;reboot\nID: 1\nformat:\n\tfield:int x;\toffset:0;\tsize:4;\tsigned:1;\n\nprint fmt: ""\n'
    )
    assert main(["catalog", str(tmp_path / "events"), "-o", str(tmp_path / "site"), "-q"]) == 0
    page = browser.page()
    page.site = (tmp_path / "site/index.html").as_uri()
    see(page, "#/event/shop:a%3Breboot", title="a;reboot")
    assert "no commands are offered" in text(page)
    assert "echo 1" not in text(page)
    page.close()


def test_nothing_comes_from_elsewhere(page: Page, made: tuple[Path, Catalog]) -> None:
    see(page)
    search(page, "order")
    page.key("Enter")
    page.wait("document.querySelector('#view h1').textContent === 'order_placed'")
    site = made[0].as_uri()
    asked = loads(page)
    assert f"{site}/data/words.js" in asked
    assert all(url.startswith(f"{site}/") or url == "data:," for url in asked)
    # And what asks anyway is refused by the policy of the page.
    page.run("fetch('https://example.org/').catch(() => {})")
    page.run("document.body.append(Object.assign(new Image(), { src: 'https://example.org/x.png' }))")
    page.run("new Promise((done) => setTimeout(done, 100))")
    refused = [e["params"]["entry"]["text"] for e in complaints(page) if "entry" in e["params"]]
    assert sum("Content Security Policy" in words for words in refused) >= 2


def test_inline_scripts_are_refused(page: Page) -> None:
    see(page)
    page.run(
        "document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.inline = 1' }))"
    )
    assert page.run("window.inline") is None


def test_a_missing_file_is_said(page: Page, made: tuple[Path, Catalog], tmp_path: Path) -> None:
    import shutil  # noqa: PLC0415 - for this test alone

    shutil.copytree(made[0], tmp_path / "site")
    (tmp_path / "site/data/events-0.js").unlink()
    page.site = (tmp_path / "site/index.html").as_uri()
    see(page, "#/event/shop:refund", title="Something is missing")
    assert "data/events-0.js" in text(page)


def test_without_javascript_there_are_lists(page: Page) -> None:
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    page.events.clear()
    page.call("Page.navigate", url=page.site)
    end = time.monotonic() + 60
    while not any(event["method"] == "Page.loadEventFired" for event in page.events):
        assert time.monotonic() < end
        page.call("DOM.enable")
    root = page.call("DOM.getDocument", depth=-1)["root"]["nodeId"]
    links = page.call("DOM.querySelectorAll", nodeId=root, selector="a[href^='plain/']")["nodeIds"]
    assert len(links) == 3
    page.call("Emulation.setScriptExecutionDisabled", value=False)


@pytest.mark.parametrize(
    "hash_", ["#/", "#/search/o", "#/event/shop:order_placed", "#/system/shop", "#/history/6.12"]
)
def test_nothing_is_wider_than_a_phone(page: Page, hash_: str) -> None:
    page.size(*PHONE, is_phone=True)
    see(page, hash_)
    page.wait("document.querySelector('#view h1') || document.querySelector('#results a')")
    time.sleep(0.2)
    assert page.run("document.documentElement.scrollWidth") <= PHONE[0]


CONTRAST = """(() => {
  const light = (channel) => channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
  const numbers = (color) => {
    const [r, g, b, a = 1] = color.match(/[\\d.]+/g).map(Number);
    return { a, l: 0.2126 * light(r / 255) + 0.7152 * light(g / 255) + 0.0722 * light(b / 255) };
  };
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const found = numbers(getComputedStyle(e).backgroundColor);
      if (found.a === 1) return found.l;
    }
    return 1;
  };
  const weak = [];
  for (const element of document.querySelectorAll("body *")) {
    const hasText = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!hasText || !element.checkVisibility() || element.closest(".unseen, noscript, .skip")) continue;
    const [a, b] = [numbers(getComputedStyle(element).color).l, behind(element)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) weak.push(`${element.className || element.tagName} ${ratio.toFixed(2)} ${element.textContent.slice(0, 20)}`);
  }
  return [...new Set(weak)];
})()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "hash_", ["#/", "#/search/field%3Aid", "#/event/shop:order_placed", "#/history/6.12"]
)
def test_text_stands_out(page: Page, scheme: str, hash_: str) -> None:
    page.scheme(scheme)
    see(page, hash_)
    page.wait("document.querySelector('#view h1') || document.querySelector('#results a .why')")
    time.sleep(0.2)
    assert page.run(CONTRAST) == []
