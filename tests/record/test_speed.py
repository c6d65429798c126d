"""How fast the readable page walker is; the C core is measured elsewhere."""

import random
import time

import pytest

from tracefile.making import layout_of
from tracepoint.record.page import walk_pages
from tracepoint.record.write import write_pages

pytestmark = pytest.mark.bench
FLOOR = 1.5e6


def test_pages_are_walked_at_1_5_million_events_a_second(request):
    rng = random.Random(1)
    layout = layout_of()
    # The sizes of a recording of scheduling and system calls: 24 to 72 bytes, 1 to 100 us apart.
    now, records = 0, []
    for _ in range(200_000):
        now += rng.randrange(1000, 100_000)
        records.append((now, bytes(rng.choice((20, 24, 28, 64, 72)))))
    data = write_pages(records, layout)
    best = float("inf")
    for _ in range(5):
        begin = time.process_time()
        count = sum(len(page.records) for page in walk_pages(data, layout))
        best = min(best, time.process_time() - begin)
    assert count == len(records)
    request.node.user_properties.append(("million_events_per_cpu_second", round(count / best / 1e6, 2)))
    assert count / best >= FLOOR
