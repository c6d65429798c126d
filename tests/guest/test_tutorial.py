"""The tutorial about recording: every command of it, in a folder with what the first tutorial made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from guest.conftest import kernel_or_skip
from guest.pages import ROOT

sys.path.insert(0, str(ROOT / "tools"))

from doc_blocks import BLOCK, environment, saved_name

UNITS = ("ns", "us", "ms", "s")
pytestmark = pytest.mark.guest


def blocks(page: str) -> list[tuple[str, str, str]]:
    """The kind, the text and the name to save it as, or "", of each block."""
    text = (ROOT / "docs/tutorial" / page).read_text()
    return [(b["kind"], b["text"], saved_name(text, b)) for b in BLOCK.finditer(text)]


def test_every_command_of_the_page_runs(tmp_path: Path) -> None:
    kernel_or_skip("6.1")
    for _, text, name in blocks("first-event.md"):
        if name:
            (tmp_path / name).write_text(text)
    shown = ""
    for kind, text, name in blocks("first-recording.md"):
        if name:
            (tmp_path / name).write_text(text)
        elif kind == "text":
            # Figures differ from run to run: the words of each line are there, in a line of their own.
            for line in text.splitlines():
                words = [word for word in line.split() if word.isalpha() and word not in UNITS]
                assert any(set(words) <= set(other.split()) for other in shown.splitlines()), line
        elif kind == "python":
            shown = run([sys.executable, "-c", text], tmp_path)
        else:
            # Anything else would run on this machine.
            assert kind == "sh"
            assert all(line.startswith("tracepoint ") for line in text.splitlines()), text
            shown = run(["bash", "-euo", "pipefail", "-c", text], tmp_path)


def run(command: list[str], folder: Path) -> str:
    """Run a command of the page; return what it printed."""
    done = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
