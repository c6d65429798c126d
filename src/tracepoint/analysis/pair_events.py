"""Pairs of events by one field, several kinds in one pass over the records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.pairs import EndScope, Order, PairMachine
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tracepoint.analysis.records import AnalysisRecords, RecordPart, Take

    #: Takes a key, and the row, time and CPU of a record.
    TakeKey = Callable[[int, int, int, int], object]

# More than the CPUs of any machine.
_CPU_BITS = 16


class PairKind(NamedTuple):
    """Two events that belong together by a field of both, of one CPU or of all; no field: those of a CPU."""

    begin: str
    end: str
    field: str
    order: Order
    scope: EndScope


def pair_machines(records: AnalysisRecords, kinds: Mapping[str, PairKind]) -> dict[str, PairMachine]:
    """Return a machine for each kind whose events are there, by its name."""
    gaps = records.coverage.gaps
    return {
        name: PairMachine(kind.order, kind.scope, gaps)
        for name, kind in kinds.items()
        if kind.begin in records and kind.end in records
    }


def pair_takes(
    part: RecordPart,
    kinds: Mapping[str, PairKind],
    begin_of: Mapping[str, TakeKey],
    end: Mapping[str, TakeKey],
) -> dict[str, Take]:
    """Return what gives the records of a part to the begin and the end of each kind, with their keys."""
    takes: dict[str, list[Take]] = {}
    for name, begin in begin_of.items():
        kind = kinds[name]
        # An event can end one kind and begin another, of which neither sees the other.
        takes.setdefault(kind.begin, []).append(_with_key(part, kind.begin, kind, begin))
        takes.setdefault(kind.end, []).append(_with_key(part, kind.end, kind, end[name]))
    return {event: _together(own) for event, own in takes.items()}


def _together(takes: list[Take]) -> Take:
    if len(takes) == 1:
        return takes[0]

    def take(row: int, ts: int, cpu: int) -> None:
        for one in takes:
            one(row, ts, cpu)

    return take


def _with_key(part: RecordPart, event: str, kind: PairKind, take: TakeKey) -> Take:
    if not kind.field:
        return lambda row, ts, cpu: take(cpu, row, ts, cpu)
    values = part.column(event, kind.field).numbers
    if kind.scope is EndScope.CPU:
        return lambda row, ts, cpu: take(values[row] << _CPU_BITS | cpu, row, ts, cpu)
    return lambda row, ts, cpu: take(values[row], row, ts, cpu)
