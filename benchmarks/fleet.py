"""How much two workers save: `small.v7.zstd.dat` of the folder TRACEPOINT_DATA many times, on local Dask clusters."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness import MissingError, Row
from tracepoint.fleet import Fleet

N_RECORDINGS, RUNS = 256, 5
# About as long as a run over the recordings, in plain Python.
TURNS = 30_000_000


def fleet_two_workers() -> Row:
    """Wall time of a run with one worker over that with two, in turn; the workers are there before.

    Beside it what two processes save of the same work in plain Python, in the same minutes: what this machine
    gives while it is shared.  And what the CPU times allow, which other work changes little: a run takes no
    less than its busiest worker, and on two CPUs no less than half of all that it uses.
    """
    path = Path(os.environ.get("TRACEPOINT_DATA", "../shared/data")) / "small.v7.zstd.dat"
    if not path.exists():
        raise MissingError("no small.v7.zstd.dat in the folder TRACEPOINT_DATA")
    distributed = import_module("distributed")
    options = {"threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(n_workers=1, **options) as first,
        distributed.LocalCluster(n_workers=2, **options) as second,
        distributed.Client(first) as one,
        distributed.Client(second) as two,
    ):
        for client in (one, two):
            client.run(import_module, "tracepoint.fleet")
            _measured(path, client, 32)
        ratios, plain, busiest, by_cpu = [], [], [], []
        for _ in range(RUNS):
            alone, both = _measured(path, one), _measured(path, two)
            ratios.append(alone.wall / both.wall)
            busiest.append(max(alone.workers) / max(both.workers))
            by_cpu.append(max(alone.workers) / max(*both.workers, (sum(both.workers) + both.here) / 2))
            plain.append(_plain_seconds(1) / _plain_seconds(2))
    busy, allowed, limit, ratio = map(statistics.median, (busiest, by_cpu, plain, ratios))
    detail = f"CPU of the busiest worker {busy:.2f} x, all on two CPUs {allowed:.2f} x, "
    detail += f"two plain processes {limit:.2f} x, load {os.getloadavg()[0]:.1f}"
    return Row("fleet: one worker over two", ratio, "x", 1.7, False, detail)


class _Run(NamedTuple):
    """Seconds of a run: of the clock, and of CPU in each worker and in this process, where the scheduler is."""

    wall: float
    workers: list[float]
    here: float


def _measured(path: Path, client: Any, n: int = N_RECORDINGS) -> _Run:
    before = client.run(time.process_time)
    here, wall = time.process_time(), time.perf_counter()
    Fleet((str(path.resolve()),) * n, "dask", client).run("sched")
    wall, here = time.perf_counter() - wall, time.process_time() - here
    after = client.run(time.process_time)
    return _Run(wall, [after[worker] - before[worker] for worker in before], here)


def _plain_seconds(n_processes: int) -> float:
    begin = time.perf_counter()
    code = f"for _ in range({TURNS // n_processes}): pass"
    started = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(n_processes)]
    for process in started:
        process.wait()
    return time.perf_counter() - begin


ROWS = (fleet_two_workers,)
