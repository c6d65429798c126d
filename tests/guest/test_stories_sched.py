"""The page about sched_switch: what the event printed in 2013 and prints today, and how it runs."""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path

import pytest

from guest.pages import ROOT, check_page, series
from tracepoint.layout.compute import compute_layout
from tracepoint.layout.format import read_format
from tracepoint.model.read import read_header_text
from tracepoint.printk.program import compile_print
from tracepoint.printk.render import render_record
from tracepoint.tree.cache import cache_folder
from tracepoint.tree.headers import HeaderReader

PAGE = ROOT / "docs/explanation/sched-switch.md"
FOLDER = ROOT / "examples/kernel/sched"
HEAD = "<!-- made by tests/guest/test_stories_sched.py -->\n"
STATES = [0, *(1 << bit for bit in range(11))]
PROTO = ["preempt", "prev", "next", "prev_state"]


def golden(name: str):
    return read_format((FOLDER / f"sched_switch-{name}.format").read_text(), "sched")


def state_column(layout) -> list[str]:
    """What an event prints of `prev_state`, for every number of STATES."""
    program = compile_print(layout)
    shown = []
    for state in STATES:
        record = bytearray(max(field.offset + field.size for field in layout.fields))
        struct.pack_into("<H", record, 0, layout.id)
        struct.pack_into("<q", record, layout["prev_state"].offset, state)
        text = render_record(program, bytes(record)).text
        shown.append(re.search(r"prev_state=(\S+)", text)[1])
    return shown


def state_table() -> str:
    """The page's table, made from the header of 2013 and the formats of today."""
    path = FOLDER / "sched_switch_2013.h"
    (event,) = read_header_text(path.read_text(), str(path)).events
    columns = [state_column(layout) for layout in (compute_layout(event), golden("6.1"), golden("6.12"))]
    rows = [f"| {state} | {' | '.join(row)} |\n" for state, *row in zip(STATES, *columns, strict=True)]
    return "".join(["| prev_state | 2013 | 6.1 | 6.12 |\n| --- | --- | --- | --- |\n", *rows])


def test_the_table_is_what_the_events_print():
    text = PAGE.read_text()
    found = re.search(re.escape(HEAD) + r"((?:\|.*\n)+)", text)
    if os.environ.get("TRACEPOINT_WRITE_DOCS"):
        PAGE.write_text(text.replace(found[0], HEAD + state_table(), 1))
    else:
        assert found[1] == state_table()


@pytest.mark.guest
def test_the_formats_are_those_of_the_kernels(guest):
    ours = golden(series(guest))
    theirs = read_format(guest.read("/sys/kernel/tracing/events/sched/sched_switch/format"), "sched")
    assert (theirs.fields, theirs.print_fmt) == (ours.fields, ours.print_fmt)


@pytest.mark.guest
def test_the_page_says_what_happens(guest):
    check_page(PAGE, guest)


@pytest.mark.oracle
@pytest.mark.parametrize("kernel", ["6.1", "6.12"])
def test_how_it_is_called_today(kernel):
    tree = cache_folder() / f"sources/linux-source-{kernel}"
    if not tree.is_dir():
        pytest.skip(f"no {tree}: `tracepoint lab build {kernel}` fetches it")
    header = HeaderReader().read(Path(tree) / "include/trace/events/sched.h")
    (event,) = [event for event in header.events if event.name == "sched_switch"]
    assert [param.name for param in event.proto.params] == PROTO
    before = (tree / "kernel/sched/core.c").read_text().partition("\t\ttrace_sched_switch(")[0]
    assert re.findall(r"^[a-z][^\n;]*?(\w+)\(", before, re.MULTILINE)[-1] == "__schedule"
