"""Control from outside: the socket, who may open it, and what it answers."""

import contextlib
import errno
import os
import re
import socket
import stat
import struct
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from runtime.socket_frames import frame, read_frame
from tracepoint.cli.process import ps
from tracepoint.model.python.types import u64
from tracepoint.runtime.files.tree import ControlFiles
from tracepoint.runtime.remote import registry, server
from tracepoint.runtime.remote.client import RemoteFiles


@pytest.fixture
def served(runtime, monkeypatch, tmp_path):
    monkeypatch.setenv("TRACEPOINT_SOCKETS", str(tmp_path / "sockets"))

    @runtime.trace_event(system="shop", printk='"order=%llu", order_id')
    def order_sent(order_id: u64) -> None: ...

    files = ControlFiles(runtime.tracing)
    path = server.listen(files)
    yield SimpleNamespace(path=path, sent=order_sent, files=files, tracing=runtime.tracing)
    server.stop_listening()
    assert not path.exists()


@pytest.fixture
def client(served):
    with RemoteFiles(os.getpid()) as files:
        files.sent = served.sent
        yield files


def test_other_processes_read_what_it_counted(client):
    client.write_text("events/shop/order_sent/trigger", "hist:keys=order_id")
    for order in (7, 7, 8):
        client.sent(order)
    text = client.read_text("metrics")
    assert re.search(r'tracepoint_hist_hits_total\{.*key_order_id="7"\} 2$', text, re.MULTILINE)
    assert "\ntracepoint_faults_total 0\n" in text
    assert "metrics" in client.names("")
    with pytest.raises(OSError, match="metrics"):
        client.write_text("metrics", "1")


def test_it_has_its_name_when_it_listens(monkeypatch, tmp_path):
    """Who waits for the name connects at once."""
    monkeypatch.setenv("TRACEPOINT_SOCKETS", str(tmp_path / "sockets"))
    seen = []

    class Seen(socket.socket):
        def listen(self, *args):
            seen.append(registry.find_processes())
            super().listen(*args)

    monkeypatch.setattr(server.socket, "socket", Seen)
    path = server.listen()
    monkeypatch.undo()
    assert seen == [[]]
    assert [each.name for each in path.parent.iterdir()] == [f"{os.getpid()}.socket"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    server.stop_listening()
    assert list(path.parent.iterdir()) == []


def test_nothing_listens_without_a_call(monkeypatch, tmp_path):
    monkeypatch.setenv("TRACEPOINT_SOCKETS", str(tmp_path / "sockets"))
    assert registry.find_processes() == []
    with pytest.raises(registry.ProcessError, match="TRACEPOINT=1"):
        registry.find_process(os.getpid())


def test_only_the_owner_may_open_it(served):
    assert stat.S_IMODE(served.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(served.path.parent.stat().st_mode) == 0o700
    near, far = socket.socketpair()
    with near, far:
        assert server.is_owner(near)
    served.path.parent.chmod(0o777)
    with pytest.raises(registry.ProcessError, match="written by others"):
        registry.check_folder(served.path.parent)
    served.path.parent.chmod(0o700)


def test_another_user_is_turned_away(served):
    class Stranger:
        def getsockopt(self, *_):
            return server._UCRED.pack(1, os.geteuid() + 12345, 1)

    assert not server.is_owner(Stranger())


@pytest.fixture
def ask(served):
    """Ask on one connection: a line of JSON, or what json.dumps() makes one of."""
    with socket.socket(socket.AF_UNIX) as stream:
        stream.connect(str(served.path))
        stream.settimeout(30)
        answers = stream.makefile("rb")

        def ask(body=b"", **request):
            stream.sendall(frame(request, body))
            return read_frame(answers)[0]

        yield ask


def test_an_error_of_ours_is_said_and_the_client_goes_on(served, ask, monkeypatch):
    def fail(*_):
        raise ValueError("ours")

    monkeypatch.setattr(ControlFiles, "mkdir", fail)
    answer = ask(op="mkdir", path="instances/a")
    assert answer["errno"] == errno.EIO
    assert re.fullmatch(
        r"internal error in 'mkdir': ValueError: ours \(test_socket\.py:\d+\)", answer["text"]
    )
    assert ask(op="hello")["pid"] == os.getpid()


def test_what_a_known_request_cannot_have_is_answered_and_the_client_goes_on(ask):
    for request, number in (
        ({"op": "nosuch"}, errno.ENOSYS),
        ({"op": "read", "handle": 7, "size": 1, "offset": 0}, errno.EBADF),
        ({"op": "close", "handle": 7}, errno.EBADF),
        ({"op": "read", "handle": 7, "size": -1, "offset": 0}, errno.EINVAL),
        ({"op": "write", "handle": 7, "body": b"A"}, errno.EBADF),
        ({"op": "save", "version": 99, "compression": ""}, errno.EINVAL),
        ({"op": "save", "version": 7, "compression": "nosuch"}, errno.EINVAL),
    ):
        assert ask(**request)["errno"] == number, request
    assert ask(op="hello")["pid"] == os.getpid()


@pytest.mark.parametrize(
    "request_line",
    [
        {"op": "read", "handle": True, "size": 1, "offset": 0},
        {"op": "stat"},
        {"op": "stat", "path": 7},
        {"op": "stat", "path": "trace", "more": 1},
        {"op": "mkdir", "path": "instances/\ud800"},
        {"op": 7},
    ],
    ids=range(6),
)
def test_what_is_not_a_request_ends_the_connection(ask, request_line):
    assert ask(**request_line)["errno"] == errno.EPROTO
    with pytest.raises((OSError, ValueError)):
        ask(op="hello")


def test_an_event_is_switched_and_read_from_outside(client):
    assert client.hello() == {"pid": os.getpid(), "n_events": 1, "n_enabled": 0}
    client.write_text("events/shop/order_sent/enable", "1")
    client.sent(5)
    assert "order_sent: order=5\n" in client.read_text("trace")
    assert client.stat("events") == (0o750, True)
    assert "enable" in client.names("events/shop/order_sent")
    client.mkdir("instances/a")
    client.rmdir("instances/a")
    client.truncate("trace")
    assert "order=5" not in client.read_text("trace")
    with pytest.raises(OSError, match="Invalid argument"):
        client.write_text("set_event", "nosuch")
    with pytest.raises(FileNotFoundError):
        client.stat("nosuch")


def test_a_pipe_waits_beyond_one_answer(client, served):
    pipe = client.open("trace_pipe")
    calls = []
    pipe.is_interrupted = lambda: calls.append(1) or len(calls) > 1
    with pytest.raises(InterruptedError):
        pipe.read(100, 0)
    client.write_text("trace_marker", "found")
    assert b"found" in pipe.read(4096, 0)
    pipe.close()
    assert served.tracing.is_on


@pytest.mark.parametrize(
    "line",
    [b"", b"[]", b"{}", b'{"op": 1}', b'{"op": "open"}', b'{"op": "read", "handle": 9, "size": 1, "offset": 0}',
     b'{"op": "nosuch"}', b"\xff", b"[" * 5000, b'{"op": "open", "path": 1, "flags": "x"}',
     b'{"op": "__class__"}', b'{"op": "write", "handle": {}}', b'{"op": "write", "handle": 1, "data": "!"}'],
)  # fmt: skip
def test_nonsense_is_answered(served, line):
    with socket.socket(socket.AF_UNIX) as stream:
        stream.connect(str(served.path))
        stream.sendall(frame(line))
        assert read_frame(stream.makefile("rb"))[0]["errno"] > 0
    with socket.socket(socket.AF_UNIX) as stream:
        stream.connect(str(served.path))
        stream.sendall(frame({"op": "hello"}))
        assert read_frame(stream.makefile("rb"))[0]["pid"] == os.getpid()


@pytest.mark.parametrize(
    "sent",
    [
        struct.pack("<IQ", (1 << 20) + 1, 0), struct.pack("<IQ", 2, (1 << 18) + 1) + b"{}", b"\xff" * 12,
        frame({"op": "hello"}, b"x"), frame({"op": "open", "path": "trace", "flags": 0}, b"x"),
    ],
    ids=["long head", "long body", "longest", "a body", "another body"],
)  # fmt: skip
def test_a_frame_that_is_too_long_or_has_a_body_ends_the_connection(served, sent):
    with socket.socket(socket.AF_UNIX) as stream:
        stream.connect(str(served.path))
        stream.settimeout(30)
        stream.sendall(sent)
        answers = stream.makefile("rb")
        assert read_frame(answers) == ({"errno": errno.EPROTO, "text": "this is not a request"}, b"")
        assert answers.read() == b""


@pytest.mark.parametrize("cut", [1, 11, 12, 13, 25, 26, 28])
def test_half_a_frame_is_nothing(served, cut):
    """The client goes in the middle of one: nothing is done, and nothing is answered."""
    whole = frame({"op": "write", "handle": 1}, b"1\n")
    assert len(whole) > 28
    with socket.socket(socket.AF_UNIX) as stream:
        stream.connect(str(served.path))
        stream.settimeout(30)
        stream.sendall(frame({"op": "open", "path": "events/shop/order_sent/enable", "flags": os.O_WRONLY}))
        answers = stream.makefile("rb")
        assert read_frame(answers)[0] == {"handle": 1}
        stream.sendall(whole[:cut])
        stream.shutdown(socket.SHUT_WR)
        assert answers.read() == b""
    assert not served.sent


def test_any_bytes_come_through(client):
    data = bytes(range(256)) * 3
    handle = client.open("trace_marker_raw", os.O_WRONLY)
    assert handle.write((5).to_bytes(4, "little") + data) == 4 + len(data)
    handle.close()
    found = []
    for cpu in range(os.cpu_count() or 1):
        pages = client.open(f"per_cpu/cpu{cpu}/trace_pipe_raw", os.O_RDONLY | os.O_NONBLOCK)
        with contextlib.suppress(BlockingIOError):
            found.append(pages.read(1 << 16, 0))
        pages.close()
    assert any(data in page for page in found)


PROGRAM = """
import os, sys, time
from tracepoint.runtime.declare.event import trace_event
from tracepoint.runtime.remote.server import listen
from tracepoint.model.python.types import u64

@trace_event(system="shop", printk='"order=%llu", order_id')
def order_sent(order_id: u64) -> None: ...

listen()
child = os.fork()
number = 0
while True:
    order_sent(number)
    number += 1
    time.sleep(0.01)
"""


def command(*words):
    done = subprocess.run(
        [sys.executable, "-m", "tracepoint", "ps", *words], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.programs
def test_the_command_finds_switches_and_records(monkeypatch, tmp_path):
    monkeypatch.setenv("TRACEPOINT_SOCKETS", str(tmp_path / "sockets"))
    assert command() == (1, "no process listens\n")
    program = subprocess.Popen([sys.executable, "-c", PROGRAM], start_new_session=True)
    try:
        sockets = tmp_path / "sockets"
        end = time.monotonic() + 120
        while len(list(sockets.glob("*.socket"))) < 2 and time.monotonic() < end:
            time.sleep(0.05)
        status, text = command()
        assert status == 0
        pids = [int(line.split()[0]) for line in text.splitlines()[1:]]
        assert program.pid in pids
        assert len(pids) == 2
        assert "name one with --pid: " in command("--list")[1]
        pid = str(program.pid)
        assert command("--pid", pid, "--enable", "shop:") == (0, "")
        assert command("--pid", pid, "--filter", "shop:order_sent", "order_id > 1")[0] == 0
        assert command("--pid", pid) == (0, "1  shop:order_sent\n")
        assert command("--pid", pid, "--enable", "nosuch")[0] == 2
        time.sleep(0.2)
        assert "order_sent: order=" in command("--pid", pid, "--cat", "trace")[1]
        target = tmp_path / "x.dat"
        assert command("--pid", pid, "--record", str(target))[0] == 0
        assert target.read_bytes()[3:10] == b"tracing"
        assert command("--pid", pid, "--disable", "shop:order_sent")[0] == 0
        assert command("--pid", pid, "--list")[1] == "0  shop:order_sent\n"
    finally:
        os.killpg(program.pid, 9)
        program.wait()
    assert command("--pid", str(program.pid), "--list")[0] == 2


def test_a_process_of_another_user_is_never_chosen_unasked(served, monkeypatch):
    assert ps.the_process(None).pid == os.getpid()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    found = registry.Process(os.getpid(), served.path)
    monkeypatch.setattr(ps, "find_processes", lambda: [found])
    with pytest.raises(
        ps.ProcessError, match=f"no process of yours listens .of other users: {os.getpid()}.*--pid"
    ):
        ps.the_process(None)


def test_a_number_that_no_process_has(served):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with pytest.raises(registry.ProcessError, match=f"there is no process {ended.pid}; `tracepoint ps`"):
        registry.find_process(ended.pid)
    assert "there is no process" in command("--pid", str(ended.pid), "--list")[1]
