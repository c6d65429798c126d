"""Rows, and how they are timed: medians of runs in turn, so that a busy machine slows both sides."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

RUNS = 9


class MissingError(Exception):
    """A row that cannot be measured here; the message says what is missing and how to get it."""


@dataclass(frozen=True)
class Row:
    """One figure against its floor; `is_at_most` says on which side of the floor it must be."""

    name: str
    figure: float
    unit: str
    floor: float
    is_at_most: bool
    detail: str = ""

    @property
    def is_ok(self) -> bool:
        """Whether the promise is kept."""
        return self.figure <= self.floor if self.is_at_most else self.figure >= self.floor

    def line(self) -> str:
        """The row as it is printed."""
        sign = "<=" if self.is_at_most else ">="
        verdict = "ok" if self.is_ok else "short"
        figure, floor = (f"{value:.4g}" for value in (self.figure, self.floor))
        tail = f"  ({self.detail})" if self.detail else ""
        return f"{self.name:44} {figure:>8} {self.unit:7} {sign} {floor:>6}  {verdict}{tail}"


Benchmark = Callable[[], Row]


def environment() -> dict[str, str]:
    """The environment of what is measured.

    Byte code must be written once: users have it, and compiling is not what is measured.
    """
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def wall_ms(command: list[str]) -> float:
    """The wall-clock milliseconds of one run of a program."""
    begin = time.perf_counter()
    subprocess.run(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        env=environment(),
        check=True,
    )
    return (time.perf_counter() - begin) * 1000


def cpu_of_a_million() -> float:
    """CPU seconds of a million turns of an empty loop, the median of some: what this machine gives now."""
    taken = []
    for _ in range(RUNS):
        begin = time.process_time()
        for _ in range(1_000_000):
            pass
        taken.append(time.process_time() - begin)
    return statistics.median(taken)


def wall_and_cpu(words: list[str], cache_home: str) -> tuple[float, float]:
    """Wall and CPU seconds of `tracepoint WORDS`, its helping processes included, with a cache of its own."""
    before = os.times()
    begin = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "tracepoint", *words],
        env={**os.environ, "XDG_CACHE_HOME": cache_home},
        stdout=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        check=True,
    )
    wall = time.perf_counter() - begin
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, spent


# A process counts as its own the memory of the one that started it: so a small one starts it.
LAUNCH = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
"""


def cpu_and_memory(words: list[str], cache_home: str) -> tuple[float, float]:
    """CPU seconds and most megabytes of `tracepoint WORDS`, whether it finds faults or not."""
    command = [sys.executable, "-m", "tracepoint", *words]
    done = subprocess.run(
        [sys.executable, "-S", "-c", LAUNCH, *command],
        env={**os.environ, "XDG_CACHE_HOME": cache_home},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    status, cpu_s, most_kb = done.stdout.split()
    if status not in {"0", "1"}:
        raise subprocess.CalledProcessError(int(status), command)
    return float(cpu_s), int(most_kb) / 1024


def over_bare(*words: str) -> float:
    """Median wall milliseconds of `python WORDS` beyond those of an interpreter that does nothing."""
    command, bare = [sys.executable, *words], [sys.executable, "-c", "pass"]
    wall_ms(command)
    wall_ms(bare)
    pairs = [(wall_ms(command), wall_ms(bare)) for _ in range(RUNS)]
    return max(0.0, statistics.median(a for a, _ in pairs) - statistics.median(b for _, b in pairs))
