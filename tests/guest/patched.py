"""The kernel of the pages about swapping and traps: both patches in one, built by the commands of the pages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from guest.pages import ROOT
from tracepoint.errors import LabError
from tracepoint.lab.build.make import check_tools
from tracepoint.lab.build.source import fetch_source

PAGE = ROOT / "docs/explanation/swap.md"
SHOWN = "6.1"
MEMORY_MB = 80
_SECONDS = 3600


def shell_blocks(page: Path) -> list[str]:
    """Return the blocks of a page that are for this machine's shell."""
    return re.findall(r"^```sh\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def build(kernel: str) -> str:
    """Run the page's commands for `kernel` and return the name by which the result is booted.

    Skips, saying what is missing, where the source or a tool cannot be had.
    """
    commands, boot = shell_blocks(PAGE)[:2]
    try:
        check_tools()
        fetch_source(kernel)
    except LabError as error:
        if os.environ.get("TRACEPOINT_NEED_GUESTS"):
            raise
        pytest.skip(f"no kernel can be built: {error}")
    with TemporaryDirectory(prefix="tracepoint-patched-") as scratch:
        (Path(scratch) / "examples").symlink_to(ROOT / "examples")
        done = subprocess.run(
            ["nice", "sh", "-ec", _for_kernel(commands, kernel)],
            cwd=scratch,
            env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    if done.returncode:
        raise LabError(
            f"the kernel {kernel} of {PAGE.name} was not built", log_tail=done.stdout + done.stderr
        )
    return re.search(r"--kernel (built:\S+)", _for_kernel(boot, kernel))[1]


def _for_kernel(commands: str, kernel: str) -> str:
    return re.sub(rf"(?<![\d.]){re.escape(SHOWN)}(?![\d.])", kernel, commands)
