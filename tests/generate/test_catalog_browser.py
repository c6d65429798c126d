"""The catalog in a real browser: searching, the keyboard, what a screen reader is told."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from generate.catalog_pages import complaints, search, see, text

if TYPE_CHECKING:
    from generate.chromium import Page

pytestmark = pytest.mark.oracle


# Searching.


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("a  B", [(False, "", "a"), (False, "", "b")]),
        (
            'field:pid -system:xfs "page fault"',
            [(0, "field", "pid"), (1, "system", "xfs"), (0, "", "page fault")],
        ),
        ("unused: sched", [(False, "unused", ""), (False, "", "sched")]),
        ("unused:sched -unused:", [(0, "unused", ""), (0, "", "sched"), (1, "unused", "")]),
        ("sched:sched_switch nosuch:a", [(0, "", "sched:sched_switch"), (0, "", "nosuch:a")]),
        ("field: since: changed:", [(False, "changed", "")]),
        ("- --x", [(False, "", "-"), (True, "", "-x")]),
        ('"', []),
        ("__proto__:x constructor:", [(0, "", "__proto__:x"), (0, "", "constructor:")]),
    ],
)
def test_what_a_query_means(page: Page, query: str, terms: list[tuple]) -> None:
    see(page)
    found = page.run(f"Catalog.makeSearcher.parseQuery({json.dumps(query)})")
    assert [(t["not"], t["key"], t["text"]) for t in found] == [(bool(n), k, t) for n, k, t in terms]


def test_how_well_a_word_matches(page: Page) -> None:
    see(page)
    cases = [
        ("pid", 4),
        ("prev_pid\npid", 4),
        ("pidfd", 3),
        ("prev_pid", 2),
        ("rapid", 1),
        ("prev", 0),
        ("", 0),
    ]
    for value, quality in cases:
        assert page.run(f"Catalog.makeSearcher.quality({json.dumps(value)}, 'pid')") == quality


def test_search_over_names_fields_callers_and_prose(page: Page) -> None:
    see(page)
    assert search(page, "order_placed") == ["shop:order_placed"]
    assert search(page, "order")[0] == "shop:order_placed"
    assert search(page, "field:amount") == [
        "shop:refund",
        "shop:till_shut",
        "shop:till_closed",
        "shop:till_opened",
    ]
    assert search(page, "field:extra") == ["shop:order_placed"]
    assert search(page, "caller:give_back") == ["shop:refund", "shop:shop_bare"]
    assert search(page, "second paragraph") == ["shop:order_placed"]
    assert "kernel/shop.c" in page.run("document.querySelector('#results').innerText") or search(
        page, "file:kernel/"
    )
    assert search(page, "class:till -shut") == ["shop:till_closed", "shop:till_opened"]
    assert search(page, "oven:") == ["oven:oven_hot"]
    assert search(page, "shop:till_o") == ["shop:till_opened"]
    assert search(page, "constructor") == ["shop:constructor"]
    assert search(page, "field:__proto__") == ["shop:constructor"]
    assert search(page, "zzz") == []
    assert complaints(page) == []


def test_search_over_history_and_flags(page: Page) -> None:
    see(page)
    assert search(page, "since:6.12 -since:6.13") == ["oven:oven_hot", "shop:till_shut"]
    assert search(page, "until:6.1") == ["shop:till_closed"]
    assert search(page, "in:6.13") == ["shop:constructor"]
    assert search(page, "breaks:6.12") == ["shop:refund", "shop:order_placed"]
    assert search(page, "print:6.12") == ["shop:order_placed"]
    assert search(page, "proto:") == ["shop:refund"]
    assert search(page, "since:7") == []
    assert search(page, "unused: system:oven") == ["oven:oven_hot"]
    assert search(page, "bare:") == ["shop:shop_bare"]


def test_system_calls_come_after_others(page: Page) -> None:
    see(page)
    found = search(page, "file:kernel/shop.c")
    assert [name.startswith("syscalls:") for name in found] == sorted(
        name.startswith("syscalls:") for name in found
    )


def test_enter_before_exit_and_the_own_system_before_others(page: Page) -> None:
    see(page)
    assert search(page, "sys_ shop") == ["syscalls:sys_enter_shop", "syscalls:sys_exit_shop"]
    script = """(() => {
      const one = (values) => ({ values, of: Int32Array.from(values.keys()) });
      const data = {
        count: 3, seen: [1, 1, 1], flags: [0, 0, 2], changes: [], labels: ["a"],
        columns: { names: one(["irq_a", "irq_handler", "irq_a"]), systems: { values: ["power", "irq"], of: [0, 1, 0] } },
      };
      return Catalog.makeSearcher(data).search("irq", 9).ids;
    })()"""
    assert page.run(script) == [1, 0, 2]


def test_a_slip_of_the_finger_is_understood(page: Page) -> None:
    see(page)
    for typed in (
        "odrer_placed",
        "oder_placed",
        "order_palced",
        "orrder",
        "name:order_plcaed",
        '"oven" hott',
    ):
        found = search(page, typed)
        assert found[0] == ("oven:oven_hot" if "hott" in typed else "shop:order_placed"), typed
    assert search(page, '"odrer_placed"') == []
    assert "Did you mean shop:order_placed" in text(page, "#more")
    assert search(page, "field:") == []
    assert text(page, "#count") == ""
    assert "field:pid" in text(page, "#more")


def test_how_near_words_are(page: Page) -> None:
    see(page)
    cases = [
        ("switch", "switch", 0, 0),
        ("swich", "switch", 1, 1),
        ("wsitch", "switch", 1, 1),
        ("swotch", "switch", 1, 1),
        ("swiitch", "switch", 1, 1),
        ("swich", "switching", 2, 1),
        ("page", "fault", 2, 2),
    ]
    for word, value, whole, start in cases:
        script = f"Catalog.makeNearWords({{}}).distance({json.dumps(word)}, {json.dumps(value)}, 1)"
        assert page.run(script) == {"whole": whole, "start": start}, (word, value)


def test_what_is_near_comes_after_what_matches(page: Page) -> None:
    see(page)
    script = """(() => {
      const one = (values) => ({ values, of: Int32Array.from(values.keys()) });
      const data = {
        count: 4, seen: [1, 1, 1, 1], flags: [0, 0, 0, 0], changes: [], labels: ["a"],
        columns: { names: one(["sched_switch", "mm_fault", "swapped_in", "a_swicher"]),
                   systems: { values: ["sched", "mm"], of: [0, 1, 1, 1] },
                   prose: { values: ["", "a swithc of tasks"], of: [0, 1, 0, 0] } },
      };
      const searcher = Catalog.makeSearcher(data);
      const ids = (query) => searcher.search(query, 9).ids;
      return [ids("swich"), ids("switch"), ids("swithc"), ids("-swich").length, ids("swpa"), ids("shced:")];
    })()"""
    swich, switch, swithc, others, swpa, full = page.run(script)
    assert swich == [3]  # begins a part of a name, so it is no slip
    assert switch == [0]
    assert (swithc[0], 1 in swithc) == (0, True)  # the name that is near before the comment that has it
    assert (others, swpa, full) == (3, [2], [])


def test_the_name_of_a_system_leads_to_the_system(page: Page) -> None:
    see(page)
    for query in ("shop", "system:shop till", "shop:"):
        search(page, query)
        links = page.run("[...document.querySelectorAll('#count a')].map((a) => a.getAttribute('href'))")
        assert links == ["#/system/shop"], query
    search(page, "till -shop")
    assert text(page, "#count") == "Nothing found"


def test_the_button_in_the_box_ends_the_search(page: Page) -> None:
    """A phone has no Escape."""
    see(page, "#/event/shop:refund", title="refund")
    assert page.run("document.getElementById('clear').checkVisibility()") is False
    search(page, "oven")
    assert page.run("document.getElementById('clear').checkVisibility()") is True
    page.run("document.getElementById('clear').click()")
    page.wait("location.hash === '#/event/shop:refund' && !document.getElementById('view').hidden")
    assert page.run("document.activeElement.id + document.getElementById('query').value") == "query"
    page.wait("document.getElementById('clear').hidden")


def test_the_address_follows_the_typing(page: Page) -> None:
    """Safari throws at more than a hundred changes of the address in half a minute."""
    see(page)
    page.run(
        "window.changes = 0; const own = history.replaceState.bind(history);"
        "history.replaceState = (...words) => { changes++; own(...words); }"
    )
    search(page, "t")
    page.run("changes = 0")
    page.run(
        "for (let n = 1; n <= 200; n++) { const box = document.getElementById('query');"
        "box.value = 'till '.repeat(n).trim(); box.dispatchEvent(new Event('input')); }"
    )
    page.wait("decodeURIComponent(location.hash) === `#/search/${'till '.repeat(200).trim()}`")
    assert page.run("changes") == 1
    search(page, "refun")
    page.run("history.replaceState = () => { throw new DOMException('too often', 'SecurityError'); }")
    page.key("d", "d")
    page.wait("Catalog.timing.query === 'refund'")
    page.key("Enter")
    page.wait("location.hash === '#/event/shop:refund'")
    assert complaints(page) == []


def test_what_was_typed_last_is_in_the_history(page: Page) -> None:
    see(page)
    search(page, "refun")
    page.key("d", "d")
    page.run("document.querySelector('#results a').click()")
    page.wait("location.hash === '#/event/shop:refund'")
    time.sleep(0.4)
    assert page.run("location.hash") == "#/event/shop:refund"
    page.run("history.back()")
    page.wait("location.hash === '#/search/refund' && document.getElementById('query').value === 'refund'")


# The keyboard.


def test_keyboard_from_the_box_to_an_event_and_back(page: Page) -> None:
    see(page)
    search(page, "till")
    state = "[document.querySelector('[aria-selected=true]').id, document.querySelector('#query').getAttribute('aria-activedescendant')]"
    assert page.run(state) == ["result-0"] * 2
    page.key("ArrowDown")
    assert page.run(state) == ["result-1"] * 2
    page.key("ArrowUp")
    page.key("ArrowUp")
    assert page.run(state) == ["result-2"] * 2
    name = page.run("document.querySelector('[aria-selected=true] .full-name').textContent")
    page.key("Enter")
    page.wait(
        "document.querySelector('#view h1') && document.activeElement === document.querySelector('#view h1')"
    )
    assert page.run("location.hash") == f"#/event/{name}"
    assert page.run("document.title") == f"{name.partition(':')[2]} – Shop"  # noqa: RUF001 - the dash is meant
    page.run("history.back()")
    page.wait("location.hash === '#/search/till' && !document.getElementById('found').hidden")
    assert page.run("document.getElementById('query').value") == "till"
    page.key("Escape")
    page.wait("location.hash === '#/' && document.getElementById('found').hidden")


def test_escape_goes_back_to_where_the_search_began(page: Page) -> None:
    see(page, "#/event/shop:refund", title="refund")
    search(page, "oven")
    page.key("Escape")
    page.wait("location.hash === '#/event/shop:refund'")
    page.wait("document.querySelector('#view h1').textContent === 'refund'")
    assert page.run("document.getElementById('query').value") == ""


def test_emptying_the_box_ends_the_search(page: Page) -> None:
    see(page)
    search(page, "o")
    page.key("Backspace")
    page.wait("document.getElementById('found').hidden && location.hash === '#/'")


def test_slash_in_the_box_is_a_slash(page: Page) -> None:
    see(page)
    search(page, "file:kernel/")
    assert page.run("document.getElementById('query').value") == "file:kernel/"


def test_roles_and_names_for_screen_readers(page: Page) -> None:
    see(page)
    search(page, "till")
    tree = page.call("Accessibility.getFullAXTree")["nodes"]
    roles: dict[str, list[str]] = {}
    for node in tree:
        if not node["ignored"]:
            roles.setdefault(node["role"]["value"], []).append(node.get("name", {}).get("value", ""))
    assert roles["combobox"] == ["Search tracepoints"]
    assert roles["listbox"] == ["Tracepoints found"]
    assert len(roles["option"]) == 3
    assert roles["status"] != []
    assert page.run("document.querySelector('#count').textContent") == "3 tracepoints"
    see(page, "#/event/shop:order_placed", title="order_placed")
    tree = page.call("Accessibility.getFullAXTree")["nodes"]
    names = [
        n.get("name", {}).get("value", "")
        for n in tree
        if n.get("role", {}).get("value") in ("button", "link", "image")
    ]
    assert all(names)
    assert any(name.startswith("Map of 72 bytes") for name in names)


def test_what_has_the_keyboard_is_seen(page: Page) -> None:
    see(page, "#/event/shop:order_placed", title="order_placed")
    seen = []
    for _ in range(40):
        page.key("Tab")
        if page.run("document.activeElement === document.body"):
            break  # after the last
        seen.append(page.run("document.activeElement.outerHTML"))
        style = "(({ outlineStyle, outlineWidth }) => outlineStyle + outlineWidth)(getComputedStyle(document.activeElement))"
        assert page.run(style) in ("solid2px", "auto2px"), seen[-1]
    assert len(seen) >= 8
