"""How fast pages become records."""

from __future__ import annotations

import random
import time
from importlib.util import find_spec

from benchmarks.harness import MissingError, Row
from tracepoint.record import pages
from tracepoint.record.layout import PageLayout
from tracepoint.record.write import write_pages

N_RECORDS = 200_000
N_COPIES = 20


def pages_to_records() -> Row:
    """Records of pages as columns, by the C reader on one core."""
    if find_spec("tracepoint._decode") is None:
        raise MissingError("tracepoint._decode is not built: install gcc and python3-dev")
    rng = random.Random(1)
    # The sizes of a recording of scheduling and system calls: 24 to 72 bytes, 1 to 100 us apart.
    now, records = 0, []
    for _ in range(N_RECORDS):
        now += rng.randrange(1000, 100_000)
        records.append((now, bytes(rng.choice((20, 24, 28, 64, 72)))))
    data = write_pages(records, PageLayout()) * N_COPIES
    best = float("inf")
    for _ in range(5):
        begin = time.process_time()
        found = pages.read_pages(data, PageLayout())
        best = min(best, time.process_time() - begin)
    if len(found.stamps) != N_RECORDS * N_COPIES:
        raise ValueError(f"{len(found.stamps)} records of {N_RECORDS * N_COPIES}")
    return Row("pages to records, one core", len(found.stamps) / best / 1e6, "M/s", 30, False, "best of 5")


ROWS = (pages_to_records,)
