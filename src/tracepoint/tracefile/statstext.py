"""Writing per_cpu/cpuN/stats; `recording.read_stats` reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.tracefile.text import microseconds
from tracepoint.tracefile.textoptions import CLOCKS_NOT_IN_NS

if TYPE_CHECKING:
    from collections.abc import Mapping


def counts_text(counts: Mapping[str, int], clock: str, now: int) -> str:
    """Write the counts of a ring buffer as its file `stats` shows them."""

    def stamp(value: int) -> str:
        if clock in CLOCKS_NOT_IN_NS:
            return str(value)
        seconds, rest = divmod(microseconds(value), 1_000_000)
        return f"{seconds:5d}.{rest:06d}"

    return (
        f"entries: {counts.get('entries', 0)}\n"
        f"overrun: {counts.get('overrun', 0)}\n"
        f"commit overrun: {counts.get('commit_overrun', 0)}\n"
        f"bytes: {counts.get('bytes', 0)}\n"
        f"oldest event ts: {stamp(counts.get('oldest_stamp', 0))}\n"
        f"now ts: {stamp(now)}\n"
        f"dropped events: {counts.get('dropped', 0)}\n"
        f"read events: {counts.get('read', 0)}\n"
    )
