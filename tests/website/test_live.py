"""The live page in a real browser: what it shows is what `tracepoint try` says, in time, and input stays text."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from live import live_form

from generate.catalog_pages import complaints, loads
from website.conftest import npm_package

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from generate.chromium import Page

pytestmark = [pytest.mark.oracle, pytest.mark.programs]
FIRST_SIMULATION_S = 5.0
RESULT = "document.getElementById('live-result')"
SIMPLE = """TRACE_EVENT(made, TP_PROTO(int n), TP_ARGS(n), TP_STRUCT__entry(__field(int, n)),
    TP_fast_assign(__entry->n = n;), TP_printk("%s", __entry->n));"""


@pytest.fixture
def live(page: Page) -> Iterator[Page]:
    """The page, when its own example has been simulated."""
    npm_package("pyodide")
    page.go(f"{page.site}/live.html")
    done(page)
    return page


def done(page: Page) -> None:
    page.wait("!document.getElementById('live-run').disabled", 60)


def simulate(page: Page, text: str, values: str = "") -> str:
    page.run(f"document.getElementById('live-source').value = {json.dumps(text)}")
    page.run(f"document.getElementById('live-set').value = {json.dumps(values)}")
    page.run("document.getElementById('live-form').requestSubmit()")
    done(page)
    return str(page.run(f"{RESULT}.innerText"))


@pytest.mark.bench
def test_the_first_simulation_is_shown_in_time(page: Page) -> None:
    npm_package("pyodide")
    begin = time.monotonic()
    page.go(f"{page.site}/live.html")
    page.wait(f"{RESULT}.innerText.includes('Trace line')", 60)
    took_s = time.monotonic() - begin
    assert took_s <= FIRST_SIMULATION_S, f"first simulation after {took_s:.2f} s"


def test_it_shows_what_try_prints(live: Page, tmp_path: Path) -> None:
    assert complaints(live) == []
    assert [url for url in loads(live) if not url.startswith((live.site, "data:", "blob:"))] == []
    header = tmp_path / "pasted.h"
    header.write_text(live.run("document.getElementById('live-source').value"))
    command = [sys.executable, "-m", "tracepoint", "try", "--json", str(header)]
    printed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    (event,) = json.loads(printed)["events"]
    shown = live.run(f"{RESULT}.textContent")
    assert event["format"] in shown
    assert "Findings: none" in shown
    # The time and the task of the line are samples; the text after the event's name is what was declared.
    text = event["shots"][0]["line"].partition("sample_request:")[2]
    assert text
    assert text in shown
    assert [f["name"] for f in event["shots"][0]["fields"] if f["name"] not in shown] == []


def test_findings_lead_to_their_rules(live: Page) -> None:
    shown = simulate(live, SIMPLE)
    code = re.search(r"TP\d+ line 2", shown)
    assert code, shown
    assert live.run(f"{RESULT}.querySelector('a').getAttribute('href')").startswith("reference/rules/TP")


def test_values_are_used(live: Page) -> None:
    assert "1234567" in simulate(live, SIMPLE.replace("%s", "%d"), "n=1234567")
    assert "absent" in simulate(live, SIMPLE, "absent=1")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0\ud800\u202e",
        '#error "<img src=x onerror=document.title=1>"\n' + SIMPLE,
        SIMPLE.replace("%s", "<img src=x onerror=document.title=1>%d"),
        "<script>document.title=1</script>",
        "(" * 50_000,
        "TRACE_EVENT(" * 2_000,
        '#include "/proc/self/mem"\n#include "pasted.h"\n' + SIMPLE,
        "x" * 300_000,
    ],
    ids=["nothing", "surrogate", "error", "format", "script", "brackets", "nested", "include", "long"],
)
def test_hostile_input_stays_text(live: Page, text: str) -> None:
    title = live.run("document.title")
    shown = simulate(live, text)
    assert shown
    assert "Traceback" not in shown
    assert "internal error" not in shown
    assert live.run(f"{RESULT}.querySelectorAll('img, script').length") == 0
    assert live.run("document.title") == title
    assert "n=7" in simulate(live, SIMPLE.replace("%s", "n=%d"), "n=7")


def test_a_run_can_be_stopped_and_begun_again(live: Page) -> None:
    # In one go: between two commands to the browser a simulation may end.
    live.run(
        "document.getElementById('live-form').requestSubmit(), document.getElementById('live-stop').click()"
    )
    assert "Stopped." in live.run(f"{RESULT}.innerText")
    assert "n=7" in simulate(live, SIMPLE.replace("%s", "n=%d"), "n=7")


def test_without_pyodide_the_page_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("TRACEPOINT_NPM", "no")
    assert "TRACEPOINT_NPM=no forbids downloading pyodide" in live_form()
    monkeypatch.setenv("TRACEPOINT_NPM", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "no npm" in live_form()
