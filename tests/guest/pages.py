"""Pages whose commands run in a guest: their blocks are run there, and compared or written anew.

A block that begins with ```` ```console guest ```` is for every kernel that the page is run on, `guest=6.1` for
that one. Every line `# command` is run by the guest's shell in /sys/kernel/tracing (lines that begin with
`> ` go on), and what stands below it is its output, `...` standing for lines left out. With the word `about`, numbers need not
be those of the page: times, addresses and pids differ from run to run.

With TRACEPOINT_WRITE_DOCS set, what the guest said is written into the page instead of being compared.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.lab.guest.workloads import workload_files

if TYPE_CHECKING:
    from tracepoint.lab.guest.machine import Guest

ROOT = Path(__file__).resolve().parent.parent.parent
_BLOCK = re.compile(r"^```console (guest[^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_STEP = re.compile(r"^(?=# )", re.MULTILINE)
_NUMBER = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+(?:\.\d+)?")
_LEFT_OUT = "...\n"
_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Step:
    """One command of a page, what the page says it prints, and what it printed."""

    command: str
    written: str
    actual: str
    is_about: bool

    @property
    def is_true(self) -> bool:
        """Whether the page is right: left-out lines apart, and numbers where they may differ."""
        written, actual = (_plain(text) if self.is_about else text for text in (self.written, self.actual))
        parts = [re.escape(part) for part in re.split(r"^\.\.\.\n", written, flags=re.MULTILINE)]
        return re.fullmatch("(?:.*\n)*".join(parts), actual) is not None


def series(guest: Guest) -> str:
    """Return which kernel a guest has, as pages name it: 6.1."""
    return ".".join(guest.image.release.split(".")[:2])


def run_page(path: Path, guest: Guest) -> list[Step]:
    """Run the blocks of a page that are for the guest's kernel; returns the steps that were not as written."""
    kernel = series(guest)
    text = path.read_text(encoding="utf-8")
    steps = []
    for words, body in _BLOCK.findall(text):
        place, *flags = words.split()
        if place in ("guest", f"guest={kernel}"):
            steps += [_run(part, guest, is_about="about" in flags) for part in _STEP.split(body) if part]
    assert steps, f"{path} has no block for {kernel}"
    wrong = [step for step in steps if not step.is_true]
    if wrong and os.environ.get("TRACEPOINT_WRITE_DOCS"):
        for step in wrong:
            if _LEFT_OUT not in step.written:
                text = text.replace(f"{step.command}{step.written}", f"{step.command}{step.actual}", 1)
        path.write_text(text, encoding="utf-8")
        return []
    return wrong


def check_page(path: Path, guest: Guest) -> None:
    """Run a page and fail with the first step that is not as written."""
    # A page begins with a kernel that was booted just now, and this one may have run other tests.
    guest.run("echo 1 >/sys/kernel/tracing/tracing_on")
    for step in run_page(path, guest):
        raise AssertionError(
            f"{path.name} on {series(guest)}:\n{step.command}it says:\n{step.written}it printed:\n{step.actual}"
        )


def bring(guest: Guest, *names: str) -> None:
    """Put workloads of ours into a booted guest."""
    for path, data in workload_files(names).items():
        guest.put(path, data)
        guest.run(f"chmod 755 {path}")


def commands(path: Path) -> list[str]:
    """Return what stands after `$ ` in the page: commands for this machine."""
    return re.findall(r"^\$ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)


def _run(part: str, guest: Guest, *, is_about: bool) -> Step:
    lines = part.splitlines(keepends=True)
    count = 1 + next((n for n, line in enumerate(lines[1:]) if not line.startswith("> ")), len(lines) - 1)
    command = "cd /sys/kernel/tracing\n" + "".join(line[2:] for line in lines[:count])
    done = guest.run(command, timeout=_SECONDS, check=False)
    said = done.text if not done.text or done.text.endswith("\n") else done.text + "\n"
    return Step("".join(lines[:count]), "".join(lines[count:]), said, is_about)


def _plain(text: str) -> str:
    """Return a text with every number as N, and runs of blanks (columns) as one."""
    return re.sub(r"[ \t]+", " ", _NUMBER.sub("N", text))
