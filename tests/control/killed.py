"""In a guest: kill `tracepoint record` at many moments under load, restore, and judge what is left.

Prints JSON: what was wrong, and how often a complete file, a folder of pages or nothing was left.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from tracepoint.cli.main import main as program
from tracepoint.control.files import find_files
from tracepoint.control.journal import journal_folder
from tracepoint.control.restore import restore_journals
from tracepoint.control.settings import read_settings
from tracepoint.errors import TracepointError
from tracepoint.tracefile.opening import open_container

DISK = Path("/tmp/disk")
WORDS = (
    "record raw_syscalls --seconds 0.5 --buffer-kb 1024 --force -q -o /tmp/disk/a.dat --compression".split()
)


def main() -> None:
    load = subprocess.Popen(["dd", "if=/dev/zero", "of=/dev/null", "bs=1"], stderr=subprocess.DEVNULL)
    try:
        told = kill_often(int(sys.argv[1]), random.Random(5))
    finally:
        load.kill()
    sys.stdout.write(json.dumps(told))


def kill_often(n_kills: int, source: random.Random) -> dict[str, object]:
    files = find_files()
    # The first imports what the others find.
    os.waitpid(start("zstd"), 0)
    began = time.monotonic()
    os.waitpid(start("zstd"), 0)
    whole_s = time.monotonic() - began
    before = read_settings(files)
    wrong, left = [], Counter[str]()
    for number in range(n_kills):
        remove_all()
        child = start(("none", "zstd")[number // 2 % 2])
        # Every other one while there are pages: other work of the machine moves all times.
        if number % 2:
            wait_for_pages(child)
        time.sleep(source.uniform(0, 1.1 * whole_s * (0.3 if number % 2 else 1)))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for report in restore_journals(journal_folder(), lambda: files):
            wrong += [[number, problem] for problem in report.restored.problems]
        what, problem = judge()
        left[what] += 1
        wrong += [[number, what, problem]] if problem else []
    now = read_settings(files)
    names = {*before, *now}
    wrong += [[name, before.get(name), now.get(name)] for name in names if before.get(name) != now.get(name)]
    return {"wrong": wrong, "left": left, "whole_s": round(whole_s, 1)}


def start(compression: str) -> int:
    """Record in a child that has everything imported already; return its number."""
    child = os.fork()
    if not child:
        os._exit(program([*WORDS, compression]))
    return child


def wait_for_pages(child: int) -> None:
    """Wait until a recording has pages, or has ended."""
    how = os.WEXITED | os.WNOHANG | os.WNOWAIT
    while os.waitid(os.P_PID, child, how) is None:
        with contextlib.suppress(FileNotFoundError):
            if any(path.stat().st_size for path in DISK.glob(".a.dat.*/cpu*")):
                return
        time.sleep(0.005)


def remove_all() -> None:
    for path in DISK.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def judge() -> tuple[str, str]:
    """Return what a kill has left, and what is wrong with it."""
    file, folders = DISK / "a.dat", list(DISK.glob(".a.dat.*"))
    sizes = [path.stat().st_size for folder in folders for path in folder.glob("cpu*")]
    if any(size % 4096 for size in sizes):
        return "folder", f"not whole pages: {sizes}"
    if not file.exists() and not any(sizes):
        return "nothing", ""
    what, path = ("file", file) if file.exists() else ("folder", folders[0])
    try:
        with open_container(path) as trace:
            n = sum(1 for buffer in trace.buffers for _ in buffer.records())
            names = {event.name for event in trace.events.values()}
            damage = "; ".join(map(str, trace.damage))
    except TracepointError as error:
        return what, str(error)
    if damage or not n or not {"sys_enter", "sys_exit"} <= names:
        return what, f"{n} records, {len(names)} events; {damage}"
    return what, ""


if __name__ == "__main__":
    main()
