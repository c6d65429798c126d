"""Files that are read where bytes are asked for: descriptors, closed files, and files that become shorter."""

from __future__ import annotations

import lzma
import os
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import pytest

import tracepoint as tp
from tracepoint.errors import TracepointError
from tracepoint.tracefile.compression import has_zstd
from tracepoint.tracefile.filebytes import close_bytes, file_bytes, open_bytes, read_at
from tracepoint.tracefile.write import write_tracedat

GOLDEN = Path(__file__).parent / "golden"
FORMS = [(6, "none"), (7, "none"), (7, "zlib"), *([(7, "zstd")] if has_zstd() else [])]

# What is done with a recording that is open: by itself, so that none finds what another has read already.
USES = """
import os, sys
import tracepoint as tp
from tracepoint.decode.summary import outline_buffer, summarize_buffer
from tracepoint.tracefile.write import write_tracedat
from io import BytesIO

USES = {
    "formats": lambda t: t.file.formats,
    "tables": lambda t: {name: len(table) for name, table in t.tables().items()},
    "one table": lambda t: len(t["sched_switch"]),
    "window": lambda t: len(t.between(*t.span)["sched_switch"]),
    "filter": lambda t: len(t.where("common_pid > 0")["sched_switch"]),
    "records": lambda t: [record.text for record in t.records()],
    "text": lambda t: t.record_table().to_dicts(),
    "summary": lambda t: t.buffer and summarize_buffer(t.file, t.buffer),
    "outline": lambda t: t.buffer and outline_buffer(t.buffer),
    "losses": lambda t: t.lost,
    "stacks": lambda t: len(t.with_stacks("sched_switch")),
    "kallsyms": lambda t: t.kallsyms,
    "texts": lambda t: (t.file.saved_cmdlines, t.file.printk_formats),
    "content": lambda t: write_tracedat(BytesIO(), t.file.content(), 6, "none"),
}
path, whole = sys.argv[1], open(sys.argv[1], "rb").read()
for n in [int(word) for word in sys.argv[2:]]:
    for over in (b"", bytes([255]) * 512):
        for name, use in USES.items():
            with open(path, "wb") as file:
                file.write(whole)
            with tp.open_trace(path) as trace:
                os.truncate(path, n)
                with open(path, "r+b") as file:
                    file.write(over)
                try:
                    use(trace)
                except (tp.TracepointError, KeyError) as error:
                    print("error", name, n, error)
                else:
                    print("damage" if trace.damage else "read", name, n)
"""


def _open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize("is_closed", [True, False])
def test_descriptors_are_given_back(tmp_path: Path, is_closed: bool) -> None:
    (tmp_path / "x").write_bytes(b"0123456789")
    n_before = _open_files()
    for _ in range(20):
        data = open_bytes(tmp_path / "x", print)
        assert read_at(data, 2, 5) == b"234"
        assert read_at(data, 8, 50) == b"89"
        assert read_at(data, 50, 60) == b""
        if is_closed:
            close_bytes(data)
            with pytest.raises(TracepointError, match="closed"):
                read_at(data, 0, 1)
        del data
    assert _open_files() == n_before


def test_bytes_of_other_kinds_are_read_in_the_same_way(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with (tmp_path / "empty").open("rb") as file:
        assert read_at(file_bytes(file), 0, 4) == b""
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


@pytest.mark.parametrize(("version", "compression"), FORMS)
def test_whatever_is_read_of_a_file_that_became_shorter_the_process_goes_on(
    tmp_path: Path, version: int, compression: str
) -> None:
    path, made = tmp_path / "cut.dat", BytesIO()
    with tp.open_trace(GOLDEN / "cut.v6.dat") as trace:
        write_tracedat(made, trace.file.content(), version, compression)
    path.write_bytes(made.getvalue())
    sizes = [0, 5000, len(made.getvalue()) // 2, len(made.getvalue()) - 4097]
    command = [sys.executable, "-c", USES, str(path), *map(str, sizes)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.returncode, done.stdout[-500:], done.stderr[-2000:])
    said = done.stdout.splitlines()
    # Nothing is left of the pages, and nobody can count them without being told so.
    for name in ("tables", "summary", "records"):
        of_name = [line for line in said if f" {name} 0" in line]
        assert of_name
        assert not [line for line in of_name if line.startswith("read")], of_name
    assert "shorter while it was read" in done.stdout


@pytest.mark.programs
def test_a_python_that_was_built_without_xz_reads_the_rest_and_says_so(tmp_path: Path) -> None:
    golden = GOLDEN / "cut.v6.dat"
    (tmp_path / "packed.xz").write_bytes(lzma.compress(golden.read_bytes()))
    code = """
import sys
sys.modules["_lzma"] = sys.modules["_bz2"] = None
from tracepoint.cli.main import main
status = [main(["stat", "-q", path]) for path in sys.argv[1:]]
sys.exit("".join(map(str, status)))
"""
    command = [sys.executable, "-c", code, golden, tmp_path / "packed.xz"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "sched_switch" in done.stdout
    assert "it is compressed with xz, and this Python was built without that" in done.stderr
    assert done.stderr.splitlines()[-1] == "02"
