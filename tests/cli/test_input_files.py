"""Input of any size and kind: refused at once, in bounded memory, with a line that says why."""

import os
import resource
import subprocess
import sys

import pytest

COMMANDS = {
    "check": ["check"],
    "fmt": ["fmt", "--diff"],
    "show": ["show"],
    "try": ["try"],
    "read": ["read"],
    "generate": ["generate", "module"],
}
KINDS = {"fifo": "a FIFO", "zero": "a device", "sparse": "too much|not a trace.dat|no trace.dat|magic"}


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))


def make(kind, folder):
    if kind == "zero":
        return "/dev/zero"
    path = folder / "given.h"
    if kind == "fifo":
        os.mkfifo(path)
    else:
        with path.open("wb") as file:
            file.truncate(2 << 30)
    return str(path)


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_is_refused(command, kind, tmp_path):
    given = make(kind, tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "tracepoint", *COMMANDS[command], given],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        preexec_fn=limit,
        check=False,
        timeout=120,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert given in done.stderr
    assert "Traceback" not in done.stderr
    if kind != "sparse":
        assert KINDS[kind] in done.stderr


@pytest.mark.parametrize(
    "data",
    [
        b"",
        "TRACE_EVENT(a, TP_PROTO(int n));".encode("utf-16"),
        b"#define A\rTRACE\r",
        bytes(range(256)) * 20,
        b"int main(void) { return 0; }\n",
    ],
    ids=["empty", "utf-16", "cr-only", "binary", "c"],
)
def test_a_file_without_trace_events_is_said_to_be_one(data, tmp_path):
    path = tmp_path / "given.h"
    path.write_bytes(data)
    done = subprocess.run(
        [sys.executable, "-m", "tracepoint", "check", path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert f"{path}: there is no trace event in it" in done.stderr
