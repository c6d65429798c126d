"""The extension in VS Code itself: code-server serves it, and a browser shows it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlsplit

import pytest

from generate.chromium import DESKTOP, Chromium
from test_vsix import vsix
from website.conftest import installed_package, node_program

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from generate.chromium import Page

pytestmark = [pytest.mark.programs, pytest.mark.slow]
#: A server, a browser and an editor of some 100 MB start, on machines that may be busy.
SECONDS = 120
HEADER = """#undef TRACE_SYSTEM
#define TRACE_SYSTEM disk

#if !defined(_TRACE_DISK_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_DISK_H

#include <linux/tracepoint.h>

TRACE_EVENT(disk_retry,
	TP_PROTO(u32 dev, u64 sector),
	TP_ARGS(dev, sector),
	TP_STRUCT__entry(
		__field(u32, dev)
		__field(u64, sector)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->sector = sector;
	),
	TP_printk("dev=%u sector=%llu\\n", __entry->dev, __entry->sector)
);

#endif

#include <trace/define_trace.h>
"""
DRIVER = """#include <trace/events/disk.h>

static void retry(u32 dev, u64 sector)
{
	trace_disk_retry(dev, sector);
}
"""
SETTINGS = {
    "tracepoint.command": [sys.executable, "-m", "tracepoint", "server"],
    "chat.disableAIFeatures": True,
    "editor.minimap.enabled": False,
    "extensions.autoCheckUpdates": False,
    "files.autoSave": "off",
    "telemetry.telemetryLevel": "off",
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.startupEditor": "none",
}
#: The text of all elements that a selector finds, as it is read: the editor shows spaces as U+00A0.
TEXTS = "[...document.querySelectorAll({})].map((e) => e.textContent.replaceAll('\\u00a0', ' ')).join('\\n')"


class Editor(NamedTuple):
    """A code-server with the extension, and a folder like a kernel tree that it opens."""

    address: str
    folder: Path


class Window:
    """VS Code in a page of a browser, with one file."""

    def __init__(self, page: Page, editor: Editor, name: str, text: str, at: str) -> None:
        """Open a file of the folder, with the cursor at the first place that has the text `at`."""
        before = text[: text.index(at)]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        file = f"vscode-remote://{urlsplit(editor.address).netloc}{editor.folder / name}:{line}:{column + 1}"
        payload = json.dumps([["openFile", file], ["gotoLineMode", "true"]])
        self.page = page
        page.go(f"{editor.address}?folder={quote(str(editor.folder))}&payload={quote(payload)}", SECONDS)
        self.shows(".statusbar-item", f"Ln {line},")

    def shows(self, selector: str, text: str, seconds: float = SECONDS) -> None:
        """Wait until an element that the selector finds has the text."""
        self.page.wait(f"{TEXTS.format(json.dumps(selector))}.includes({json.dumps(text)})", seconds)

    def press(self, keys: Sequence[str], selector: str, text: str) -> None:
        """Press keys, letters with Control, until an element has the text: a starting server gives nothing."""
        end = time.monotonic() + SECONDS
        while True:
            for key in keys:
                self.page.key(key, control=len(key) == 1)
            try:
                self.shows(selector, text, 5)
            except AssertionError:
                assert time.monotonic() < end, f"{keys}: no {selector} has {text!r}"
                self.page.key("Escape")
            else:
                return

    def hover(self, *texts: str) -> None:
        """Ask for the hover at the cursor; it has the texts."""
        self.press("ki", ".monaco-hover", texts[0])
        for text in texts[1:]:
            self.shows(".monaco-hover", text)
        self.page.key("Escape")


def address_of(server: subprocess.Popen[bytes], log: Path) -> str:
    """Where the server says that it listens; fails with what it said instead."""
    end = time.monotonic() + SECONDS
    while not (found := re.search(r"listening on (http://\S+)", log.read_text())):
        assert server.poll() is None, log.read_text()
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.1)
    return found[1]


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    program = [str(node_program()), str(installed_package("code-server") / "out/node/entry.js")]
    place = tmp_path_factory.mktemp("vscode")
    tool = vsix()
    try:
        archive = tool.build(place)
    except tool.VsixError as error:
        pytest.skip(str(error))
    folder = place / "linux"
    # A kernel tree is known by this file.
    files = {
        "include/linux/tracepoint.h": "",
        "include/trace/events/disk.h": HEADER,
        "drivers/disk.c": DRIVER,
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(text)
    settings = place / "data/User/settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps(SETTINGS))
    program += ["--user-data-dir", str(place / "data"), "--extensions-dir", str(place / "extensions")]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(place)}
    install = [*program, "--install-extension", str(archive)]
    done = subprocess.run(install, env=env, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert f"Extension '{archive.name}' was successfully installed" in done.stdout, done.stdout + done.stderr
    serve = ["--auth", "none", "--bind-addr", "127.0.0.1:0", "--disable-workspace-trust"]
    serve += ["--disable-telemetry", "--disable-update-check"]
    log = place / "log"
    with (
        log.open("w") as out,
        subprocess.Popen([*program, *serve], env=env, stdout=out, stderr=out) as server,
    ):
        try:
            yield Editor(address_of(server, log), folder)
        finally:
            server.terminate()


@pytest.fixture
def page() -> Iterator[Page]:
    with Chromium() as browser:
        page = browser.page()
        page.size(*DESKTOP)
        yield page


def test_a_finding_is_shown_and_its_fix_is_saved(editor: Editor, page: Page) -> None:
    window = Window(page, editor, "include/trace/events/disk.h", HEADER, '"dev=')
    page.wait("document.querySelector('.squiggly-warning')", SECONDS)
    window.hover("the print format ends in a newline", "TP305")
    window.press(".", ".action-widget", "remove the newline")
    page.key("Enter")
    page.wait("document.querySelector('.tab.dirty')", SECONDS)
    page.wait("!document.querySelector('.squiggly-warning')", SECONDS)
    page.key("s", control=True)
    page.wait("!document.querySelector('.tab.dirty')", SECONDS)
    assert (editor.folder / "include/trace/events/disk.h").read_text() == HEADER.replace("\\n", "")


def test_offsets_are_beside_fields_and_a_hover_shows_record_and_line(editor: Editor, page: Page) -> None:
    window = Window(page, editor, "include/trace/events/disk.h", HEADER, "disk_retry")
    window.shows(".view-line", "__field(u32, dev)at 8, size 4")
    window.shows(".view-line", "__field(u64, sector)at 16, size 8, after a hole of 4")
    window.hover(
        "void trace_disk_retry(u32 dev, u64 sector)",
        "disk_retry: dev=",
        "    12     4  (hole)",
        "    16     8  u64 sector",
    )


def test_a_call_leads_to_its_event_in_the_header(editor: Editor, page: Page) -> None:
    window = Window(page, editor, "drivers/disk.c", DRIVER, "trace_disk_retry")
    window.hover("void trace_disk_retry(u32 dev, u64 sector)")
    window.press(["F12"], ".tab.active", "disk.h")
    window.shows(".statusbar-item", "Ln 9, Col 13")
