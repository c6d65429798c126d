"""Recordings from stdin (`-`) and from pipes, compressed or not, in every command that reads one."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import threading
from types import SimpleNamespace

import pytest

from tracefile.making import GOLDEN
from tracepoint.tracefile import filebytes

CUT = GOLDEN / "cut.v6.dat"
EXPANDED = CUT.read_bytes()
PACKERS = {"plain": bytes, "gzip": gzip.compress, "xz": lzma.compress, "bzip2": bz2.compress}
COMMANDS = {
    "read": ["read", "FILE"],
    "stat": ["stat", "FILE"],
    "sql": ["sql", "FILE", 'select count(*) from "sched:sched_switch"'],
    "cut": ["cut", "FILE", "-o", "OUT.dat"],
    "merge": ["merge", "FILE", "-o", "OUT.dat"],
    "convert": ["convert", "FILE", "OUT.jsonl"],
    "analyse": ["analyse", "sched", "FILE"],
    "compare": ["compare", str(CUT), "FILE"],
    "report": ["report", "FILE", "-o", "OUT.html"],
}


@pytest.fixture
def give(monkeypatch):
    """Put bytes on stdin."""

    def put(data):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data), isatty=lambda: False))

    return put


def outcome(run_command, tmp_path, command, name):
    """What a command gives for a recording of a name: status, output and files."""
    out = tmp_path / "out"
    words = [word.replace("FILE", name).replace("OUT", str(out)) for word in COMMANDS[command]]
    status, text, _ = run_command(*words)
    # Its name, and the size, which is that of the pages where there is no file.
    lines = [line for line in text.splitlines() if not line.startswith("file ")]
    return (
        status,
        lines,
        [path.read_bytes().replace(CUT.name.encode(), b"-") for path in tmp_path.glob("out.*")],
    )


@pytest.mark.parametrize(("command", "form"), [("read", "plain"), *((name, "gzip") for name in COMMANDS)])
def test_a_recording_from_stdin_is_that_of_the_file(run_command, tmp_path, give, command, form):
    if command == "sql":
        pytest.importorskip("duckdb")
    expected = outcome(run_command, tmp_path, command, str(CUT))
    give(PACKERS[form](EXPANDED))
    assert outcome(run_command, tmp_path, command, "-") == expected
    assert expected[0] == 0


@pytest.mark.parametrize("form", PACKERS)
@pytest.mark.parametrize("kind", ["named", "of the shell"])
def test_pipes_are_read_to_their_end(run_command, tmp_path, form, kind):
    if kind == "named":
        name = str(tmp_path / "pipe")
        os.mkfifo(name)
        reader, target = None, name
    else:
        reader, target = os.pipe()
        name = f"/dev/fd/{reader}"

    def write():
        with open(target, "wb") as file:  # noqa: PTH123 - a number too
            file.write(PACKERS[form](EXPANDED))

    thread = threading.Thread(target=write)
    thread.start()
    try:
        status, text, _ = run_command("read", name)
    finally:
        thread.join()
        if reader is not None:
            os.close(reader)
    assert (status, text) == run_command("read", str(CUT))[:2]


def test_stdin_that_gives_nothing_is_said(run_command, give):
    give(b"")
    assert run_command("stat", "-")[::2] == (
        2, "tracepoint: error: -, offset 0x0: nothing came through stdin, which can be read once\n"
    )  # fmt: skip
    give(EXPANDED)
    assert "can be read once" in run_command("compare", "-", "-")[2]


def test_stdin_is_merged_once(run_command, give, tmp_path):
    give(EXPANDED)
    status, _, err = run_command("merge", "-", "-", "-o", str(tmp_path / "x.dat"))
    assert (status, "- is given more than once" in err) == (2, True)
    assert not (tmp_path / "x.dat").exists()


def test_a_device_names_what_to_do(run_command):
    status, _, err = run_command("stat", "/dev/zero")
    assert status == 2
    assert "/dev/zero: a device or a socket: pipe what comes from it into -, or into" in err
    assert "read --follow -" in err


def test_a_shell_and_a_recording_are_not_both_on_stdin(run_command, give):
    give(EXPANDED)
    assert "--shell reads queries from stdin" in run_command("sql", "--shell", "-")[2]


@pytest.mark.parametrize("form", ["gzip", "xz", "bzip2"])
def test_what_is_compressed_is_not_followed(run_command, tmp_path, form):
    path = tmp_path / "pages"
    path.write_bytes(PACKERS[form](EXPANDED))
    status, _, err = run_command("read", "--follow", str(path))
    assert status == 2
    assert "compressed: read it without following" in err


@pytest.mark.parametrize("form", ["plain", "gzip"])
def test_a_full_disk_is_said_and_leaves_room_for_others(run_command, give, monkeypatch, form):
    give(PACKERS[form](EXPANDED))
    n_free = [4 << 30, 5 << 20]
    monkeypatch.setattr(filebytes, "_CHECKED_BYTES", 1 << 14)
    monkeypatch.setattr(
        os, "fstatvfs", lambda _: SimpleNamespace(f_bavail=n_free[0], f_frsize=1, f_blocks=1 << 30)
    )
    assert run_command("stat", "-")[0] == 0
    give(PACKERS[form](EXPANDED))
    n_free.reverse()
    status, _, err = run_command("stat", "-")
    assert status == 2
    assert "no room for it in" in err
    assert "TMPDIR names another folder" in err
