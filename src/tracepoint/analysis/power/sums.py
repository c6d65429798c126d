"""What a report says of idle states and frequencies, added up part by part."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from tracepoint.analysis.power.build import ACTIVE, KHZ
from tracepoint.analysis.spans import OPEN, SpanTally
from tracepoint.analysis.sums import SampleSums

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.analysis.growing import ClosedPart
    from tracepoint.analysis.levels import LevelRows


class PowerSums:
    """The times of idle states and frequencies of all CPUs in ns, and the lengths of idle times of some.

    `idle` and `frequency` are by CPU and value; idle times at the end or at a loss are not whole, and the
    latter are counted (`cut`).
    """

    def __init__(self, has_cpu: Callable[[int], bool]) -> None:
        self._has_cpu = has_cpu
        self.idle: dict[tuple[int, int], int] = {}
        self.entries: dict[tuple[int, int], int] = {}
        self.frequency: dict[tuple[int, int], int] = {}
        self.lengths: SampleSums[int] = SampleSums()
        self.cut = SpanTally()

    def add(self, part: ClosedPart[LevelRows]) -> None:
        """Add the values of a part."""
        rows = part.rows
        chosen = {cpu: self._has_cpu(cpu) for cpu in set(rows.key)}
        whole: dict[int, array[int]] = {}
        cut = []
        for kind, cpu, ts, dur, value, is_cut, is_open in zip(*rows, strict=True):
            key = cpu, value
            if kind == KHZ:
                self.frequency[key] = self.frequency.get(key, 0) + dur
                continue
            self.idle[key] = self.idle.get(key, 0) + dur
            self.entries[key] = self.entries.get(key, 0) + 1
            if value != ACTIVE and chosen[cpu]:
                if is_cut:
                    cut.append(ts)
                elif not is_open:
                    whole.setdefault(value, array("q")).append(dur)
        self.lengths.add_values(whole)
        self.cut.add(cut, [OPEN] * len(cut), [1] * len(cut))
