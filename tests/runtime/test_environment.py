"""Events that TRACEPOINT_EVENTS switches on at start."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import tracepoint as tp

@tp.trace_event(system="shop", printk='"total=%u", total')
def sold(total: tp.u32) -> None: ...

@tp.trace_event(system="shop", printk='"n=%u", n')
def returned(n: tp.u32) -> None: ...

@tp.trace_event(system="bank", printk='"n=%u", n')
def paid(n: tp.u32) -> None: ...

for n in (5, 5000):
    sold(n), returned(n), paid(n)
print(*sorted(f"{r.id()}:{int.from_bytes(r.data[8:12], 'little')}" for r in tp.tracing.records()))
print(sold.filter, sold.enabled, returned.enabled, paid.enabled)
"""


@pytest.mark.parametrize("pure", ["", "1"])
@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ("", "\nnone False False False\n"),
        ("shop:* if total > 1000", "20:5000\ntotal > 1000 True False False\n"),
        ("shop:sold if total > 1000; bank:", "20:5000 22:5 22:5000\ntotal > 1000 True False True\n"),
        ("re?urned;", "21:5 21:5000\nnone False True False\n"),
    ],
)
def test_events_are_on_from_the_start(pure, wish, expected):
    env = {"TRACEPOINT_EVENTS": wish, "TRACEPOINT_PURE": pure}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout == expected


def test_a_filter_that_does_not_fit_is_a_warning_and_the_event_stays_off():
    env = {"TRACEPOINT_EVENTS": "shop: if total >"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith(" False False False\n")
    assert "RuntimeWarning: TRACEPOINT_EVENTS: shop:sold stays off: " in done.stderr
