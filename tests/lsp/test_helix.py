"""The server in Helix, with the configuration that the documentation shows, in a terminal of tmux."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

import pytest

from debian_packages import unpack
from oracles import ROOT
from tracepoint.errors import LabError
from tracepoint.lab.kernels.suites import apt_options

pytestmark = [
    pytest.mark.programs,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux: apt-get install tmux"),
]
#: Debian has Helix in newer releases only; the C library that it wants is unpacked with it.
SUITE = "sid"
PACKAGES = ("hx", "libc6", "libgcc-s1")
SECONDS = 120
DRIVER = """#include <trace/events/swap.h>

void f(struct page *page)
{
	trace_mm_page_swap_in(page, 0, 0, false);
}
"""


class Terminal:
    """A window of tmux with one program, in a server of tmux of its own."""

    def __init__(self, socket: Path, command: str) -> None:
        # A configuration of the user's would change what is shown.
        self._tmux = ["tmux", "-f", "/dev/null", "-S", str(socket)]
        self._run("new-session", "-d", "-x", "120", "-y", "60", command)

    def _run(self, *words: str) -> str:
        done = subprocess.run([*self._tmux, *words], capture_output=True, text=True, check=True)
        return done.stdout

    def screen(self) -> str:
        return self._run("capture-pane", "-p")

    def shows(self, text: str, seconds: float = SECONDS) -> None:
        """Wait until the text is on the screen."""
        end = time.monotonic() + seconds
        while text not in self.screen():
            assert time.monotonic() < end, f"still no {text!r}:\n{self.screen()}"
            time.sleep(0.1)

    def press(self, keys: str, text: str) -> None:
        """Press keys until the text is shown: a starting server gives nothing."""
        end = time.monotonic() + SECONDS
        while True:
            self._run("send-keys", keys)
            try:
                self.shows(text, 5)
            except AssertionError:
                assert time.monotonic() < end, f"{keys}: no {text!r}:\n{self.screen()}"
                self.escape()
            else:
                return

    def escape(self) -> None:
        """Press Escape, and let it be seen alone: with the next key it would be Alt and that key."""
        self._run("send-keys", "Escape")
        time.sleep(0.5)

    def send(self, *keys: str) -> None:
        self._run("send-keys", *keys)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._run("kill-server")


class Helix:
    """Helix with a home of its own, and a folder like a kernel tree."""

    def __init__(self, program: Path, place: Path) -> None:
        self.folder = place / "linux"
        self.header = self.folder / "include/trace/events/swap.h"
        self.driver = self.folder / "mm/swap.c"
        example = (ROOT / "src/tracepoint/examples/swap.h").read_text()
        self.fixed = example
        close = example.index('",', example.index("TP_printk("))
        files = {
            self.folder / "include/linux/tracepoint.h": "",  # a kernel tree is known by it
            self.header: example[:close] + "\\n" + example[close:],
            self.driver: DRIVER,
        }
        page = (ROOT / "docs/howto/editor.md").read_text()
        section = page[page.index("## Helix") : page.index("## Other editors")]
        for name, text in re.findall(r"`(\w+\.toml)`.*?```toml\n(.*?)```", section, re.DOTALL):
            files[place / ".config/helix" / name] = text
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        library = next(program.glob("usr/lib/*/ld-linux-*")).parent
        (loader,) = library.glob("ld-linux-*")
        variables = {
            "HOME": str(place),
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "LC_ALL": "C.UTF-8",
            "TERM": "screen-256color",
        }
        words = ["env", "-i", *(f"{name}={value}" for name, value in variables.items())]
        words += [str(loader), "--library-path", str(library), str(program / "usr/bin/hx")]
        self._command = shlex.join(words)
        self._place = place

    def open(self, path: Path, at: str) -> Terminal:
        """Show a file, with the cursor at the first place that has the text `at`."""
        before = path.read_text()
        before = before[: before.index(at)]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        return Terminal(self._place / "tmux", f"{self._command} {shlex.quote(str(path))}:{line}:{column + 1}")


@pytest.fixture
def helix(tmp_path: Path) -> Helix:
    if os.environ.get("TRACEPOINT_APT") == "no":
        pytest.skip("TRACEPOINT_APT=no forbids downloading Helix")
    try:
        program = unpack(PACKAGES, "helix/hx", apt_options([SUITE]))
    except LabError as error:
        pytest.skip(f"Helix cannot be had from {SUITE}: {error}")
    return Helix(program, tmp_path)


def test_finding_offsets_and_fix_in_a_header(helix: Helix) -> None:
    with helix.open(helix.header, '"pfn=') as terminal:
        terminal.shows("the print format ends in a newline")
        # Helix asks for offsets when a key is pressed.
        terminal.press("l", "at 16, size 8")
        terminal.press(" a", "remove the newline")
        terminal.send("Tab", "Enter")
        terminal.send(":w", "Enter")
        end = time.monotonic() + SECONDS
        while helix.header.read_text() != helix.fixed:
            assert time.monotonic() < end, terminal.screen()
            time.sleep(0.1)


def test_a_call_leads_to_its_event_and_has_its_hover(helix: Helix) -> None:
    with helix.open(helix.driver, "trace_mm_page_swap_in") as terminal:
        terminal.press(" k", "void trace_mm_page_swap_in(")
        terminal.shows("mm_page_swap_in: pfn=")
        terminal.shows("    28     1  bool major")
        terminal.escape()
        terminal.press("gd", "include/trace/events/swap.h ")
