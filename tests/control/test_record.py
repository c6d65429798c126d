"""Recordings of a made-up tracefs, and what goes wrong with them."""

from __future__ import annotations

import errno
import os
import shutil
import struct
import subprocess
import sys
import threading

import pytest

from control.fake import PAGE, FakeTracefs, make_format
from tracepoint.cli.main import main
from tracepoint.control.files import MountedFiles, _place
from tracepoint.control.session import open_tracefs
from tracepoint.errors import TracefsError, TracepointError
from tracepoint.layout.format import write_format
from tracepoint.record.layout import HEADER_EVENT, PageLayout, header_page_text
from tracepoint.record.write import write_pages
from tracepoint.tracefile.recording import settings_of
from tracepoint.tracefile.text import facts_of
from tracepoint.tracefile.tracedat import open_tracedat

LAYOUT = PageLayout()
STATS = (
    "entries: 0\noverrun: {overrun}\ncommit overrun: 0\nbytes: 0\nnow ts: 12.5\ndropped events: {dropped}\n"
)


class RecordedFake(FakeTracefs):
    """A made-up tracefs whose ring buffers hold pages."""

    def __init__(self) -> None:
        super().__init__()
        self.pages: dict[int, list[bytes]] = {0: [], 1: []}
        self.overrun, self.dropped, self.n_open = 5, 1, 0
        self.fails_with = 0
        self.n_kallsyms, self.loaded = 0, ""

    def read(self, path: str) -> str:
        match path.split("/"):
            case [*_, "per_cpu", _, "stats"]:
                return STATS.format(overrun=self.overrun, dropped=self.dropped)
            case ["events", "header_page"]:
                return header_page_text(LAYOUT)
            case ["events", "header_event"]:
                return HEADER_EVENT
            case ["events", "ftrace", "print", "format"]:
                return write_format(make_format("ftrace", "print", "unsigned long ip", 5))
            case ["printk_formats"]:
                return ""
            case ["saved_cmdlines"]:
                return "7 seven\n"
            case ["saved_tgids"]:
                return "7 5\n"
        return super().read(path)

    def names(self, path: str) -> list[str]:
        return ["enable", "print"] if path == "events/ftrace" else super().names(path)

    def kallsyms(self) -> str:
        self.n_kallsyms += 1
        return "ffffffff81000000 T _text\n"

    def modules(self) -> str:
        return self.loaded

    def variables(self, names, kallsyms) -> dict[str, int]:
        return {"vmemmap_base": 0xFFFFEA0000000000} if "vmemmap_base" in names else {}

    def open_pages(self, path: str) -> FakePages:
        self.n_open += 1
        return FakePages(self, int(path.split("/")[-2][3:]))


class FakePages:
    handle = None

    def __init__(self, files: RecordedFake, cpu: int) -> None:
        self.files, self.cpu = files, cpu

    def read(self, size: int) -> bytes:
        if self.files.fails_with:
            raise OSError(self.files.fails_with, "")
        assert size == LAYOUT.page_size
        pages = self.files.pages[self.cpu]
        return pages.pop(0) if pages else b""

    def close(self) -> None:
        self.files.n_open -= 1


def pages_of(first: int, n: int) -> list[bytes]:
    """Return pages with n records of softirq_entry, the third of which says which one it is."""
    data = write_pages(
        [(1000 + 10 * i, struct.pack("<HBBiI", 20, 0, 0, 7, i)) for i in range(first, first + n)], LAYOUT
    )
    return [data[at : at + LAYOUT.page_size] for at in range(0, len(data), LAYOUT.page_size)]


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> RecordedFake:
    made = RecordedFake()
    monkeypatch.setattr("tracepoint.control.session.find_files", lambda: made)
    made.pages[0] = pages_of(0, 1000)
    made.pages[1] = pages_of(1000, 30)
    return made


def add_addresses(files) -> None:
    """Let an event that is enabled have a field with the address of a function."""
    number = files.formats["irq:softirq_exit"].id
    fields = "unsigned int vec; unsigned long action"
    files.formats["irq:softirq_exit"] = make_format("irq", "softirq_exit", fields, number)


@pytest.fixture
def array(files, tmp_path):
    with (
        open_tracefs(files, journal=tmp_path / "journals") as tracing,
        tracing.instance("web", buffer_bytes=PAGE * 100, clock="mono") as made,
    ):
        made.enable("irq")
        yield made


def records_of(path) -> list[int]:
    with open_tracedat(path) as trace:
        found = [struct.unpack_from("<I", r.data, 8)[0] for r in trace.buffers[0].records()]
        assert trace.damage == ()
        return found


def test_everything_is_in_the_file(array, files, tmp_path):
    target = tmp_path / "web.dat"
    add_addresses(files)

    def load() -> None:
        files.pages[1] += pages_of(1030, 5)
        files.overrun += 3
        files.dropped += 2

    told = array.record(target, during=load)
    assert (told.path, told.n_records, told.overrun, told.dropped) == (target, 1035, 6, 4)
    assert [(cpu.cpu, cpu.n_records, cpu.n_pages) for cpu in told.cpus][1] == (1, 35, 2)
    assert records_of(target) == list(range(1035))
    with open_tracedat(target) as trace:
        assert trace.clock == "mono"
        assert sorted(e.name for e in trace.events.values()) == ["print", "softirq_entry", "softirq_exit"]
        assert trace.kallsyms == "ffffffff81000000 T _text\n"
        assert trace.saved_cmdlines == "7 seven\n"
        assert facts_of(trace).variables == {"vmemmap_base": 0xFFFFEA0000000000}
        assert trace.n_cpus == 2
    assert array.is_on
    assert files.n_open == 0


def test_records_of_events_that_were_disabled_since_have_their_formats(array, files, tmp_path, capsys):
    array.disable("irq")
    array.enable("sched:sched_switch")
    array.record(tmp_path / "web.dat", 0)
    with open_tracedat(tmp_path / "web.dat") as trace:
        assert sorted(e.name for e in trace.events.values()) == ["print", "sched_switch", "softirq_entry"]
    assert main(["read", str(tmp_path / "web.dat")]) == 0
    assert " softirq_entry: " in (shown := capsys.readouterr().out)
    assert "Unknown type" not in shown


@pytest.mark.parametrize("is_on", [True, False])
def test_processes_are_kept_where_the_kernel_kept_them(array, tmp_path, is_on):
    array.tracefs.write(f"{array.prefix}options/record-tgid", str(int(is_on)))
    array.record(tmp_path / "web.dat", 0)
    with open_tracedat(tmp_path / "web.dat") as trace:
        assert trace.saved_tgids == ("7 5\n" if is_on else None)


def test_what_was_lost_is_in_the_file(array, files, tmp_path, capsys):
    def load() -> None:
        files.overrun += 30
        files.dropped += 2

    target = tmp_path / "web.dat"
    array.record(target, during=load)
    assert main(["read", str(target), "--strict"]) == 3
    said = capsys.readouterr()
    # Both CPUs, from the beginning of the recording on: what was there before is not a loss of this one.
    assert "# entries-in-buffer/entries-written: 1030/1090 " in said.out
    assert "64 events were lost" in said.err
    array.record(tmp_path / "two.dat", 0)
    assert main(["read", str(tmp_path / "two.dat"), "--strict"]) == 0
    if shutil.which("trace-cmd"):
        command = ["trace-cmd", "report", "--stat", "-i", str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert (done.stdout.count("\noverrun: 30\n"), done.stderr) == (2, "")


def test_an_event_or_the_time_ends_it(array, tmp_path):
    stop = threading.Event()
    stop.set()
    assert array.record(tmp_path / "one.dat", until=stop).n_records == 1030
    assert array.record(tmp_path / "two.dat", 0.01).n_records == 0
    assert records_of(tmp_path / "two.dat") == []


def test_an_array_that_fills_while_it_is_read_ends_all_the_same(array, files, tmp_path):
    page = pages_of(0, 1)[0]

    class Endless(list):
        def pop(self, at: int) -> bytes:
            return page

        def __bool__(self) -> bool:
            return True

    files.pages[0] = Endless()
    told = array.record(tmp_path / "endless.dat", 0)
    assert told.cpus[0].n_pages >= 100


def test_settings_are_kept(array, files, tmp_path):
    files.tracer = "function_graph"
    array.tracefs.write(f"{array.prefix}options/record-tgid", "1")
    array.record(tmp_path / "web.dat", 0)
    with open_tracedat(tmp_path / "web.dat") as trace:
        settings = settings_of(trace.options)
    assert settings.tracer == "function_graph"
    assert "record-tgid" in settings.options
    array.disable("irq")
    assert array.record(tmp_path / "graph.dat", 0).n_records == 0


def test_no_event_enabled(array, files, tmp_path):
    array.disable("irq")
    with pytest.raises(TracefsError, match="no event is enabled in /fake/tracing/instances/web"):
        array.record(tmp_path / "web.dat", 0)
    assert files.n_open == 0


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_full_disk_leaves_nothing(array, files, tmp_path, number):
    (tmp_path / "out").mkdir()
    files.fails_with = number
    with pytest.raises(TracepointError, match="nothing was saved"):
        array.record(tmp_path / "out/web.dat", 60)
    assert list((tmp_path / "out").iterdir()) == []
    assert (array.is_on, files.n_open) == (True, 0)


def test_a_disk_that_fills_at_the_end_leaves_what_was_there(array, tmp_path, monkeypatch):
    target = tmp_path / "out" / "web.dat"
    target.parent.mkdir()
    target.write_bytes(b"old")

    def full(stream, *_, **__) -> None:
        stream.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tracepoint.control.part.write_tracedat", full)
    with pytest.raises(TracepointError, match="No space left on device; nothing was saved"):
        array.record(target, 0, replace=True)
    assert [p.name for p in target.parent.iterdir()] == ["web.dat"]
    assert target.read_bytes() == b"old"


def test_a_file_that_is_there_is_kept(array, files, tmp_path):
    target = tmp_path / "web.dat"
    target.write_bytes(b"old")
    with pytest.raises(TracepointError, match="is there already"):
        array.record(target, 0)
    assert target.read_bytes() == b"old"
    assert files.pages[0], "nothing may be consumed"
    assert array.record(target, 0, replace=True).n_records == 1030
    for wrong in (tmp_path, tmp_path / "nowhere" / "web.dat"):
        with pytest.raises(TracepointError, match="nothing was saved"):
            array.record(wrong, 0, replace=True)


@pytest.mark.parametrize("seconds", [None, -1.0, float("nan"), 1e9])
def test_it_must_end(array, tmp_path, seconds):
    with pytest.raises(TracepointError, match="seconds"):
        array.record(tmp_path / "web.dat", seconds)


def test_the_command(files, tmp_path, capfd):
    target = tmp_path / "web.dat"
    words = ["record", "irq", "-o", str(target), "--clock", "mono", "--buffer-kb", "64"]
    assert main([*words, "--seconds", "0"]) == 0
    assert f"{target}: 1030 records" in capfd.readouterr().err
    assert set(files.arrays) == {""}
    assert main([*words, "--", "echo", "ran"]) == 2
    assert "is there already" in capfd.readouterr().err
    assert main([*words, "--force", "--", "echo", "ran"]) == 0
    assert capfd.readouterr().out == "ran\n"
    assert main(["record", "nosuch", "-o", str(tmp_path / "x.dat")]) == 4
    assert main([*words, "--buffer-kb", "-1"]) == 2
    assert set(files.arrays) == {""}


def test_a_raw_pipe_of_the_machine_never_waits(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = os.open(tmp_path / "pipe", os.O_RDWR)
    source = MountedFiles(tmp_path).open_pages("pipe")
    assert source.read(4096) == b""
    os.write(writer, b"page")
    assert source.read(4096) == b"page"
    source.close()
    os.close(writer)


def test_symbols_are_read_again_only_where_modules_came(array, files, tmp_path):
    add_addresses(files)
    array.record(tmp_path / "a.dat", 0)
    assert files.n_kallsyms == 1

    def load() -> None:
        files.loaded = "zram 1 0 - Live 0x0\n"

    array.record(tmp_path / "b.dat", during=load)
    assert files.n_kallsyms == 3


def test_symbols_are_kept_where_a_record_may_show_one(array, files, tmp_path):
    """A marker shows the function that wrote it: which came is known at the end."""
    array.record(tmp_path / "a.dat", 0)
    assert files.n_kallsyms == 0
    files.pages[0] = [*pages_of(0, 3), write_pages([(5, struct.pack("<HBBiQ", 5, 0, 0, 7, 16))], LAYOUT)]
    array.record(tmp_path / "b.dat", 0)
    assert files.n_kallsyms == 1
    # A file may have no room for them at its end.
    files.pages[0] = pages_of(0, 3)
    array.record(tmp_path / "c.dat", 0, max_bytes=10 << 20)
    assert files.n_kallsyms == 2
    files.tracer = "function"
    array.record(tmp_path / "d.dat", 0)
    assert files.n_kallsyms == 3
    kept = []
    for name in "abcd":
        with open_tracedat(tmp_path / f"{name}.dat") as trace:
            kept.append((trace.kallsyms, facts_of(trace).variables))
    assert kept[0] == ("", {})
    assert kept[1:] == [("ffffffff81000000 T _text\n", {"vmemmap_base": 0xFFFFEA0000000000})] * 3


def test_symbols_of_a_process_are_read_while_it_is_there(array, files, tmp_path):
    files.symbols_last = False
    array.record(tmp_path / "a.dat", 0)
    assert files.n_kallsyms == 2
    with open_tracedat(tmp_path / "a.dat") as trace:
        assert trace.kallsyms == "ffffffff81000000 T _text\n"


def test_recording_imports_only_what_it_needs():
    code = "import sys, tracepoint.cli.main, tracepoint.cli.kernel.record; sys.stdout.write(' '.join(sys.modules))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    loaded = set(told.split())
    assert "tracepoint.control.record" in loaded
    for name in ("source", "trigger", "model.event", "filter.parse", "decode.engine", "layout.format"):
        assert f"tracepoint.{name}" not in loaded
    assert not loaded & {"subprocess", "logging", "difflib", "decimal"}


def test_the_place_of_a_symbol():
    text = "ffffffff81000000 T _text\nffffffff82000010 D phys_base\nnonsense page_base\n"
    assert _place("phys_base", text) == 0xFFFFFFFF82000010
    assert _place("_text", text) == 0xFFFFFFFF81000000
    assert [_place(name, text) for name in ("base", "page_base", "vmemmap_base", "")] == [0, 0, 0, 0]
