"""Where the recordings are read: here, on Dask or on Spark; the blocks that are put together are the same."""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from tracepoint.decode.libraries import import_library
from tracepoint.decode.threads import n_threads
from tracepoint.errors import TracepointError
from tracepoint.fleet.batches import cut_batches, merge_batches, run_batch
from tracepoint.fleet.result import BLOCK, FleetResult, merge_blocks, merge_results
from tracepoint.fleet.work import run_job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tracepoint.fleet.batches import Batch
    from tracepoint.fleet.work import Job

    Engine = Callable[[Job, Sequence[str], Any], FleetResult]

_SECONDS = 10
_SCHEMA = "block long, at long, result string"


def _joined(results: Iterable[FleetResult]) -> FleetResult:
    """Return results put together; a block at a time is in memory, and what became of the blocks before."""
    blocks: list[FleetResult] = []
    waiting: list[FleetResult] = []
    for result in results:
        waiting.append(result)
        if len(waiting) == BLOCK:
            blocks.append(merge_results(waiting))
            waiting = []
    return merge_blocks([*blocks, *([merge_results(waiting)] if waiting else [])])


def run_here(job: Job, paths: Sequence[str], client: Any = None) -> FleetResult:
    """Read one recording after the other, each with all CPUs."""
    del client
    return _joined(run_job(job, path, threads=0) for path in paths)


def run_on_threads(job: Job, paths: Sequence[str], client: Any = None) -> FleetResult:
    """Read as many recordings at once as there are CPUs, which is worth it for many small ones."""
    del client
    with ThreadPoolExecutor(n_threads()) as pool:
        return _joined(pool.map(partial(run_job, job), paths))


def run_on_dask(job: Job, paths: Sequence[str], client: Any = None) -> FleetResult:
    """Read the recordings on the workers of a Dask client, or of a local cluster without one."""
    with _dask_client(client) as dask:
        # A cluster that grows when it is used has no workers yet.
        batches = cut_batches(paths, max(sum(dask.nthreads().values()), 1))
        found = dask.map(partial(run_batch, job), batches, pure=False)
        blocks = []
        for _, own in groupby(zip(batches, found, strict=True), lambda pair: pair[0].block):
            parts = [part for _, part in own]
            blocks.append(parts[0] if len(parts) == 1 else dask.submit(merge_batches, parts, pure=False))
        # A worker forgets a result when its block is done.
        del found, own, parts
        return merge_blocks([result for block in dask.gather(blocks) for result in block])


@contextmanager
def _dask_client(client: Any) -> Iterator[Any]:
    distributed = import_library("distributed", "fleet")
    if client is not None:
        yield client
        return
    with (
        distributed.LocalCluster(n_workers=n_threads(), threads_per_worker=1, dashboard_address=None) as made,
        distributed.Client(made) as own,
    ):
        yield own


@contextmanager
def dask_at(address: str) -> Iterator[Any]:
    """Give the client of a Dask cluster that runs; raises TracepointError where none answers."""
    distributed = import_library("distributed", "fleet")
    try:
        client = distributed.Client(address, timeout=_SECONDS)
    except (OSError, ValueError) as error:
        raise TracepointError(f"no Dask scheduler at {address}: {error}") from None
    with client:
        yield client


def run_on_spark(job: Job, paths: Sequence[str], client: Any = None) -> FleetResult:
    """Read the recordings on the executors of a Spark session, of a local one without one."""
    with _spark_session(client) as session:
        # Spark Connect does not say how many cores there are; sites set this to a small multiple of them.
        batches = cut_batches(paths, int(session.conf.get("spark.sql.shuffle.partitions")))
        rows = session.range(0, len(batches), 1, min(len(batches), 10_000))
        read = rows.mapInArrow(_arrow_reader(job, tuple(batches)), _SCHEMA)
        if not all(batch.is_block for batch in batches):
            read = read.groupBy("block").applyInArrow(_merge_arrow, _SCHEMA)
        found = sorted((row["block"], row["result"]) for row in read.collect())
        return merge_blocks([FleetResult.from_facts(json.loads(text)) for _, text in found])


@contextmanager
def _spark_session(client: Any) -> Iterator[Any]:
    sql = import_library("pyspark.sql", "spark")
    import_library("pyarrow", "spark")
    session = client or sql.SparkSession.getActiveSession()
    if session is not None:
        yield session
        return
    made = sql.SparkSession.builder.master("local[*]").appName("tracepoint")
    made = made.config("spark.ui.enabled", "false")
    # Else its workers are whatever `python3` is on PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    own = made.config("spark.sql.shuffle.partitions", str(n_threads())).getOrCreate()
    try:
        yield own
    finally:
        own.stop()


def _arrow_reader(job: Job, batches: Sequence[Batch]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return what turns the numbers of batches of recordings into their results."""

    def read(numbers: Iterable[Any]) -> Iterator[Any]:
        for arrow in numbers:
            for number in arrow.column(0).to_pylist():
                batch = batches[number]
                yield _rows(batch.block, batch.at, run_batch(job, batch))

    return read


def _merge_arrow(table: Any) -> Any:
    pyarrow = import_library("pyarrow", "spark")
    rows = sorted(table.to_pylist(), key=lambda row: row["at"])
    merged = merge_results([FleetResult.from_facts(json.loads(row["result"])) for row in rows])
    return pyarrow.Table.from_batches([_rows(rows[0]["block"], rows[0]["at"], [merged])])


def _rows(block: int, first: int, results: Sequence[FleetResult]) -> Any:
    pyarrow = import_library("pyarrow", "spark")
    texts = [json.dumps(result.facts(), separators=(",", ":")) for result in results]
    places = range(first, first + len(texts))
    return pyarrow.RecordBatch.from_pydict({"block": [block] * len(texts), "at": places, "result": texts})


#: By name; None is this process.
ENGINES: dict[str | None, Engine] = {
    None: run_here,
    "threads": run_on_threads,
    "dask": run_on_dask,
    "spark": run_on_spark,
}
