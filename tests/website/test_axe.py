"""axe-core, run in a real browser, finds nothing to complain of in pages of the site and in reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tracepoint as tp
from analysis.making import Schedule, recorded_formats
from generate.chromium import DESKTOP, PHONE, Chromium
from tracepoint.analysis import analyse_sched
from tracepoint.analysis.registry import analyse
from tracepoint.analysis.sets import compare_sets, figures_of
from tracepoint.report import make_report, make_set_report
from website.conftest import npm_package

if TYPE_CHECKING:
    from pathlib import Path

    from generate.chromium import Page

pytestmark = [pytest.mark.oracle, pytest.mark.programs]
PAGES = (
    "index",
    "live",
    "architecture",
    "explanation/records",
    "explanation/disabled-events",
    "tutorial/first-event",
    "howto/sched",
    "reference/options",
    "reference/rules/index",
    "reference/glossary",
)
REPORTS = ("sched", "swap", "faults", "traps", "block", "syscalls", "service")
SERVICE = {"begin": "app:request_begin", "end": "app:request_end", "key": "id"}
VIOLATIONS = "axe.run().then((r) => r.violations.map((v) => [v.id, v.nodes.map((n) => n.target.join(' '))]))"


def violations(page: Page) -> list[object]:
    """What axe finds in the page that is shown."""
    script = (npm_package("axe-core") / "axe.min.js").read_text(encoding="utf-8")
    page.run(f"{script};0")
    found: list[object] = page.run(VIOLATIONS)
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_pages_can_be_used_by_everyone(page: Page, name: str, scheme: str) -> None:
    page.scheme(scheme)
    page.go(f"{page.site}/{name}.html")
    if page.run("document.getElementById('live-run') !== null"):
        page.wait("!document.getElementById('live-run').disabled", 60)
    assert violations(page) == []


def fill(schedule: Schedule) -> None:
    """Add records that each analysis of REPORTS has figures of, and a loss."""
    for at in range(0, 4000, 100):
        schedule.waking(at, 1, 7, 0)
        schedule.switch(at + 10, 0, 0, "R", 7)
        schedule.add(at + 11, 0, "app:request_begin", {"id": at}, 7)
        schedule.add(at + 12, 0, "raw_syscalls:sys_enter", {"id": at % 3}, 7)
        schedule.add(at + 20, 0, "raw_syscalls:sys_exit", {"id": at % 3, "ret": -(at % 2)}, 7)
        fault = {"address": 0x7F0000000000 + at * 4096, "ip": 0x401000, "error_code": at % 8}
        schedule.add(at + 25, 0, "exceptions:page_fault_user", fault, 7)
        schedule.add(at + 30, 0, "signal:signal_generate", {"sig": 11, "pid": 7, "comm": "t7", "code": 1}, 7)
        schedule.add(at + 40, 0, "kmem:mm_page_swap_out", {"nr_pages": 1, "entry": at}, 7)
        schedule.add(at + 41, 0, "kmem:mm_page_swap_in", {"entry": at, "major": 1}, 7)
        request = {"dev": 8 << 20, "sector": at, "nr_sector": 8, "rwbs": "R"}
        for us, event in ((50, "insert"), (52, "issue"), (60, "complete")):
            schedule.add(at + us, 0, f"block:block_rq_{event}", request, 7)
        schedule.add(at + 70, 0, "app:request_end", {"id": at}, 7)
        schedule.switch(at + 80, 0, 7, "S", 0)
    schedule.lose(0, 3)
    schedule.switch(4000, 0, 0, "R", 7)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of each analysis that a recording of all kinds of events and a service have, and one of sets."""
    folder = tmp_path_factory.mktemp("reports")
    schedule = Schedule(formats=recorded_formats() | recorded_formats("formats-app.txt"))
    fill(schedule)
    recording = folder / "made.dat"
    recording.write_bytes(schedule.data())
    with tp.open_trace(recording) as trace:
        for name in REPORTS:
            options = SERVICE if name == "service" else {}
            make_report(trace, [analyse(trace, name, **options)]).write(folder / f"{name}.html")
        figures = figures_of(analyse_sched(trace), trace.events)
        make_set_report(compare_sets([figures], [figures]), trace.events).write(folder / "compare.html")
    return folder


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", [*REPORTS, "compare"])
def test_reports_can_be_used_by_everyone(
    browser: Chromium, reports: Path, name: str, scheme: str, size: tuple[int, int]
) -> None:
    page = browser.page()
    page.size(*size, is_phone=size == PHONE)
    page.scheme(scheme)
    page.go((reports / f"{name}.html").as_uri())
    page.wait("Report.timing.isReady")
    assert violations(page) == []
    # Names of events may be longer than a phone is wide.
    assert page.run("document.documentElement.scrollWidth") == size[0]
    page.close()
