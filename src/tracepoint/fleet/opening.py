"""Recordings of many machines: `open_fleet` returns a `Fleet`, which runs an analysis over all of them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracepoint.analysis.summarise import kind_of
from tracepoint.fleet.engines import ENGINES
from tracepoint.fleet.inputs import find_inputs, skipped_inputs
from tracepoint.fleet.work import Job
from tracepoint.wording import counted, no_such

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracepoint.fleet.result import FleetResult


@dataclass(frozen=True)
class Fleet:
    """Recordings, in the order in which they were named, and where they are read; `open_fleet` makes it."""

    paths: tuple[str, ...]
    engine: str | None = None
    client: Any = None
    #: Files of folders that are not read, as their names do not end in `.dat`.
    skipped: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Fleet of {counted(len(self.paths), 'recording')}, engine {self.engine or 'this process'}>"

    def __len__(self) -> int:
        return len(self.paths)

    def run(self, analysis: str, by: Sequence[str] = ()) -> FleetResult:
        """Return the summaries of all recordings by the values of `by`, such as `host` and `comm`.

        One that cannot be read is counted in the result, and the rest are read.  The result is the same on
        every engine.  Raises KeyError for an unknown analysis or key, and TracepointError for an engine that
        is not installed.
        """
        kind_of(analysis, by)
        return ENGINES[self.engine](Job(analysis, tuple(by)), self.paths, self.client)


def open_fleet(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    engine: str | None = None,
    client: Any = None,
) -> Fleet:
    """Return the recordings that paths, patterns, folders and prefixes stand for, `s3://traces/2026-11-20/`.

    A folder or prefix stands for the `.dat` files below it; URLs are read by fsspec.  `engine` is None (this
    process, one recording after the other), "threads", "dask" or "spark"; `client` a Dask client or a Spark
    session: without it a local cluster is used for each run.  Raises KeyError for an unknown engine,
    ValueError without paths, TracepointError for a pattern without a match, and OSError.

    >>> fleet = open_fleet("tests/tracefile/golden/cut.v6.dat")
    >>> result = fleet.run("sched")
    >>> result.n_read, result.summary["switches"].low
    (1, 10)
    """
    if engine not in ENGINES:
        raise KeyError(no_such("engine", str(engine), [name for name in ENGINES if name]))
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found = find_inputs(given)
    if not found:
        raise ValueError("no path of a recording")
    # A folder and a file of it can both be named.
    skipped = [path for path in skipped_inputs(given) if path not in found]
    return Fleet(tuple(found), engine, client, tuple(skipped))
