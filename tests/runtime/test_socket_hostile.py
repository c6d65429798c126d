"""Clients that mean no good: the traced program goes on, keeps its descriptors, and prints nothing."""

import contextlib
import os
import random
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from runtime.socket_frames import frame, read_frame

pytestmark = pytest.mark.programs

# Threads have the stack that musl gives them, which is the smallest.
PROGRAM = """
import threading
import time
from tracepoint.runtime.declare.event import trace_event
from tracepoint.runtime.remote.server import listen
from tracepoint.model.python.types import u64

@trace_event(system="shop", printk='"order=%llu", order_id')
def order_sent(order_id: u64) -> None: ...

threading.stack_size(128 << 10)
order_sent.enable()
listen()
number = 0
while True:
    order_sent(number)
    number += 1
    time.sleep(0.002)
"""


class Victim:
    def __init__(self, process, path):
        self.process = process
        self.path = path

    def connect(self):
        stream = socket.socket(socket.AF_UNIX)
        # Without a time limit: one makes connect() fail instead of wait when many come at once.
        stream.connect(str(self.path))
        stream.settimeout(10)
        return stream

    def ask(self, **request):
        with self.connect() as stream:
            stream.sendall(frame(request))
            return read_frame(stream.makefile("rb"))[0]

    def count(self, kind):
        return len(os.listdir(f"/proc/{self.process.pid}/{kind}"))  # noqa: PTH208 - names only

    def records_written(self):
        with self.connect() as stream:
            answers = stream.makefile("rb")
            for request in (
                {"op": "open", "path": "per_cpu/cpu0/stats", "flags": 0},
                {"op": "read", "handle": 1, "size": 4096, "offset": 0},
            ):
                stream.sendall(frame(request))
                assert "errno" not in read_frame(answers)[0]
        return self.ask(op="hello")

    def check(self):
        """The program runs, answers, and has given back what the clients took."""
        assert self.process.poll() is None
        end = time.monotonic() + 120
        while (self.count("task") > 5 or self.count("fd") > 20) and time.monotonic() < end:
            time.sleep(0.05)
        assert self.count("task") <= 5
        assert self.count("fd") <= 20
        assert self.records_written()["n_enabled"] == 1


@pytest.fixture
def victim(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACEPOINT_SOCKETS", str(tmp_path / "s"))
    words = tmp_path / "words"
    with words.open("wb") as stream:
        process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=stream, stderr=stream)
    path = tmp_path / "s" / f"{process.pid}.socket"
    end = time.monotonic() + 120
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.02)
    yield Victim(process, path)
    process.kill()
    process.wait()
    assert words.read_text() == ""


def ps(*words):
    command = [sys.executable, "-m", "tracepoint", "ps", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout, done.stderr


def test_a_stopped_program_does_not_stop_the_command(victim):
    victim.process.send_signal(signal.SIGSTOP)
    try:
        status, text, words = ps()
    finally:
        victim.process.send_signal(signal.SIGCONT)
    assert (status, len(text.splitlines())) == (0, 1)
    assert f"process {victim.process.pid} gave no answer within 2 s: it is stopped" in words
    assert str(victim.process.pid) in ps()[1]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (frame(b"no JSON"), "sent something that is not an answer"),
        (frame(b"[1, 2]"), "sent something that is not an answer"),
        (frame(b"[" * 5000), "sent something that is not an answer"),
        (b'{"pid": 1, "n_events": 2}\n', "sent something that is not an answer"),
        (frame({"handle": 1})[:-1], "the process is gone"),
        (frame({}), "answers without 'handle'"),
    ],
)
def test_a_program_that_answers_nonsense(answer, words, tmp_path, monkeypatch):
    monkeypatch.setenv("TRACEPOINT_SOCKETS", str(tmp_path))
    tmp_path.chmod(0o700)
    path = tmp_path / f"{os.getpid()}.socket"

    class Nonsense(socketserver.StreamRequestHandler):
        def handle(self):
            if read_frame(self.rfile):
                self.wfile.write(answer)

    with socketserver.ThreadingUnixStreamServer(str(path), Nonsense) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        status, _, said = ps("--pid", str(os.getpid()), "--cat", "trace")
        server.shutdown()
        thread.join()
    assert status == 2
    assert words in said
    assert "Traceback" not in said


def test_a_thousand_connections(victim):
    with contextlib.ExitStack() as streams:
        for _ in range(1000):
            streams.enter_context(victim.connect())
        time.sleep(0.5)
        assert victim.count("fd") <= 64 + 20, "no more than some are kept"
        assert victim.count("task") <= 64 + 5
    victim.check()


def test_garbage(victim):
    source = random.Random(5)
    for size in (1, 101, 5001, (1 << 21) + 1, 100, 5000, 1 << 20, 1 << 21):
        for _ in range(5):
            with victim.connect() as stream, contextlib.suppress(OSError):
                garbage = source.randbytes(size)
                stream.sendall(garbage if size & 1 else frame(garbage))
                stream.shutdown(socket.SHUT_WR)
                while stream.recv(1 << 16):
                    pass
    victim.check()


@pytest.mark.parametrize(
    "whole",
    [
        frame(b'{"op": "read", "handle": 1, "size": 1' + b"0" * 400 + b', "offset": 0}'),
        frame(b'{"op": "read", "handle": 1, "size": 10, "offset": 1' + b"0" * 400 + b"}"),
        frame(b'{"op": "read", "handle": 1, "size": -5, "offset": -7}'),
        frame(b'{"op": "read", "handle": 1, "size": Infinity, "offset": NaN}'),
        frame(b'{"op": "open", "path": "' + b"a/" * 200_000 + b'", "flags": 0}'),
        frame(b'{"op": "open", "path": "trace", "flags": 1' + b"0" * 100 + b"}"),
        frame({"op": "write", "handle": 2}, b"9" * 18),
        frame({"op": "write", "handle": 2}, b"A" * (1 << 18)),
        frame(b"[" * 100_000),
        frame(b'{"op": "hello", "\\"\\\\": ' + b'[{"":' * 100_000),
        frame(("[" * 100_000).encode("utf-16")),
        frame(b'{"op": "mkdir", "path": "instances/' + b"x" * 5000 + b'"}'),
    ],
    ids=range(12),
)
def test_huge_numbers_and_lengths(victim, whole):
    with victim.connect() as stream:
        answers = stream.makefile("rb")
        for request in (
            b'{"op": "open", "path": "trace", "flags": 0}',
            b'{"op": "open", "path": "buffer_size_kb", "flags": 1}',
        ):
            stream.sendall(frame(request))
            assert "handle" in read_frame(answers)[0]
        stream.sendall(whole)
        answer, _ = read_frame(answers)
        assert answer.keys() & {"errno", "end", "handle"}
        assert "internal error" not in answer.get("text", "")
    victim.check()


def test_clients_that_stop_in_the_middle(victim):
    """Half a request each, for ever; and others that ask for much and never read an answer."""
    with contextlib.ExitStack() as streams:
        for _ in range(30):
            streams.enter_context(victim.connect()).sendall(frame({"op": "hello"})[:-5])
        for _ in range(20):
            stream = streams.enter_context(victim.connect())
            stream.sendall(frame({"op": "open", "path": "trace", "flags": 0}))
            stream.setblocking(False)
            ask = frame({"op": "read", "handle": 1, "size": 262144, "offset": 0}) * 200
            with contextlib.suppress(BlockingIOError):
                while True:
                    stream.send(ask)
        assert victim.ask(op="hello")["pid"] == victim.process.pid
    victim.check()


def test_the_program_is_not_slowed_by_waiting_clients(victim):
    def processor_time():
        fields = Path(f"/proc/{victim.process.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    with contextlib.ExitStack() as streams:
        for _ in range(60):
            streams.enter_context(victim.connect()).sendall(b"\x07")
        time.sleep(0.3)
        before = processor_time()
        time.sleep(1)
        assert processor_time() - before < 30, "a third of a second of a second"
    victim.check()
