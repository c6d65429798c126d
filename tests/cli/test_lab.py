"""`tracepoint lab`: its words, and how a build tells how far it is; what needs a guest is in tests/guest."""

from __future__ import annotations

import io
import os
import pty
import struct
import sys
import termios
import time
from fcntl import ioctl

import pytest

from tracepoint.cli.lab.build import _Watch
from tracepoint.cli.lab.lab import VERBS
from tracepoint.cli.main import main
from tracepoint.cli.output import Output


@pytest.mark.parametrize("verb", ["kernels", "get", "run", "build", "shell"])
def test_every_verb_takes_the_options_of_all_commands(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", verb, "-q", "-v", "--color", "never", "--help"]) == 0
    assert "-q, --quiet" in capsys.readouterr().out


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_each_verb_says_what_it_does_and_ends_with_examples(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lab", verb, "--help"]) == 0
    shown = capsys.readouterr().out
    assert VERBS[verb].description in shown
    assert shown.endswith("".join(f"  {line}\n" for line in VERBS[verb].examples))
    assert all(
        line.startswith(f"tracepoint lab {verb} ") or verb == "kernels" for line in VERBS[verb].examples
    )


def test_quiet_behind_the_verb(
    capsys: pytest.CaptureFixture[str], tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert main(["lab", "kernels"]) == 0
    assert capsys.readouterr().err != ""
    assert main(["lab", "kernels", "-q"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("word", ["./nosuch.sh", "../nosuch"])
def test_a_script_that_is_not_here_is_no_command_of_the_guest(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lab", "run", word]) == 5
    assert capsys.readouterr().err == f"tracepoint: error: {word}: no such script\n"


def test_a_shell_wants_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("uname -r\n"))
    assert main(["lab", "shell"]) == 5
    assert "stdin is not a terminal" in capsys.readouterr().err


def test_a_log_gets_a_line_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    stderr = io.StringIO()
    with _Watch(Output(io.StringIO(), stderr)) as watch:
        for second in range(150):
            now[0] = 1000.0 + second
            watch.see("building 6.1", second * 5, 1000)
    assert stderr.getvalue() == (
        "building 6.1: 300 of about 1000 objects, 1:00\nbuilding 6.1: 600 of about 1000 objects, 2:00\n"
    )


def test_a_line_of_progress_never_wraps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    leader, follower = pty.openpty()
    ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 20, 0, 0))
    with os.fdopen(follower, "w") as terminal:
        with _Watch(Output(io.StringIO(), terminal)) as watch:
            watch.see("building 6.1.192", 5, 1000)
        terminal.flush()
        shown = os.read(leader, 1000).decode()
    os.close(leader)
    assert shown == "\r\x1b[Kbuilding 6.1.192: 5\r\x1b[K"
