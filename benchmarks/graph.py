"""How fast the text of function_graph is made: against `trace-cmd report` of the same file in the same run.

The recording is the one of a guest that the tests compare, its pages again and again, each time later.
"""

from __future__ import annotations

import base64
import json
import lzma
import shutil
import tempfile
from functools import cache
from pathlib import Path

from benchmarks.decode import repeated, text_against_report
from benchmarks.harness import MissingError, Row
from tracepoint.record.decode import DECODE
from tracepoint.record.layout import read_page_layout
from tracepoint.tracefile.buffers import TraceBuffer
from tracepoint.tracefile.content import BufferContent, CpuPages, TraceContent
from tracepoint.tracefile.cpudata import CpuData
from tracepoint.tracefile.options import OptionId, text_option
from tracepoint.tracefile.write import write_tracedat

RECORDED = Path(__file__).resolve().parent.parent / "tests" / "tracefile" / "golden" / "layouts.json.xz"
N_TIMES = 3000


@cache
def recording() -> Path:
    """A trace.dat of 7.5 million records, kept until the machine ends."""
    if DECODE is None:
        raise MissingError("tracepoint._decode is not built: install gcc and python3-dev")
    if shutil.which("trace-cmd") is None:
        raise MissingError("no trace-cmd: apt-get install trace-cmd")
    target = Path(tempfile.gettempdir()) / "tracepoint-bench-graph.v6.dat"
    if not target.exists():
        part = target.with_suffix(".part")
        with part.open("wb") as stream:
            write_tracedat(stream, _content(), 6)
        part.rename(target)
    return target


def _content() -> TraceContent:
    made = json.loads(lzma.decompress(RECORDED.read_bytes()))["6.1"]
    recorded, layout = made["recordings"]["graph"], read_page_layout(made["header_page"])
    data = [base64.b64decode(pages) for pages in recorded["pages"]]
    cpus = [CpuData(number, 0, len(pages), layout, pages) for number, pages in enumerate(data)]
    stamps = [record.timestamp for record in TraceBuffer("", "local", tuple(cpus)).records()]
    step = stamps[-1] - stamps[0] + 1000
    many = tuple(CpuPages(cpu.cpu, repeated(cpu, N_TIMES, step)) for cpu in cpus)
    uname = f"Linux guest {made['release']} x86_64"
    options = (text_option(OptionId.TRACECLOCK, "[local]\n"), text_option(OptionId.UNAME, uname))
    return TraceContent(
        (BufferContent(many),),
        tuple(map(tuple, made["formats"])),
        made["header_page"],
        kallsyms=made["symbols"],
        saved_cmdlines=recorded["saved_cmdlines"],
        options=options,
        n_cpus=len(cpus),
    )


def read_graph_against_report() -> Row:
    """The text of function_graph."""
    return text_against_report(recording(), "function_graph")


ROWS = (read_graph_against_report,)
