"""How recordings of a made-up tracefs end: limits, full disks, signals, and a process that is killed."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from control.test_flight import after
from control.test_record import LAYOUT, RecordedFake, add_addresses, array, files, pages_of, records_of  # noqa: F401
from oracles import ROOT
from tracepoint.cli.kernel.ending import EndingSignals
from tracepoint.cli.main import main
from tracepoint.cli.output import Output, StatusLine
from tracepoint.control import drain
from tracepoint.control.part import RESERVED_BYTES
from tracepoint.control.reader import CpuReader
from tracepoint.control.status import RecordStatus
from tracepoint.errors import TracepointError
from tracepoint.record.layout import PageLayout
from tracepoint.tracefile.opening import open_container
from tracepoint.tracefile.tracedat import open_tracedat

SIZE = LAYOUT.page_size


@pytest.mark.parametrize("compression", ["none", "zlib", "zstd"])
def test_a_recording_may_be_compressed(array, tmp_path, compression):  # noqa: F811
    if compression == "zstd":
        pytest.importorskip("zstandard" if sys.version_info < (3, 14) else "compression.zstd")
    target = tmp_path / "web.dat"
    array.record(target, 0, compression=compression)
    assert records_of(target) == list(range(1030))
    # Debian's is built without zlib.
    if shutil.which("trace-cmd") and compression != "zlib":
        done = subprocess.run(
            ["trace-cmd", "report", "-i", target], capture_output=True, text=True, check=True
        )
        assert done.stdout.count(" softirq_entry: ") == 1030
    with pytest.raises(TracepointError, match="lzma"):
        array.record(tmp_path / "other.dat", 0, compression="lzma")


def test_it_ends_at_a_size(array, files, tmp_path):  # noqa: F811
    array.record(tmp_path / "none.dat", 0)
    described = (tmp_path / "none.dat").stat().st_size
    files.pages = {0: pages_of(0, 4000), 1: []}
    told = array.record(tmp_path / "web.dat", 60, max_bytes=described + 12 * SIZE)
    assert 3 <= told.cpus[0].n_pages <= 12
    assert (tmp_path / "web.dat").stat().st_size <= described + 12 * SIZE
    assert records_of(tmp_path / "web.dat") == list(range(told.n_records))
    assert told.problem == ""
    for wrong in (0, 100):
        with pytest.raises(TracepointError, match=f"at most {wrong} bytes"):
            array.record(tmp_path / "small.dat", 0, max_bytes=wrong)
    assert not (tmp_path / "small.dat").exists()


def fill_after(monkeypatch, n: int) -> None:
    """Let the disk be full when `n` pages are written."""
    write, left = os.write, [n]

    def limited(handle: int, data: bytes) -> int:
        if len(data) == SIZE:
            if not left[0]:
                raise OSError(errno.ENOSPC, "No space left on device")
            left[0] -= 1
        return write(handle, data)

    monkeypatch.setattr(drain.os, "write", limited)


def test_a_full_disk_leaves_what_was_recorded_until_then(array, files, tmp_path, monkeypatch):  # noqa: F811
    files.pages = {0: pages_of(0, 2000), 1: []}
    fill_after(monkeypatch, 4)
    told = array.record(tmp_path / "web.dat", 60)
    assert told.problem == "No space left on device; 1 pages of records were lost with that"
    assert told.cpus[0].n_pages == 4
    assert records_of(tmp_path / "web.dat") == list(range(told.n_records))
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".web")] == []
    assert (array.is_on, files.n_open) == (True, 0)


def test_the_command_says_that_the_disk_is_full(files, tmp_path, capsys, monkeypatch):  # noqa: F811
    files.pages = {0: pages_of(0, 2000), 1: []}
    fill_after(monkeypatch, 4)
    assert main(["record", "irq", "-o", str(tmp_path / "web.dat"), "--seconds", "60"]) == 3
    said = capsys.readouterr().err
    assert "error: " in said
    assert "No space left on device" in said
    assert set(files.arrays) == {""}
    with open_tracedat(tmp_path / "web.dat") as trace:
        assert trace.damage == ()


def test_a_disk_without_space_for_the_description(array, files, tmp_path, monkeypatch):  # noqa: F811
    def full(*_) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tracepoint.control.part.os.posix_fallocate", full)
    (tmp_path / "out").mkdir()
    with pytest.raises(TracepointError, match="No space left on device; nothing was saved"):
        array.record(tmp_path / "out/web.dat", 0)
    assert files.pages[0], "nothing may be consumed"
    assert list((tmp_path / "out").iterdir()) == []


def test_what_a_killed_recording_leaves_can_be_read(array, files, tmp_path):  # noqa: F811
    """The folder as it is in the middle of a recording."""
    copies = tmp_path / "copy"

    def copy() -> None:
        deadline = time.monotonic() + 30
        while any(files.pages.values()) and time.monotonic() < deadline:
            time.sleep(0.01)
        folder = next(path for path in tmp_path.iterdir() if path.name.startswith(".web.dat."))
        shutil.copytree(folder, copies)

    array.record(tmp_path / "web.dat", during=copy)
    with open_container(copies) as trace:
        assert trace.damage == ()
        assert trace.clock == "mono"
        assert sum(1 for buffer in trace.buffers for _ in buffer.records()) == 1030
        assert {"softirq_entry", "print"} <= {event.name for event in trace.events.values()}
    assert main(["cut", str(copies), "irq", "-o", str(tmp_path / "saved.dat")]) == 0
    assert records_of(tmp_path / "saved.dat") == list(range(1030))


def test_nothing_is_recorded_before_the_readers_are_there(array, files, tmp_path):  # noqa: F811
    array.is_on = False
    files.pages = {0: [], 1: []}

    def load() -> None:
        assert array.is_on
        files.pages[0] += pages_of(0, 7)

    assert array.record(tmp_path / "web.dat", during=load, starts=True).n_records == 7
    assert not array.is_on


def test_what_comes_after_a_limit_is_not_recorded(array, files, tmp_path):  # noqa: F811
    files.pages = {0: pages_of(0, 4000), 1: []}
    seen: list[bool] = []

    def load() -> None:
        deadline = time.monotonic() + 20
        while array.is_on and time.monotonic() < deadline:
            time.sleep(0.01)
        seen.append(array.is_on)

    told = array.record(tmp_path / "web.dat", during=load, max_bytes=80_000)
    assert seen == [False]
    assert 0 < told.n_records < 4000
    assert array.is_on


def test_a_watcher_gets_rates(array, files, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr("tracepoint.control.status._PERIOD_S", 0.05)
    seen: list[RecordStatus] = []
    files.overrun = 0
    enough = threading.Event()

    def watch(status: RecordStatus) -> None:
        files.overrun += 100
        seen.append(status)
        if len(seen) == 3:
            enough.set()

    array.record(tmp_path / "web.dat", 60, until=enough, watch=watch)
    assert [status.lost_per_s > 0 for status in seen[:3]] == [False, True, True]
    assert seen[1].events_per_s == pytest.approx(seen[1].lost_per_s)
    assert "lost/s" in seen[1].text


def sent_when_recording(files, number: int) -> threading.Thread:  # noqa: F811
    """Send us a signal while a recording waits for its end."""

    def send() -> None:
        after(lambda: files.recording)
        time.sleep(0.2)
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_and_saves(files, tmp_path, number, capsys):  # noqa: F811
    sender = sent_when_recording(files, number)
    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    assert main(["record", "irq", "-o", str(tmp_path / "web.dat"), "--seconds", "60"]) == 0
    sender.join()
    assert records_of(tmp_path / "web.dat") == list(range(1030))
    assert set(files.arrays) == {""}
    assert handlers == [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_command_too(files, tmp_path, number):  # noqa: F811
    sender = sent_when_recording(files, number)
    late = tmp_path / "late"
    command = ["sh", "-c", 'trap exit TERM HUP; sleep 20 & wait $! && touch "$0"', str(late)]
    assert main(["record", "irq", "-o", str(tmp_path / "web.dat"), "--", *command]) == 0
    sender.join()
    assert not late.exists()
    assert records_of(tmp_path / "web.dat") == list(range(1030))


def test_a_command_that_ignores_a_signal_is_killed_by_the_second(tmp_path):
    ready = tmp_path / "ready"
    script = 'trap "" TERM; touch "$0"; exec sleep 600'
    with EndingSignals() as ending:

        def send() -> None:
            after(ready.exists)
            os.kill(os.getpid(), signal.SIGTERM)
            after(ending.event.is_set)
            os.kill(os.getpid(), signal.SIGTERM)

        thread = threading.Thread(target=send)
        thread.start()
        ending.run(["sh", "-c", script, str(ready)], Output(), None)
        thread.join()
        assert ending._child.returncode == -signal.SIGKILL
    assert ending.event.is_set()


def test_waiting_for_a_command_takes_no_turns():
    """A look every 50 ms at whether it has ended would sleep 20 times a second."""
    with EndingSignals() as ending:
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
        ending.run(["sleep", "2"], Output(), None)
        assert resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - before < 20
        assert not ending.is_running


def test_a_command_may_outlive_its_recording(files, tmp_path, capsys):  # noqa: F811
    words = ["record", "irq", "-o", str(tmp_path / "web.dat"), "--seconds", "0.2", "--"]
    command = ["sh", "-c", 'until [ -e "$0" ]; do sleep 0.1; done; sleep 1; touch "$1"']
    # It goes on until after the recording has its name.
    paths = [str(tmp_path / name) for name in ("web.dat", "late")]
    assert main([*words, *command, *paths]) == 0
    assert (tmp_path / "late").exists()
    assert "no longer recorded" in capsys.readouterr().err


def test_filters_are_set_before_the_events(files, tmp_path, capsys):  # noqa: F811
    words = ["record", "irq", "-o", str(tmp_path / "web.dat"), "--seconds", "0"]
    seen: list[tuple[str, str]] = []
    files.after_write = lambda _: seen.append(
        next(((a.events["irq:softirq_entry"].filter, n) for n, a in files.arrays.items() if n), ("", ""))
    )
    assert main([*words, "--filter", "irq:softirq_entry", "vec == 3"]) == 0
    assert "vec == 3\n" in [text for text, _ in seen]
    assert main([*words, "--force", "--filter", "irq:softirq_entry", "vex == 3"]) == 4
    assert "vec" in capsys.readouterr().err
    assert set(files.arrays) == {""}


class Terminal:
    def __init__(self, *, is_terminal: bool) -> None:
        self.text, self._is_terminal = "", is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        pass

    def fileno(self) -> int:
        raise OSError


def test_a_status_line_is_rewritten_at_a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    screen = Terminal(is_terminal=True)
    with StatusLine(Output(stderr=screen)) as line:
        line.show("one")
        line.show("two")
    assert screen.text == "\r\x1b[Kone\r\x1b[Ktwo\r\x1b[K"


def test_without_a_terminal_a_line_comes_at_times(monkeypatch):
    file, now = Terminal(is_terminal=False), [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with StatusLine(Output(stderr=file), period_s=0.2) as line:
        line.show("early")
        now[0] += 0.25
        line.show("one")
        line.show("too soon")
    assert file.text == "one\n"
    assert not StatusLine(Output(stderr=file, verbosity=-1)).is_wanted


@pytest.mark.parametrize("compression", ["none", "zlib", "zstd"])
@pytest.mark.parametrize("has_room", [True, False])
def test_what_a_file_is_made_of_stays_where_the_disk_has_room(
    array,  # noqa: F811
    files,  # noqa: F811
    tmp_path,
    monkeypatch,
    has_room,
    compression,
):
    """The folder as it is when a process is killed while it writes the file."""
    add_addresses(files)
    left: list[set[str]] = []

    def killed(*_, **__) -> None:
        folder = next(path for path in tmp_path.iterdir() if path.name.startswith(".web.dat."))
        left.append({path.name for path in folder.iterdir()})
        if has_room:
            with open_container(folder) as trace:
                assert sum(1 for buffer in trace.buffers for _ in buffer.records()) == 1030
                assert trace.kallsyms == files.kallsyms()
                assert trace.damage == ()
        raise TracepointError("killed")

    space = os.statvfs(tmp_path)
    free = space.f_bavail if has_room else 0
    told = type("", (), {"f_bavail": free, "f_frsize": space.f_frsize})
    monkeypatch.setattr("tracepoint.control.part.os.statvfs", lambda _: told)
    monkeypatch.setattr("tracepoint.control.part.write_tracedat", killed)
    with pytest.raises(TracepointError, match="killed"):
        array.record(tmp_path / "web.dat", 0, compression=compression)
    kallsyms = "kallsyms" if compression == "none" else f"kallsyms.section.{compression}"
    assert (kallsyms in left[0]) == has_room
    assert {"cpu0", "cpu1", "trace.dat.part"} <= left[0]


@pytest.mark.parametrize("page_size", [4096, 16384, 65536])
def test_blocks_that_are_released_fit_into_what_is_reserved(tmp_path, page_size):
    """Each is written before its space is given back."""
    spool = tmp_path / "cpu0"
    spool.write_bytes(bytes(40 * (1 << 16)))
    reader = CpuReader(0, None, spool, 1, {})
    reader.moved.counts[0] = spool.stat().st_size // page_size
    layout = PageLayout(data_size=page_size - 16)
    sizes = [len(block) for block in reader.blocks(layout, releases=True)]
    assert max(sizes) <= RESERVED_BYTES // 2
    assert sum(sizes) == spool.stat().st_size
    # Whole chunks of a compressed file.
    assert sizes[0] == 40 * 4096 // page_size * page_size


def test_it_records_what_an_analysis_reads_and_the_kernel_has(files, tmp_path, capsys):  # noqa: F811
    words = ["record", "-o", str(tmp_path / "web.dat"), "--seconds", "0.1"]
    assert main([*words, "--for", "irq"]) == 0
    said = capsys.readouterr().err
    assert "not recorded for irq, as this kernel does not have it: irq:softirq_raise, " in said
    assert main([*words, "--for", "block", "--force"]) == 2
    assert "this kernel has none of the events that block reads" in capsys.readouterr().err
    assert main([*words, "--for", "irqs", "--force"]) == 2
    assert "did you mean 'irq'?" in capsys.readouterr().err
    assert main([*words, "--force"]) == 2
    assert "nothing to record: name events" in capsys.readouterr().err


def test_the_command_imports_little():
    """What is imported before anything is recorded takes CPU time from what is to be recorded."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from tracepoint.cli import main; main.make_parser(['record']);"
        "print(*{'ast', 'dataclasses', 'inspect', 'subprocess', 'tempfile'} & set(sys.modules))"
    )
    folder = Path(drain.__file__).parents[2]
    # Without `site`, which may import them for other packages.
    words = [sys.executable, "-I", "-S", "-c", code, folder]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_recording_starts_without_what_takes_long_to_import():
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r})\n"
        "import tracepoint.cli.main as main, tracepoint.cli.kernel.record\n"
        "main.make_parser(['record', 'x']).parse_args('record x --seconds 1 -o x.dat'.split())\n"
        "print(*sys.modules)"
    )
    loaded = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    slow = "dataclasses importlib.util inspect json pathlib queue shutil subprocess tarfile typing zlib zstandard"
    assert set(slow.split()) & set(loaded) == set()
