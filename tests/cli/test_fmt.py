"""`tracepoint fmt`."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from tracepoint.cli.main import main
from tracepoint.model.fmt.text import format_text

UGLY = "TRACE_EVENT(a,TP_PROTO(int x),TP_ARGS(x));\n"
TIDY = format_text(UGLY).text


@pytest.fixture
def header(tmp_path: Path) -> Path:
    path = tmp_path / "a.h"
    path.write_text(UGLY)
    path.chmod(0o640)
    return path


def test_formats_in_place_and_keeps_permissions(header: Path, capsys) -> None:
    assert main(["fmt", str(header)]) == 0
    assert header.read_text() == TIDY != UGLY
    assert header.stat().st_mode & 0o777 == 0o640
    assert list(header.parent.iterdir()) == [header]
    assert capsys.readouterr() == ("", "1 of 1 files changed\n")


def test_second_run_changes_nothing(header: Path, capsys) -> None:
    main(["fmt", str(header)])
    assert main(["fmt", "--check", str(header)]) == 0
    assert capsys.readouterr().err.endswith("0 of 1 files would change\n")


def test_check_names_the_file_and_writes_nothing(header: Path, capsys) -> None:
    assert main(["fmt", "--check", str(header.parent)]) == 1
    assert header.read_text() == UGLY
    assert capsys.readouterr().out == f"{header}\n"


def test_diff_is_a_patch_that_applies(header: Path, capsys) -> None:
    assert main(["fmt", "--diff", str(header)]) == 1
    patch = capsys.readouterr().out
    assert header.read_text() == UGLY
    assert patch.startswith(f"--- a{header}\n+++ b{header}\n@@ -1 +1")
    new = "".join(line[1:] for line in patch.splitlines(keepends=True)[3:] if line[0] in "+ ")
    assert new == TIDY


def test_stdin_to_stdout(monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(UGLY.encode())))
    assert main(["fmt", "-"]) == 0
    assert capsys.readouterr().out == TIDY


def test_latin_1_survives(header: Path) -> None:
    header.write_bytes(b"/* caf\xe9 */\n" + UGLY.encode())
    assert main(["fmt", "-q", str(header)]) == 0
    assert header.read_bytes() == b"/* caf\xe9 */\n" + TIDY.encode()


def test_unbalanced_text_stays_and_is_status_2(header: Path, capsys) -> None:
    header.write_text("TRACE_EVENT(a, (\n")
    assert main(["fmt", str(header)]) == 2
    assert header.read_text() == "TRACE_EVENT(a, (\n"
    assert f"{header}:1:" in capsys.readouterr().err


def test_missing_file(tmp_path: Path, capsys) -> None:
    assert main(["fmt", str(tmp_path / "nosuch.h")]) == 2
    assert "nosuch.h: no such file or folder" in capsys.readouterr().err


def test_show_settings(capsys) -> None:
    assert main(["fmt", "--show-settings", "--exclude", "*/x/*"]) == 0
    assert 'exclude = ["*/x/*"]  # command line' in capsys.readouterr().out
