import os
import time

import pytest

from tracepoint.lab.guest import pace


@pytest.mark.parametrize(
    ("loop", "load", "processors", "slow"),
    [
        (0.01, 0.5, 2, 1.0),
        (0.02, 2.0, 2, 1.0),
        (0.1, 1.0, 2, 5.0),
        (0.01, 10.0, 2, 5.0),
        (0.2, 10.0, 2, 10.0),
    ],
)
def test_limits_grow_with_a_slow_loop_and_with_the_load(monkeypatch, loop, load, processors, slow):
    times = iter((7.0, 7.0 + loop))
    monkeypatch.setattr(time, "perf_counter", lambda: next(times))
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(range(processors)))
    assert pace.slowness() == pytest.approx(slow)
