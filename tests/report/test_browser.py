"""A report in a real browser: it draws, zooms, sorts and reads out what is there, in every size and colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tracepoint as tp
from analysis.test_sched import x1
from generate.catalog_pages import complaints, loads
from generate.chromium import DESKTOP, PHONE
from report.conftest import hostile_schedule, page_of
from tracefile.making import GOLDEN
from tracepoint.report import make_report

if TYPE_CHECKING:
    from pathlib import Path

    from generate.chromium import Page

pytestmark = pytest.mark.oracle


def see(page: Page, path: Path) -> None:
    page.go(path.as_uri())
    page.wait("Report.timing.isReady")


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    with tp.open_trace(str(GOLDEN / "cut.v6.dat")) as trace:
        return make_report(trace, ["sched"]).write(tmp_path / "cut.html")


def test_it_draws_asks_for_nothing_and_complains_of_nothing(page, tmp_path):
    path = page_of(hostile_schedule(), tmp_path)
    see(page, path)
    assert complaints(page) == []
    assert [url for url in loads(page) if not url.startswith(("data:", "about:"))] == [path.as_uri()]
    painted = """[...document.querySelectorAll('canvas')].map((canvas) => {
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      return new Set(new Uint32Array(data.buffer)).size > 1;
    })"""
    assert page.run(painted) == [True] * 5


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("size", "is_phone"), [(DESKTOP, False), (PHONE, True)])
def test_nothing_is_wider_than_the_window(page, cut, scheme, size, is_phone):
    page.size(*size, is_phone=is_phone)
    page.scheme(scheme)
    see(page, cut)
    assert page.run("document.documentElement.scrollWidth") == size[0]


def test_a_lane_is_read_with_exact_figures(page, tmp_path):
    see(page, page_of(x1(), tmp_path))
    # A runs from 230 to 330 us of 600.
    script = """(() => {
      const canvas = document.querySelectorAll('details canvas')[0], box = canvas.getBoundingClientRect();
      canvas.dispatchEvent(new PointerEvent('pointermove', { clientX: box.left + box.width * 280 / 600, clientY: box.top + 5 }));
      return document.getElementById('tip').textContent;
    })()"""
    assert page.run(script).splitlines()[:2] == ["CPU 0", "t10-10 for 100.0 µs"]


def test_the_keyboard_zooms_moves_and_reads(page, tmp_path):
    see(page, page_of(x1(), tmp_path))
    page.run("document.querySelectorAll('details canvas')[1].focus()")
    page.key("+", "+")
    page.wait("Report.view.to - Report.view.from === 300000")
    assert page.run("Report.view.from") == 150_000
    page.key("d", "d")
    page.wait("Report.view.from === 210000")
    page.key("ArrowDown")
    page.wait("document.querySelector('.names li.at')")
    assert "from" in page.run("document.querySelector('.reading').textContent")
    page.key("0", "0")
    page.wait("Report.view.from === 0 && Report.view.to === 600000")


def test_cells_and_slices_say_the_same(page, tmp_path):
    """What the page sums over its cells is what its slices take."""
    see(page, page_of(x1(), tmp_path))
    script = """Report.facts.timeline.groups.flatMap((facts) => facts.lanes.map((own) => {
      const lane = new Lane(own, facts);
      const columns = lane.bands ?? [lane.totals];
      const cells = columns.reduce((sum, column) => sum + lane.sum(column, 0, 600000), 0);
      const slices = lane.starts.reduce((sum, start, i) => sum + lane.stops[i] - start, 0);
      return Math.abs(cells - slices);
    }))"""
    assert max(page.run(script)) < 100


def test_a_click_on_a_heading_sorts(page, cut):
    see(page, cut)
    script = "[...document.querySelectorAll('#sched-tasks tbody tr')].map((row) => row.cells[0].textContent)"
    before = page.run(script)
    page.run("document.querySelectorAll('#sched-tasks th button')[3].click()")
    head = "document.querySelectorAll('#sched-tasks th')[3]"
    assert page.run(f"{head}.getAttribute('aria-sort')") == "descending"
    page.run("document.querySelectorAll('#sched-tasks th button')[3].click()")
    assert page.run(f"{head}.getAttribute('aria-sort')") == "ascending"
    assert page.run(script) != before


def test_a_cell_of_the_heat_map_leads_to_its_time(page, cut):
    see(page, cut)
    page.run("document.querySelector('.heat canvas').focus()")
    page.key("ArrowRight")
    page.key("Enter")
    page.wait("Report.view.to - Report.view.from < Report.facts.timeline.span / 50")


def test_a_part_of_the_flame_graph_opens_and_closes(page, cut):
    see(page, cut)
    widths = "[...document.querySelectorAll('.flame-frame button')].map((part) => part.style.width)"
    assert page.run(widths)[0] == "100%"
    n = page.run(widths).count("100%")
    page.run("document.querySelectorAll('.flame-frame button')[2].click()")
    assert page.run(widths).count("100%") > n
    # Resizing the window draws the graph again: the focus stays in it.
    page.run("Report.redraw()")
    page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.key("Escape")
    page.key("Escape")
    assert page.run(widths).count("100%") == n


def test_screen_readers_have_names_for_everything(page, cut):
    see(page, cut)
    nodes = [node for node in page.call("Accessibility.getFullAXTree")["nodes"] if not node["ignored"]]
    named = ("button", "link", "img", "image", "columnheader", "table", "region", "toolbar", "group")
    bare = [
        node["role"]["value"]
        for node in nodes
        if node["role"]["value"] in named[:-1] and not node.get("name", {}).get("value")
    ]
    assert bare == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_what_is_behind_them(page, tmp_path, scheme):
    """WCAG asks for a contrast of 4.5."""
    page.scheme(scheme)
    see(page, page_of(hostile_schedule(), tmp_path))
    script = """(() => {
      const parts = (color) => color.match(/[\\d.]+/g).map(Number);
      const light = (color) => {
        const [r, g, b] = parts(color).map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const behind = (element) => {
        for (let e = element; e; e = e.parentElement) {
          const color = getComputedStyle(e).backgroundColor;
          if ((parts(color)[3] ?? 1) === 1) return color;
        }
        return 'rgb(255, 255, 255)';
      };
      const bad = [];
      for (const element of document.querySelectorAll('main *, header *, footer')) {
        if (element.closest('svg, canvas, .unseen') || ![...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
        const [a, b] = [light(getComputedStyle(element).color), light(behind(element))].sort((x, y) => y - x);
        if ((a + 0.05) / (b + 0.05) < 4.5) bad.push(`${element.className || element.tagName}: ${element.textContent.slice(0, 30)} ${(a + 0.05) / (b + 0.05)}`);
      }
      return bad;
    })()"""
    assert page.run(script) == []


def test_the_legend_has_the_colours_that_are_drawn(page, tmp_path):
    see(page, page_of(x1(), tmp_path))
    script = """(() => {
      const group = Report.facts.timeline.groups[0], [mark, name] = [...document.querySelectorAll('.legend li')][1].childNodes;
      const canvas = document.querySelector('details canvas'), ratio = canvas.width / canvas.clientWidth;
      const at = Report.view.to ? 50 / 600 : 0;
      const [r, g, b] = canvas.getContext('2d').getImageData(Math.round(canvas.width * at), 4 * ratio, 1, 1).data;
      return [getComputedStyle(mark).backgroundColor, `rgb(${r}, ${g}, ${b})`, name.data, group.legend[0][1]];
    })()"""
    for scheme in ("light", "dark"):
        page.scheme(scheme)
        page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        mark, drawn, name, legend = page.run(script)
        assert mark == drawn, scheme
        assert name == legend
