"""The text of one buffer under every option, as a 6.1 kernel in a guest wrote it (make_variants.py)."""

import base64
import json
import lzma
import re
import shutil

import pytest

from tracefile.make_variants import make
from tracefile.making import GOLDEN, cleared_at
from tracepoint.lab.kernels.packages import cached_kernels
from tracepoint.lab.kernels.supported import find_kernel
from tracepoint.layout.format import read_format
from tracepoint.printk.facts import RenderFacts
from tracepoint.printk.kallsyms import Kallsyms
from tracepoint.record.layout import read_page_layout
from tracepoint.record.page import LOST_UNKNOWN
from tracepoint.tracefile.buffers import TraceBuffer
from tracepoint.tracefile.cpudata import CpuData
from tracepoint.tracefile.recording import read_pairs, read_tgids
from tracepoint.tracefile.text import TextWriter
from tracepoint.tracefile.textoptions import TextOptions

MADE = json.loads(lzma.decompress((GOLDEN / "variants.json.xz").read_bytes()))
OPTIONS = {
    "plain": {},
    "tgid": {"record_tgid": True},
    "no irq-info": {"irq_info": False},
    "no irq-info, tgid": {"irq_info": False, "record_tgid": True},
    "latency": {"latency_format": True},
    "latency, verbose": {"latency_format": True, "verbose": True},
    "verbose": {"verbose": True},
    "no context": {"context_info": False},
    "no annotate": {"annotate": False},
}


def events(made):
    forms = (read_format(text, system) for system, text in made["formats"])
    return {form.id: form for form in forms}


def buffer_of(made, recording):
    layout = read_page_layout(made["header_page"])
    data = [base64.b64decode(pages) for pages in recording["pages"]]
    cpus = (CpuData(number, 0, len(pages), layout, pages) for number, pages in enumerate(data))
    return TraceBuffer("", recording["clock"], tuple(cpus))


def count(recording, name):
    return sum(int(re.search(rf"^{name}: (\d+)", text, re.MULTILINE)[1]) for text in recording["stats"])


def time_start(recording, records):
    if recording["clock"] == "counter":
        first = re.search(r" \[[0-9a-f]{16}\] (\d+) ", recording["texts"]["latency, verbose"])
        return records[0].timestamp - int(first[1])
    return cleared_at(records, [int(n) for n in re.findall(r" +(\d+)us.: ", recording["texts"]["latency"])])


def compare(made, recording, variant):
    # `trace` does not say what was lost before its first line; trace_pipe does.
    records = [record._replace(lost=0) for record in buffer_of(made, recording).records()]
    options = TextOptions(
        clock=recording["clock"],
        time_start_ns=time_start(recording, records),
        release=made["release"],
        # Of CONFIG_PREEMPT_DYNAMIC, which these kernels have, `trace` shows the mode at hand.
        preemption="desktop",
        **OPTIONS[variant],
    )
    comms = read_pairs(recording["saved_cmdlines"])
    facts = RenderFacts(kallsyms=Kallsyms(made["symbols"]), hz=250, comms=comms)
    writer = TextWriter(events(made), facts, options, read_tgids(recording["saved_tgids"]))
    n_entries, n_overrun = count(recording, "entries"), count(recording, "overrun")
    assert len(records) == n_entries
    text = writer.header(n_entries, n_entries + n_overrun, 2)
    text += "".join(writer.lines(records, has_overruns=n_overrun > 0))
    assert text == recording["texts"][variant]
    assert writer.notes == {}


@pytest.mark.parametrize("recording", MADE["recordings"], ids=lambda recording: recording["clock"])
@pytest.mark.parametrize("variant", OPTIONS)
def test_text_under_every_option(recording, variant):
    compare(MADE, recording, variant)


@pytest.mark.guest
@pytest.mark.parametrize("kernel", ["6.1", "6.12"])
def test_text_of_a_kernel_booted_now(kernel):
    if not cached_kernels(find_kernel(kernel)):
        pytest.skip(f"no package of kernel {kernel} at hand: tracepoint lab run --kernel {kernel} fetches it")
    if shutil.which("qemu-system-x86_64") is None:
        pytest.skip("no QEMU: apt-get install qemu-system-x86")
    made = make(kernel)
    for recording in made["recordings"]:
        for variant in OPTIONS:
            compare(made, recording, variant)


def test_the_recordings_hold_what_is_compared():
    """Both CPUs, tasks with and without a process, overwritten events, the mark of a late begin."""
    local, counter = MADE["recordings"]
    assert count(local, "overrun") + count(counter, "overrun") > 0
    texts = "".join(text for recording in (local, counter) for text in recording["texts"].values())
    for expected in (
        "buffer started ####",
        "(-------)",
        "[000]",
        "[001]",
        "us+:",
        "us#:",
        "us!:",
        "us*:",
    ):
        assert expected in texts


def test_loss_is_counted_in_the_page_as_trace_pipe_says():
    found = re.match(r"CPU:(\d) \[LOST (\d+) EVENTS\]\n", MADE["pipe"]["text"])
    assert int(found[2]) == count(MADE["pipe"], "overrun")
    n_known = 0
    for recording in MADE["recordings"]:
        for cpu, text in zip(buffer_of(MADE, recording).cpus, recording["stats"], strict=True):
            first = next(cpu.pages())[1].heads[0]
            overrun = int(re.search(r"overrun: (\d+)", text)[1])
            # The kernel keeps the number only where the page has room for it.
            has_room = first.size + 8 <= cpu.layout.data_size
            assert first.lost == (overrun if has_room else LOST_UNKNOWN)
            n_known += has_room
    assert n_known
