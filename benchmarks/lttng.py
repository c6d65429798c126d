"""An event recorded from Python beside the same event recorded by LTTng-UST from C, in the same minute.

A session daemon of its own, in a scratch home and as an ordinary user, holds what is recorded in memory
(a snapshot session): nothing is written to disk, no kernel module is asked for.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import MissingError, Row
from benchmarks.runtime import _core, _events, _loop

HERE = Path(__file__).resolve().parent / "lttng_ust"
PACKAGES = "apt-get install lttng-tools liblttng-ust-dev"
NOBODY = "65534"
ROUNDS = 250
SECONDS = 30
# An event of theirs that is off costs less than a nanosecond.
OFF_NS = 5


def _build(folder: Path) -> Path:
    program = folder / "demo"
    command = ["cc", "-O2", f"-I{HERE}", str(HERE / "demo.c"), "-o", str(program), "-llttng-ust", "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MissingError(f"LTTng-UST's headers are not installed, or no compiler: {PACKAGES} gcc")
    return program


def _as_user(words: list[str]) -> list[str]:
    """As root the daemon would be that of the whole machine."""
    if os.geteuid():
        return words
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *words]


def _run(words: list[str], env: dict[str, str]) -> None:
    done = subprocess.run(
        _as_user(words), env=env, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["nothing"]
        raise MissingError(f"{' '.join(words[:2])} failed: {said[-1]}")


@contextlib.contextmanager
def _daemon(folder: Path) -> Iterator[dict[str, str]]:
    """A session daemon in `folder`; gives the environment in which programs find it."""
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "LTTNG_HOME": str(folder), "LC_ALL": "C"}
    # What programs register within is waited for, so that the first event is recorded.
    env["LTTNG_UST_REGISTER_TIMEOUT"] = "3000"
    command = _as_user(["lttng-sessiond", "--no-kernel"])
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    daemon = subprocess.Popen(command, env=env, **quiet)
    try:
        end = time.monotonic() + SECONDS
        while not (folder / ".lttng" / "client-lttng-sessiond").exists():
            if daemon.poll() is not None or time.monotonic() > end:
                raise MissingError("lttng-sessiond did not start as an ordinary user")
            time.sleep(0.05)
        yield env
    finally:
        daemon.terminate()
        daemon.wait(SECONDS)


@contextlib.contextmanager
def _rounds() -> Iterator[subprocess.Popen[str]]:
    """The C program with its events recorded; a line in gives a round, a line out its figures."""
    for program in ("lttng", "lttng-sessiond", "setpriv"):
        if shutil.which(program) is None:
            raise MissingError(f"{program} is not installed: {PACKAGES}")
    with tempfile.TemporaryDirectory(prefix="tracepoint-lttng-") as name:
        folder = Path(name)
        program = _build(folder)
        if not os.geteuid():
            os.chown(folder, int(NOBODY), int(NOBODY))
        with _daemon(folder) as env:
            _run(["lttng", "create", "bench", "--snapshot"], env)
            channel = ["--subbuf-size=1M", "--num-subbuf=4"]
            _run(["lttng", "enable-channel", "--userspace", "ring", *channel], env)
            _run(["lttng", "enable-event", "--userspace", "--channel=ring", "demo:*"], env)
            _run(["lttng", "start"], env)
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            with subprocess.Popen(_as_user([str(program)]), env=env, **pipes) as demo:
                yield demo
            _run(["lttng", "destroy", "bench"], env)


def _round(demo: subprocess.Popen[str]) -> list[float]:
    if demo.stdin is None or demo.stdout is None:
        raise MissingError("the program has no pipes")
    demo.stdin.write("\n")
    demo.stdin.flush()
    return [float(word) for word in demo.stdout.readline().split()]


@functools.cache
def _measure() -> dict[str, tuple[float, float, float]]:
    """The least of (LTTng-UST from C, ours with clock_gettime, ours with the default clock), in turn."""
    core = _core()
    runs = {}
    for clock in ("mono", "local"):
        _, plain, text = _events(core, clock, is_on=True)
        runs["plain", clock] = _loop("ev(a, b, c)", ev=plain)
        runs["text", clock] = _loop("ev(s, a, b, c)", ev=text)
    theirs = [math.inf] * 3
    ours = dict.fromkeys(runs, math.inf)
    with _rounds() as demo:
        for _ in range(ROUNDS):
            theirs = [min(pair) for pair in zip(theirs, _round(demo), strict=True)]
            for name, measure in runs.items():
                ours[name] = measure()
    if theirs[1] - theirs[0] < OFF_NS:
        raise MissingError("LTTng-UST's events were off: the session did not reach the program")
    return {
        name: (theirs[i] - theirs[0], ours[name, "mono"], ours[name, "local"])
        for i, name in ((1, "plain"), (2, "text"))
    }


def _row(name: str, title: str) -> Row:
    theirs, mono, local = _measure()[name]
    detail = f"{mono:.1f} ns; LTTng-UST from C {theirs:.1f} ns; ours with clock local {local:.1f} ns"
    # The prototype was at 39 ns against 65.
    return Row(title, mono / theirs, "x", 0.6, True, detail)


def lttng_integers() -> Row:
    """Three integers recorded from Python, against LTTng-UST from C."""
    return _row("plain", "3 integers recorded, over LTTng-UST from C")


def lttng_text() -> Row:
    """A string and three integers recorded from Python, against LTTng-UST from C."""
    return _row("text", "string + 3 integers, over LTTng-UST from C")


ROWS = (lttng_integers, lttng_text)
