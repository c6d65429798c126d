"""The text of `trace-cmd report`: its columns and words; trace-cmd judges both."""

import shutil
import struct
import subprocess
from collections import Counter
from dataclasses import replace

import pytest

from oracles import data_file
from tracefile.making import GOLDEN, content_of, layout_of, tick, tick_format, written
from tracepoint.printk.facts import RenderFacts
from tracepoint.printk.kallsyms import Kallsyms
from tracepoint.record.write import write_pages
from tracepoint.tracefile import linewriter
from tracepoint.tracefile.compression import has_zstd
from tracepoint.tracefile.content import BufferContent, CpuPages
from tracepoint.tracefile.linewriter import LineWriter
from tracepoint.tracefile.opening import open_container
from tracepoint.tracefile.options import OptionId, text_option
from tracepoint.tracefile.report import ReportWriter
from tracepoint.tracefile.text import facts_of
from tracepoint.tracefile.textoptions import TextOptions
from tracepoint.tracefile.tracedat import read_tracedat

# trace-cmd shows a wrong address of the page, and flags by a wrong order of operators.
WRONG = {"mm_page_alloc", "mm_page_free", "timer_start"}
COMMON = "".join(
    f"\tfield:{kind} common_{name};\toffset:{at};\tsize:{size};\tsigned:{sign};\n"
    for kind, name, at, size, sign in (
        ("unsigned short", "type", 0, 2, 0), ("unsigned char", "flags", 2, 1, 0),
        ("unsigned char", "preempt_count", 3, 1, 0), ("int", "pid", 4, 4, 1),
    )
)  # fmt: skip
SWITCH = (
    "name: sched_switch\nID: 401\nformat:\n" + COMMON + "\n"
    "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
    "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n"
    "\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n"
    "\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n"
    "\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n"
    '\nprint fmt: "%s", REC->prev_comm\n'
)
ADDRESSES = (
    "name: addresses\nID: 402\nformat:\n" + COMMON + "\n"
    "\tfield:void * p;\toffset:8;\tsize:8;\tsigned:0;\n\n"
    'print fmt: "%p %pS %ps %s", REC->p, REC->p, REC->p, __print_symbolic((long)REC->p, { UNNAMED, "x" })\n'
)


def lines_of(trace, facts=None, clock="mono"):
    """The text by C, which must be that of the twin."""
    found = []
    for decode in (linewriter.DECODE, None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(linewriter, "DECODE", decode)
            options = TextOptions(clock=clock, irq_info=False)
            writer = ReportWriter(trace.events, facts or facts_of(trace), options, {7: 7})
            maker = LineWriter(writer, trace.events)
            blocks = [bytes(block) for block in maker.blocks(trace.buffers[0])]
            text = maker.header(1, 1, trace.n_cpus).encode() + b"".join(blocks)
            found.append((text.decode("utf-8", "surrogateescape"), writer.notes))
    assert found[0] == found[1]
    return found[0][0].split("\n")[:-1]


def lossy_page(records, lost):
    layout = layout_of()
    page = bytearray(write_pages(records, layout))
    size = int.from_bytes(page[8:16], "little")
    page[8:16] = (size | 1 << 31 | (lost > 0) << 30).to_bytes(8, "little")
    page[16 + size : 24 + size] = lost.to_bytes(8, "little")
    return bytes(page)


def content(clock="mono", is_known=True):
    """Records of many tasks and times, with losses, states and addresses."""
    records = [(10 ** (9 + 2 * n) + 123456789, tick(n, pid=pid)) for n, pid in enumerate((7, 8, 1234567, 0))]
    states = [0, *(1 << bit for bit in range(10)), 3, 0x81, 0x100]
    head = struct.pack("<HBBi", 401, 0, 0, 7)
    switches = [
        head + struct.pack("<16siiq16sii", b"sh", 7, 120, state, b"swapper/0", 0, 99) for state in states
    ]
    shown = [
        struct.pack("<HBBiQ", 402, 0, 0, 7, p) for p in (0, 0x10, 0xFFFFFFFF81000008, 0xFFFFFFFFFFFFFFFF)
    ]
    later = [(10**16 + n, data) for n, data in enumerate((*switches, *shown))]
    pages = [bytes(write_pages(records, layout_of())), lossy_page(later[:1], 12), lossy_page(later[1:2], 0)]
    pages.append(bytes(write_pages(later[2:], layout_of())))
    if not is_known:
        pages.append(bytes(write_pages([(10**17, struct.pack("<HBBi", 777, 0, 0, -5))], layout_of())))
    made = content_of(
        n_records=1,
        kallsyms="ffffffff81000000 T start\nffffffff81000100 T end\n",
        options=(
            text_option(OptionId.TRACECLOCK, f"[{clock}]"),
            text_option(OptionId.UNAME, "Linux host 6.1 x86_64"),
        ),
    )
    formats = (("demo", tick_format()), ("sched", SWITCH), ("demo", ADDRESSES))
    return made._replace(formats=formats, buffers=(BufferContent((CpuPages(0, pages),), "", clock),))


def test_columns():
    trace = read_tracedat(written(content(is_known=False)))
    shown = lines_of(trace)
    assert shown[:5] == [
        "cpus=2",
        "          worker-7     [000]     1.123457: tick:                 n=0 name=a",
        "           <...>-8     [000]   100.123457: tick:                 n=1 name=a",
        "           <...>-1234567 [000] 10000.123457: tick:                 n=2 name=a",
        "          <idle>-0     [000] 1000000.123457: tick:                 n=3 name=a",
    ]
    assert "CPU:0 [12 EVENTS DROPPED]" in shown
    assert "CPU:0 [EVENTS DROPPED]" in shown
    assert shown[-1].endswith("-5    [000] 100000000.000000: Unknown type 777")
    assert lines_of(trace, clock="counter")[3] == (
        "           <...>-1234567 [000]10000123456789: tick:                 n=2 name=a"
    )


def test_states_and_addresses():
    shown = lines_of(read_tracedat(written(content())))
    states = [line.split(": sched_switch: ")[1].strip() for line in shown if "sched_switch" in line]
    assert states[0] == "sh:7 [120] R ==> swapper/0:0 [99]"
    assert [state.split()[2] for state in states[1:9]] == list("SDTtZXxW")
    assert "S|D" in states[11]
    addresses = [line.split(": addresses: ")[1].strip() for line in shown if "addresses" in line]
    assert addresses[2] == "0xffffffff81000008 start+0x8 start 0xffffffff81000008"
    assert addresses[0] == "(nil) 0x0 0x0 0x0"
    assert addresses[3].endswith(" x")


def test_addresses_without_symbols_are_noted():
    trace = read_tracedat(written(content()))
    writer = ReportWriter(trace.events, RenderFacts(), TextOptions(clock="mono", irq_info=False))
    assert any(
        "0xffffffff81000008 0xffffffff81000008 0xffffffff81000008" in line
        for line in writer.lines(trace.buffers[0].records())
    )
    assert any("symbols are not known" in note for note in writer.notes)


def test_a_recording_of_a_kernel():
    trace = read_tracedat((GOLDEN / "cut.v6.dat").read_bytes())
    facts = replace(
        facts_of(trace), kallsyms=Kallsyms("ffffffff81000000 T _stext\nffffffffffffffff T _end\n")
    )
    assert len(lines_of(trace, facts)) > 400


def reported(path):
    program = shutil.which("trace-cmd")
    if program is None:
        pytest.skip("no trace-cmd: apt-get install trace-cmd")
    return subprocess.run([program, "report", "-i", path], capture_output=True, check=True).stdout


def ours(path):
    with open_container(path) as trace:
        options = TextOptions(clock=trace.buffers[0].clock or trace.clock, irq_info=False)
        writer = ReportWriter(trace.events, facts_of(trace), options)
        maker = LineWriter(writer, trace.events)
        head = maker.header(0, 0, trace.n_cpus).encode()
        return b"".join([head, *(bytes(block) for block in maker.blocks(trace.buffers[0]))])


def compared(path):
    """How many lines of each event there are, and how many of them are those of trace-cmd."""
    theirs, mine = reported(path).split(b"\n"), ours(path).split(b"\n")
    assert len(theirs) == len(mine)
    all_lines, same = Counter(), Counter()
    for one, other in zip(theirs, mine, strict=True):
        name = one.split(b": ")[1].split(b":")[0].decode() if b": " in one else ""
        all_lines[name] += 1
        same[name] += one == other
    return all_lines, same


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("name", "share"), [("small.v6.dat.zst", 0.89), ("small.v7.zstd.dat", 0.89), ("big.v7.zstd.dat", 0.96)]
)
def test_lines_are_those_of_trace_cmd(tmp_path, name, share):
    path = data_file(name)
    if not has_zstd():
        pytest.skip("no library for zstd: pip install zstandard")
    if name.endswith(".zst"):
        plain = tmp_path / "plain.dat"
        subprocess.run(["zstd", "-dqf", path, "-o", plain], check=True)
        path = plain
    all_lines, same = compared(path)
    assert {event for event, n in all_lines.items() if same[event] != n} <= WRONG
    assert same.total() / all_lines.total() > share


@pytest.mark.oracle
@pytest.mark.parametrize("clock", ["mono", "counter"])
@pytest.mark.parametrize("version", [6, 7])
def test_columns_are_those_of_trace_cmd(tmp_path, clock, version):
    path = tmp_path / "made.dat"
    path.write_bytes(written(content(clock), version))
    assert ours(path).decode() == reported(path).decode()
