"""How fast records become lines."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import time
from array import array
from importlib.util import find_spec
from pathlib import Path

from benchmarks.harness import MissingError, Row
from tracepoint.layout.format import read_format
from tracepoint.printk.facts import RenderFacts
from tracepoint.printk.printer import Printer
from tracepoint.printk.program import compile_print
from tracepoint.tracefile.text import facts_of
from tracepoint.tracefile.tracedat import read_tracedat

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("TRACEPOINT_DATA", ROOT.parent / "shared" / "data"))
N_LINES = 200_000
RUNS = 5

SCHED_SWITCH = """name: sched_switch
ID: 314
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:unsigned char common_flags;	offset:2;	size:1;	signed:0;
	field:unsigned char common_preempt_count;	offset:3;	size:1;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:char prev_comm[16];	offset:8;	size:16;	signed:0;
	field:pid_t prev_pid;	offset:24;	size:4;	signed:1;
	field:int prev_prio;	offset:28;	size:4;	signed:1;
	field:long prev_state;	offset:32;	size:8;	signed:1;
	field:char next_comm[16];	offset:40;	size:16;	signed:0;
	field:pid_t next_pid;	offset:56;	size:4;	signed:1;
	field:int next_prio;	offset:60;	size:4;	signed:1;

print fmt: "prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s%s ==> next_comm=%s next_pid=%d next_prio=%d", \
REC->prev_comm, REC->prev_pid, REC->prev_prio, (REC->prev_state & 0xff) ? __print_flags(REC->prev_state & 0xff, \
"|", { 0x01, "S" }, { 0x02, "D" }, { 0x04, "T" }, { 0x08, "t" }, { 0x10, "X" }, { 0x20, "Z" }, { 0x40, "P" }, \
{ 0x80, "I" }) : "R", REC->prev_state & 0x100 ? "+" : "", REC->next_comm, REC->next_pid, REC->next_prio
"""


def check_c() -> None:
    if find_spec("tracepoint._decode") is None:
        raise MissingError("tracepoint._decode is not built: install gcc and python3-dev")


def rate(shown: Printer, data: bytes, offsets: memoryview, lengths: memoryview) -> tuple[float, int]:
    """Millions of lines a CPU second as strings, the best of some, and how many are not the kernel's text."""
    best, n_odd = float("inf"), 0
    for _ in range(RUNS):
        begin = time.process_time()
        lines = shown.render(data, offsets, lengths)
        best = min(best, time.process_time() - begin)
        n_odd = sum(not one.is_exact for one in lines.noted.values())
    return len(offsets) / best / 1e6, n_odd


def print_lines() -> Row:
    """Lines of sched_switch as strings, by the C reader on one core."""
    check_c()
    form = read_format(SCHED_SWITCH, system="sched")
    data = b"".join(
        struct.pack("<HBBi16siiq16sii", form.id, 1, 0, n, b"swapper/0", 0, 120, n % 3, b"kworker/1:2", n, 100)
        for n in range(N_LINES)
    )
    size = len(data) // N_LINES
    offsets, lengths = array("Q", range(0, len(data), size)), array("I", [size] * N_LINES)
    shown = Printer({form.id: compile_print(form)})
    figure, _ = rate(shown, data, memoryview(offsets), memoryview(lengths))
    return Row("lines of sched_switch, one core", figure, "M/s", 1, False, f"best of {RUNS}")


def print_lines_mix() -> Row:
    """Lines of all records of a recording of a kernel: 62 kinds of events."""
    check_c()
    path = DATA / "small.v6.dat.zst"
    if not path.is_file() or shutil.which("zstd") is None:
        raise MissingError(f"no {path.name} in {DATA}, or no zstd: set TRACEPOINT_DATA, apt-get install zstd")
    packed = subprocess.run(["zstd", "-dcq", path], capture_output=True, check=True).stdout
    trace = read_tracedat(packed, path.name)
    # What the recording does not hold, so that no line is left: any value serves.
    known = RenderFacts(
        variables={"vmemmap_base": 0xFFFFEA0000000000}, constants=lambda _: 1, sizeof=lambda _: 64
    )
    programs = {number: compile_print(form) for number, form in trace.events.items()}
    shown = Printer(programs, facts_of(trace, known))
    blocks, offsets, lengths, at = [], array("Q"), array("I"), 0
    for cpu in trace.buffers[0].cpus:
        for block, pages in cpu.pages():
            offsets.extend(place + at for place in pages.offsets)
            lengths.extend(pages.lengths)
            blocks.append(block)
            at += len(block)
    figure, n_odd = rate(shown, b"".join(blocks), memoryview(offsets), memoryview(lengths))
    detail = f"{len(offsets):,} lines, {n_odd:,} of unknown parts, symbols found before; best of {RUNS}"
    return Row("lines of a recorded mix, one core", figure, "M/s", 1, False, detail)


ROWS = (print_lines, print_lines_mix)
