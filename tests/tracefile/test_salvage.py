"""Version 7 that was cut off, or with damaged options: what is there is read, what is missing is reported."""

import struct

import pytest

from tracefile.making import content_of, written
from tracepoint.cli.main import main
from tracepoint.decode.trace import Trace
from tracepoint.errors import DecodeError
from tracepoint.tracefile.head import read_head
from tracepoint.tracefile.options import OptionId
from tracepoint.tracefile.salvage import find_chunked, walk_sections
from tracepoint.tracefile.tracedat import read_tracedat


def rows(data):
    """Each record as its CPU, its time and its bytes."""
    return {
        (record.cpu, record.timestamp, record.data)
        for buffer in read_tracedat(data).buffers
        for record in buffer.records()
    }


def cut_at(data, at):
    """Return what is read of a file up to an offset, and why not all of it is."""
    trace = read_tracedat(data[:at])
    found = {(r.cpu, r.timestamp, r.data) for buffer in trace.buffers for r in buffer.records()}
    return found, [damage.reason for damage in trace.damage]


@pytest.mark.parametrize("compression", ["zlib", "zstd"])
@pytest.mark.parametrize("is_big_endian", [False, True])
def test_what_stands_before_the_cut_is_read(compression, is_big_endian):
    if compression == "zstd":
        pytest.importorskip("zstandard", reason="no zstd: pip install 'tracepoint[zstd]'")
    data = written(content_of(is_big_endian, n_records=3000, n_cpus=3), compression=compression)
    whole, head = rows(data), read_head(data)
    (buffer,) = (s for s in walk_sections(data, head) if s.id == OptionId.BUFFER)
    places = list(find_chunked(data, buffer, head, 9))
    assert len(whole) == 3000
    for at in (buffer.stop, buffer.stop + 7, places[-1][0] + places[-1][1]):
        found, reasons = cut_at(data, at)
        assert found == whole
        assert any("numbers from 0 on for the data of 3 CPUs" in reason for reason in reasons)
    numbers = []
    for at, size in places:
        found, reasons = cut_at(data, at + size - 1)
        assert found < whole
        assert reasons
        numbers.append(len(found))
    assert numbers == sorted(numbers)
    assert numbers[-1] >= 2000


def test_every_cut_is_an_error_or_damage():
    data = written(content_of(n_records=900), compression="zlib")
    whole = rows(data)
    for at in range(0, len(data), 53):
        try:
            found, reasons = cut_at(data, at)
        except DecodeError:
            continue
        assert found <= whole
        assert reasons or found == whole, at


def test_a_chain_that_leads_astray_is_not_needed():
    data = bytearray(written(content_of(n_records=100), compression="zlib"))
    head = read_head(bytes(data))
    struct.pack_into("<Q", data, head.end - 8, len(data) + 5)
    trace = read_tracedat(bytes(data))
    assert rows(bytes(data)) == rows(written(content_of(n_records=100), compression="zlib"))
    assert (trace.n_cpus, Trace(trace).clock) == (2, "mono")
    assert len(trace.damage) == 1


def test_plain_pages_without_their_list_are_damage(tmp_path, capsys):
    data = written(content_of(n_records=100))
    head = read_head(data)
    cut = tmp_path / "cut.dat"
    cut.write_bytes(data[: next(s for s in walk_sections(data, head) if s.id == OptionId.BUFFER).stop])
    trace = read_tracedat(cut.read_bytes())
    assert not trace.buffers
    assert any("do not say of which CPU" in damage.reason for damage in trace.damage)
    assert main(["stat", str(cut)]) == 2
    assert "do not say of which CPU" in capsys.readouterr().err


@pytest.mark.parametrize("number", [0, 1, 3000])
def test_sections_that_never_end_are_looked_at_in_time(number):
    data = written(content_of(n_records=10), compression="zlib")
    head = read_head(data)
    section = struct.pack("<HHIQ", OptionId.STRINGS, 0, 0, 0)
    assert len(list(walk_sections(data[: head.end] + section * number, head))) == min(number, 1024)


def test_data_of_nothing_is_no_more_than_the_most_cpus():
    data = written(content_of(n_records=10), compression="zlib")
    head = read_head(data)
    zeros = data[: head.end] + struct.pack("<HHIQ", OptionId.BUFFER, 1, 0, 1 << 60) + bytes(1 << 20)
    (section,) = list(walk_sections(zeros, head))[:1]
    assert len(list(find_chunked(zeros, section, head, 5))) == 5
    assert len(list(find_chunked(zeros, section, head, 8192))) <= 1 << 8
