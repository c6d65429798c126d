"""Masks as lists of the bits that are set: what is a mask, in tables, in records, and in other libraries."""

import struct

import pytest

import tracepoint as tp
from tracefile.making import layout_of, written
from tracepoint.decode import engine
from tracepoint.decode.trace import Trace
from tracepoint.layout.format import read_format
from tracepoint.record.field import is_bitmask, set_bits
from tracepoint.record.layout import header_page_text
from tracepoint.record.write import write_pages
from tracepoint.tracefile.content import BufferContent, CpuPages, TraceContent
from tracepoint.tracefile.tracedat import read_tracedat

FORMAT = (
    "name: set_mask\nID: 500\nformat:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
    "\tfield:__data_loc unsigned long[] mask;\toffset:8;\tsize:4;\tsigned:0;\n"
    "\tfield:__rel_loc unsigned long[] near;\toffset:12;\tsize:4;\tsigned:0;\n"
    "\tfield:__data_loc cpumask_t cpus;\toffset:16;\tsize:4;\tsigned:0;\n"
    "\tfield:__rel_loc cpumask_t rel_cpus;\toffset:20;\tsize:4;\tsigned:0;\n"
    "\tfield:__data_loc unsigned long[] stack;\toffset:24;\tsize:4;\tsigned:0;\n\n"
    'print fmt: "%s %s %s", __get_bitmask(mask), __get_rel_bitmask((near)), __get_cpumask(cpus)\n'
)
MASKS = ("mask", "near", "cpus", "rel_cpus")
VALUES = [([], [5], [0, 1, 63, 64], [127]), ([0], [], [3], [2, 1]), ([191], [64], [], [])]


def packed(bits, order, long_size):
    n_words = max(bits, default=-1) // (8 * long_size) + 1
    words = [sum(1 << b % (8 * long_size) for b in bits if b // (8 * long_size) == w) for w in range(n_words)]
    return struct.pack(f"{order}{n_words}{'IQ'[long_size == 8]}", *words)


def record(values, order="<", long_size=8):
    at, words, data = 28, [], b""
    for index, bits in enumerate((*values, None)):
        more = (
            struct.pack(order + "IQ"[long_size == 8], 7) if bits is None else packed(bits, order, long_size)
        )
        origin = 8 + 4 * index + 4 if index in (1, 3) else 0
        words.append(len(more) << 16 | at + len(data) - origin)
        data += more
    return struct.pack(f"{order}HBBi5I", 500, 0, 0, 7, *words) + data


def trace_of(is_big_endian=False, long_size=8, records=None):
    layout = layout_of(is_big_endian, long_size)
    order = ">" if is_big_endian else "<"
    records = [record(values, order, long_size) for values in VALUES] if records is None else records
    data = write_pages([(1000 + n, one) for n, one in enumerate(records)], layout)
    content = TraceContent(
        (BufferContent((CpuPages(0, (data,)),), "", "local"),),
        (("demo", FORMAT),),
        header_page_text(layout),
        is_big_endian=is_big_endian,
        long_size=long_size,
    )
    return Trace(read_tracedat(written(content)))


@pytest.mark.parametrize("long_size", [4, 8])
@pytest.mark.parametrize("is_big_endian", [False, True])
@pytest.mark.parametrize("mechanism", ["C", "twin"])
def test_tables_and_records_have_the_bits(monkeypatch, mechanism, is_big_endian, long_size):
    if mechanism == "twin":
        monkeypatch.setattr(engine, "DECODE", None)
    with trace_of(is_big_endian, long_size) as trace:
        table = trace["set_mask"]
        for index, name in enumerate(MASKS):
            assert table[name].tolist() == [sorted(values[index]) for values in VALUES], name
            assert table.schema[name] == "+L<I>"
        # The same type, but the print format does not take it for a mask.
        assert table["stack"].tolist() == [[7]] * 3
        for got, values in zip(trace.records(), VALUES, strict=True):
            assert [got[name] for name in MASKS] == [sorted(bits) for bits in values]


def test_other_libraries_take_them():
    pyarrow, polars = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    with trace_of() as trace:
        table = trace["set_mask"]
        arrow = pyarrow.table(table)
        assert arrow.schema.field("cpus").type == pyarrow.large_list(
            pyarrow.field("item", pyarrow.uint32(), nullable=False)
        )
        assert arrow["cpus"].to_pylist() == table["cpus"].tolist() == [[0, 1, 63, 64], [3], []]
        frame = polars.DataFrame(table)
        assert frame["cpus"].to_list() == [[0, 1, 63, 64], [3], []]
        assert frame["cpus"].dtype == polars.List(polars.UInt32)
        assert list(map(list, table.numpy("mask"))) == [[], [0], [191]]


def test_a_mask_that_is_cut_off_or_not_of_whole_words_is_null():
    whole = record(([0], [], [], []))
    odd = whole[:8] + struct.pack("<I", 7 << 16 | 28) + whole[12:]
    outside = whole[:8] + struct.pack("<I", 8 << 16 | 4000) + whole[12:]
    with trace_of(records=[whole, odd, outside, whole[:10]]) as trace:
        assert trace["set_mask"]["mask"].tolist() == [[0], None, None, None]


def test_what_a_slice_has_is_joined(monkeypatch):
    """Those of several threads, and of slices of time."""
    records = [record(([n % 64, 64 + n % 7], [], [n], [])) for n in range(1000)]
    with trace_of(records=records) as trace:
        alone = Trace(trace.file, threads=1)["set_mask"]
        monkeypatch.setattr(engine, "_SLICE_ROWS", 64)
        several = Trace(trace.file, threads=3)["set_mask"]
        for name in MASKS:
            assert several[name].tolist() == alone[name].tolist()
        assert alone["mask"].tolist() == [sorted({n % 64, 64 + n % 7}) for n in range(1000)]


def test_ctf_has_the_numbers(tmp_path):
    with trace_of() as trace:
        tp.write_ctf(trace, tmp_path / "x.ctf")
        with tp.open_trace(tmp_path / "x.ctf") as again:
            table = again["demo:set_mask"]
            for name in MASKS:
                assert table[name].tolist() == trace["set_mask"][name].tolist()


def test_which_fields_are_masks():
    form = read_format(FORMAT, "demo")
    assert [field.name for field in form.event_fields if is_bitmask(form, field)] == list(MASKS)
    assert set_bits(b"abc", 8, is_big_endian=False) is None
