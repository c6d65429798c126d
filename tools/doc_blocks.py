"""The console blocks of the documentation: run and compared, or (`--update FILE...`) rewritten.

In a Markdown file, "Save this as `NAME`:" before a code block makes that file in an empty folder
that has the project's examples; in a `console` block every `$ command` is run there, and what
follows it is its output (stdout and stderr together), `...` standing for lines left out.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
SAVED = re.compile(r"[Ss]ave\s+this\s+as\s+`([\w.]+)`")
LEFT_OUT = "..."


@dataclass(frozen=True)
class Step:
    """One command of a page: what it is, what the page says it prints, what it prints."""

    command: str
    written: str
    actual: str

    @property
    def is_true(self) -> bool:
        """Whether the page is right, left-out lines apart."""
        pieces = [
            re.escape(part)
            for part in re.split(rf"^{re.escape(LEFT_OUT)}\n", self.written, flags=re.MULTILINE)
        ]
        return re.fullmatch("(?:.*\n)*".join(pieces), self.actual) is not None


def run_page(path: Path) -> list[Step]:
    """Do what a page says, in a folder of its own."""
    text = path.read_text(encoding="utf-8")
    steps = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "examples").symlink_to(ROOT / "examples")
        (folder / "tests").symlink_to(ROOT / "tests")
        for block in BLOCK.finditer(text):
            file = saved_name(text, block)
            if block["kind"] == "console":
                steps += [run_step(part, folder) for part in split_steps(block["text"])]
            elif file:
                (folder / file).write_text(block["text"], encoding="utf-8")
    return steps


def saved_name(page: str, block: re.Match[str]) -> str:
    """Return the name that a page saves a block as, empty for none."""
    before = page[: block.start()].rstrip().rsplit("\n\n", 1)[-1]
    saved = SAVED.search(before)
    return saved[1] if saved else ""


def environment() -> dict[str, str]:
    """Return the environment of a command: this Python's `tracepoint` is first on PATH."""
    return os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "NO_COLOR": "1"}


def split_steps(text: str) -> list[str]:
    """Split a console block before every `$ `."""
    return [part for part in re.split(r"^(?=\$ )", text, flags=re.MULTILINE) if part.startswith("$ ")]


def run_step(part: str, folder: Path) -> Step:
    """Run one command."""
    first, _, written = part.partition("\n")
    done = subprocess.run(
        ["/bin/sh", "-c", first[2:]],
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return Step(first[2:], written, done.stdout.decode(errors="replace"))


def update(path: Path) -> None:
    """Write what commands print today into a page, except where lines are left out."""
    text = path.read_text(encoding="utf-8")
    for step in run_page(path):
        if not step.is_true and f"{LEFT_OUT}\n" not in step.written:
            text = text.replace(f"$ {step.command}\n{step.written}", f"$ {step.command}\n{step.actual}", 1)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] != ["--update"]:
        sys.exit(__doc__)
    for page in sys.argv[2:]:
        update(Path(page))
