"""What the tests of reports share: a browser, and pages made of hand-written recordings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tracepoint as tp
from analysis.making import Schedule
from generate.chromium import DESKTOP, Chromium, Page
from tracepoint.report import make_report

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOSTILE = ("</script><b>x", "\u202e\"'&<!--", "${alert(1)}")


def hostile_schedule() -> Schedule:
    """Tasks whose names would end a script, open a comment or begin an element; CPU 1 loses events."""
    schedule = Schedule()
    for at in range(40):
        names = {"prev_comm": HOSTILE[at % 3], "next_comm": HOSTILE[(at + 1) % 3]}
        values = {
            "prev_pid": 10 + at % 3,
            "next_pid": 10 + (at + 1) % 3,
            "next_prio": 120,
            "prev_state": at % 3,
        }
        schedule.add(at * 100, 0, "sched:sched_switch", values | names, 10 + at % 3)
        if at % 3:
            schedule.waking(at * 100 + 50, 0, 10 + at % 3)
    schedule.switch(10, 1, 0, "R", 7)
    schedule.lose(1, 5)
    schedule.switch(2000, 1, 7, "S", 0)
    schedule.switch(3000, 1, 0, "R", 8)
    return schedule


def page_of(schedule: Schedule, folder: Path, name: str = "made.html", **options) -> Path:
    """Write the recording and its page; return the page's path."""
    recording = folder / "made.dat"
    recording.write_bytes(schedule.data())
    with tp.open_trace(str(recording)) as trace:
        return make_report(trace, ["sched"], **options).write(folder / name)


@pytest.fixture(scope="session")
def browser() -> Iterator[Chromium]:
    with Chromium() as chromium:
        yield chromium


@pytest.fixture
def page(browser: Chromium) -> Iterator[Page]:
    page = browser.page()
    page.call("Emulation.setFocusEmulationEnabled", enabled=True)
    page.size(*DESKTOP)
    yield page
    page.close()
