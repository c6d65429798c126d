"""What the commands that read recordings share: names of files, empty choices, outputs that are refused."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tracefile.making import GOLDEN
from tracepoint.tracefile.compression import has_zstd

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


def test_a_damaged_compressed_file_is_not_called_empty(run_command, tmp_path):
    path = tmp_path / "cut.dat.gz"
    path.write_bytes(gzip.compress(CUT.read_bytes())[:10] + b"\xff" * 100)
    err = run_command("stat", path)[2]
    assert ("damaged" in err, "empty" in err) == (True, False), err


def test_stat_says_what_the_whole_file_is_compressed_with(run_command, tmp_path):
    path = tmp_path / "cut.dat.gz"
    path.write_bytes(gzip.compress(CUT.read_bytes()))
    assert run_command("stat", path)[1].splitlines()[0].endswith(", in a gzip file")


@pytest.mark.skipif(not has_zstd(), reason="no zstd: pip install zstandard")
def test_a_file_that_was_cut_off_says_so(run_command, tmp_path):
    path = tmp_path / "cut.dat"
    path.write_bytes((GOLDEN / "cut.v7.zstd.dat").read_bytes()[:9000])
    assert "the file was cut off after 9000 bytes" in run_command("stat", path)[2]


@pytest.mark.parametrize(
    ("time", "words"),
    [
        ("99999999999", "more seconds than a time of a trace has"),
        ("10_0.5", "not a time"),
        ("\u0661", "not a time"),
    ],
)
def test_times_that_are_refused(run_command, time, words):
    status, _, err = run_command("read", CUT, "--from", time)
    assert (status, words in err) == (2, True), err


def test_until_and_format_are_the_same_everywhere(run_command, tmp_path):
    out = tmp_path / "made"
    assert run_command("read", CUT, "--until", "10.64") == run_command("read", CUT, "--to", "10.64")
    assert run_command("convert", CUT, out, "--until", "10.64", "--format", "csv")[0] == 0
    assert "for a time give --until" in run_command("convert", CUT, out, "--to", "10.64")[2]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prev_pri < 100", ["no field 'prev_pri'; did you mean 'prev_prio'?", "\n           ^"]),
        ("prev_prio < 100 &&", ["Meaningless filter expression\n"]),
        ("prev_prio < 1 && " * 60 + "nope_no == 1", ["no field 'nope_no'", "at byte 1,", "..."]),
        ("prev_prio < 1 && " * 600 + "x", ["10,201 bytes"]),
    ],
)
def test_a_filter_that_is_refused(run_command, text, words):
    status, _, err = run_command("read", CUT, "--where", text)
    assert (status, [word for word in words if word not in err]) == (2, []), err
    assert len(err) < 400
    assert "Invalid argument" not in err
