"""In a guest: kill `tracepoint record` at many moments under load, restore, and judge what is left.

Each CPU has a load of numbered system calls, so that a record which is missing or there twice is found.
Prints JSON: what was wrong, and how often what was left.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import tracepoint as tp
from tracepoint.cli.main import main as program
from tracepoint.control.files import find_files
from tracepoint.control.journal import journal_folder
from tracepoint.control.restore import restore_journals
from tracepoint.control.session import open_tracefs
from tracepoint.control.settings import read_settings
from tracepoint.errors import TracepointError

DISK = Path("/tmp/disk")
TRACING = Path("/sys/kernel/tracing")
# What lseek(2), 8 on x86-64, returns is the number that it was called with.
EVENT = "raw_syscalls:sys_exit"
WORDS = ["record", EVENT, "--filter", EVENT, "id == 8", *"--buffer-kb 512 --force -q -o".split()]
KINDS = {
    "one": "/tmp/disk/a.dat --seconds 0.3",
    "rotated": "/tmp/disk/a.dat --seconds 1 --rotate 0 --rotate-time 200ms --max-size 8M",
    "flight": "/tmp/disk/a.dat --seconds 0.5 --flight 10s",
    "parquet": "/tmp/disk/a.parquet --seconds 0.3",
}
# What the pipe between a ring buffer and a file can hold: all of the buffer, in records of 28 bytes.
MOST_IN_PIPE = (512 * 1024) // 28
READ = re.compile(r"^read events: (\d+)$", re.MULTILINE)


class Cpu(NamedTuple):
    """What a recording has of a CPU: all records, the numbers of its load, and how many were lost before those."""

    n_records: int
    numbers: list[int]
    n_lost: int


class Piece(NamedTuple):
    """A recording that is left, by CPU."""

    path: Path
    cpus: dict[int, Cpu]

    @property
    def form(self) -> str:
        """The ending of a file or dataset, `folder` for the pages of one that is not complete."""
        return "folder" if self.path.name.startswith(".") else self.path.suffix

    @property
    def ends(self) -> list[int]:
        """The last number of each CPU."""
        return [cpu.numbers[-1] for cpu in self.cpus.values() if cpu.numbers]


def main() -> None:
    kind, n_kills = sys.argv[1], int(sys.argv[2])
    loads = [load(cpu) for cpu in range(os.cpu_count() or 1)]
    try:
        told = kill_often(kind, n_kills, random.Random(5), loads)
    finally:
        send(loads, signal.SIGKILL)
    sys.stdout.write(json.dumps(told))


def send(children: list[int], number: int) -> None:
    for child in children:
        os.kill(child, number)


def load(cpu: int) -> int:
    """Start a process that makes system calls with rising numbers, which begin with its CPU; return its id."""
    child = os.fork()
    if child:
        return child
    os.sched_setaffinity(0, {cpu})
    os.nice(10)
    file, seek, number = os.open("/tmp/load", os.O_RDWR | os.O_CREAT), os.lseek, (cpu + 1) << 32
    while True:
        seek(file, number, os.SEEK_SET)
        number += 1
        if not number % 256:
            # An emulator may run all processors in one thread.
            time.sleep(0.003)


def kill_often(kind: str, n_kills: int, source: random.Random, loads: list[int]) -> dict[str, object]:
    files = find_files()
    if kind == "parquet":
        # Each recorder is a fork of this process: it takes seconds of an emulated processor.
        importlib.import_module("pyarrow.parquet")
    # The first imports what the others find.
    os.waitpid(start(kind, "zstd"), 0)
    began = time.monotonic()
    os.waitpid(start(kind, "zstd"), 0)
    whole_s = time.monotonic() - began
    before = read_settings(files)
    wrong, left, judgements = [], Counter[str](), []
    for number in range(n_kills):
        remove_all()
        child = start(kind, ("none", "zstd")[number // 2 % 2])
        # Every other one while there are pages: other work of the machine moves all times.
        if number % 2:
            wait_for_pages(kind, child)
        time.sleep(source.uniform(0, 1.1 * whole_s * (0.3 if number % 2 else 1)))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        send(loads, signal.SIGSTOP)
        judged = Judged(kind)
        problems = judged.problems + restored(files)
        send(loads, signal.SIGCONT)
        left[judged.left] += 1
        judgements.append(judged)
        wrong += [[number, judged.left, problem] for problem in problems]
    now = read_settings(files)
    wrong += [[n, before.get(n), now.get(n)] for n in {*before, *now} if before.get(n) != now.get(n)]
    return {
        "wrong": wrong,
        "left": left,
        "whole_s": round(whole_s, 1),
        "most_in_pipe": max(judged.n_in_pipe for judged in judgements),
        "most_in_ring": max(judged.n_rest for judged in judgements),
    }


def start(kind: str, compression: str) -> int:
    """Record in a child that has everything imported already; return its number."""
    child = os.fork()
    if not child:
        os._exit(program([*WORDS, *KINDS[kind].split(), "--compression", compression]))
    return child


def wait_for_pages(kind: str, child: int) -> None:
    """Wait until a recording has pages, or has ended; a flight is asked to save them when it is on."""
    how = os.WEXITED | os.WNOHANG | os.WNOWAIT
    while os.waitid(os.P_PID, child, how) is None:
        with contextlib.suppress(FileNotFoundError):
            if kind == "flight" and any(is_recording(path) for path in TRACING.glob("instances/*")):
                time.sleep(0.2)
                os.kill(child, signal.SIGUSR1)
                return
            if any(path.stat().st_size for path in DISK.glob(".a.*/cpu*")):
                return
        time.sleep(0.005)


def is_recording(instance: Path) -> bool:
    """Whether an instance is on and has the event: one that has just been made is on."""
    return EVENT in (instance / "set_event").read_text() and is_on(instance)


def is_on(instance: Path) -> bool:
    return (instance / "tracing_on").read_text() == "1\n"


def remove_all() -> None:
    for path in DISK.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def restored(files) -> list[str]:
    """Restore as `tracepoint restore` does; return what is not as it was."""
    reports = restore_journals(Path(journal_folder()), lambda: files)
    found = [problem for report in reports for problem in report.restored.problems]
    found += [f"{path} is left" for path in TRACING.glob("instances/*")]
    found += [f"{path} is left" for path in Path(journal_folder()).glob("*.journal")]
    return found + [f"set_event has {(TRACING / 'set_event').read_text()}"] * bool(
        (TRACING / "set_event").read_text()
    )


class Judged:
    """What a kill has left: `left` names it, `problems` are what is wrong with it."""

    def __init__(self, kind: str) -> None:
        self.problems: list[str] = [f"{link} is open" for link in readers_left()]
        self.n_in_pipe = self.n_rest = 0
        if kind == "flight":
            self._save_the_rest()
        n_read = read_events()
        pieces = [piece for path in recordings() if (piece := self._read(path))]
        files = [piece for piece in pieces if piece.form != "folder"]
        # Between the moment when a file gets its name and the one when its pages are removed, both are there.
        ends = [piece.ends for piece in files]
        folders = [piece for piece in pieces if piece not in files and piece.ends not in ends]
        # Between the saves of a flight its array is off.
        for group in [[piece] for piece in pieces] if kind == "flight" else [[*files, *folders]]:
            self._check_numbers(group)
        self._check_counts(n_read, [*files, *folders])
        self.left = "+".join(sorted({piece.form for piece in (*files, *folders)})) or "nothing"

    def _save_the_rest(self) -> None:
        """Save what a flight recorder had not yet saved: the ring buffers still have it."""
        for folder in TRACING.glob("instances/*"):
            with open_tracefs(keeps_journal=False) as tracing:
                array = tracing.instance(folder.name)
                if array.enabled and is_on(folder):
                    self.n_rest += array.record(DISK / "rest.dat", 0).n_records

    def _read(self, path: Path) -> Piece | None:
        """Return what a recording has; None where it is a folder without pages yet."""
        if path.suffix == ".parquet":
            return read_dataset(path)
        sizes = [file.stat().st_size for file in path.glob("cpu*")]
        if any(size % 4096 for size in sizes):
            self.problems.append(f"{path}: not whole pages: {sizes}")
        if path.is_dir() and not any(sizes):
            return None
        try:
            piece, damage = read_recording(path)
        except TracepointError as error:
            self.problems.append(f"{path}: {error}")
            return None
        self.problems += damage
        if not path.is_dir():
            self.problems += told_by_trace_cmd(piece)
        return piece

    def _check_numbers(self, pieces: list[Piece]) -> None:
        """Look for records that are there twice, or not there although none was lost."""
        for number in {number for piece in pieces for number in piece.cpus}:
            cpus = [piece.cpus[number] for piece in pieces if number in piece.cpus]
            numbers = [n for cpu in sorted(cpus, key=lambda cpu: cpu.numbers[:1]) for n in cpu.numbers]
            where = f"{[piece.path.name for piece in pieces]}: of cpu{number}"
            if numbers != sorted(set(numbers)):
                self.problems.append(f"{where}, some are there twice")
            n_missing = numbers[-1] - numbers[0] + 1 - len(numbers) if numbers else 0
            if n_missing > sum(cpu.n_lost for cpu in cpus):
                self.problems.append(f"{where}, {n_missing} are missing")

    def _check_counts(self, n_read: dict[int, int], pieces: list[Piece]) -> None:
        """Compare with what the kernel handed out, of which a kill loses what is on its way to the file."""
        for cpu, n in n_read.items():
            n_missing = n - sum(piece.cpus[cpu].n_records for piece in pieces if cpu in piece.cpus)
            self.n_in_pipe = max(self.n_in_pipe, n_missing)
            if not 0 <= n_missing <= MOST_IN_PIPE:
                self.problems.append(f"cpu{cpu}: {n_missing} of {n} records that were read are not there")


def readers_left() -> list[str]:
    """Return files of tracefs that any process has open."""
    found = []
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if link.readlink().is_relative_to(TRACING):
                found.append(f"{link}: {link.readlink()}")
    return found


def read_events() -> dict[int, int]:
    """Return how many records of each CPU the kernel has handed out; nothing after the end of a recording."""
    found = {}
    for path in TRACING.glob("instances/*/per_cpu/cpu*/stats"):
        with contextlib.suppress(OSError):
            found[int(path.parent.name[3:])] = int(READ.search(path.read_text())[1])
    return found


def recordings() -> list[Path]:
    """Return what can be opened: complete files, folders of pages, a dataset."""
    whole = [path for path in DISK.glob("a*.parquet") if (path / "trace=a").exists()]
    return [*sorted(DISK.glob("*.dat")), *DISK.glob(".a.*dat.*"), *whole]


def read_recording(path: Path) -> tuple[Piece, list[str]]:
    with tp.open_trace(path) as trace:
        piece = Piece(path, {})
        for cpu in range(trace.file.n_cpus):
            numbers = trace.on_cpus(cpu)[EVENT]["ret"].numbers.tolist()
            piece.cpus[cpu] = cpu_of(cpu, numbers, trace.lost.get(cpu, 0))
        return piece, [f"{path}: {damage}" for damage in trace.damage]


def cpu_of(cpu: int, numbers: list[int], n_lost: int) -> Cpu:
    return Cpu(len(numbers), [number for number in numbers if number >> 32 == cpu + 1], n_lost)


def read_dataset(path: Path) -> Piece:
    """Read it as any program does."""
    parquet = importlib.import_module("pyarrow.parquet")
    files = [*path.rglob("*.parquet")]
    table = parquet.ParquetFile(files[0]).read(["common_cpu", "ret"], use_threads=False)
    found: dict[int, list[int]] = {}
    for cpu, number in zip(table["common_cpu"].to_pylist(), table["ret"].to_pylist(), strict=True):
        found.setdefault(cpu, []).append(number)
    # What was lost is in the file that it was made of.
    return Piece(path, {cpu: cpu_of(cpu, numbers, 1 << 32) for cpu, numbers in found.items()})


def told_by_trace_cmd(piece: Piece) -> list[str]:
    """Return what is wrong with a file by trace-cmd, where that is here."""
    if not shutil.which("trace-cmd"):
        return []
    done = subprocess.run(["trace-cmd", "report", "-i", piece.path], capture_output=True, check=False)
    n, n_ours = done.stdout.count(b" sys_exit: "), sum(cpu.n_records for cpu in piece.cpus.values())
    if done.returncode or n != n_ours:
        return [f"{piece.path}: trace-cmd has {n} of {n_ours}: {done.stderr[-200:]!r}"]
    return []


if __name__ == "__main__":
    main()
