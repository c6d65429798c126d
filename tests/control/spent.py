"""In a guest: `tracepoint record` beside `trace-cmd record`, same events, buffers and load, alternating.

Prints JSON: of each run the events kept and lost, and the CPU seconds of the recorder.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

KB, SECONDS = "4096", "4"
OURS = "tracepoint record raw_syscalls --buffer-kb {kb} -o /tmp/ours.dat --force --seconds {seconds}"
THEIRS = "trace-cmd record -e raw_syscalls -b {kb} -o /tmp/theirs.dat sleep {seconds}"


def main() -> None:
    told: dict[str, list[dict[str, float]]] = {"tracepoint": [], "trace-cmd": []}
    for _ in range(int(sys.argv[1])):
        for name, command in (("tracepoint", OURS), ("trace-cmd", THEIRS)):
            told[name].append(run(command.format(kb=KB, seconds=SECONDS).split()))
    sys.stdout.write(json.dumps(told))


def run(words: list[str]) -> dict[str, float]:
    load = [
        subprocess.Popen(["dd", "if=/dev/zero", "of=/dev/null", "bs=1"], stderr=subprocess.DEVNULL)
        for _ in range(2)
    ]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    out = child.stdout.read()
    _, _, use = os.wait4(child.pid, 0)
    for one in load:
        one.kill()
        one.wait()
    if words[0] == "tracepoint":
        kept = int(re.search(r"(\d+) records", out)[1])
        found = re.search(r"(\d+) of \d+ events were overwritten, (\d+) dropped", out)
        lost = sum(map(int, found.groups())) if found else 0
    else:
        shown = "trace-cmd report --stat -i /tmp/theirs.dat 2>&1 | head -60"
        out = subprocess.run(shown, shell=True, capture_output=True, text=True, check=False).stdout
        kept = sum(map(int, re.findall(r"read events: (\d+)", out)))
        lost = sum(map(int, re.findall(r"(?:overrun|dropped events): (\d+)", out)))
    return {"kept": kept, "lost": lost, "user_s": round(use.ru_utime, 2), "system_s": round(use.ru_stime, 2)}


if __name__ == "__main__":
    main()
