"""A recording of a made-up tracefs with what Python processes recorded meanwhile, in one file."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tracepoint as tp
from control.test_record import LAYOUT, files  # noqa: F401 - a fixture
from tracepoint.cli.main import main
from tracepoint.record.write import write_pages

pytestmark = pytest.mark.programs

SOURCE = Path(__file__).resolve().parents[2] / "src"
HOUR_NS = 3600 * 10**9
PROGRAM = """
import os, signal, sys
import tracepoint as tp

@tp.trace_event(system="app", printk='"%u by %d", n, pid')
def asked(n: tp.u32, pid: tp.s32) -> None: ...

def ask(*_):
    asked(1, os.getpid())
    child = os.fork()
    if not child:
        asked(2, os.getpid())
        os._exit(0)
    os.waitpid(child, 0)

signal.signal(signal.SIGUSR1, ask)
if sys.argv[1:]:
    asked.enable()
asked(0, os.getpid())
print("ready", flush=True)
while sys.stdin.readline():
    pass
"""


@pytest.fixture
def program(monkeypatch, tmp_path):
    """What starts a program that listens, and asks itself something at each SIGUSR1."""
    monkeypatch.setenv("TRACEPOINT_SOCKETS", str(tmp_path / "sockets"))
    started = []

    def start(*words: str, folder: str = "") -> int:
        more = {"TRACEPOINT": "1", "PYTHONPATH": str(SOURCE)} | (
            {"TRACEPOINT_DIRECTORY": folder} if folder else {}
        )
        one = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *words],
            env=os.environ | more,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        started.append(one)
        assert one.stdout.readline() == b"ready\n"
        return one.pid

    yield start
    for one in started:
        one.stdin.close()
        one.wait()
        one.stdout.close()


def recorded(files, target, pid):  # noqa: F811
    """Record two interrupts, now and in an hour, while the program is asked; return the exit status."""
    now = time.monotonic_ns()
    irqs = [(ts, struct.pack("<HBBiI", 20, 0, 0, 7, i)) for i, ts in enumerate((now, now + HOUR_NS))]
    page = write_pages(irqs, LAYOUT)
    files.pages = {0: [page[: LAYOUT.page_size]], 1: []}
    words = ["record", "irq", "-o", str(target), "--py", str(pid), "--"]
    return main([*words, "sh", "-c", f"kill -USR1 {pid}; sleep 1"])


def test_a_process_and_its_child_are_in_the_file_of_the_kernel(files, program, tmp_path, capsys):  # noqa: F811
    folder = tmp_path / "rings"
    folder.mkdir()
    pid = program("on", folder=str(folder))
    assert recorded(files, tmp_path / "web.dat", pid) == 0
    assert "2 records of Python processes joined" in capsys.readouterr().err
    with tp.open_trace(tmp_path / "web.dat") as trace:
        assert trace.clock == "mono"
        assert trace.events == {"irq:softirq_entry": 2, "app:asked": 2}
        found = {row["n"]: row["pid"] for row in trace["app:asked"]}
    # What was asked before the recording began is not there.
    assert set(found) == {1, 2}
    assert found[1] == pid != found[2]


def test_rings_in_memory_are_saved_by_the_process(files, program, tmp_path):  # noqa: F811
    pid = program("on")
    assert recorded(files, tmp_path / "web.dat", pid) == 0
    with tp.open_trace(tmp_path / "web.dat") as trace:
        assert [row["n"] for row in trace["app:asked"]] == [1]


def test_what_cannot_be_joined(files, program, tmp_path, capsys):  # noqa: F811
    pid = program()
    assert recorded(files, tmp_path / "web.dat", pid) == 0
    assert f"process {pid} has no event enabled" in capsys.readouterr().err
    words = ["record", "irq", "-o", str(tmp_path / "other.dat"), "--seconds", "0", "--py"]
    assert main([*words, str(pid), "--clock", "local"]) != 0
    assert "the clock local is not the same" in capsys.readouterr().err
    assert main([*words, "4194303"]) != 0
    assert main([*words, str(pid), "--pid", str(pid)]) != 0
    assert "choose it or --py" in capsys.readouterr().err
    assert not (tmp_path / "other.dat").exists()
