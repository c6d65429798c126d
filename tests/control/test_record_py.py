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
from tracepoint.runtime.rings.followed import FollowedEvents, FollowedFolder, read_followed

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
    open("asked", "w").close()

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
            cwd=tmp_path,
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
    wait = f"kill -USR1 {pid}; until [ -e {target.parent / 'asked'} ]; do sleep 0.1; done"
    return main([*words, "sh", "-c", wait])


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


JOBS = """
import os
import tracepoint as tp

@tp.trace_event(system="app", printk='"%u by %d", n, pid')
def asked(n: tp.u32, pid: tp.s32) -> None: ...

@tp.trace_event(system="app", printk='"%u", n')
def other(n: tp.u32) -> None: ...

def work(n):
    asked(n, os.getpid())
    other(n)
    return os.getpid()
"""
POOL = """
import multiprocessing, os, signal, sys
from concurrent.futures import ProcessPoolExecutor
import tracepoint as tp
from jobs import asked, work

def mask():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})

def record():
    asked.enable()
    tp.tracing.event("app:asked").filter = "n < 8"

if __name__ == "__main__":
    mask()
    how, *preloaded = sys.argv[1:]
    context = multiprocessing.get_context(how.removesuffix(",running"))
    if how.endswith(",running"):
        # The workers are older than what is enabled, and than the recording.
        pool = ProcessPoolExecutor(2, mp_context=context)
        older = set()
        while len(older) < 2:
            older |= set(pool.map(work, [8] * 100))
        record()
    else:
        record()
        if preloaded:
            # The fork server is older than the recording.
            context.set_forkserver_preload(preloaded)
            with context.Pool(1) as first:
                first.apply(os.getpid)
        pool = None
    print("ready", flush=True)
    signal.sigwait({signal.SIGUSR1})
    with pool or ProcessPoolExecutor(2, mp_context=context) as pool:
        pids = set(pool.map(work, range(10)))
        with open("pids.new", "w") as file:
            print(*pids, file=file)
        os.rename("pids.new", "pids")
        if how.endswith(",running"):
            assert pids <= older
            sys.stdin.readline()
            # The recording is over.
            set(pool.map(work, range(10)))
    sys.stdin.read()
"""


@pytest.mark.parametrize(
    "words",
    ["fork", "spawn", "forkserver", "forkserver json", "forkserver jobs", "fork,running", "spawn,running"],
)
def test_workers_of_a_pool(files, tmp_path, monkeypatch, capsys, words):  # noqa: F811
    monkeypatch.setenv("TRACEPOINT_SOCKETS", str(tmp_path / "sockets"))
    (folder := tmp_path / "rings").mkdir()
    (tmp_path / "pool.py").write_text(POOL)
    (tmp_path / "jobs.py").write_text(JOBS)
    more = {"TRACEPOINT": "1", "PYTHONPATH": str(SOURCE), "TRACEPOINT_DIRECTORY": str(folder)}
    with subprocess.Popen(
        [sys.executable, tmp_path / "pool.py", *words.split()], cwd=tmp_path,
        env=os.environ | more, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as one:  # fmt: skip
        assert one.stdout.readline() == b"ready\n"
        # The pool ends before the command does.
        wait = f"kill -USR1 {one.pid}; until [ -e {tmp_path / 'pids'} ]; do sleep 0.1; done"
        now = time.monotonic_ns()
        irqs = [(ts, struct.pack("<HBBiI", 20, 0, 0, 7, i)) for i, ts in enumerate((now, now + HOUR_NS))]
        files.pages = {0: [write_pages(irqs, LAYOUT)[: LAYOUT.page_size]], 1: []}
        target = tmp_path / "pool.dat"
        status = main(["record", "irq", "-o", str(target), "--py", str(one.pid), "--", "sh", "-c", wait])
        one.stdin.close()
    assert one.returncode == 0
    assert status == 0
    pids = {*map(int, (tmp_path / "pids").read_text().split())}
    assert "8 records of Python processes joined" in capsys.readouterr().err
    with tp.open_trace(target) as trace:
        rows = list(trace["app:asked"])
        assert "app:other" not in trace.events
    assert sorted(row["n"] for row in rows) == list(range(8))
    assert {row["pid"] for row in rows} <= pids
    assert not (folder / "followed").exists()
    # Workers that ran before are as they were: nothing was recorded after that.
    with tp.open_trace(folder) as trace:
        assert trace.events["app:asked"] == 8


def test_a_killed_recorder_asks_for_nothing(tmp_path):
    wanted = FollowedEvents("mono", {"app:asked": "n < 8"})
    with FollowedFolder(str(tmp_path), wanted):
        assert read_followed(str(tmp_path)) == wanted
        left = (tmp_path / "followed").read_bytes()
    assert read_followed(str(tmp_path)) is None
    # Without the lock of its writer.
    (tmp_path / "followed").write_bytes(left)
    assert read_followed(str(tmp_path)) is None


@pytest.mark.parametrize(
    "text", ["", "[]", "[" * 50_000, '{"clock": 1, "filters": {}}', '{"clock": "mono", "filters": {"a": 1}}']
)
def test_a_file_that_no_recorder_wrote_has_no_effect(tmp_path, text):
    with FollowedFolder(str(tmp_path), FollowedEvents("mono", {})):
        (tmp_path / "followed").write_text(text)
        with pytest.warns(RuntimeWarning, match="followed: no effect"):
            assert read_followed(str(tmp_path)) is None
