"""How fast a recorded trace becomes tables: against `trace-cmd report` of the same file in the same run.

The recording is `big.v7.zstd.dat` of the folder TRACEPOINT_DATA, and that as version 6.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

from benchmarks.harness import MissingError, Row, environment
from tracepoint.decode.trace import open_trace
from tracepoint.record.decode import DECODE

RUNS = 7
READ = "import sys, tracepoint as tp; tp.open_trace(sys.argv[1])['sched_switch'].arrow()"


@cache
def recordings() -> tuple[Path, Path]:
    """The recording as version 7, and converted to version 6 in a folder that is kept until the machine ends."""
    if DECODE is None:
        raise MissingError("tracepoint._decode is not built: install gcc and python3-dev")
    packed = Path(os.environ.get("TRACEPOINT_DATA", "../shared/data")) / "big.v7.zstd.dat"
    if not packed.exists():
        raise MissingError("no big.v7.zstd.dat in the folder TRACEPOINT_DATA")
    if shutil.which("trace-cmd") is None:
        raise MissingError("no trace-cmd: apt-get install trace-cmd")
    plain = Path(tempfile.gettempdir()) / "tracepoint-bench-big.v6.dat"
    if not plain.exists():
        part = plain.with_suffix(".part")
        words = ["--file-version", "6", "--compression", "none", "-i", str(packed), "-o", str(part)]
        subprocess.run(["trace-cmd", "convert", *words], check=True, stdout=subprocess.DEVNULL)
        part.rename(plain)
    return packed, plain


def cpu_of(command: list[str]) -> float:
    """CPU seconds of one run of a program and what it starts."""
    before = os.times()
    subprocess.run(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(), check=True
    )
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


@cache
def report_cpu() -> float:
    """CPU seconds of `trace-cmd report` of the whole file, the median of 3: it takes ten seconds each."""
    return statistics.median(cpu_of(["trace-cmd", "report", "-i", str(recordings()[1])]) for _ in range(3))


def read_cpu(path: Path) -> float:
    """CPU seconds of a process that reads sched_switch as a sorted Arrow table."""
    return statistics.median(cpu_of([sys.executable, "-c", READ, str(path)]) for _ in range(RUNS))


def table_against_report() -> Row:
    """One event as a table, the whole process, against the text of the whole file."""
    plain, report = read_cpu(recordings()[1]), report_cpu()
    detail = f"{plain:.2f} s, trace-cmd report {report:.2f} s of CPU"
    return Row("sched_switch as Arrow against trace-cmd report", report / plain, "times", 25, False, detail)


def compressed_against_plain() -> Row:
    """The same from version 7 with zstd against version 6."""
    packed, plain = recordings()
    spent = read_cpu(packed), read_cpu(plain)
    return Row("table of v7 zstd against v6", spent[0] / spent[1], "times", 1.6, True, f"{spent[0]:.2f} s")


def decoding_alone() -> Row:
    """Scanned events a second of CPU, for one event's table, opening and libraries left out."""
    with open_trace(recordings()[1], threads=1) as trace:
        n_records, taken = trace.n_records, []
        for _ in range(RUNS):
            begin = time.process_time()
            len(trace["sched_switch"])
            taken.append(time.process_time() - begin)
    rate = n_records / statistics.median(taken) / 1e6
    return Row("sched_switch to columns, one core", rate, "M/s", 25, False, f"of {n_records / 1e6:.1f} M")


def every_field() -> Row:
    """Every field of every event to columns."""
    with open_trace(recordings()[1], threads=1) as trace:
        n_records, taken = trace.n_records, []
        for _ in range(RUNS):
            begin = time.process_time()
            tables = trace.tables()
            taken.append(time.process_time() - begin)
            del tables
    rate = n_records / statistics.median(taken) / 1e6
    best = n_records / min(taken) / 1e6
    return Row("every field of every event, one core", rate, "M/s", 15, False, f"best {best:.1f}")


def _read_against_report(path: Path, form: str) -> Row:
    """The text of the whole file: the commands as a whole, in turns."""
    ours = [sys.executable, "-m", "tracepoint", "read", "-q", str(path)]
    theirs = ["trace-cmd", "report", "-i", str(path)]
    cpu_of(ours)
    turns = [(cpu_of(theirs), cpu_of(ours)) for _ in range(RUNS)]
    report, spent = (statistics.median(column) for column in zip(*turns, strict=True))
    detail = f"{spent:.2f} s, trace-cmd report {report:.2f} s of CPU"
    return Row(f"text of a whole file, {form}", report / spent, "times", 8, False, detail)


def read_against_report() -> Row:
    """The text of version 7 with zstd."""
    return _read_against_report(recordings()[0], "v7 zstd")


def read_plain_against_report() -> Row:
    """The text of version 6."""
    return _read_against_report(recordings()[1], "v6")


ROWS = (
    table_against_report,
    compressed_against_plain,
    decoding_alone,
    every_field,
    read_against_report,
    read_plain_against_report,
)
