"""How fast the package starts."""

from __future__ import annotations

from benchmarks.harness import RUNS, Row, over_bare


def import_time() -> Row:
    """`import tracepoint` beyond the bare interpreter."""
    return Row(
        "import tracepoint, over a bare interpreter",
        over_bare("-c", "import tracepoint"),
        "ms",
        30,
        True,
        SPREAD,
    )


def help_time() -> Row:
    """`tracepoint --help` beyond the bare interpreter."""
    return Row(
        "tracepoint --help, over a bare interpreter",
        over_bare("-m", "tracepoint", "--help"),
        "ms",
        80,
        True,
        SPREAD,
    )


SPREAD = f"median of {RUNS}"
ROWS = (import_time, help_time)
