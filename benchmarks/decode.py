"""How fast a recorded trace becomes tables: against `trace-cmd report` of the same file in the same run.

The recording is `big.v7.zstd.dat` of the folder TRACEPOINT_DATA, and that as version 6.
"""

from __future__ import annotations

import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.harness import MissingError, Row, environment
from tracepoint.decode.engine import read_columns
from tracepoint.decode.trace import open_trace
from tracepoint.record.decode import DECODE
from tracepoint.tracefile.content import BufferContent, CpuPages
from tracepoint.tracefile.options import ClockSample, TimeShift
from tracepoint.tracefile.sieve import Sieve
from tracepoint.tracefile.timing import TimeMap
from tracepoint.tracefile.write import write_tracedat

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.tracefile.cpudata import CpuData

RUNS = 7
LARGE_BYTES = 5 << 30
WALK = Path(__file__).parent / "decode_walk" / "walk.c"
# What users do: the columns of the line, typed.
REGEX = r"""
import re, sys, pandas
line = re.compile(
    r"^\s*(.+?)-(\d+)\s+\[(\d+)\]\s+(?:\S+\s+)?(\d+\.\d+): sched_switch:\s+"
    r"(.+?):(\d+) \[(\d+)\] (\S+) ==> (.+?):(\d+) \[(\d+)\]$", re.M)
names = "task pid cpu time prev_comm prev_pid prev_prio prev_state next_comm next_pid next_prio".split()
table = pandas.DataFrame(line.findall(sys.stdin.read()), columns=names)
whole = {name: "int64" for name in names if name.endswith(("pid", "prio", "cpu"))}
table = table.astype({**whole, "time": "float64"}).sort_values("time")
assert len(table) == 659308, len(table)
"""
READ = "import sys, tracepoint as tp; tp.open_trace(sys.argv[1])['sched_switch'].arrow()"


@cache
def recordings() -> tuple[Path, Path]:
    """The recording as version 7, and cut to version 6 in a folder that is kept until the machine ends."""
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
        # Not `trace-cmd convert`, which mounts tracefs: this machine's own is not touched.
        words = ["cut", "-q", str(packed), "-o", str(part), "--file-version", "6", "--compression", "none"]
        subprocess.run([sys.executable, "-m", "tracepoint", *words], check=True)
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


def table_against_regex() -> Row:
    """One event as a pandas table from `trace-cmd report -F` and a regular expression, against Arrow from here."""
    path = recordings()[1]
    command = f"trace-cmd report -F sched_switch -i {path} | {sys.executable} -c '{REGEX}'"
    cpu_of(["sh", "-c", command])
    turns = [
        (cpu_of(["sh", "-c", command]), cpu_of([sys.executable, "-c", READ, str(path)])) for _ in range(RUNS)
    ]
    theirs, ours = (statistics.median(column) for column in zip(*turns, strict=True))
    detail = f"{ours:.2f} s, through a regular expression {theirs:.2f} s of CPU"
    return Row("sched_switch against text and a regex", theirs / ours, "times", 10, False, detail)


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


def decoding_against_walk() -> Row:
    """The same against a C program that only walks the mapped pages and fills the same columns, not sorted."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise MissingError("no C compiler: apt-get install gcc")
    path = recordings()[1]
    with tempfile.TemporaryDirectory(prefix="tracepoint-") as folder, open_trace(path, threads=1) as trace:
        program = str(Path(folder) / "walk")
        subprocess.run([compiler, "-O2", "-o", program, str(WALK)], check=True)
        cpus = trace.buffer.cpus if trace.buffer is not None else ()
        places = [str(number) for cpu in cpus for number in (cpu.offset, cpu.size)]
        command = [program, str(path), str(trace.format("sched_switch").id), *places]
        taken: list[list[float]] = [[], []]
        for _ in range(RUNS):
            begin = time.process_time()
            n_rows = len(trace["sched_switch"])
            taken[0].append(time.process_time() - begin)
            found, seconds = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.split()
            assert int(found) == n_rows, (found, n_rows)
            taken[1].append(float(seconds))
    ours, walk = map(statistics.median, taken)
    detail = f"{1000 * ours:.0f} ms, the walk {1000 * walk:.0f} ms"
    return Row("sched_switch to columns against a C walk", walk / ours, "times", 0.5, False, detail)


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


def text_against_report(path: Path, form: str) -> Row:
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
    return text_against_report(recordings()[0], "v7 zstd")


def read_plain_against_report() -> Row:
    """The text of version 6."""
    return text_against_report(recordings()[1], "v6")


@cache
def large() -> Path:
    """A trace.dat of 5 GB: the pages of the recording again and again, each time later than the last."""
    return lengthened("large", LARGE_BYTES)


def lengthened(name: str, n_bytes: int) -> Path:
    """A trace.dat of at least so many bytes, made once."""
    target = Path(tempfile.gettempdir()) / f"tracepoint-bench-{name}.v6.dat"
    if target.exists():
        return target
    if shutil.disk_usage(target.parent).free < 2 * n_bytes:
        raise MissingError(f"less than {2 * n_bytes >> 20} MB free in {target.parent}")
    part = target.with_suffix(".part")
    with open_trace(recordings()[1]) as trace, part.open("wb") as stream:
        buffer = trace.buffer
        if buffer is None:
            raise MissingError("no pages in big.v7.zstd.dat")
        first, last = trace.span
        n_times = n_bytes // sum(cpu.size for cpu in buffer.cpus) + 1
        cpus = tuple(CpuPages(c.cpu, repeated(c, n_times, last - first + 1000)) for c in buffer.cpus)
        content = trace.file.content()._replace(buffers=(BufferContent(cpus, "", buffer.clock),))
        write_tracedat(stream, content, 6)
    part.rename(target)
    return target


def repeated(cpu: CpuData, n_times: int, step_ns: int) -> Iterator[bytes]:
    """The pages of a CPU again and again, each time `step_ns` later."""
    # Written anew, the pages have no absolute times between their events; each id is chosen, as blocks of
    # which everything is kept stay as they are.
    size, sieve = cpu.layout.page_size, Sieve(cpu.layout, programs=dict.fromkeys(range(1 << 16)))
    for turn in range(n_times):
        for block in cpu.blocks():
            data = bytearray(sieve.sift(block, cpu.cpu).pages)
            for at in range(0, len(data), size):
                stamp = struct.unpack_from("<Q", data, at)[0] + turn * step_ns
                struct.pack_into("<Q", data, at, stamp)
            yield bytes(data)


# The peak of a process counts what its parent held when it was forked, so a small one stands between.
SPAWN = """
import os, sys
null = [(os.POSIX_SPAWN_OPEN, n, os.devnull, os.O_WRONLY, 0) for n in (1, 2)]
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=null)
_, status, used = os.wait4(pid, 0)
print(status, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""


def use_of(words: list[str]) -> tuple[float, float]:
    """CPU seconds and peak memory in MB of one run of a program."""
    command = [sys.executable, "-S", "-c", SPAWN, *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, env=environment(), text=True, check=True)
    status, seconds, peak = map(float, done.stdout.split())
    if status:
        raise MissingError(f"{' '.join(words[2:5])} ended with wait status {status:.0f}")
    return seconds, peak


@cache
def window_use() -> tuple[float, float, float]:
    """CPU seconds of the text of a large file, of 1 % of it, and the peak memory of that in MB."""
    path = large()
    with open_trace(path) as trace:
        first, last = trace.span
    start, stop = first + (last - first) // 2, first + (last - first) * 51 // 100
    read = [sys.executable, "-m", "tracepoint", "read", "-q", str(path)]
    words = [*read, "--from", f"{start / 1e9:.9f}", "--to", f"{stop / 1e9:.9f}"]
    runs = [use_of(words) for _ in range(RUNS)]
    return use_of(read)[0], statistics.median(r[0] for r in runs), max(r[1] for r in runs)


def window_of_large() -> Row:
    """The text of 1 % of a file of 5 GB against that of all of it."""
    whole, part, _ = window_use()
    detail = f"{part:.2f} s of {whole:.1f} s of CPU"
    return Row("text of 1 % of the time of 5 GB", 100 * part / whole, "%", 3, True, detail)


def memory_of_window() -> Row:
    """The most memory that it takes."""
    return Row("memory of that", window_use()[2], "MB", 200, True)


def memory_of_table() -> Row:
    """The most memory of a process that reads one event's table of 5 GB, against that of the table and 64 MiB."""
    with open_trace(recordings()[1]) as trace:
        n_turns = large().stat().st_size / recordings()[1].stat().st_size
        n_bytes = sum(
            memoryview(memory).nbytes
            for column in map(trace["sched_switch"].__getitem__, trace["sched_switch"].columns)
            for memory in (column.values, column.validity, column.bytes_, column.ends)
            if memory is not None
        )
    table = n_bytes * n_turns / (1 << 20)
    read = "import sys, tracepoint as tp; len(tp.open_trace(sys.argv[1])['sched_switch'])"
    peak = use_of([sys.executable, "-c", read, str(large())])[1]
    detail = f"{peak:.0f} MB, the table {table:.0f} MB"
    return Row("memory of a table against table + 64 MiB", peak / (table + 64), "times", 1.5, True, detail)


def memory_of_parquet() -> Row:
    """The most memory of a process that writes one event of 5 GB as Parquet, part by part."""
    with tempfile.TemporaryDirectory(prefix="tracepoint-") as folder:
        words = ["convert", "-q", str(large()), folder, "sched_switch", "--to", "parquet"]
        seconds, peak = use_of([sys.executable, "-m", "tracepoint", *words])
    return Row("memory of Parquet of an event of 5 GB", peak, "MB", 1000, True, f"{seconds:.1f} s of CPU")


def memory_of_sql() -> Row:
    """The most memory of a query over one event of 5 GB, which DuckDB gets part by part."""
    query = "select next_comm, count(*) from sched_switch group by all"
    seconds, peak = use_of([sys.executable, "-m", "tracepoint", "sql", "-q", str(large()), query])
    return Row("memory of SQL over an event of 5 GB", peak, "MB", 256, True, f"{seconds:.1f} s of CPU")


def memory_of_one_event() -> Row:
    """The most memory of a process that writes one event of 5 GB to its stdout as Arrow IPC."""
    words = ["read", "-q", str(large()), "sched_switch", "--format", "arrow"]
    seconds, peak = use_of([sys.executable, "-m", "tracepoint", *words])
    return Row("memory of Arrow IPC of an event of 5 GB", peak, "MB", 256, True, f"{seconds:.1f} s of CPU")


def filter_before_decoding() -> Row:
    """The table of what a filter leaves against the table of all."""
    taken: list[list[float]] = [[], []]
    with open_trace(recordings()[1], threads=1) as trace:
        for _ in range(RUNS):
            for chosen, times in zip((trace, trace.where("prev_pid == 296")), taken, strict=True):
                begin = time.process_time()
                len(chosen["sched_switch"])
                times.append(time.process_time() - begin)
    every, some = map(statistics.median, taken)
    return Row("a table against where prev_pid == 296", every / some, "times", 1, False, f"{some:.2f} s")


def guest_clock() -> Row:
    """One event's table with each time shifted from a guest's clock to its host's, against that without, in turns."""
    samples = tuple(ClockSample(n * 10**9, 100 * n, 1) for n in range(200))
    taken: list[list[float]] = [[], []]
    with open_trace(recordings()[1], threads=1) as trace:
        plain = trace.buffer.cpus if trace.buffer is not None else ()
        shift = TimeMap(TimeShift(1, 1, (samples,) * (1 + max(cpu.cpu for cpu in plain))))
        shifted = [replace(cpu, time_map=shift) for cpu in plain]
        for _ in range(RUNS):
            for cpus, times in zip((plain, shifted), taken, strict=True):
                begin = time.process_time()
                read_columns(cpus, [trace.format("sched_switch")], 1)
                times.append(time.process_time() - begin)
    whole, spent = map(statistics.median, taken)
    return Row("table with TIME_SHIFT against without", spent / whole, "times", 2, True, f"{spent:.2f} s")


def two_threads() -> Row:
    """The time of every field of every event on one thread against two."""
    if len(os.sched_getaffinity(0)) < 2:
        raise MissingError("one CPU only")
    taken: list[list[float]] = [[], []]
    for _ in range(RUNS):
        for threads, times in zip((1, 2), taken, strict=True):
            with open_trace(recordings()[1], threads=threads) as trace:
                begin = time.perf_counter()
                len(trace["sched_switch"])
                times.append(time.perf_counter() - begin)
    one, two = map(statistics.median, taken)
    return Row("sched_switch to columns, two threads", one / two, "times", 1.7, False, f"{two:.2f} s")


ROWS = (
    table_against_report,
    compressed_against_plain,
    table_against_regex,
    decoding_alone,
    decoding_against_walk,
    every_field,
    read_against_report,
    read_plain_against_report,
    window_of_large,
    memory_of_window,
    memory_of_table,
    memory_of_parquet,
    memory_of_sql,
    memory_of_one_event,
    filter_before_decoding,
    guest_clock,
    two_threads,
)
