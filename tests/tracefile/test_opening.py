"""Opening recordings by their content: compressed ones, pipes, and what is none."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import threading

import pytest

import tracepoint as tp
from tracefile.making import content_of, written
from tracepoint.errors import DecodeError
from tracepoint.layout.zstd import load_zstd
from tracepoint.tracefile import filebytes
from tracepoint.tracefile.compression import has_zstd

PACKERS = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}
if has_zstd():
    PACKERS["zst"] = lambda data: load_zstd().compress(data, 3)


@pytest.mark.parametrize("end", PACKERS)
def test_compressed_files_are_opened_as_they_are(tmp_path, end):
    data = written(content_of(n_records=300))
    half = len(data) // 2
    for packed in (PACKERS[end](data), PACKERS[end](data[:half]) + PACKERS[end](data[half:])):
        # The content says what it is, not the name.
        path = tmp_path / "recording.txt"
        path.write_bytes(packed)
        with tp.open_trace(path) as trace:
            assert trace["tick"]["n"].tolist() == list(range(300))
            assert trace.damage == ()


@pytest.mark.parametrize("end", PACKERS)
def test_a_compressed_file_that_is_cut_off_gives_what_is_there(tmp_path, end):
    # Version 6, which has its pages at the end.
    data = written(content_of(n_records=30000), 6)
    path = tmp_path / "cut"
    half = len(data) // 2
    path.write_bytes(PACKERS[end](data[:half]) + PACKERS[end](data[half:])[:-40])
    with tp.open_trace(path) as trace:
        assert trace.n_records < 30000
        assert any("cut off" in damage.reason for damage in trace.damage)


def test_bombs_and_garbage_after_the_data(tmp_path, monkeypatch):
    path = tmp_path / "bomb"
    path.write_bytes(gzip.compress(b"".join(gzip.compress(bytes(1 << 20)) for _ in range(2))))
    with pytest.raises(DecodeError, match="trace_pipe_raw"):
        tp.open_trace(path)
    path.write_bytes(bz2.compress(bytes(1 << 20)))
    monkeypatch.setattr(filebytes, "_ALWAYS_ALLOWED", 0)
    with pytest.raises(DecodeError, match="thousandfold"):
        tp.open_trace(path)
    path.write_bytes(gzip.compress(written(content_of())) + b"rest")
    with tp.open_trace(path) as trace:
        assert [damage.reason for damage in trace.damage] == ["what follows the compressed data was left out"]
    path.write_bytes(gzip.compress(written(content_of())) + bytes(100))
    with tp.open_trace(path) as trace:
        assert trace.damage == ()


def test_a_pipe_is_read_to_its_end(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(written(content_of(n_records=30)),))
    writer.start()
    with tp.open_trace(path) as trace:
        assert trace.n_records == 30
    writer.join()


@pytest.mark.parametrize("data", [b"", b"\x7fELF" + bytes(100), b"\x1f\x8b", b"\x28\xb5\x2f\xfd" + bytes(9)])
def test_other_files_say_what_can_be_opened(tmp_path, data):
    path = tmp_path / "other"
    path.write_bytes(data)
    with pytest.raises(DecodeError, match=r"empty|cut off|trace_pipe_raw"):
        tp.open_trace(path)
    with pytest.raises(DecodeError, match="trace_pipe_raw"):
        tp.open_trace(tmp_path)


def test_a_device_is_refused():
    """/dev/zero has no end."""
    with pytest.raises(DecodeError, match="not a file, a folder or a pipe"):
        tp.open_trace("/dev/zero")
