"""What the commands that read recordings share: names of files, empty choices, outputs that are refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tracefile.making import GOLDEN

CUT = GOLDEN / "cut.v6.dat"
FORMS = ("arrow", "csv", "ctf", "jsonl", "parquet", "perfetto")


@pytest.fixture
def copy(tmp_path):
    """Write the recording under another name; returns its path."""

    def write(name: bytes) -> Path:
        path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
        path.write_bytes(CUT.read_bytes())
        return path

    return write


@pytest.mark.parametrize("form", FORMS)
def test_names_that_are_no_utf8_are_converted(run_command, copy, tmp_path, form):
    if form in ("arrow", "parquet"):
        pytest.importorskip("pyarrow", reason="no pyarrow: pip install pyarrow")
    path = copy(b"a\xff.dat")
    out = path.with_name(f"{path.stem}.out")
    status, _, err = run_command("convert", path, out, "--to", form, "sched_switch")
    assert (status, err) == (0, "")
    assert out.exists()
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_names_cannot_act_on_a_terminal(run_command, copy):
    path = copy(b"a\x1b[31m\n\xff.dat")
    status, out, _ = run_command("stat", path)
    assert status == 0
    assert out.splitlines()[0].endswith(r"a\x1b[31m\n\xff.dat: trace.dat version 6, 60.0 KiB, not compressed")
    assert "\x1b" not in run_command("stat", f"{path}.gone")[2]
    assert "\x1b" not in run_command("read", path, "no_such_event")[2]


def test_an_empty_name_is_not_the_current_folder(run_command):
    for words in (["stat", ""], ["read", ""]):
        status, _, err = run_command(*words)
        assert (status, "No such file" in err or "an empty name" in err) == (2, True), err


@pytest.mark.parametrize("form", ["text", "jsonl", "csv", "arrow", "parquet"])
@pytest.mark.parametrize("choice", [["--from", "99"], ["--pid", "77"], ["no_such_event"]])
def test_an_empty_choice_is_the_same_in_all_formats(run_command, form, choice):
    status, _, err = run_command("read", CUT, "--format", form, *choice)
    assert (status, "error" in err, "no " in err) == (1, False, True), err


def test_a_conversion_that_ends_leaves_no_folder(run_command, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow", reason="no pyarrow: pip install pyarrow")

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("tracepoint.convert.parquet._Part.write", interrupt)
    assert run_command("convert", CUT, tmp_path / "a" / "b", "--to", "parquet")[0] == 130
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ("read", "--format", "text"),
        ("read", "--format", "arrow", "sched_switch"),
        ("read", "--format", "parquet", "sched_switch"),
        ("cut", "-o", "-"),
        ("convert", "-", "--to", "jsonl"),
        ("convert", "-", "--to", "perfetto"),
    ],
)
def test_a_full_disk_is_the_same_error_everywhere(words):
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full, whose every write fails")
    if words[2] in ("arrow", "parquet"):
        pytest.importorskip("pyarrow", reason="no pyarrow: pip install pyarrow")
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "tracepoint", words[0], str(CUT), *words[1:]]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    said = "tracepoint: error: cannot write to stdout: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, said)


@pytest.mark.parametrize("form", ["ctf", "parquet"])
def test_a_folder_that_is_there_has_a_hint(run_command, tmp_path, form):
    if form == "parquet":
        pytest.importorskip("pyarrow", reason="no pyarrow: pip install pyarrow")
    words = ["convert", CUT, tmp_path / "made", "--to", form, "sched_switch"]
    assert run_command(*words)[0] == 0
    status, _, err = run_command(*words)
    assert (status, "name another, or remove it" in err) == (2, True), err
