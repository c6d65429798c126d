"""Which recordings a task reads: several small ones, or one that is large."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.fleet.inputs import is_remote
from tracepoint.fleet.result import BLOCK, merge_results
from tracepoint.fleet.work import run_job
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracepoint.fleet.result import FleetResult
    from tracepoint.fleet.work import Job

#: The most bytes of recordings that a task reads, unless a single one has more.
BATCH_BYTES = 32 << 20
# So that workers that are done early find something left: of four each, one of two workers often had five.
_TASKS_PER_WORKER = 8


class Batch(NamedTuple):
    """Recordings of one block; `at` is the place of the first, `is_block` whether they are all of it."""

    block: int
    at: int
    paths: tuple[str, ...]
    is_block: bool


def cut_batches(paths: Sequence[str], n_workers: int) -> list[Batch]:
    """Return the recordings in their order, as batches that `n_workers` read at about the same time.

    An engine takes a millisecond or more to hand a task over, which is as long as a small recording takes.
    A batch ends with a block, with BATCH_BYTES, and where each worker would get fewer than eight; a recording
    whose size is not known here has a batch of its own.

    >>> [len(batch.paths) for batch in cut_batches(["none.dat"] * 3, 2)]
    [1, 1, 1]
    """
    most = min(max(len(paths) // (n_workers * _TASKS_PER_WORKER), 1), BLOCK)
    # The batches of a block alike: not 12 recordings and 4.
    most = ceil(BLOCK / ceil(BLOCK / most))
    return [
        Batch(start // BLOCK, start + first, block[first:end], end - first == len(block))
        for start in range(0, len(paths), BLOCK)
        for block in [tuple(paths[start : start + BLOCK])]
        for first, end in _cuts(block, most)
    ]


def _cuts(paths: Sequence[str], most: int) -> Iterator[tuple[int, int]]:
    first = n_bytes = 0
    for at, path in enumerate(paths):
        size = _size_of(path)
        if at > first and (at - first >= most or n_bytes + size > BATCH_BYTES):
            yield first, at
            first, n_bytes = at, 0
        n_bytes += size
    yield first, len(paths)


def _size_of(path: str) -> int:
    """Return the bytes of a recording; more than a batch has where they are not known."""
    try:
        file = None if is_remote(path) else Path(path)
        return file.stat().st_size if file is not None and file.is_file() else BATCH_BYTES + 1
    except (OSError, ValueError):
        return BATCH_BYTES + 1


def run_batch(job: Job, batch: Batch) -> list[FleetResult]:
    """Return the results of a batch: one of a whole block, else one for each recording."""
    found = [run_job(job, path) for path in batch.paths]
    return [merge_results(found)] if batch.is_block else found


def merge_batches(parts: Sequence[Sequence[FleetResult]]) -> list[FleetResult]:
    """Return the result of a block, as `run_batch` does, from those of its batches."""
    return [merge_results([result for part in parts for result in part])]
