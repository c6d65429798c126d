"""Contents for tests: any byte order and word size, with the tracer's own `print` event."""

import base64
import json
import lzma
import re
import struct
from io import BytesIO
from pathlib import Path

from tracepoint.printk.facts import RenderFacts
from tracepoint.record.layout import PageLayout, header_page_text
from tracepoint.record.write import write_pages
from tracepoint.tracefile.content import BufferContent, CpuPages, TraceContent
from tracepoint.tracefile.options import OptionId, text_option
from tracepoint.tracefile.tracedat import read_tracedat
from tracepoint.tracefile.write import write_tracedat

GOLDEN = Path(__file__).parent / "golden"
TICK_ID = 400

# What neither records nor formats of the recorded kernel tell: include/linux/hrtimer.h, struct page, the timer rate.
# The place of the page table is not known, but pointers to it are hashed in the kernel's text.
_MODES = ("ABS", "REL", "ABS_PINNED", "REL_PINNED", "ABS_SOFT", "REL_SOFT", "ABS_PINNED_SOFT", "REL_PINNED_SOFT",
          "ABS_HARD", "REL_HARD", "ABS_PINNED_HARD", "REL_PINNED_HARD")  # fmt: skip
KNOWN = RenderFacts(
    hz=250,
    variables={"vmemmap_base": 0xFFFFEA0000000000},
    constants={f"HRTIMER_MODE_{name}": value for value, name in enumerate(_MODES)}.get,
    sizeof={"struct page": 64}.get,
)
HASHED = re.compile(r"\b[0-9a-f]{16}\b")


def cleared_at(records, shown_us):
    """When the buffer was cleared, which only the kernel knew: what all latency times of records agree on."""
    assert len(shown_us) == len(records)
    ends = [
        (r.timestamp + 500 - 1000 * (us + 1), r.timestamp + 500 - 1000 * us)
        for r, us in zip(records, shown_us, strict=True)
    ]
    low, high = max(low for low, _ in ends), min(high for _, high in ends)
    assert low < high
    return high


def recorded_layouts():
    """What make_layouts.py recorded, by kernel."""
    return json.loads(lzma.decompress((GOLDEN / "layouts.json.xz").read_bytes()))


def write_folder(folder, made, recording):
    """Write one of these recordings as a folder of trace_pipe_raw files."""
    files = {"kallsyms": made["symbols"], "header_page": made["header_page"]}
    files |= {name: recording[name] for name in ("saved_cmdlines", "trace_options")}
    files["current_tracer"] = f"{recording['tracer']}\n"
    files |= {f"cpu{cpu}.stats": text for cpu, text in enumerate(recording["stats"])}
    for system, text in made["formats"]:
        files[f"events/{system}/{text.split()[1]}/format"] = text
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for cpu, pages in enumerate(recording["pages"]):
        (folder / f"cpu{cpu}.raw").write_bytes(base64.b64decode(pages))


def layout_of(is_big_endian=False, long_size=8, page_size=4096):
    start = 8 + long_size
    return PageLayout(start, page_size - start, 8, long_size, is_big_endian)


def tick_format(long_size=8):
    """An event with one number and one string, as a `format` file."""
    return (
        f"name: tick\nID: {TICK_ID}\nformat:\n"
        "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
        "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
        "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
        "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
        "\tfield:u32 n;\toffset:8;\tsize:4;\tsigned:0;\n"
        "\tfield:char name[8];\toffset:12;\tsize:8;\tsigned:0;\n\n"
        'print fmt: "n=%u name=%s", REC->n, REC->name\n'
    )


def tick(n, name="a", pid=7, is_big_endian=False, flags=0, count=0):
    order = ">" if is_big_endian else "<"
    return struct.pack(
        order + "HBBiI8s", TICK_ID, flags, count, pid, n, name.encode(errors="surrogateescape")
    )


def content_of(is_big_endian=False, long_size=8, n_cpus=2, n_records=500, instances=(), **more):
    """Records 0, 1, 2.. dealt out to the CPUs in turn, 1000 ns apart, and the same in each instance."""
    layout = layout_of(is_big_endian, long_size)

    def buffer(name):
        cpus = []
        for cpu in range(n_cpus):
            numbers = range(cpu, n_records, n_cpus)
            records = [(10**9 + 1000 * n, tick(n, is_big_endian=is_big_endian)) for n in numbers]
            cpus.append(CpuPages(cpu, (write_pages(records, layout),)))
        return BufferContent(tuple(cpus), name, "mono")

    return TraceContent(
        tuple(buffer(name) for name in ("", *instances)),
        (("demo", tick_format(long_size)),),
        header_page_text(layout),
        saved_cmdlines="7 worker\n",
        options=more.pop(
            "options",
            (
                text_option(OptionId.TRACECLOCK, "local global [mono]\n"),
                text_option(OptionId.UNAME, "Linux host 6.1 x86_64"),
            ),
        ),
        n_cpus=n_cpus,
        is_big_endian=is_big_endian,
        long_size=long_size,
        **more,
    )


def written(content, version=7, compression="none"):
    stream = BytesIO()
    write_tracedat(stream, content, version, compression)
    return stream.getvalue()


def drained(trace):
    """Read all there is to read; return everything as plain values."""
    buffers = [(b.name, b.clock, [(c.cpu, b"".join(c.blocks())) for c in b.cpus]) for b in trace.buffers]
    texts = (
        trace.header_page,
        trace.header_event,
        trace.kallsyms,
        trace.printk_formats,
        trace.saved_cmdlines,
        trace.saved_tgids,
    )
    return buffers, trace.formats, texts, trace.n_cpus


def everything(data):
    """Do with bytes what a reader does; whatever they are, DecodeError or damage comes out."""
    trace = read_tracedat(data)
    drained(trace)
    assert trace.events is not None
    n_records = sum(1 for buffer in trace.buffers for _ in buffer.records())
    trace.content()
    return n_records, trace.damage


def tgids_in(text):
    """The process of each task, as a `trace` text with record-tgid shows it."""
    found = re.finditer(r"^.{16}-(\d+) +\( *(\d+)\)", text, re.MULTILINE)
    return {int(match[1]): int(match[2]) for match in found}
