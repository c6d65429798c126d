"""Stacks that the tracer recorded, and the events that they belong to.

The kernel writes a stack right after its event, with the context of the event: the same CPU, task, flags and
preempt count (kernel/trace/trace.c: trace_buffer_unlock_commit_regs(), __ftrace_trace_stack()).  Records of
interrupts, which may be between the two, have other flags.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from tracepoint.decode.rows import Row
from tracepoint.named import NamedTuple
from tracepoint.tracefile.sieve import signed_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracepoint.tracefile.cpudata import CpuData

_COMMON_BYTES = 8

#: What was written of one event: its stack of each kind, None without.
Stacks = list[bytes | None]


class Attached(NamedTuple):
    """For each kind of stack the records of the rows of a table, without bytes where an event has none.

    `n_unattached` counts stacks with no event before them.
    """

    rows: list[list[Row]]
    n_unattached: int


def attach_stacks(
    whole: Sequence[CpuData], chosen: Sequence[CpuData], number: int, kinds: Sequence[int]
) -> Attached:
    """Find the stacks of the events `number` among the records of `chosen`, in the order of a table's rows.

    `whole` has all records of the same CPUs; `kinds` are the numbers of the events that are stacks.
    """
    found: list[tuple[int, Stacks]] = []
    n_unattached = 0
    for cpu, part in zip(whole, chosen, strict=True):
        walk = _Walk(number, kinds)
        events = walk.events(cpu)
        for record in part.records():
            if record.id(is_big_endian=part.layout.is_big_endian) == number:
                # What is chosen is a part of the whole, in the same order.
                stacks = next((s for stamp, data, s in events if (stamp, data) == record[::2]), None)
                found.append((signed_time(record.timestamp), stacks or [None] * len(kinds)))
        for _ in events:
            pass
        n_unattached += walk.n_unattached
    found.sort(key=lambda event: event[0])
    rows = [[Row(0, 0, stacks[kind] or b"") for _, stacks in found] for kind in range(len(kinds))]
    return Attached(rows, n_unattached)


class _Walk:
    """The records of a CPU in the order they were written."""

    def __init__(self, number: int, kinds: Sequence[int]) -> None:
        self.n_unattached = 0
        self._number = number
        self._kinds = {kind: index for index, kind in enumerate(kinds)}
        # The last event of each context: its stacks.
        self._last: dict[tuple[int, int, int], Stacks] = {}

    def events(self, cpu: CpuData) -> Iterator[tuple[int, bytes, Stacks]]:
        """Yield the events with their times in ns; their stacks are complete at the end."""
        unpack = struct.Struct(">HBBi" if cpu.layout.is_big_endian else "<HBBi").unpack_from
        convert, new_ids = cpu.time_map, cpu.new_ids
        for data, pages in cpu.pages():
            is_after_loss = {first for first, head in pages.noted_heads() if head.lost}
            places = zip(pages.stamps, pages.offsets, pages.lengths, strict=True)
            for index, (stamp, at, length) in enumerate(places):
                if index in is_after_loss:
                    self._last.clear()
                if length < _COMMON_BYTES:
                    continue
                number, *context = unpack(data, at)
                number = number if new_ids is None else new_ids[number]
                kind = self._kinds.get(number)
                if kind is None:
                    stacks = self._last[tuple(context)] = [None] * len(self._kinds)
                    if number == self._number:
                        time = stamp if convert is None else convert(stamp, cpu.cpu)
                        yield time, data[at : at + length], stacks
                else:
                    self._add(tuple(context), kind, data[at : at + length])
            if len(pages.stamps) in is_after_loss:
                self._last.clear()

    def _add(self, context: tuple[int, int, int], kind: int, record: bytes) -> None:
        stacks = self._last.get(context)
        if stacks is None or stacks[kind] is not None:
            self.n_unattached += 1
        else:
            stacks[kind] = record
