"""The answers of a booted kernel, replayed: data/control-6.1.log against the tree of files.

Events are declared from the kernel's own `format` texts.  What differs is named in DIFFERENT, and
explained in docs/decisions/0016-control-files.md.
"""

import io
import os
import re
import tarfile
from pathlib import Path

import pytest

from runtime import control_tree
from tracepoint.filter.profile import KERNEL_6_1_187
from tracepoint.layout.format import read_format
from tracepoint.runtime.files.tree import ControlFiles

DATA = Path(os.environ.get("TRACEPOINT_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
LOG = DATA / "control-6.1.log"
FORMATS = DATA / "formats-6.1.187-builtin.tar.zst"

# Files of other mechanisms than trace events, texts of our own, and facts of that machine.
NO_SUCH_FILE = {
    "kprobe_events",
    "max_graph_depth",
    "set_ftrace_filter",
    "set_ftrace_pid",
    "stack_trace",
    "tracing_thresh",
    "uprobe_events",
}
DIFFERENT = {
    "README": "our own help",
    "available_tracers": "no function tracer",
    "printk_formats": "no kernel strings",
    "trace_clock": "the kernel chose `global` because of that machine's clock",
    "events/sched/sched_switch/id": "numbers are given in the order of declaration",
    "per_cpu/cpu0/stats": "the time of reading",
}
WRITE = re.compile(r"^[WA]  (\S+) <(<?)- '(.*)' => (ok|ERR .*)$")
READ = re.compile(r"^R  (\S+):$")
COUNT = re.compile(r"^   count=(\d+) first=(.*)$")
STATE = re.compile(r"^   (?:ev=(\S+) )?(?:sys=(\S+) )?all=(\S+)(?: sys=(\S+))?$")


def kernel_formats():
    if not LOG.exists() or not FORMATS.exists():
        pytest.skip(f"{LOG} is not here: set TRACEPOINT_DATA to the measurements")
    zstandard = pytest.importorskip("zstandard", reason="pip install zstandard")
    with FORMATS.open("rb") as packed:
        data = zstandard.ZstdDecompressor().stream_reader(packed).read()
    found = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            parts = member.name.split("/")
            if parts[-1] == "format":
                text = archive.extractfile(member).read().decode()
                found[f"{parts[-3]}:{parts[-2]}"] = read_format(text, system=parts[-3])
    return found


def declare_all(tracing):
    """Declare what the kernel lists as available, oldest first."""
    formats = kernel_formats()
    names = (DATA / "available_events").read_text().split()
    for name in reversed(names):
        control_tree.declare_format(formats[name], tracing)


def without_times(text):
    return re.sub(r"^\[ *\d+\.\d{6}\]", "[time]", text, flags=re.MULTILINE)


class Replay:
    """Goes through the log, line by line, and keeps what is not equal."""

    def __init__(self, tree):
        self.tree = tree
        self.differences = []
        self.n_equal = 0

    def check(self, what, expected, got):
        if expected == got:
            self.n_equal += 1
        else:
            self.differences.append((what, expected, got))

    def read(self, path):
        try:
            return self.tree.read_text(path)
        except OSError as error:
            return f"cat: {path}: {error.strerror}\n"

    def write(self, path, append, text, expected):
        flags = os.O_APPEND if append else os.O_TRUNC | os.O_CREAT

        def act():
            handle = self.tree.open(path, os.O_WRONLY | flags)
            data = text.encode() + b"\n"
            while data:
                data = data[handle.write(data) :]

        self.check(f"{path} <- {text!r}", expected, control_tree.answer(act))

    def state(self, match):
        event, system, everything, system_too = match.groups()
        if event:
            self.check("ev", event, self.read("events/sched/sched_switch/enable").strip())
        if system or system_too:
            self.check("sys", system or system_too, self.read("events/sched/enable").strip())
        self.check("all", everything, self.read("events/enable").strip())

    def run(self, lines):
        at = 0
        while at < len(lines):
            line = lines[at]
            at += 1
            if match := WRITE.match(line):
                if match[1].endswith("/filter"):
                    # The script that measured emptied the log before every filter.
                    self.tree.write_text("error_log", "\n")
                self.write(match[1], bool(match[2]), match[3], match[4])
            elif match := COUNT.match(line):
                enabled = self.read("set_event").split()
                self.check("count", int(match[1]), len(enabled))
                self.check("first", match[2].split(), enabled[:3])
            elif match := STATE.match(line):
                self.state(match)
            elif line == "##### error_log ring of 8":
                self.tree.write_text("error_log", "\n")
                for i in range(1, 11):
                    self.write(
                        "events/sched/sched_switch/filter", False, f"bad{i} == 1", "ERR Invalid argument"
                    )
            elif match := READ.match(line):
                end = next((i for i in range(at, len(lines)) if not lines[i].startswith("   |")), len(lines))
                expected = "".join(f"{text[4:]}\n" for text in lines[at:end])
                at = end
                self.look(match[1], expected, lines[at : at + 1])

    def look(self, path, expected, following):
        if path == "set_event" and "irq:irq_handler_entry" in expected:
            self.tree.write_text("set_event", "irq:irq_handler_entry\n", append=True)
            self.tree.write_text("set_event", "sched:sched_switch", append=True)
        elif path == "set_event" and following == ["no newline:"]:
            self.tree.write_text("set_event", "!irq:irq_handler_entry", append=True)
        elif path == "set_event" and not expected:
            self.tree.write_text("set_event", "")
        elif path == "error_log" and not expected:
            self.tree.write_text("error_log", "")
        got = without_times(self.read(path))
        expected = without_times(expected)
        if path == "error_log" and "nosuch == 3" in expected:
            # The script showed the first 12 lines only.
            got = "".join(got.splitlines(keepends=True)[:12])
        self.check(path, expected, got)


def test_every_answer_is_the_kernels(runtime):
    declare_all(runtime.tracing)
    runtime.tracing.filter_profile = KERNEL_6_1_187
    replay = Replay(ControlFiles(runtime.tracing, n_cpus=2))
    text = LOG.read_bytes().decode(errors="replace").replace("\r\n", "\n")
    replay.run(text[text.index("##### defaults") :].split("\n"))
    unexplained = [
        (what, expected, got)
        for what, expected, got in replay.differences
        if what not in DIFFERENT and what not in NO_SUCH_FILE
    ]
    assert unexplained == []
    assert (replay.n_equal, len(replay.differences)) == (409, 13)
