"""How much two workers save: `small.v7.zstd.dat` of the folder TRACEPOINT_DATA many times, on local Dask clusters."""

from __future__ import annotations

import os
import statistics
import time
from importlib import import_module
from pathlib import Path

from benchmarks.harness import MissingError, Row
from tracepoint.fleet import Fleet

N_RECORDINGS, RUNS = 128, 3


def fleet_two_workers() -> Row:
    """Wall time of a run with one worker over that with two, in turn."""
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
            Fleet((str(path),) * 8, "dask", client).run("sched")
        ratios = [_seconds(path, one) / _seconds(path, two) for _ in range(RUNS)]
    ratio, load = statistics.median(ratios), os.getloadavg()[0]
    return Row("fleet: one worker over two", ratio, "x", 1.7, False, f"load {load:.1f}")


def _seconds(path: Path, client: object) -> float:
    begin = time.perf_counter()
    Fleet((str(path.resolve()),) * N_RECORDINGS, "dask", client).run("sched")
    return time.perf_counter() - begin


ROWS = (fleet_two_workers,)
