"""Judged by others: recorded data, the kernel's text of it, trace-cmd, KernelShark's library."""

import re
import shutil
import subprocess
from dataclasses import replace

import pytest

from oracles import data_file, unpacked, without_mounts
from tracefile import kernelshark
from tracefile.making import GOLDEN, HASHED, KNOWN, content_of, drained, tgids_in, written
from tracepoint.printk.facts import read_printk_formats
from tracepoint.printk.kallsyms import Kallsyms
from tracepoint.record.layout import read_page_layout
from tracepoint.tracefile.buffers import TraceBuffer
from tracepoint.tracefile.compression import has_zstd
from tracepoint.tracefile.cpudata import CpuData
from tracepoint.tracefile.recording import read_pairs, read_tgids
from tracepoint.tracefile.text import TextWriter, facts_of
from tracepoint.tracefile.textoptions import TextOptions
from tracepoint.tracefile.tracedat import open_tracedat, read_tracedat
from tracepoint.tracefile.write import write_tracedat

pytestmark = pytest.mark.oracle
needs_zstd = pytest.mark.skipif(not has_zstd(), reason="no library for zstd: pip install zstandard")
kshark = kernelshark.kshark
SHAPES = [(6, "none"), (7, "none")] + ([(7, "zstd")] if has_zstd() else [])


def text_of(name):
    return unpacked(name).decode("utf-8", "surrogateescape")


@pytest.fixture
def small():
    return read_tracedat(unpacked("small.v6.dat.zst"), "small.v6.dat")


def trace_cmd(*arguments):
    program = shutil.which("trace-cmd")
    if program is None:
        pytest.skip("no trace-cmd: apt-get install trace-cmd")
    command = without_mounts(program, *map(str, arguments))
    done = subprocess.run(command, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done


def report(path, *arguments):
    done = trace_cmd("report", "-i", path, *arguments)
    return done.stdout.decode("utf-8", "surrogateescape"), done.stderr


# The recorded data.


def entries(stats):
    return int(re.search(r"^entries: (\d+)", stats, re.MULTILINE)[1])


def test_small_recording_of_version_6(small):
    found = re.findall(r"^entries: (\d+)", data_file("small.stats").read_text(), re.MULTILINE)
    counts = [sum(1 for _ in cpu.records()) for cpu in small.buffers[0].cpus]
    assert counts == [int(number) for number in found] == [14710, 16081]
    assert len(small.events) == len(small.formats) == 1336
    places = [(cpu.offset, cpu.size) for cpu in small.buffers[0].cpus]
    assert places[0][0] + places[0][1] == places[1][0]
    assert sum(places[1]) == len(unpacked("small.v6.dat.zst"))
    drained(small)
    assert small.damage == ()


@needs_zstd
def test_small_recording_of_version_7_is_the_same(small):
    trace = open_tracedat(data_file("small.v7.zstd.dat"))
    assert drained(trace) == drained(small)
    assert len(trace.events) == 1336
    assert trace.damage == ()


@needs_zstd
def test_large_recording():
    trace = open_tracedat(data_file("big.v7.zstd.dat"))
    n_records, kinds = 0, set()
    size = 0
    switches = (319).to_bytes(2, "little")
    n_switches = 0
    for cpu in trace.buffers[0].cpus:
        for block, pages in cpu.pages():
            n_records += len(pages.stamps)
            size += trace.page_size * len(pages.heads)
            found = [block[at : at + 2] for at in pages.offsets]
            kinds.update(found)
            n_switches += found.count(switches)
    assert (n_records, len(kinds), n_switches, size) == (7_427_422, 17, 659_308, 372_658_176)
    assert len(trace.buffers[0].cpus) == 4
    assert trace.damage == ()


def raw_buffer():
    folder = data_file("raw")
    layout = read_page_layout((folder / "header_page").read_text())
    cpus = []
    for number in range(4):
        data = (folder / f"cpu{number}.pipe_raw").read_bytes()
        cpus.append(CpuData(number, 0, len(data), layout, data))
    return folder, TraceBuffer("", "global", tuple(cpus))


def test_raw_pages_hold_what_the_kernel_counted():
    folder, buffer = raw_buffer()
    for cpu in buffer.cpus:
        pages = [head for _, found in cpu.pages() for head in found.heads]
        expected = entries((folder / f"cpu{cpu.cpu}.stats").read_text())
        assert sum(page.n_records for page in pages) == expected
        assert not any(page.fault or page.lost for page in pages)


def test_text_of_the_small_recording_is_the_kernels(small):
    expected = text_of("small.trace.txt.zst")
    options = TextOptions(clock=small.clock, record_tgid=True)
    writer = TextWriter(small.events, facts_of(small, KNOWN), options, tgids_in(expected))
    text = writer.header(30791, 30791, 2) + "".join(writer.lines(small.buffers[0].records()))
    assert HASHED.sub("P", text) == HASHED.sub("P", expected)
    assert writer.notes == {}


def test_text_of_raw_pages_is_the_kernels(small):
    folder, buffer = raw_buffer()
    expected = text_of("raw/trace.txt.zst")
    # Symbols are those of another boot, which put the kernel elsewhere.
    moved = 0x10600000

    def shift(match):
        return f"{int(match[0], 16) - moved:016x}"

    symbols = re.sub(r"^ffffffff[89ab][0-9a-f]{7}", shift, text_of("kallsyms.zst"), flags=re.MULTILINE)
    facts = replace(
        facts_of(small, KNOWN),
        kallsyms=Kallsyms(symbols),
        comms=read_pairs((folder / "saved_cmdlines").read_text()),
        printk_formats=read_printk_formats((folder / "printk_formats").read_text()),
    )
    tgids = read_tgids((folder / "saved_tgids").read_text())
    writer = TextWriter(small.events, facts, TextOptions(clock="global", record_tgid=True), tgids)
    text = writer.header(45638, 45638, 4) + "".join(writer.lines(buffer.records()))
    assert HASHED.sub("P", text) == HASHED.sub("P", expected)
    assert writer.notes == {}


# trace-cmd.


@pytest.mark.parametrize(("version", "compression"), SHAPES)
def test_trace_cmd_reads_what_we_write_as_the_original(tmp_path, version, compression):
    original = GOLDEN / "cut.v6.dat"
    path = tmp_path / "ours.dat"
    path.write_bytes(written(open_tracedat(original).content(), version, compression))
    expected, complaints = report(original)
    assert expected.count("\n") > 400
    assert report(path) == (expected, complaints)
    assert b"is a valid trace-cmd file" in trace_cmd("dump", "--validate", "-i", path).stdout


@pytest.mark.parametrize(("version", "compression"), SHAPES)
def test_trace_cmd_reads_the_whole_small_recording(tmp_path, small, version, compression):
    original, path = tmp_path / "original.dat", tmp_path / "ours.dat"
    original.write_bytes(unpacked("small.v6.dat.zst"))
    with path.open("wb") as file:
        write_tracedat(file, small.content(), version, compression)
    assert report(path) == report(original)


@pytest.mark.parametrize(("version", "compression"), SHAPES)
def test_trace_cmd_converts_what_we_write(tmp_path, version, compression):
    trace = open_tracedat(GOLDEN / "cut.v6.dat")
    ours, back = tmp_path / "ours.dat", tmp_path / "back.dat"
    ours.write_bytes(written(trace.content(), version, compression))
    for number in ("6", "7"):
        trace_cmd("convert", "--file-version", number, "--compression", "none", "-i", ours, "-o", back)
        again = open_tracedat(back)
        assert again.version == int(number)
        assert drained(again)[1:3] == drained(trace)[1:3]
        assert [list(b.records()) for b in again.buffers] == [list(b.records()) for b in trace.buffers]
        assert again.damage == ()


@pytest.mark.parametrize(("version", "compression"), SHAPES)
@pytest.mark.parametrize("is_big_endian", [False, True])
@pytest.mark.parametrize("long_size", [4, 8])
def test_trace_cmd_reads_every_byte_order_and_word(tmp_path, version, compression, is_big_endian, long_size):
    path = tmp_path / "ours.dat"
    path.write_bytes(written(content_of(is_big_endian, long_size), version, compression))
    text, complaints = report(path)
    assert complaints == b""
    lines = [line for line in text.split("\n") if "tick:" in line]
    assert [re.search(r"n=(\d+) name=a$", line)[1] for line in lines] == [str(n) for n in range(500)]
    assert all("worker-7" in line for line in lines)


@pytest.mark.parametrize(("version", "compression"), SHAPES)
def test_trace_cmd_reads_instances(tmp_path, version, compression):
    path = tmp_path / "ours.dat"
    path.write_bytes(written(content_of(instances=("one", "two"), n_records=300), version, compression))
    text, complaints = report(path)
    assert complaints == b""
    assert text.count("tick:") == 900
    assert "one:" in text
    assert "two:" in text


def test_trace_cmd_shows_our_times_and_offset(tmp_path):
    """The clock decides whether trace-cmd takes the numbers for ns."""
    path = tmp_path / "ours.dat"
    path.write_bytes(written(content_of(n_records=3)))
    assert [f"1.00000{n}:" in line for n, line in enumerate(report(path)[0].split("\n")[1:4])] == [True] * 3


# KernelShark.


@pytest.mark.parametrize(("version", "compression"), SHAPES)
def test_kernelshark_reads_what_we_write_as_the_original(tmp_path, kshark, version, compression):
    path = tmp_path / "ours.dat"
    path.write_bytes(written(open_tracedat(GOLDEN / "cut.v6.dat").content(), version, compression))
    expected = kshark(GOLDEN / "cut.v6.dat")
    assert len(expected) == 400
    assert kshark(path) == expected


@pytest.mark.parametrize(("version", "compression"), SHAPES)
def test_kernelshark_sees_our_own_events(tmp_path, kshark, version, compression):
    path = tmp_path / "ours.dat"
    path.write_bytes(written(content_of(n_records=3), version, compression))
    assert kshark(path) == [f"{n % 2} 7 {10**9 + 1000 * n} demo/tick n={n} name=a" for n in range(3)]
