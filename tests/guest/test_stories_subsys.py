"""The page about subsys_event: the modules of its commands are built, loaded and do what it shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from guest.pages import ROOT, check_page, series
from tracepoint.errors import LabError
from tracepoint.lab.kernels.headers import fetch_headers

if TYPE_CHECKING:
    from tracepoint.lab.guest.machine import Guest

pytestmark = pytest.mark.guest
PAGE = ROOT / "docs/explanation/subsys-event.md"


@pytest.fixture
def modules(guest: Guest, tmp_path: Path) -> list[Path]:
    """The two modules, built for the guest's kernel by the page's own shell block."""
    try:
        fetch_headers(guest.image)
    except LabError as error:
        pytest.skip(f"no headers to build modules with: {error}")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    block = PAGE.read_text().partition("```sh\n")[2].partition("```")[0]
    assert "lab get 6.1 " in block
    done = in_shell(block.replace("lab get 6.1 ", f"lab get {series(guest)} "), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted((tmp_path / "subsys").glob("*.ko"))


def in_shell(block: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the lines of a page in a folder, with this tracepoint on the path."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["/bin/sh", "-ec", block],
        cwd=folder,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_page_says_what_happens(guest, modules):
    for module in modules:
        guest.put(f"/tmp/{module.name}", module.read_bytes())
    check_page(PAGE, guest)
    assert "tracepoint_" not in guest.read("/proc/modules")


def test_a_probe_of_another_type_does_not_compile(guest, modules, tmp_path):
    probe = tmp_path / "subsys/tracepoint_probe_example.c"
    text = probe.read_text()
    assert text.count("int firstarg, struct task_struct *p") == 1
    probe.write_text(text.replace("int firstarg, struct task_struct *p", "long firstarg"))
    block = PAGE.read_text().partition("```sh\n")[2].partition("```")[0]
    make = block.splitlines()[-1].replace("lab get 6.1 ", f"lab get {series(guest)} ")
    done = in_shell(make, tmp_path)
    assert done.returncode != 0
    said = PAGE.read_text().partition("```text\n")[2].partition("\n```")[0].partition(" error: ")[2]
    assert said.startswith("passing argument 1 of 'register_trace_subsys_eventname'")
    # Which quotes a compiler prints is a matter of the locale.
    printed = (done.stderr + done.stdout).replace("\N{LEFT SINGLE QUOTATION MARK}", "'")
    assert said in printed.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
