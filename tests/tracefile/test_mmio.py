"""The layout of mmiotrace: accesses, mappings, marks."""

import struct

import pytest

from printk.making import COMMON
from tracefile.making import layout_of
from tracepoint.layout.format import EventFormat, FieldFormat
from tracepoint.record.raw import RawRecord
from tracepoint.record.write import write_pages
from tracepoint.tracefile.buffers import TraceBuffer
from tracepoint.tracefile.cpudata import CpuData
from tracepoint.tracefile.linewriter import LineWriter
from tracepoint.tracefile.mmio import mmio_lines
from tracepoint.tracefile.text import TextWriter
from tracepoint.tracefile.textoptions import TextOptions


def unsigned(*fields):
    return tuple(FieldFormat(name, "unsigned long", at, size, is_signed=False) for name, at, size in fields)


RW = unsigned(
    ("phys", 8, 8), ("value", 16, 8), ("pc", 24, 8), ("map_id", 32, 4), ("opcode", 36, 1), ("width", 37, 1)
)
MAP = unsigned(("phys", 8, 8), ("virt", 16, 8), ("len", 24, 8), ("map_id", 32, 4), ("opcode", 36, 1))
PRINT = (*unsigned(("ip", 8, 8)), FieldFormat("buf", "char[]", 16, 0, is_signed=False))
EVENTS = {
    5: EventFormat("ftrace", "print", (*COMMON, *PRINT), "", 5),
    7: EventFormat("ftrace", "mmiotrace_rw", (*COMMON, *RW), "", 7),
    8: EventFormat("ftrace", "mmiotrace_map", (*COMMON, *MAP), "", 8),
    9: EventFormat("demo", "other", COMMON, "", 9),
}
TIME = 2_483_871_600


def text_of(number, data, lost=0):
    writer = TextWriter(EVENTS, options=TextOptions(tracer="mmiotrace"))
    record = RawRecord(TIME, 0, struct.pack("<HBBi", number, 0, 0, 7) + data, lost)
    return "".join(mmio_lines(writer, [record]))


@pytest.mark.parametrize(
    ("opcode", "text"),
    [
        (1, "R 4 2.483872 3 0xfeb0 0xabcdef 0x10 0\n"),
        (2, "W 4 2.483872 3 0xfeb0 0xabcdef 0x10 0\n"),
        (5, "UNKNOWN 2.483872 3 0xfeb0 ab,cd,ef 0x10 0\n"),
        (9, "rw what?\n"),
    ],
)
def test_accesses(opcode, text):
    assert text_of(7, struct.pack("<QQQiBB", 0xFEB0, 0xABCDEF, 0x10, 3, opcode, 4)) == text


@pytest.mark.parametrize(
    ("opcode", "text"),
    [
        (3, "MAP 2.483872 3 0xfeb0 0xffff 0x1000 0x0 0\n"),
        (4, "UNMAP 2.483872 3 0x0 0\n"),
        (9, "map what?\n"),
    ],
)
def test_mappings(opcode, text):
    assert text_of(8, struct.pack("<QQQiB", 0xFEB0, 0xFFFF, 0x1000, 3, opcode)) == text


def test_marks_and_nothing_else():
    assert text_of(5, struct.pack("<Q", 0x10) + b"hello\n\0") == "MARK 2.483872 hello\n"
    assert text_of(9, b"") == ""
    assert text_of(9, b"", lost=3) == "CPU:0 [LOST 3 EVENTS]\n"


def test_what_is_cut_off_reads_as_nothing_known():
    assert text_of(7, b"\1") == "rw what?\n"


def test_records_without_text_do_not_end_it(monkeypatch):
    monkeypatch.setattr("tracepoint.tracefile.linewriter._LINES_A_BLOCK", 2)
    mark = struct.pack("<HBBiQ", 5, 0, 0, 7, 0x10) + b"end\n\0"
    records = [(TIME, struct.pack("<HBBi", 9, 0, 0, 7))] * 5 + [(TIME, mark)]
    pages = write_pages(records, layout_of())
    buffer = TraceBuffer("", "local", (CpuData(0, 0, len(pages), layout_of(), pages),))
    lines = LineWriter(TextWriter(EVENTS, options=TextOptions(tracer="mmiotrace")), EVENTS)
    assert b"".join(lines.blocks(buffer)) == b"MARK 2.483872 end\n"
