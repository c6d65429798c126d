"""Rings of Python processes as recordings: of a folder, and of a process that runs or is stopped."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tracepoint as tp
from tracepoint.cli.main import main
from tracepoint.errors import DecodeError
from tracepoint.layout.process_events import FIRST_ID
from tracepoint.record.core import CORE
from tracepoint.tracefile.recording import losses_of
from tracepoint.tracefile.ringfiles import MappedRing, RingFiles
from tracepoint.tracefile.rings import merge_rings
from tracepoint.tracefile.spool import spool_layout

SOURCE = Path(__file__).resolve().parents[2] / "src"

# `parent` and `child` number their events differently: each enables its own first.
WRITER = """
import os, sys
import tracepoint as tp

@tp.trace_event(system="shop", printk='"%llu %s", n, name')
def step(n: tp.u64, name: str) -> None: ...

directory = sys.argv[1]
instance = tp.tracing.make_instance("files", n_pages=8, directory=directory)
step.enable(instance)
for n in range(5):
    step(n, "parent")
child = os.fork()
if not child:
    @tp.trace_event(system="shop", printk='"%u", n')
    def only_child(n: tp.u32) -> None: ...
    only_child.enable(instance)
    only_child(7)
    step(8, "child")
    os._exit(0)
os.waitpid(child, 0)
print(child, flush=True)
for line in sys.stdin:
    step(int(line), "later")
    print(line, end="", flush=True)
"""


class Writer:
    def __init__(self, process, directory):
        self.process = process
        self.directory = directory
        self.child = int(process.stdout.readline())

    def step(self, n):
        self.process.stdin.write(f"{n}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == f"{n}\n"


@pytest.fixture
def writer(tmp_path):
    if CORE is None:
        pytest.skip("rings in files need the C core: install gcc and run `make setup`")
    directory = tmp_path / "rings with\nnewline"
    directory.mkdir()
    words = [sys.executable, "-W", "ignore", "-c", WRITER, str(directory)]
    with subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    ) as process:
        yield Writer(process, directory)
        process.kill()


def test_a_folder_of_rings(writer):
    with tp.open_trace(writer.directory) as trace:
        assert trace.damage == ()
        assert trace.events == {"shop:only_child": 1, "shop:step": 6}
        steps = trace["step"]
        assert steps["n"].tolist() == [0, 1, 2, 3, 4, 8]
        assert steps["common_pid"].tolist() == [writer.process.pid] * 5 + [writer.child]
        assert steps["common_timestamp"].tolist() == sorted(steps["common_timestamp"].tolist())
        assert set(steps["common_cpu"].tolist()) <= os.sched_getaffinity(0)
        assert trace["only_child"]["n"].tolist() == [7]
        assert (trace.clock, trace.file.form) == ("local", "rings of Python processes")
        assert [record.text for record in trace.where("n > 3").records()] == ["4 parent", "7", "8 child"]
        tgids = dict(line.split() for line in trace.file.saved_tgids.splitlines())
        assert tgids == {str(n): str(n) for n in (writer.process.pid, writer.child)}
        assert not any(trace.lost.values())


def test_of_a_process_by_its_id_while_it_runs_and_while_it_is_stopped(writer):
    name = f"pid:{writer.process.pid}"
    with tp.open_trace(name) as trace:
        writer.step(100)
        # What came after it was opened is not in it.
        assert trace["shop:step"]["n"].tolist() == [0, 1, 2, 3, 4]
        assert trace.file.form == f"rings of the Python process {writer.process.pid}"
    writer.process.send_signal(signal.SIGSTOP)
    with tp.open_trace(name) as trace:
        assert trace["shop:step"]["n"].tolist() == [0, 1, 2, 3, 4, 100]
    writer.process.send_signal(signal.SIGCONT)


def test_what_was_overwritten_is_counted(writer):
    for n in range(3000):
        writer.step(n)
    with tp.open_trace(f"pid:{writer.process.pid}") as trace:
        assert trace["step"]["n"].tolist()[-1] == 2999
        lost = losses_of(trace.file.options)
        assert (lost.overrun + trace.n_records, lost.dropped) == (3005, 0)
        assert lost.overrun > 0


@pytest.mark.parametrize(
    "command",
    [
        ["read", "{}", "shop:step"],
        ["stat", "--json", "{}"],
        ["sql", "{}", "select count(*) from step"],
        ["convert", "{}", "{}.pftrace"],
        ["cut", "{}", "-o", "{}.dat"],
    ],
)
def test_commands(writer, tmp_path, capsys, command):
    if command[0] == "sql":
        pytest.importorskip("duckdb")
    (folder := tmp_path / "rings").symlink_to(writer.directory)
    assert main([word.format(folder) for word in command]) == 0
    said = capsys.readouterr()
    match command[0]:
        case "read":
            lines = [line for line in said.out.splitlines() if not line.startswith("#")]
            assert [line.rpartition(": ")[2] for line in lines] == [
                *(f"{n} parent" for n in range(5)),
                "8 child",
            ]
        case "stat":
            facts = json.loads(said.out)
            assert (facts["n_records"], facts["events"]) == (7, {"shop:only_child": 1, "shop:step": 6})
        case "sql":
            assert "6" in said.out
        case "convert":
            assert b"step" in Path(f"{folder}.pftrace").read_bytes()
        case _:
            with tp.open_trace(f"{folder}.dat") as trace:
                assert trace["step"]["n"].tolist() == [0, 1, 2, 3, 4, 8]


def test_read_of_a_process(writer, capsys):
    assert main(["read", f"pid:{writer.process.pid}", "--where", "n == 3"]) == 0
    assert capsys.readouterr().out.rstrip().endswith("step: 3 parent")


def test_no_rings_in_files():
    with pytest.raises(DecodeError, match=rf"pid:{os.getpid()}: .*TRACEPOINT_DIRECTORY=DIRECTORY.* ps --pid"):
        tp.open_trace(f"pid:{os.getpid()}")
    with pytest.raises(DecodeError, match="pid:4194305: no such process"):
        tp.open_trace("pid:4194305")


def test_a_file_with_the_name_of_a_process(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("pid:7").write_bytes(b"")
    for path in (Path("pid:7"), "./pid:7"):
        with pytest.raises(DecodeError, match="an empty file"):
            tp.open_trace(path)


def test_damage_of_a_folder(writer):
    writer.process.kill()
    writer.process.wait()
    (writer.directory / "ring-1-1-1").write_bytes(b"nothing")
    os.mkfifo(writer.directory / "ring-1-1-2")
    (writer.directory / f"formats-{writer.child}").unlink()
    with tp.open_trace(writer.directory) as trace:
        assert trace["step"]["n"].tolist() == [0, 1, 2, 3, 4]
        reasons = [damage.reason for damage in trace.damage]
    assert [reason.partition(":")[0] for reason in reasons[:2]] == ["ring-1-1-1", "ring-1-1-2"]
    assert reasons[2:] == ["2 records of events that have no format"]


@pytest.mark.limits
def test_more_formats_than_numbers(tmp_path):
    """As damaged files may have: the records of the others are left out, and counted."""
    text = (
        "name: e\nID: {}\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
        'print fmt: "{}"\n'
    )
    form = tp.read_format(text.format(1, 0), "many")
    forms = {n: form.__class__("many", f"e{n}", form.fields, form.print_fmt, id=n) for n in range(1 << 16)}
    assert len(forms) > (1 << 16) - FIRST_ID
    ring = MappedRing(tmp_path / "ring-1-1-1", 1, 1, "comm", "local", True, {}, ())
    found = []
    made = merge_rings(RingFiles(tmp_path, (ring,), {1: forms}, []), spool_layout(), found.append, [])
    own = len(made.parts.content.formats) - ((1 << 16) - FIRST_ID)
    assert 0 < own < FIRST_ID
    assert found == []
