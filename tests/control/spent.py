"""In a guest: `tracepoint record` beside `trace-cmd record`, same events, buffers and work, alternating.

Prints JSON: of each run the events kept and lost, the CPU seconds of the recorder and the bytes of its file.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

KB = "4096"
TRACING = Path("/sys/kernel/tracing")
# Both save trace.dat version 7, compressed with zstd: what trace-cmd does by itself where it can.
COMMANDS = {
    "tracepoint": (
        f"tracepoint record raw_syscalls --clock mono --buffer-kb {KB} -o /tmp/spent.dat --force"
        " --compression zstd -q --"
    ),
    "trace-cmd": f"trace-cmd record -B spent -e raw_syscalls -C mono -b {KB} -o /tmp/spent.dat --compression zstd",
}
# What is recorded ends when a line is written to this FIFO.
END = "/tmp/spent.end"
# Of `trace-cmd report --stat` and `tracepoint record`, which save the texts of per_cpu/CPU/stats: trace-cmd before it
# reads the last entries.
KEPT, LOST = r"(?:read events|entries): (\d+)", r"(?:overrun|dropped events): (\d+)"


def main() -> None:
    n_rounds, n_bytes = int(sys.argv[1]), int(sys.argv[2])
    with contextlib.suppress(FileExistsError):
        os.mkfifo(END)
    told: dict[str, list[dict[str, float]]] = {name: [] for name in COMMANDS}
    for _ in range(n_rounds):
        for name, command in COMMANDS.items():
            told[name].append(run(command.split(), n_bytes))
    sys.stdout.write(json.dumps(told))


def run(words: list[str], n_bytes: int) -> dict[str, float]:
    """Record while two programs make four events a byte; return what it took."""
    # trace-cmd tells what it saved on stderr.
    child = subprocess.Popen(
        [*words, "sh", "-c", f"read line < {END}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while not _is_recording():
        if child.poll() is not None:
            sys.exit(f"{words[0]} ended with status {child.returncode}")
        time.sleep(0.1)
    time.sleep(1)
    began = time.monotonic()
    load = [subprocess.Popen(_load(n_bytes), stderr=subprocess.DEVNULL) for _ in range(2)]
    for one in load:
        one.wait()
    seconds = time.monotonic() - began
    Path(END).write_text("\n")
    _, status, use = os.wait4(child.pid, 0)
    shown = subprocess.run(
        "trace-cmd report --stat -i /tmp/spent.dat 2>&1 | head -60",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    return {
        "status": status,
        "kept": sum(map(int, re.findall(KEPT, shown))),
        "lost": sum(map(int, re.findall(LOST, shown))),
        "cpu_s": round(use.ru_utime + use.ru_stime, 2),
        "user_s": round(use.ru_utime, 2),
        "bytes": Path("/tmp/spent.dat").stat().st_size,
        "load_s": round(seconds, 2),
    }


def _load(n_bytes: int) -> list[str]:
    return ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", f"count={n_bytes}"]


def _is_recording() -> bool:
    # An instance may be half made.
    with contextlib.suppress(OSError):
        for array in (TRACING, *(TRACING / "instances").iterdir()):
            if "raw_syscalls" in (array / "set_event").read_text():
                return (array / "tracing_on").read_text().strip() == "1"
    return False


if __name__ == "__main__":
    main()
