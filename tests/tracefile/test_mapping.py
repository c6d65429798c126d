"""Mapped files that are read by blocks: descriptors, closed files, and files that become shorter."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import tracepoint as tp
from tracepoint.tracefile.mapping import map_file, map_whole, read_at, unmap

GOLDEN = Path(__file__).parent / "golden"


def _open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize("is_closed", [True, False])
def test_descriptors_are_given_back(tmp_path: Path, is_closed: bool) -> None:
    (tmp_path / "x").write_bytes(b"0123456789")
    n_before = _open_files()
    for _ in range(20):
        data = map_file(tmp_path / "x", print)
        assert read_at(data, 2, 5) == b"234"
        assert read_at(data, 8, 50) == b"89"
        assert read_at(data, 50, 60) == b""
        if is_closed:
            unmap(data)
            with pytest.raises(ValueError, match="closed"):
                read_at(data, 0, 1)
        del data
    assert _open_files() == n_before


def test_bytes_of_other_kinds_are_read_in_the_same_way(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with (tmp_path / "empty").open("rb") as file:
        assert read_at(map_whole(file), 0, 4) == b""
    assert read_at(memoryview(b"0123"), 1, 3) == b"12"


def test_a_file_that_becomes_shorter_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "cut.dat"
    path.write_bytes((GOLDEN / "cut.v6.dat").read_bytes())
    with tp.open_trace(path) as trace:
        n_records = trace.n_records
    with tp.open_trace(path) as trace:
        assert trace.buffer is not None
        last = max(trace.buffer.cpus, key=lambda cpu: cpu.offset)
        os.truncate(path, last.offset + last.size // 2)
        assert 0 < trace.n_records < n_records
        reasons = [damage.reason for damage in trace.damage]
    assert any("shorter while it was read" in reason for reason in reasons), reasons
