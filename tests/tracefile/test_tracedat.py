"""trace.dat: real files, round trips in all shapes, and files that lie."""

import struct
from contextlib import suppress
from io import BytesIO
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from tracefile.making import GOLDEN, content_of, drained, everything, layout_of, tick, tick_format, written
from tracepoint.decode.trace import Trace
from tracepoint.errors import DecodeError, TracepointError
from tracepoint.layout.zstd import find_zstd_name
from tracepoint.record.decode import DECODE
from tracepoint.record.write import PageWriter
from tracepoint.tracefile.compression import MAX_SECTION, compressor_named, decompressor_named, has_zstd
from tracepoint.tracefile.content import BufferContent, CpuPages
from tracepoint.tracefile.damage import Damage
from tracepoint.tracefile.options import Option, OptionId, text_option
from tracepoint.tracefile.tracedat import open_tracedat, read_tracedat
from tracepoint.tracefile.write import write_tracedat

SHAPES = [(6, "none"), (7, "none"), (7, "zlib")] + ([(7, "zstd")] if has_zstd() else [])
needs_zstd = pytest.mark.skipif(not has_zstd(), reason="no library for zstd: pip install zstandard")


def test_version_6_of_trace_cmd():
    with open_tracedat(GOLDEN / "cut.v6.dat") as trace:
        assert (trace.version, trace.compression, trace.clock, trace.n_cpus) == (6, "none", "global", 2)
        assert [option.id for option in trace.options][:2] == [OptionId.TRACECLOCK, OptionId.UNAME]
        assert [len(list(cpu.records())) for cpu in trace.buffers[0].cpus] == [202, 198]
        assert len(trace.events) == len(trace.formats)
        assert trace.damage == ()


@needs_zstd
def test_version_7_of_trace_cmd_is_the_same_recording():
    old, new = open_tracedat(GOLDEN / "cut.v6.dat"), open_tracedat(GOLDEN / "cut.v7.zstd.dat")
    assert (new.version, new.compression) == (7, "zstd")
    assert drained(new) == drained(old)
    assert new.damage == old.damage == ()


def test_missing_library_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("tracepoint.layout.zstd._ZSTD_LIBRARIES", ())
    monkeypatch.setattr("tracepoint.tracefile.compression.DECODE", None)
    with pytest.raises(TracepointError, match="pip install"):
        open_tracedat(GOLDEN / "cut.v7.zstd.dat")


@pytest.mark.parametrize(("version", "compression"), SHAPES)
@pytest.mark.parametrize("is_big_endian", [False, True])
@pytest.mark.parametrize("long_size", [4, 8])
def test_every_shape_is_read_as_it_was_written(version, compression, is_big_endian, long_size):
    content = content_of(is_big_endian, long_size, kallsyms="00000001 T a\n", printk_formats='0x1 : "x"\n')
    trace = read_tracedat(written(content, version, compression))
    assert drained(trace) == drained(read_tracedat(written(content)))
    assert (trace.version, trace.is_big_endian, trace.long_size) == (version, is_big_endian, long_size)
    assert trace.formats == content.formats
    assert (trace.kallsyms, trace.printk_formats) == (content.kallsyms, content.printk_formats)
    assert trace.layout == layout_of(is_big_endian, long_size)
    records = list(trace.buffers[0].records())
    order = "big" if is_big_endian else "little"
    assert [int.from_bytes(record.data[8:12], order) for record in records] == list(range(500))
    assert [record.timestamp for record in records] == [10**9 + 1000 * n for n in range(500)]
    assert trace.damage == ()


@pytest.mark.parametrize(("version", "compression"), SHAPES)
def test_instances(version, compression):
    content = content_of(instances=("one", "second"), n_records=300)
    trace = read_tracedat(written(content, version, compression))
    assert [buffer.name for buffer in trace.buffers] == ["", "one", "second"]
    assert [len(list(buffer.records())) for buffer in trace.buffers] == [300] * 3
    assert trace.clock == "mono"
    assert trace.damage == ()


@pytest.mark.parametrize(("version", "compression"), SHAPES)
def test_pages_begin_at_whole_pages_of_the_file(version, compression):
    trace = read_tracedat(written(content_of(instances=("one",)), version, compression))
    assert {cpu.offset % 4096 for buffer in trace.buffers for cpu in buffer.cpus} == {0}


@pytest.mark.parametrize(("version", "compression"), SHAPES)
def test_content_of_a_file_is_written_again_alike(version, compression):
    trace = open_tracedat(GOLDEN / "cut.v6.dat")
    again = read_tracedat(written(trace.content(), version, compression))
    assert drained(again) == drained(trace)
    kept = [option for option in trace.options if option.id != OptionId.CPUCOUNT]
    assert [o for o in again.options if o in kept] == kept
    assert again.damage == ()


@pytest.mark.parametrize(("version", "compression"), SHAPES)
def test_latency_trace_is_a_text(version, compression):
    content = content_of(latency_text="# tracer: irqsoff\n# \udcff\n")
    trace = read_tracedat(written(content, version, compression))
    assert trace.latency_text == content.latency_text
    assert trace.buffers == ()


@pytest.mark.parametrize(("version", "compression"), SHAPES)
def test_blocks_are_taken_one_by_one(version, compression):
    """A recording larger than memory: the writer asks for a block only when it has written the last."""
    held = []

    def blocks():
        for number in range(64):
            held.append(number)
            assert stream.tell() > before
            yield bytes(4096 * 16)

    stream, before = BytesIO(), 0
    content = content_of()._replace(buffers=(BufferContent((CpuPages(0, blocks()),)),))
    write_tracedat(stream, content, version, compression)
    trace = read_tracedat(stream.getvalue())
    assert sum(len(block) for block in trace.buffers[0].cpus[0].blocks()) == 4096 * 16 * 64
    assert held == list(range(64))


def test_compressed_data_comes_in_chunks_of_forty_pages():
    content = content_of()._replace(buffers=(BufferContent((CpuPages(0, [bytes(4096 * 90)]),)),))
    trace = read_tracedat(written(content, 7, "zlib"))
    assert [len(block) // 4096 for block in trace.buffers[0].cpus[0].blocks()] == [40, 40, 10]


def test_cpus_without_data_and_with_gaps():
    one = content_of().buffers[0].cpus[1]
    content = content_of()._replace(buffers=(BufferContent((CpuPages(5, one.blocks),)),), n_cpus=2)
    for version, compression in SHAPES:
        trace = read_tracedat(written(content, version, compression))
        assert trace.n_cpus == 6
        assert {c.cpu: c.size > 0 for c in trace.buffers[0].cpus}[5]
        assert {record.cpu for record in trace.buffers[0].records()} == {5}
        assert trace.damage == ()


def test_lost_events_go_with_the_record_behind_them():
    writer = PageWriter(layout_of())
    writer.add(1, tick(0))
    writer.lose(9)
    writer.add(2, tick(1))
    writer.add(3, tick(2))
    content = content_of()._replace(buffers=(BufferContent((CpuPages(0, (writer.pages(),)),)),))
    trace = read_tracedat(written(content))
    assert [record.lost for record in trace.buffers[0].records()] == [0, 9, 0]


@pytest.mark.parametrize(
    ("version", "compression", "message"),
    [(5, "none", "versions 6 and 7"), (6, "zlib", "never compressed"), (7, "lzma", "lzma")],
)
def test_shapes_that_do_not_exist(version, compression, message):
    with pytest.raises(TracepointError, match=message):
        written(content_of(), version, compression)


def test_blocks_that_are_not_pages():
    content = content_of()._replace(buffers=(BufferContent((CpuPages(0, (bytes(100),)),)),))
    with pytest.raises(TracepointError, match="whole pages"):
        written(content)


def test_a_pipe_cannot_be_written():
    class Pipe(BytesIO):
        def seekable(self):
            return False

    with pytest.raises(TracepointError, match="pipe"):
        write_tracedat(Pipe(), content_of())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a trace.dat"),
        (b"\x7fELF" + bytes(100), "not a trace.dat"),
        (b"\x17\x08\x44tracing5\0\0\x08\0\x10\0\0", "version '5'"),
        (b"\x17\x08\x44tracing7\0\x02\x08\0\x10\0\0none\0\0" + bytes(8), "byte order"),
        (b"\x17\x08\x44tracing7\0\0\x03\0\x10\0\0none\0\0" + bytes(8), "size of a long"),
        (b"\x17\x08\x44tracing7\0\0\x08\0\x10\0\0none\0\0" + bytes(8), "never finished"),
        (b"\x17\x08\x44tracing7\0\0\x08\0\x10\0\0lzo\0\0" + bytes(8), "lzo"),
        (b"\x17\x08\x44tracing7\0\0\x08\0\x10\0\0none\0\0" + b"\xff" * 8, "out of the file"),
        (b"\x17\x08\x44tracing6\0\0\x08\0\x10\0\0", "offset 0x12"),
    ],
)
def test_files_that_cannot_be_begun(data, message):
    with pytest.raises(DecodeError, match=message):
        read_tracedat(data, "some.dat")


def test_empty_file(tmp_path):
    (tmp_path / "empty.dat").write_bytes(b"")
    with pytest.raises(DecodeError, match="empty"):
        open_tracedat(tmp_path / "empty.dat")


def options_at(data):
    name_end = data.index(b"\0", 18)
    return struct.unpack_from("<Q", data, data.index(b"\0", name_end + 1) + 1)[0]


def patched(data, at, code, *values):
    raw = bytearray(data)
    struct.pack_into(code, raw, at, *values)
    return bytes(raw)


def option_place(data, number, nth=0):
    """The offset of the data of an option in the (only) options section."""
    at = options_at(data)
    (size,) = struct.unpack_from("<Q", data, at + 8)
    at, end = at + 16, at + 16 + size
    while at < end:
        found, length = struct.unpack_from("<HI", data, at)
        if found == number:
            if not nth:
                return at + 6
            nth -= 1
        at += 6 + length
    raise AssertionError(f"no option {number}")


def test_a_size_beyond_the_end_of_a_file_says_that_it_may_be_cut_off(tmp_path):
    path = tmp_path / "cut.dat"
    path.write_bytes(written(content_of(), version=6)[:100])
    with pytest.raises(DecodeError, match=r"are left; the file may be cut off"):
        open_tracedat(path)


def test_option_chain_that_loops():
    data = written(content_of())
    raw = patched(data, option_place(data, OptionId.DONE), "<Q", options_at(data))
    trace = read_tracedat(raw)
    assert len(list(trace.buffers[0].records())) == 500
    assert [damage.reason for damage in trace.damage] == ["the chain of options never ends"]


def test_option_chain_that_leads_nowhere():
    data = written(content_of())
    for target in (len(data), len(data) - 4, 1 << 63, 32):
        raw = patched(data, option_place(data, OptionId.DONE), "<Q", target)
        trace = read_tracedat(raw)
        assert len(list(trace.buffers[0].records())) == 500
        assert len(trace.damage) == 1


def test_second_section_of_a_kind_is_left_out():
    content = content_of()
    other = Option(OptionId.KALLSYMS, struct.pack("<Q", 77))
    trace = read_tracedat(written(content._replace(options=(*content.options, other), kallsyms="1 T a\n")))
    assert trace.kallsyms == "1 T a\n"
    assert [damage.reason for damage in trace.damage] == ["a second section KALLSYMS was left out"]


def test_section_of_another_kind_is_damage_and_the_rest_is_read():
    data = written(content_of(kallsyms="1 T a\n"))
    place = struct.unpack_from("<Q", data, option_place(data, OptionId.HEADER_INFO))[0]
    trace = read_tracedat(patched(data, option_place(data, OptionId.KALLSYMS), "<Q", place))
    assert trace.kallsyms == ""
    assert trace.damage == (Damage(None, place, "KALLSYMS: section 16 where section 19 should be"),)
    assert len(list(trace.buffers[0].records())) == 500


def test_missing_header_page_is_damage_and_the_usual_layout_is_taken():
    data = written(content_of())
    place = struct.unpack_from("<Q", data, option_place(data, OptionId.HEADER_INFO))[0]
    trace = read_tracedat(patched(data, place + 16, "<4s", b"HEAD"))
    assert trace.layout == layout_of()
    assert len(list(trace.buffers[0].records())) == 500
    assert trace.damage


def test_data_over_other_data_is_left_out():
    """The same pages for every CPU would make a very long recording out of a short file."""
    data = written(content_of())
    place = option_place(data, OptionId.BUFFER) + 8 + 1 + 5 + 8
    first = struct.unpack_from("<IQQ", data, place)
    trace = read_tracedat(patched(data, place + 20, "<IQQ", 1, first[1] + 4096, first[2]))
    assert [cpu.cpu for cpu in trace.buffers[0].cpus] == [0]
    assert [damage.cpu for damage in trace.damage] == [1]


def test_data_behind_the_end_is_cut():
    data = written(content_of())
    place = option_place(data, OptionId.BUFFER) + 8 + 1 + 5 + 8
    cpu, offset, _ = struct.unpack_from("<IQQ", data, place + 20)
    trace = read_tracedat(patched(data, place + 20, "<IQQ", cpu, offset, 1 << 62))
    list(trace.buffers[0].records())
    assert {damage.cpu for damage in trace.damage} == {1}


@pytest.mark.parametrize("number", [8192, (1 << 31) - 1, 1 << 31, (1 << 32) - 1])
def test_a_cpu_that_no_kernel_has_is_that_of_its_place_in_the_list(number):
    data = written(content_of(n_records=20), 7)
    cpu = read_tracedat(data).buffers[0].cpus[1]
    at = data.index(struct.pack("<IQQ", 1, cpu.offset, cpu.size))
    whole, trace = Trace(read_tracedat(data)), Trace(read_tracedat(patched(data, at, "<I", number)))
    assert [*trace["tick"]] == [*whole["tick"]]
    assert (trace.lost, trace.n_records) == ({0: 0, 1: 0}, 20)
    assert [(damage.offset, damage.reason) for damage in trace.damage] == [
        (
            cpu.offset,
            f"the data of CPU {number}, more than a kernel has: taken for that of CPU 1, by its place in the list",
        )
    ]
    # The place of the other is taken.
    twice = Trace(read_tracedat(patched(patched(data, at, "<I", number), at - 20, "<I", 1)))
    assert twice.n_records == 10
    assert "more than a kernel has: left out" in twice.damage[0].reason


def test_a_number_of_cpus_that_no_kernel_has():
    data = written(content_of(n_records=20), 7)
    at = data.index(struct.pack("<HII", OptionId.CPUCOUNT, 4, 2)) + 6
    trace = read_tracedat(patched(data, at, "<I", 1 << 31))
    # Those that have data.
    assert trace.n_cpus == 2
    assert [damage.reason for damage in trace.damage] == ["option 8: 2147483648 CPUs, more than a kernel has"]


def test_number_of_cpus_that_the_option_cannot_hold():
    data = written(content_of())
    place = option_place(data, OptionId.BUFFER) + 8 + 1 + 5 + 4
    trace = read_tracedat(patched(data, place, "<I", 0xFFFFFFFF))
    assert trace.buffers == ()
    assert "4294967295 CPUs" in trace.damage[0].reason


@pytest.mark.parametrize("compression", [c for v, c in SHAPES if c != "none"])
def test_compressed_section_that_grows_too_much(compression):
    data = written(content_of(kallsyms="1 T a\n" * 1000), 7, compression)
    place = struct.unpack_from("<Q", data, option_place(data, OptionId.KALLSYMS))[0]
    for claimed in (MAX_SECTION + 1, 100, 7000):
        trace = read_tracedat(patched(data, place + 20, "<I", claimed))
        assert trace.kallsyms == ""
        assert len(trace.damage) == 1
        assert ("grows to" in trace.damage[0].reason) == (claimed > MAX_SECTION)


@pytest.mark.parametrize("compression", [c for v, c in SHAPES if c != "none"])
def test_damaged_chunk_leaves_the_other_cpu(compression):
    data = written(content_of(n_records=20000), 7, compression)
    trace = read_tracedat(data)
    place = trace.buffers[0].cpus[0].offset + 12 + 60
    hurt = read_tracedat(data[:place] + b"\xff" * 40 + data[place + 40 :])
    counts = [len(list(cpu.records())) for cpu in hurt.buffers[0].cpus]
    assert counts == [0, 10000]
    assert [damage.cpu for damage in hurt.damage] == [0]


@pytest.mark.parametrize("name", ["zlib", *(["zstd"] if has_zstd() else [])])
@given(data=st.binary(max_size=2000), noise=st.binary(max_size=200), claimed=st.integers(0, 3000))
@settings(max_examples=examples(60))
def test_codecs_give_what_was_asked_for_or_an_error(name, data, noise, claimed):
    _gives_what_was_asked_for(name, data, noise, claimed)


@pytest.mark.skipif(DECODE is None or not DECODE.zstd_version(), reason="no libzstd.so.1, or no C module")
@given(data=st.binary(max_size=2000), noise=st.binary(max_size=200), claimed=st.integers(0, 3000))
@settings(max_examples=examples(60))
def test_the_zstd_of_the_system_gives_what_was_asked_for_or_an_error(data, noise, claimed):
    with mock.patch("tracepoint.tracefile.compression.find_zstd_name", return_value=""):
        _gives_what_was_asked_for("zstd", data, noise, claimed)


@pytest.mark.skipif(not find_zstd_name(), reason="no library for zstd: pip install zstandard")
def test_without_a_c_module_the_library_compresses():
    with mock.patch("tracepoint.tracefile.compression.DECODE", None):
        _gives_what_was_asked_for("zstd", b"page" * 1000, b"", 0)


def test_without_any_library_zstd_says_what_to_install():
    with (
        mock.patch("tracepoint.tracefile.compression.DECODE", None),
        mock.patch("tracepoint.tracefile.compression.load_zstd", return_value=None),
    ):
        for find in (compressor_named, decompressor_named):
            with pytest.raises(TracepointError, match="pip install zstandard"):
                find("zstd")


def _gives_what_was_asked_for(name, data, noise, claimed):
    compress, expand = compressor_named(name).compress, decompressor_named(name).expand
    assert expand(compress(data), len(data)) == data
    if claimed != len(data):
        with pytest.raises(DecodeError):
            expand(compress(data), claimed)
    with suppress(DecodeError):
        assert len(expand(noise, claimed)) == claimed


def test_a_page_that_lies_is_damage_with_its_place():
    content = content_of()
    data = written(content)
    cpu = read_tracedat(data).buffers[0].cpus[1]
    trace = read_tracedat(patched(data, cpu.offset + 8, "<Q", 5000))
    n_records = len(list(trace.buffers[0].records()))
    assert 0 < n_records < 500
    assert trace.damage == (Damage(1, cpu.offset + 8, "a page claims 5000 bytes of data"),)


def test_pages_of_an_instance_may_be_larger():
    """From Linux 6.8 every instance has its own buffer_subbuf_size_kb."""
    layout = layout_of(page_size=8192)
    data = written(content_of())
    writer = PageWriter(layout)
    for n in range(600):
        writer.add(n, tick(n))
    pages = writer.pages()
    at = -len(data) % 4096 + len(data)
    section = struct.pack("<HHIQ", OptionId.BUFFER, 0, 0, len(pages))
    buffer = struct.pack("<Q", at) + b"big\0local\0" + struct.pack("<IIIQQ", 8192, 1, 0, at + 16, len(pages))
    more = b"".join(
        struct.pack("<HI", number, len(body)) + body
        for number, body in ((OptionId.BUFFER, buffer), (0, bytes(8)))
    )
    options = at + 16 + len(pages)
    raw = patched(data, option_place(data, OptionId.DONE), "<Q", options).ljust(at, b"\0")
    trace = read_tracedat(raw + section + pages + struct.pack("<HHIQ", 0, 0, 0, len(more)) + more)
    assert [len(list(b.records())) for b in trace.buffers] == [500, 600]
    assert trace.damage == ()


def test_instance_of_version_6_that_points_nowhere():
    content = content_of()
    lost = Option(OptionId.BUFFER, struct.pack("<Q", 1 << 40) + b"gone\0")
    trace = read_tracedat(written(content._replace(options=(*content.options, lost)), 6))
    assert [buffer.name for buffer in trace.buffers] == [""]
    assert "an instance" in trace.damage[0].reason


def test_format_that_is_none_is_damage():
    content = content_of()._replace(formats=(("demo", tick_format()), ("demo", "nonsense")))
    trace = read_tracedat(written(content))
    assert list(trace.events) == [400]
    assert "a format of demo" in trace.damage[0].reason


@pytest.mark.parametrize(("version", "compression"), SHAPES)
def test_cut_off_anywhere(version, compression):
    data = written(content_of(n_records=200), version, compression)
    for length in range(0, len(data), 37):
        with suppress(DecodeError):
            everything(data[:length])


@pytest.mark.parametrize(("version", "compression"), SHAPES)
@given(changes=st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), min_size=1, max_size=20))
@settings(max_examples=examples(150))
def test_changed_anywhere(version, compression, changes):
    raw = bytearray(_SAMPLES[version, compression])
    for place, value in changes:
        raw[place % len(raw)] = value
    with suppress(DecodeError):
        everything(bytes(raw))


def test_a_page_size_that_no_kernel_has():
    """The file's own page size counts where header_page cannot be read: here one of 2 GB."""
    raw = _SAMPLES[6, "none"].replace(b"u64 timestamp", b"u64 timestamq")
    head = raw.index(struct.pack("<I", 4096))
    huge = raw[:head] + struct.pack("<I", (1 << 31) + 4096) + raw[head + 4 :]
    with suppress(DecodeError):
        everything(huge)


_SAMPLES = {shape: written(content_of(n_records=60, instances=("i",)), *shape) for shape in SHAPES}


@given(
    st.lists(
        st.tuples(st.sampled_from(["sched", "irq", "ftrace"]), st.text(max_size=80)), max_size=8, unique=True
    ),
    st.text(max_size=200),
    st.text(max_size=200),
    st.lists(st.tuples(st.sampled_from([1, 2, 5, 6, 9, 10, 11, 999]), st.binary(max_size=40)), max_size=5),
    st.sampled_from(SHAPES),
    st.booleans(),
)
def test_descriptions_survive(formats, symbols, comms, options, shape, is_big_endian):
    content = content_of(is_big_endian, n_records=3)._replace(
        formats=tuple((s, t.encode("utf-8", "replace").decode()) for s, t in formats),
        kallsyms=symbols.encode("utf-8", "replace").decode(),
        saved_cmdlines=comms.encode("utf-8", "replace").decode(),
        options=(text_option(OptionId.TRACECLOCK, "[tai]"), *(Option(*option) for option in options)),
    )
    trace = read_tracedat(written(content, *shape))
    assert sorted(trace.formats) == sorted(content.formats)
    assert (trace.kallsyms, trace.saved_cmdlines) == (content.kallsyms, content.saved_cmdlines)
    assert [o for o in trace.options if o.id in {o.id for o in content.options}] == list(content.options)
