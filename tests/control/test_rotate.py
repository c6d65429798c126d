"""Recordings of a made-up tracefs in several files: nothing lost or doubled where one ends and the next begins."""

from __future__ import annotations

import errno
import os
import re
import shutil
import struct
import subprocess
import threading
import time

import pytest

from control.test_flight import after
from control.test_record import LAYOUT, array, files, pages_of, records_of  # noqa: F401
from control.test_record_limits import fill_after
from tracepoint.cli.main import main
from tracepoint.control import part
from tracepoint.errors import TracepointError
from tracepoint.tracefile.opening import open_container
from tracepoint.tracefile.tracedat import open_tracedat

SIZE = LAYOUT.page_size


@pytest.fixture
def described(array, tmp_path):  # noqa: F811
    """The bytes of a file without records."""
    array.record(tmp_path / "none.dat", 0)
    (tmp_path / "none.dat").rename(tmp_path / "described")
    return (tmp_path / "described").stat().st_size


def numbers_of(paths) -> list[int]:
    return [number for path in paths for number in records_of(path)]


def per_cpu(paths, cpu: int) -> list[int]:
    """The numbers of one CPU's records, file after file."""
    found = []
    for path in paths:
        with open_tracedat(path) as trace:
            found += [
                struct.unpack_from("<I", r.data, 8)[0] for r in trace.buffers[0].records() if r.cpu == cpu
            ]
    return found


def emptied(files) -> None:  # noqa: F811
    deadline = time.monotonic() + 30
    while any(files.pages.values()) and time.monotonic() < deadline:
        time.sleep(0.005)


def test_files_of_a_size_have_each_record_once(array, files, tmp_path, described):  # noqa: F811
    files.pages = {0: pages_of(0, 9000), 1: pages_of(20_000, 700)}
    limit = described + 24 * SIZE
    told = array.record_files(tmp_path / "web.dat", max_bytes=limit, during=lambda: emptied(files))
    names = sorted(tmp_path.glob("web.*"))
    assert [path.name for path in names] == [f"web.{n:03}.dat" for n in range(1, len(names) + 1)]
    assert len(names) >= 2
    assert [saved.path for saved in told] == names
    assert max(path.stat().st_size for path in names) <= limit
    assert per_cpu(names, 0) == list(range(9000))
    assert per_cpu(names, 1) == list(range(20_000, 20_700))
    # A CPU with little to read has it in the file of the time when it came.
    assert per_cpu(names[:1], 1)
    assert sum(saved.n_records for saved in told) == 9700
    assert (array.is_on, files.n_open) == (True, 0)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_other_programs_read_each_file(array, files, tmp_path, described):  # noqa: F811
    if not shutil.which("trace-cmd"):
        pytest.skip("no trace-cmd: apt-get install trace-cmd")
    files.pages = {0: pages_of(0, 9000), 1: pages_of(20_000, 700)}
    told = array.record_files(tmp_path / "web.dat", 0, max_bytes=described + 24 * SIZE)
    for saved in told:
        command = ["trace-cmd", "report", "-i", str(saved.path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout.count(" softirq_entry: ") == saved.n_records


def test_what_is_left_at_the_end_fills_more_files(array, files, tmp_path, described):  # noqa: F811
    """The ring buffers may hold more than one file."""
    array.is_on = False
    files.pages = {0: [], 1: []}
    stop = threading.Event()

    def load() -> None:
        files.pages[0] += pages_of(0, 9000)

    told = array.record_files(tmp_path / "web.dat", max_bytes=described + 16 * SIZE, during=load)
    assert not stop.is_set()
    assert len(told) >= 2
    assert numbers_of([saved.path for saved in told]) == list(range(9000))


def test_only_the_newest_are_kept(array, files, tmp_path, described):  # noqa: F811
    files.pages = {0: pages_of(0, 20_000), 1: []}
    (tmp_path / "web.002.dat").write_bytes(b"old")
    told = array.record_files(
        tmp_path / "web.dat", max_bytes=described + 16 * SIZE, n_kept=2, during=lambda: emptied(files)
    )
    assert len(told) > 3
    assert (tmp_path / "web.002.dat").read_bytes() == b"old"
    kept = sorted(path for path in tmp_path.glob("web.*") if path.name != "web.002.dat")
    assert kept == [saved.path for saved in told[-2:]]
    n = sum(saved.n_records for saved in told[-2:])
    assert numbers_of(kept) == list(range(20_000 - n, 20_000))


def test_files_of_a_time(array, files, tmp_path):  # noqa: F811
    def load() -> None:
        for first in range(0, 500, 10):
            files.pages[1] += pages_of(30_000 + first, 10)
            time.sleep(0.02)

    began = time.monotonic()
    told = array.record_files(tmp_path / "web.dat", file_seconds=0.2, during=load)
    # Each but the last one lasted so long, however long all of it took.
    assert 3 <= len(told) <= 1 + (time.monotonic() - began) / 0.2
    names = [saved.path for saved in told]
    assert per_cpu(names, 0) == list(range(1000))
    assert per_cpu(names, 1) == [*range(1000, 1030), *range(30_000, 30_500)]
    assert all(saved.n_records for saved in told[:-1])


def test_the_time_of_the_first_file_begins_with_the_recording(array, files, tmp_path, monkeypatch):  # noqa: F811
    """On a busy machine what comes before takes longer than a file is to last."""
    prepare = part.RecordedPart.prepare

    def slowly(*args) -> None:
        time.sleep(0.8)
        prepare(*args)

    monkeypatch.setattr(part.RecordedPart, "prepare", slowly)

    def load() -> None:
        files.pages[0] += pages_of(0, 50)
        emptied(files)

    files.pages = {0: [], 1: []}
    told = array.record_files(tmp_path / "web.dat", file_seconds=0.6, during=load)
    assert told[0].n_records == 50


def test_losses_are_those_of_each_file(array, files, tmp_path):  # noqa: F811
    def load() -> None:
        for _ in range(8):
            files.overrun += 10
            time.sleep(0.05)

    told = array.record_files(tmp_path / "web.dat", file_seconds=0.1, during=load)
    assert sum(saved.overrun for saved in told) == 2 * 80
    assert sum(1 for saved in told if saved.overrun) >= 2


def test_what_a_kill_leaves_can_be_read(array, files, tmp_path, monkeypatch):  # noqa: F811
    """The folders as they are while the next file is recorded and the last one cannot be written yet."""
    write, may_write = part.write_tracedat, threading.Event()

    def late(*args, **options) -> None:
        may_write.wait(30)
        write(*args, **options)

    monkeypatch.setattr(part, "write_tracedat", late)
    found: list[int] = []
    first = [page for pages in files.pages.values() for page in pages]

    def load() -> None:
        emptied(files)
        time.sleep(0.8)
        files.pages[0] += pages_of(5000, 40)
        n_bytes = sum(map(len, [*first, *pages_of(5000, 40)]))
        after(lambda: sum(path.stat().st_size for path in tmp_path.glob(".web.dat.*/cpu*")) == n_bytes)
        for folder in sorted(tmp_path.glob(".web.dat.*"), key=lambda path: path.stat().st_ctime_ns):
            if any(path.stat().st_size for path in folder.glob("cpu*")):
                with open_container(folder) as trace:
                    assert trace.damage == ()
                    found.extend(struct.unpack_from("<I", r.data, 8)[0] for r in trace.buffers[0].records())
        may_write.set()

    array.record_files(tmp_path / "web.dat", file_seconds=0.2, during=load)
    assert sorted(found) == [*range(1030), *range(5000, 5040)]


def test_a_full_disk_ends_it_with_what_was_there(array, files, tmp_path, monkeypatch, described):  # noqa: F811
    files.pages = {0: pages_of(0, 9000), 1: []}
    fill_after(monkeypatch, 20)
    told = array.record_files(tmp_path / "web.dat", 60, max_bytes=described + 24 * SIZE)
    assert "No space left on device" in told[-1].problem
    assert [saved.problem for saved in told[:-1]] == [""] * (len(told) - 1)
    names = [saved.path for saved in told]
    assert per_cpu(names, 0) == list(range(sum(saved.n_records for saved in told)))


def test_a_file_that_cannot_be_written_ends_it(array, files, tmp_path, monkeypatch, described):  # noqa: F811
    write, left = part.write_tracedat, [1]

    def fails(*args, **options) -> None:
        if not left[0]:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        left[0] -= 1
        write(*args, **options)

    monkeypatch.setattr(part, "write_tracedat", fails)
    files.pages = {0: pages_of(0, 30_000), 1: []}
    with pytest.raises(TracepointError, match="Input/output error; 1 files were saved before"):
        array.record_files(tmp_path / "web.dat", 60, max_bytes=described + 24 * SIZE)
    assert records_of(tmp_path / "web.001.dat")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".web")] == []
    assert array.is_on


def test_the_command(files, tmp_path, capsys, described):  # noqa: F811
    files.pages = {0: pages_of(0, 9000), 1: []}
    words = ["record", "irq", "-o", str(tmp_path / "web.dat"), "--seconds", "0.5"]
    assert main([*words, "--rotate", "0", "--max-size", str(described + 24 * SIZE)]) == 0
    said = capsys.readouterr().err
    names = sorted(tmp_path.glob("web.*"))
    assert f"{names[0]}: " in said
    assert f"9000 records in {len(names)} files" in said
    assert set(files.arrays) == {"", "web"}
    files.pages[0] += pages_of(0, 9)
    words[-1] = "1.5"
    assert main([*words, "--rotate-time", "200ms", "--rotate", "1", "--force"]) == 0
    said = re.search(
        r"^9 records in ([2-9]) files; (\d) older files? removed$", capsys.readouterr().err, re.MULTILINE
    )
    assert int(said[1]) - int(said[2]) == 1
    assert len(list(tmp_path.glob("web.*"))) == 1


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], "--max-size or --rotate-time"),
        (["--max-size", "1M", "--py", "7"], "--py"),
        (["--rotate-time", "1m", "--flight", "1s"], "--flight"),
        (["--max-size", "1"], "at most 1 bytes"),
    ],
)
def test_what_it_refuses(files, tmp_path, capsys, more, said):  # noqa: F811
    assert main(["record", "irq", "-o", str(tmp_path / "web.dat"), "--rotate", "3", *more]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "options", [{}, {"file_seconds": 0}, {"file_seconds": float("nan")}, {"max_bytes": 10**6, "n_kept": -1}]
)
def test_a_wrong_rotation(array, tmp_path, options):  # noqa: F811
    with pytest.raises(TracepointError, match="file"):
        array.record_files(tmp_path / "web.dat", 0, **options)
