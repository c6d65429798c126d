"""What tracers' `trace` shows under each option, as kernels in guests wrote it (make_layouts.py)."""

import base64
import re

import pytest

from guest.conftest import kernel_or_skip
from tracefile.make_layouts import DEBIAN, make
from tracefile.making import cleared_at, recorded_layouts
from tracepoint.layout.format import read_format
from tracepoint.printk.facts import RenderFacts
from tracepoint.printk.kallsyms import Kallsyms
from tracepoint.record.layout import read_page_layout
from tracepoint.tracefile.buffers import TraceBuffer
from tracepoint.tracefile.cpudata import CpuData
from tracepoint.tracefile.linewriter import LineWriter
from tracepoint.tracefile.recording import read_pairs, read_tgids
from tracepoint.tracefile.text import TextWriter
from tracepoint.tracefile.textoptions import TextOptions, is_from_6_13, with_option

MADE = recorded_layouts()
DEBIAN_KERNELS = ("6.1", "6.12")
KERNEL_STACK = 4
EACH = [
    pytest.param(kernel, name, words, id=f"{kernel}-{name}-{words or 'default'}")
    for kernel, made in MADE.items()
    for name, recording in made["recordings"].items()
    for words in recording["texts"]
]


def count(recording, name):
    return sum(int(re.search(rf"^{name}: (\d+)", text, re.MULTILINE)[1]) for text in recording["stats"])


def buffer_of(made, recording):
    layout = read_page_layout(made["header_page"])
    data = [base64.b64decode(pages) for pages in recording["pages"]]
    cpus = (CpuData(number, 0, len(pages), layout, pages) for number, pages in enumerate(data))
    return TraceBuffer("", "local", tuple(cpus))


def time_start(recording, buffer):
    shown = re.findall(r" +(\d+)us.: ", recording["texts"].get("latency-format", ""))
    # Only stacks have a time in the graph.
    is_graph = recording["tracer"] == "function_graph"
    records = [record for record in buffer.records() if not is_graph or record.id() == KERNEL_STACK]
    return cleared_at(records, list(map(int, shown))) if shown else 0


def text_of(made, recording, words):
    buffer = buffer_of(made, recording)
    options = TextOptions(
        release=made["release"],
        is_from_6_13=is_from_6_13(made["release"]),
        tracer=recording["tracer"],
        n_cpus=2,
        time_start_ns=time_start(recording, buffer),
    )
    for word in words.split():
        options = with_option(options, word)
    events = {form.id: form for form in (read_format(text, system) for system, text in made["formats"])}
    facts = RenderFacts(
        kallsyms=Kallsyms(made["symbols"]), hz=250, comms=read_pairs(recording["saved_cmdlines"])
    )
    writer = TextWriter(events, facts, options, read_tgids(recording["saved_tgids"]))
    lines = LineWriter(writer, events)
    n_entries, n_overrun = count(recording, "entries"), count(recording, "overrun")
    text = lines.header(n_entries, n_entries + n_overrun, 2).encode()
    text += b"".join(lines.blocks(buffer, has_overruns=n_overrun > 0))
    text = text.decode("utf-8", "surrogateescape")
    # `trace` does not say what was lost before its first line.
    return without_unknown(re.sub(r"CPU:\d \[LOST .*EVENTS\]\n", "", text)), writer.notes


def without_unknown(text):
    """Leave out of the heading of a latency trace what no recording tells: a CPU, and how the kernel preempts."""
    return re.sub(r", CPU#\d+ \| \(M:[^ ]+", ", CPU#? | (M:?", text, count=1)


@pytest.mark.parametrize(("kernel", "name", "words"), EACH)
def test_text_is_the_kernels(kernel, name, words):
    made = MADE[kernel]
    recording = made["recordings"][name]
    text, notes = text_of(made, recording, words)
    assert text.split("\n") == without_unknown(recording["texts"][words]).split("\n")
    assert notes == {}


@pytest.mark.guest
@pytest.mark.parametrize("kernel", DEBIAN_KERNELS)
def test_text_of_a_kernel_booted_now(kernel):
    kernel_or_skip(kernel)
    made = make(kernel, DEBIAN)
    for name, recording in made["recordings"].items():
        for words, theirs in recording["texts"].items():
            assert text_of(made, recording, words) == (without_unknown(theirs), {}), (name, words)


def test_the_recordings_hold_what_is_compared():
    for name in DEBIAN_KERNELS:
        made = MADE[name]
        graph, function = (made["recordings"][name]["texts"][""] for name in ("graph", "function"))
        for expected in (
            " => ",
            "();",
            "() {",
            "    }",
            "/* in the graph */",
            "/* # 64636261 buf:",
            "<stack trace>",
            " 1)",
        ):
            assert expected in graph
        for expected in (
            "<user stack trace>",
            "<stack trace>",
            " <-",
            "(repeats: ",
            ": among functions",
            "buf: ",
        ):
            assert expected in function
