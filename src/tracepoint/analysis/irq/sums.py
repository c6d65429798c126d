"""What a report says of interrupts and of what they deferred, added up part by part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.irq.build import DUE, IRQS, KINDS, NUMBERS, SOFT, TIMER_DUE
from tracepoint.analysis.spans import OPEN
from tracepoint.analysis.sums import SampleSums

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracepoint.analysis.growing import ClosedPart
    from tracepoint.analysis.irq.rows import IrqRows
    from tracepoint.analysis.sections import Choice

_IRQ_NUMBERS = frozenset(NUMBERS[kind] for kind in IRQS)


class IrqSums:
    """The figures of the chosen interrupts and softirqs, and of all that they deferred.

    `times` are by kind and number of the name, `late` how much later than due timers were, by their kind;
    `net` is by number of the name.  Of a CPU and of a task there is the net time of interrupts and of
    softirqs; tasks are in the order in which they were interrupted first.
    """

    def __init__(self, tasks: Mapping[int, str], choice: Choice) -> None:
        self.tasks = tasks
        self._choice = choice
        self.times: dict[str, SampleSums[int]] = {kind: SampleSums() for kind in KINDS}
        self.late: dict[str, SampleSums[str]] = {kind: SampleSums() for kind in (DUE, TIMER_DUE)}
        self.net: dict[int, int] = {}
        self.by_cpu: dict[int, list[int]] = {}
        self._by_tid: dict[int, list[int]] = {}
        self._first: dict[int, int] = {}

    def add(self, part: ClosedPart[IrqRows]) -> None:
        """Add the times of a part."""
        rows = part.rows
        flags = self._choice.flags(rows.tid, rows.cpu, self.tasks)
        places: dict[int, list[int]] = {}
        for at, number in enumerate(rows.kind):
            if flags is None or flags[at] or number not in _IRQ_NUMBERS:
                places.setdefault(number, []).append(at)
        for kind, sums in self.times.items():
            own = places.get(NUMBERS[kind])
            if own is None:
                continue
            what, dur, is_cut, numbers = (
                [column[at] for at in own] for column in (rows.what, rows.dur, rows.is_cut, part.numbers)
            )
            sums.add(what, dur, is_cut, numbers)
            if kind in self.late:
                late = [rows.late[at] for at in own]
                self.late[kind].add([kind] * len(own), late, is_cut, numbers)
            if kind in IRQS:
                self._add_net(part, own, is_soft=kind == SOFT)

    def _add_net(self, part: ClosedPart[IrqRows], places: list[int], *, is_soft: bool) -> None:
        rows = part.rows
        for at in places:
            if rows.dur[at] == OPEN:
                continue
            what, tid, net = rows.what[at], rows.tid[at], rows.net[at]
            self.net[what] = self.net.get(what, 0) + net
            self.by_cpu.setdefault(rows.cpu[at], [0, 0])[is_soft] += net
            self._by_tid.setdefault(tid, [0, 0])[is_soft] += net
            number = part.numbers[at]
            self._first[tid] = min(number, self._first.get(tid, number))

    @property
    def by_tid(self) -> dict[int, list[int]]:
        """The net time of interrupts and of softirqs by the task that they interrupted."""
        return {tid: self._by_tid[tid] for tid in sorted(self._by_tid, key=self._first.__getitem__)}
