"""Headless Chromium for tests, driven over a pipe with the DevTools protocol: no port, no driver."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_SECONDS = 60.0
_CONTROL = 2
PHONE, DESKTOP = (390, 844), (1280, 800)
_OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--mute-audio"),
    *("--hide-scrollbars", "--remote-debugging-pipe", "--disable-dev-shm-usage"),
)


def find_chromium() -> str:
    """The program; skips when there is none."""
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        pytest.skip("no chromium: `make test` as root installs it, or apt-get install chromium")
    return program


class Page:
    """One page: `call` is any command of the protocol, `events` what the page told of itself."""

    def __init__(self, browser: Chromium, target: str, session: str) -> None:
        self._browser = browser
        self._target = target
        self._session = session
        self.site = ""
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, params, self._session, self.events)

    def go(self, url: str, seconds: float = 20.0) -> None:
        """Load an address anew and wait until it has loaded."""
        self.events.clear()
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'", seconds)

    def run(self, script: str) -> Any:
        """Return what a JavaScript expression gives, awaited."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def wait(self, condition: str, seconds: float = 20.0) -> None:
        """Wait until a JavaScript expression is true."""
        end = time.monotonic() + seconds
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < end, f"still not: {condition}"
            time.sleep(0.02)

    def close(self) -> None:
        self._browser.call("Target.closeTarget", {"targetId": self._target})

    def key(self, key: str, text: str = "", *, control: bool = False) -> None:
        """Press and release a key, with Control held if so."""
        code = {
            "Enter": 13,
            "Escape": 27,
            "ArrowDown": 40,
            "ArrowLeft": 37,
            "ArrowUp": 38,
            "ArrowRight": 39,
            "Tab": 9,
            "Backspace": 8,
            "F12": 123,
            ".": 190,
        }.get(key, ord(key.upper()) if control else 0)
        typed = {"text": text or ("\r" if key == "Enter" else "")}
        common = {"key": key, "windowsVirtualKeyCode": code, "modifiers": _CONTROL if control else 0}
        if not text:
            # Editors go by the place of a key on the keyboard.
            common["code"] = "Period" if key == "." else f"Key{key.upper()}" if len(key) == 1 else key
        self.call("Input.dispatchKeyEvent", type="keyDown", **common, **{k: v for k, v in typed.items() if v})
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text: str) -> None:
        for letter in text:
            self.key(letter, letter)

    def size(self, width: int, height: int, *, is_phone: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if is_phone else 1,
            mobile=is_phone,
        )

    def scheme(self, name: str) -> None:
        """`light` or `dark`."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def screenshot(self, path: Path) -> None:
        data = self.call("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))


class Chromium:
    """A running browser with its own profile; a context manager."""

    def __init__(self) -> None:
        program = find_chromium()
        self._profile = tempfile.mkdtemp(prefix="chromium-")
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        # The browser reads commands from 3 and writes answers to 4; so ours must be others.
        theirs = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (to_read, to_write)]
        for end in (to_read, to_write):
            os.close(end)
        nothing = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
        moved = [(os.POSIX_SPAWN_DUP2, end, number) for number, end in zip((3, 4), theirs, strict=True)]
        words = [program, *_OPTIONS, f"--user-data-dir={self._profile}", "about:blank"]
        self._pid = os.posix_spawn(program, words, os.environ, file_actions=[*nothing, *moved])
        for end in theirs:
            os.close(end)
        self._buffer = b""
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(Exception):
            self.call("Browser.close", {})
        end = time.monotonic() + 120
        while os.waitpid(self._pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > end:
                os.kill(self._pid, signal.SIGKILL)
            time.sleep(0.05)
        os.close(self._read)
        os.close(self._write)
        shutil.rmtree(self._profile, ignore_errors=True)

    def page(self) -> Page:
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        page = Page(self, target, session)
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.call(f"{domain}.enable")
        return page

    def call(
        self,
        method: str,
        params: dict[str, Any],
        session: str = "",
        events: list[dict[str, Any]] | None = None,
    ) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        return self._answer(self._number, (lambda e: None) if events is None else events.append)

    def _answer(self, number: int, tell: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        while True:
            message = json.loads(self._message())
            if message.get("id") == number:
                if "error" in message:
                    raise AssertionError(message["error"])
                result: dict[str, Any] = message["result"]
                return result
            if "method" in message:
                tell(message)

    def _message(self) -> bytes:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], _SECONDS)
            assert ready, "chromium does not answer"
            data = os.read(self._read, 1 << 20)
            assert data, "chromium has ended"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        return message
