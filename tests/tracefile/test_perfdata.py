"""perf.data: samples as records, in both modes and byte orders; `perf script` is the judge of the files."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

import tracepoint as tp
from tracefile.making import GOLDEN, content_of, written
from tracefile.perfmaking import SAMPLE_TYPE, PerfMaker
from tracepoint.errors import DecodeError
from tracepoint.tracefile.perfrecords import RecordType, Sample
from tracepoint.tracefile.tracedat import open_tracedat, read_tracedat


@pytest.fixture(name="golden", scope="module")
def golden_file():
    with open_tracedat(GOLDEN / "cut.v6.dat") as trace:
        yield trace


def values(trace, *, but=()):
    """Every value of every event but the tracer's own, whose formats perf does not save."""
    return {
        name: [{k: v for k, v in row.items() if k not in but} for row in table.to_dicts()]
        for name, table in trace.tables().items()
        if not name.startswith("ftrace:")
    }


def opened(tmp_path, data):
    path = tmp_path / "recording"
    path.write_bytes(data)
    return tp.open_trace(path)


def expected_of(tmp_path):
    with tp.open_trace(GOLDEN / "cut.v6.dat") as trace:
        return values(trace)


@pytest.mark.parametrize("mode", ["file", "pipe"])
def test_samples_are_the_records(tmp_path, golden, mode):
    maker = PerfMaker(golden)
    with opened(tmp_path, getattr(maker, mode)()) as trace:
        assert values(trace) == expected_of(tmp_path)
        assert trace.n_records == len(maker.records)
        assert trace.clock == "perf"
        assert all("unknown:" in damage.reason for damage in trace.damage)
        assert set(golden.saved_cmdlines.splitlines()) <= set(trace.file.saved_cmdlines.splitlines())


@pytest.mark.parametrize("is_big_endian", [False, True])
@pytest.mark.parametrize("mode", ["file", "pipe"])
@pytest.mark.parametrize("long_size", [4, 8])
def test_byte_orders_and_word_sizes(tmp_path, is_big_endian, long_size, mode):
    recorded = read_tracedat(written(content_of(is_big_endian, long_size, n_records=300)))
    sample_type = SAMPLE_TYPE & ~Sample.IDENTIFIER | Sample.ID | Sample.READ | Sample.CALLCHAIN | Sample.ADDR
    with opened(tmp_path, getattr(PerfMaker(recorded, sample_type), mode)()) as trace:
        assert trace["demo:tick"]["n"].tolist() == list(range(300))
        assert trace["demo:tick"]["common_cpu"].tolist() == [0, 1] * 150
        assert (trace.damage, trace.lost) == ((), {0: 0, 1: 0})


def test_compressed_records_and_losses(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    recorded = read_tracedat(written(content_of(n_records=300)))
    maker = PerfMaker(recorded)
    stream = zstandard.ZstdCompressor().compressobj()

    def compress(data):
        return stream.compress(data) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)

    records = maker.compressed(maker.data(lost_at=101), compress)
    with opened(tmp_path, maker.file(records)) as trace:
        assert trace["tick"]["n"].tolist() == list(range(300))
        assert trace.lost == {0: 0, 1: 9}
        assert trace.damage == ()


def test_other_samples_and_damage_are_said(tmp_path):
    recorded = read_tracedat(written(content_of(n_records=20)))
    maker = PerfMaker(recorded)
    data = maker.file([*maker.data(), maker.record(RecordType.SAMPLE, bytes(16)), b"\0" * 8, *maker.data()])
    with opened(tmp_path, data) as trace:
        assert trace["tick"]["n"].tolist() == list(range(20))
        reasons = [damage.reason for damage in trace.damage]
        assert any("a record of 0 bytes" in reason for reason in reasons), reasons
        assert any("damaged records" in reason for reason in reasons), reasons
    # A recorder that was ended has not written the size of its data, nor formats.
    unfinished = bytearray(maker.file())
    unfinished[48:56] = bytes(8)
    with opened(tmp_path, unfinished) as trace:
        assert trace.n_records == 20
        assert any("never finished" in damage.reason for damage in trace.damage)
    with pytest.raises(DecodeError):
        opened(tmp_path, b"PERFILE2" + bytes(100))


def test_a_recording_without_tracepoints_says_so(tmp_path):
    maker = PerfMaker(read_tracedat(written(content_of(n_records=20))))
    # The type of each event: hardware instead of tracepoint.
    data = maker.pipe().replace(maker.attr(maker.ids[0]), bytes(4) + maker.attr(maker.ids[0])[4:])
    with opened(tmp_path, data) as trace:
        assert trace.events == {}
        assert [damage.reason for damage in trace.damage] == [
            "20 samples of other events than tracepoints were left out"
        ]


@pytest.mark.parametrize("step", [1, 7])
def test_a_file_cut_off_anywhere_gives_what_is_there(tmp_path, step):
    recorded = read_tracedat(written(content_of(n_records=6)))
    data = PerfMaker(recorded).file()
    for end in range(8, len(data), 40 * step):
        try:
            with opened(tmp_path, data[:end]) as trace:
                assert trace.n_records <= 6
                assert trace.tables() is not None
        except DecodeError:
            assert end < 104


@pytest.mark.oracle
@pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not installed")
@pytest.mark.parametrize("mode", ["file", "pipe"])
def test_perf_script_shows_the_same_samples(tmp_path, golden, mode):
    maker = PerfMaker(golden)
    with opened(tmp_path, getattr(maker, mode)()) as trace:
        rows = [
            (row["common_cpu"], row["common_timestamp"], name)
            for name, found in values(trace).items()
            for row in found
        ]
    # As a file of another owner is refused without -f.
    command = ["perf", "script", "-f", "--ns", "-F", "cpu,time,event", "-i", str(tmp_path / "recording")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = re.finditer(r"^\[(\d+)\]\s+(\d+)\.(\d{9}):\s+([\w:-]+?):?\s*$", done.stdout, re.MULTILINE)
    shown = [(int(m[1]), int(m[2]) * 10**9 + int(m[3]), m[4]) for m in lines]
    assert len(shown) == len(maker.records), done.stdout[:500] + done.stderr
    assert sorted(row[:2] for row in shown) == sorted((r.cpu, r.timestamp) for r in maker.records)
    known = {row for row in shown if ":" in row[2] and not row[2].startswith("ftrace")}
    assert set(rows) & known


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [(6, 1, "a record of"), (0, 200, "1 records of a kind that perf does not have"), (0, 0, "of a kind")],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_damaged_head_of_a_record_is_damage(tmp_path, place, value, reason, packed):
    """A size that is no multiple of a word, and a kind that is none, do not lose records silently."""
    maker = PerfMaker(read_tracedat(written(content_of(n_records=20))))
    records = maker.data()
    broken = bytearray(records[7])
    broken[place] = broken[place] + value if place else value
    records[7] = bytes(broken)
    if packed:
        zstandard = pytest.importorskip("zstandard")
        stream = zstandard.ZstdCompressor().compressobj()
        records = maker.compressed(
            records, lambda data: stream.compress(data) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        )
    with opened(tmp_path, maker.file(records)) as trace:
        assert trace.n_records < 20
        assert any(reason in damage.reason for damage in trace.damage) or (
            packed and any("compressed record" in damage.reason for damage in trace.damage)
        )
