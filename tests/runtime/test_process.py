"""Forks, kills, interpreters that end: each in a process of its own."""

import mmap
import os
import random
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runtime.processes import PRELUDE
from tracepoint.record.pages import ring_records

SOURCE = Path(__file__).resolve().parents[2] / "src"


def test_a_child_starts_with_nothing_and_its_own_pid(script):
    out = script("""
        step.enable()
        step(1, "parent")
        child = os.fork()
        if not child:
            assert tracing.records() == [] and tracing.stats["entries"] == 0
            step(2, "child")
            (record,) = tracing.records()
            assert record.pid() == os.getpid(), record
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        step(3, "parent")
        print([(int.from_bytes(r.data[8:16], "little"), r.pid() == os.getpid()) for r in tracing.records()])
    """)
    assert out == "[(1, True), (3, True)]\n"


@pytest.mark.filterwarnings("ignore")
def test_fork_in_a_threaded_program(script):
    """A thread fires all the time while the main one forks and waits for children that fire."""
    out = script("""
        import warnings
        warnings.simplefilter("ignore")
        step.enable()
        stop = False
        def fire():
            n = 0
            while not stop:
                step(n, "thread"); n += 1
        thread = threading.Thread(target=fire)
        thread.start()
        for i in range(20):
            child = os.fork()
            if not child:
                for k in range(100):
                    step(k, "child")
                tids = {r.pid() for r in tracing.records()}
                os._exit(0 if tids == {os.getpid()} else 3)
            assert os.waitpid(child, 0)[1] == 0
        stop = True
        thread.join()
        tracing.synchronize()
        print("done")
    """)
    assert out == "done\n"


def test_fork_in_a_probe(script):
    out = script("""
        def probe(n, name):
            if name == "fork":
                child = os.fork()
                if child:
                    assert os.waitpid(child, 0)[1] == 0
        step.register(probe, prio=20)
        step.enable()
        pid = os.getpid()
        step(1, "fork")
        records = tracing.records()
        assert len(records) == 1 and records[0].pid() == os.getpid(), records
        if os.getpid() != pid:
            os._exit(0)
        print("done")
    """)
    assert out == "done\n"


def test_events_at_the_end_of_the_interpreter(script):
    out = script("""
        import atexit, gc
        class Late:
            # Names of a module may be None by then.
            def __del__(self, step=step):
                step(1, "late")
        step.enable()
        step.register(lambda n, name: None)
        keep = Late()
        cycle = [Late()]; cycle.append(cycle)
        atexit.register(step, 2, "exit")
        daemon = threading.Thread(target=lambda: [step(n, "daemon") for n in iter(int, 1)], daemon=True)
        daemon.start()
        time.sleep(0.05)
        print("end")
    """)
    assert out == "end\n"


# The shortest record takes 28 bytes with its header.
MAX_PER_PAGE = 4080 // 28

WRITER = """
directory = {directory!r}
instance = tracing.make_instance("mapped", n_pages=8, directory=directory)
step.enable(instance)
print("ready", flush=True)
n = 0
while True:
    step(n, "x" * (n % 50)); n += 1
    {tail}
"""


def recover(c_core, path):
    """Return the numbers of all committed records of a ring file, checking each record."""
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as memory:
        ring = c_core.Ring.attach(memory)
        pages = ring.peek()
        owner = ring.owner()
        stats = ring.stats()
        del ring
    numbers = []
    for page in pages:
        for record in ring_records([page]):
            (n, word) = struct.unpack_from("<QI", record.data, 8)
            text = record.data[word & 0xFFFF :][: word >> 16]
            assert text == b"x" * (n % 50) + b"\0", "torn"
            assert record.pid() == owner["tid"]
            numbers.append(n)
    return numbers, stats


@pytest.mark.thorough
@pytest.mark.parametrize("n_kills", [10, pytest.param(200, marks=pytest.mark.limits)])
def test_after_kill_9_everything_committed_is_there(c_core, tmp_path, n_kills):
    choose = random.Random(1)
    prelude = PRELUDE.format(source=str(SOURCE), core=c_core.__file__)
    for i in range(n_kills):
        directory = tmp_path / str(i)
        directory.mkdir()
        text = prelude + WRITER.format(directory=str(directory), tail="")
        environment = {**os.environ, "PYTHONPATH": str(SOURCE), "TRACEPOINT_PURE": ""}
        with subprocess.Popen(
            [sys.executable, "-c", text], stdout=subprocess.PIPE, env=environment
        ) as process:
            process.stdout.readline()
            time.sleep(choose.random() * 0.02)
            process.send_signal(signal.SIGKILL)
        for path in directory.glob("ring-*"):
            numbers, stats = recover(c_core, path)
            if not numbers:
                continue
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
            # Killed after it took the oldest page and before it counted it: one page, not counted.
            assert 0 <= numbers[0] - stats["overrun"] < MAX_PER_PAGE


def test_another_process_reads_live(c_core, tmp_path):
    """Everything committed before a moment is seen by a reader that maps the file at that moment."""
    prelude = PRELUDE.format(source=str(SOURCE), core=c_core.__file__)
    tail = "print(n, flush=True); sys.stdin.readline()"
    text = prelude + WRITER.format(directory=str(tmp_path), tail=tail)
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "TRACEPOINT_PURE": ""}
    with subprocess.Popen(
        [sys.executable, "-c", text],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        process.stdout.readline()
        for expected in range(1, 30):
            assert int(process.stdout.readline()) == expected
            (path,) = tmp_path.glob("ring-*")
            assert recover(c_core, path)[0] == list(range(expected))
            process.stdin.write("\n")
            process.stdin.flush()
        process.kill()
