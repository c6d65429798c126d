"""The frame of the command line: streams, exit statuses, colour, help, start-up."""

from __future__ import annotations

import io
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import tracepoint
from tracepoint.cli import main as program
from tracepoint.cli.commands import COMMANDS
from tracepoint.cli.main import main
from tracepoint.cli.output import Output
from tracepoint.cli.signals import left_to_others
from tracepoint.errors import LabError, SourceError

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {
    *("numpy", "pandas", "pyarrow", "polars", "duckdb", "plotly", "matplotlib", "altair", "rich", "dask"),
    *(
        "asyncio",
        "multiprocessing",
        "unittest",
        "xml",
        "email",
        "http",
        "urllib.request",
        "ssl",
        "importlib.metadata",
    ),
}


def run(*words: str, env: dict[str, str] | None = None, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tracepoint", *words],
        cwd=ROOT,
        env=os.environ | (env or {}),
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch):
    """Replace the module of `explain` by one that does what a test wants."""

    def install(act) -> None:
        module = SimpleNamespace(add_arguments=lambda parser: None, run=act)
        monkeypatch.setattr(program, "_load", lambda command: module)

    return install


def test_version_with_v_names_the_modules_in_use() -> None:
    def lines(pure: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-m", "tracepoint", "-V", "-v"],
            env=os.environ | {"TRACEPOINT_PURE": pure},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.splitlines()

    assert lines("")[0] == f"tracepoint {tracepoint.__version__}"
    assert [line.partition(":")[0] for line in lines("")[2:]] == ["tracepoint._core", "tracepoint._decode"]
    assert [line.partition(": ")[2] for line in lines("1")[2:]] == [
        "TRACEPOINT_PURE is set: its twin in Python is used"
    ] * 2


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version_is_data(option: str) -> None:
    done = run(option)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"tracepoint {tracepoint.__version__}\n", "")


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (["help"], ["--help"]),
        (["help", "check"], ["check", "--help"]),
        (["help", "lab", "run"], ["lab", "run", "--help"]),
    ],
)
def test_help_is_a_command_too(words: list[str], same: list[str]) -> None:
    asked, option = run(*words), run(*same)
    assert (asked.returncode, asked.stdout) == (0, option.stdout)
    assert asked.stdout.startswith("usage: tracepoint")


def test_help_of_an_unknown_command_guesses() -> None:
    done = run("help", "chekc")
    assert (done.returncode, done.stderr) == (
        2,
        "tracepoint: error: no command 'chekc'; did you mean check?\n",
    )


def test_no_command_prints_help_to_stderr() -> None:
    done = run()
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: tracepoint" in done.stderr


@pytest.mark.parametrize(("typed", "meant"), [("chekc", "check"), ("ftm", "fmt"), ("exlpain", "explain")])
def test_unknown_command_is_guessed(typed: str, meant: str) -> None:
    done = run(typed)
    assert done.returncode == 2
    assert done.stderr == f"tracepoint: error: no command {typed!r}; did you mean {meant}?\n"


def test_unknown_command_unlike_any_lists_them() -> None:
    done = run("zzzzzz")
    assert done.returncode == 2
    assert all(name in done.stderr for name in COMMANDS)


@pytest.mark.parametrize(
    ("words", "missing"),
    [(["read"], "FILE"), (["convert", "c.dat"], "OUT"), (["cut", "c.dat"], "-o/--output")],
)
def test_only_what_is_required_is_named_as_missing(words: list[str], missing: str, capsys) -> None:
    assert main(words) == 2
    assert f"error: the following arguments are required: {missing}\n" in capsys.readouterr().err


def test_bad_option_says_where_help_is() -> None:
    done = run("explain", "--no-such-option")
    assert done.returncode == 2
    assert done.stderr.startswith("tracepoint: error: ")
    assert "try: tracepoint" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (SourceError("no closing parenthesis"), 2, "no closing parenthesis"),
        (LabError("gcc failed", status=1), 5, "gcc failed"),
        (FileNotFoundError(2, "No such file or directory", "a.h"), 2, "a.h: No such file or directory"),
        (MemoryError(), 2, "out of memory"),
        (
            ValueError("odd"),
            2,
            "internal error: ValueError: odd\nTRACEPOINT_DEBUG=1 shows where; please report it",
        ),
    ],
)
def test_exceptions_become_exit_statuses(fake, capsys, error, status, message) -> None:
    def act(args, out):
        raise error

    fake(act)
    assert main(["explain"]) == status
    assert capsys.readouterr().err == f"tracepoint: error: {message}\n"


def test_debug_shows_the_traceback(fake, monkeypatch) -> None:
    def act(args, out):
        raise SourceError("x")

    fake(act)
    monkeypatch.setenv("TRACEPOINT_DEBUG", "1")
    with pytest.raises(SourceError):
        main(["explain"])


def test_interrupt_is_130(fake, capsys) -> None:
    def act(args, out):
        raise KeyboardInterrupt

    fake(act)
    assert main(["explain"]) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_command_status_is_the_programs(fake) -> None:
    fake(lambda args, out: 3)
    assert main(["explain"]) == 3


@pytest.mark.parametrize(
    ("words", "verbosity"),
    [
        (["explain"], 0),
        (["-q", "explain"], -1),
        (["explain", "-q"], -1),
        (["explain", "-vv"], 2),
        (["-v", "explain"], 1),
    ],
)
def test_verbosity_may_stand_before_or_after(fake, words, verbosity) -> None:
    seen = []
    fake(lambda args, out: seen.append(out.verbosity) or 0)
    assert main(words) == 0
    assert seen == [verbosity]


@pytest.mark.parametrize(
    ("verbosity", "lines"),
    [(-1, ["e"]), (0, ["e", "w", "s"]), (1, ["e", "w", "s", "d"])],
)
def test_verbosity_changes_stderr_only(verbosity, lines) -> None:
    stdout, stderr = io.StringIO(), io.StringIO()
    out = Output(stdout, stderr, verbosity=verbosity)
    out.line("data")
    out.error("e")
    out.warn("w")
    out.say("s")
    out.detail("d")
    assert stdout.getvalue() == "data\n"
    assert [line.rsplit(" ", 1)[-1] for line in stderr.getvalue().splitlines()] == lines


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("choice", "env", "stream", "wants"),
    [
        ("auto", {}, io.StringIO, False),
        ("auto", {}, Terminal, True),
        ("auto", {"NO_COLOR": "1"}, Terminal, False),
        ("auto", {"FORCE_COLOR": "1"}, io.StringIO, True),
        ("auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, Terminal, False),
        ("auto", {"NO_COLOR": ""}, Terminal, True),
        ("auto", {"TERM": "dumb"}, Terminal, False),
        ("never", {"FORCE_COLOR": "1"}, Terminal, False),
        ("always", {"NO_COLOR": "1"}, io.StringIO, True),
    ],
)
def test_colour(monkeypatch, choice, env, stream, wants) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    out = Output(stream(), stream(), color=choice)
    assert out.has_color is wants
    assert ("\x1b[" in out.style("x", "red")) is wants


def test_progress_is_silent_off_a_terminal(monkeypatch) -> None:
    stderr = io.StringIO()
    clock = iter(range(100))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    with Output(io.StringIO(), stderr).progress("reading", 3) as progress:
        assert list(progress.over("abc")) == ["a", "b", "c"]
    assert stderr.getvalue() == ""


def test_progress_shows_rate_and_cleans_up(monkeypatch) -> None:
    stderr = Terminal()
    clock = iter(range(100))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    with Output(io.StringIO(), stderr).progress("reading", 3) as progress:
        progress.step()
        progress.step()
    assert "reading: 2 of 3, 1 a second" in stderr.getvalue()
    assert stderr.getvalue().endswith("\r\x1b[K")


def test_progress_waits_half_a_second(monkeypatch) -> None:
    stderr = Terminal()
    monkeypatch.setattr(time, "monotonic", lambda: 1.0)
    with Output(io.StringIO(), stderr).progress("reading", 3) as progress:
        progress.step()
    assert stderr.getvalue() == ""


def test_closed_pipe_ends_quietly() -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "tracepoint", "--version"],
            stdout=closed,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.stderr == b""
    assert done.returncode == 128 + signal.SIGPIPE


@pytest.mark.programs
@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_each_command_ends_with_its_examples(name: str) -> None:
    done = run(name, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("".join(f"  {line}\n" for line in COMMANDS[name].examples))
    assert 2 <= len(COMMANDS[name].examples) <= 3


@pytest.mark.programs
@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_imports_nothing_heavy(name: str) -> None:
    code = (
        "import sys\n"
        "from tracepoint.cli.main import main\n"
        f"main({[name, '--help'] if name else ['--help']!r})\n"
        "sys.stderr.write(' '.join(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert HEAVY & set(done.stderr.split()) == set()


def test_top_help_imports_no_room() -> None:
    code = "import sys, tracepoint.cli.main as m; m.main(['--help']); sys.stderr.write(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    rooms = {m[1] for name in done.stderr.split() if (m := re.match(r"tracepoint\.(\w+)", name))}
    assert rooms == {"cli", "errors", "named"}


# Those of commands on a running kernel are run in a guest: tests/control/test_guest.py.
EXAMPLES = [e for command in COMMANDS.values() if not command.is_live for e in command.examples]


@pytest.mark.programs
@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_of_help_run(example: str) -> None:
    words = shlex.split(example, comments=True)
    assert words[0] == "tracepoint"
    done = run(*words[1:])
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["explain", "TP301"], ["show", "examples/swap.h"]]
)
@pytest.mark.parametrize("buffered", ["", "1"])
def test_a_full_disk_is_an_error_that_names_stdout(words: list[str], buffered: str) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full, whose every write fails")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tracepoint", *words],
            cwd=ROOT,
            env=os.environ | {"PYTHONUNBUFFERED": buffered},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (
        2,
        "tracepoint: error: cannot write to stdout: No space left on device\n",
    )


def closed(numbers: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run with streams closed, as `>&-` in a shell does."""
    redirections = " ".join(f"{number}>&-" for number in numbers)
    line = f'exec "$@" {redirections}'
    return subprocess.run(
        ["sh", "-c", line, "sh", sys.executable, "-m", "tracepoint", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_closed_stdout_is_an_error_for_what_prints() -> None:
    done = closed("1", "explain", "TP301")
    assert (done.returncode, done.stderr) == (
        2,
        "tracepoint: error: cannot write to stdout: Bad file descriptor\n",
    )


def test_a_closed_stdout_does_not_matter_to_what_prints_nothing(tmp_path: Path) -> None:
    done = closed("1", "generate", "markdown", "examples/swap.h", "-o", str(tmp_path))
    assert done.returncode == 0
    # The file is not the one that took the number of stdout.
    assert (tmp_path / "swap.md").read_text().startswith("# Trace events of kmem\n")


@pytest.mark.thorough
def test_closed_stdin_and_stderr() -> None:
    assert closed("0", "show", "-").stderr == "tracepoint: error: stdin: Bad file descriptor\n"
    done = closed("2", "check", "nosuch")
    assert (done.returncode, done.stdout) == (2, "")
    done = closed("012", "check", "examples/swap.h")
    assert done.returncode == 0


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_stdout_has_the_bytes_of_the_files_whatever_the_locale(tmp_path: Path, encoding: str) -> None:
    text = (ROOT / "examples/swap.h").read_bytes().replace(b'"pfn=', '"größe—'.encode() + b"\xfc=")
    (tmp_path / "swap.h").write_bytes(text)
    done = subprocess.run(
        [sys.executable, "-m", "tracepoint", "show", "swap.h"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert 'print fmt: "größe—'.encode() + b"\xfc=" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["hist", "a:b", "k", "--seconds", "nan"], "'nan' is not a time in seconds from 0 to 1e+06"),
        (["record", "a", "--seconds", "-1"], "'-1' is not a time in seconds"),
        (["record", "a", "--buffer-kb", "0"], "'0' is not a whole number from 1 to"),
        (["hist", "a:b", "k", "--size", "64"], "'64' is not a whole number from 65 to 131072"),
        (["list", "--pid", "0"], "'0' is not a whole number from 1 to"),
        (["index", ".", "-j", "0"], "'0' is not a whole number from 1 to 1024"),
        (["lab", "run", "--memory", "1"], "'1' is not a whole number from 64 to"),
    ],
)
def test_numbers_out_of_bounds_name_the_bounds(words: list[str], said: str, capsys) -> None:
    assert main(words) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if command.meanwhile])
def test_help_says_how_to_run_a_command_meanwhile(name: str, capsys) -> None:
    assert main([name, "--help"]) == 0
    assert "\n  -- COMMAND [WORD ...]" in capsys.readouterr().out


def test_a_command_where_none_is_run_is_refused(capsys) -> None:
    assert main(["restore", "--", "ls"]) == 2
    assert capsys.readouterr().err == (
        "tracepoint: error: unrecognized arguments: -- ls\ntry: tracepoint restore --help\n"
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_the_reference_names_every_command(name: str) -> None:
    text = (ROOT / "docs/reference/commands.md").read_text()
    words = {word for cell in re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE) for word in cell.split()}
    assert name in words


def test_a_current_folder_that_was_removed(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        [
            "sh",
            "-c",
            'cd "$1"; rmdir "$1"; shift; exec "$@"',
            "sh",
            str(gone),
            sys.executable,
            "-m",
            "tracepoint",
            "check",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        2,
        "tracepoint: error: the current folder no longer exists\n",
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_us_lets_everything_be_put_away(fake, number: signal.Signals) -> None:
    done = []

    def act(args, out):
        try:
            os.kill(os.getpid(), number)
            time.sleep(10)
        finally:
            # A second one changes nothing.
            os.kill(os.getpid(), number)
            done.append(True)

    fake(act)
    assert main(["explain"]) == 128 + number
    assert done == [True]
    assert signal.getsignal(number) is signal.SIG_DFL


def test_an_ignored_signal_stays_ignored(fake) -> None:
    old = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        fake(lambda args, out: os.kill(os.getpid(), signal.SIGHUP) or 0)
        assert main(["explain"]) == 0
    finally:
        signal.signal(signal.SIGHUP, old)


def test_a_library_that_handles_signals_itself_finds_them_unhandled(fake) -> None:
    seen = []

    def act(args, out):
        with left_to_others():
            seen.append(signal.getsignal(signal.SIGTERM))
        seen.append(signal.getsignal(signal.SIGTERM))
        return 0

    fake(act)
    assert main(["explain"]) == 0
    assert seen[0] is signal.SIG_DFL
    assert seen[1] is not signal.SIG_DFL
