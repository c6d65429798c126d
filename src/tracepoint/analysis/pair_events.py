"""Pairs of events by one field, several kinds in one pass over the records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.pairs import EndScope, Order, PairMachine
from tracepoint.analysis.spans import spans_of
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tracepoint.analysis.records import AnalysisRecords, Take
    from tracepoint.analysis.spans import Spans

# More than the CPUs of any machine.
_CPU_BITS = 16


class PairKind(NamedTuple):
    """Two events that belong together by a field of both, of one CPU or of all; no field: those of a CPU."""

    begin: str
    end: str
    field: str
    order: Order
    scope: EndScope


def pair_events(records: AnalysisRecords, kinds: Mapping[str, PairKind]) -> dict[str, Spans]:
    """Return the times of each kind whose events were recorded, by its name."""
    gaps = records.coverage.gaps
    takes: dict[str, list[Callable[[int, int, int], object]]] = {}
    machines = {}
    for name, kind in kinds.items():
        if kind.begin not in records or kind.end not in records:
            continue
        machine = PairMachine(kind.order, kind.scope, gaps)
        machines[name] = machine
        # An event can end one kind and begin another, of which neither sees the other.
        takes.setdefault(kind.begin, []).append(_begin(records, kind, machine))
        takes.setdefault(kind.end, []).append(_end(records, kind, machine))
    records.run({event: _together(own) for event, own in takes.items()})
    stop = records.coverage.stop
    return {name: spans_of(machine.finish(stop), records.times) for name, machine in machines.items()}


def _together(takes: list[Callable[[int, int, int], object]]) -> Take:
    def take(row: int, ts: int, cpu: int) -> None:
        for one in takes:
            one(row, ts, cpu)

    return take


def _begin(records: AnalysisRecords, kind: PairKind, machine: PairMachine) -> Take:
    begin = machine.begin
    if not kind.field:
        return lambda row, ts, cpu: begin(cpu, row, ts, cpu)
    values = records.column(kind.begin, kind.field).numbers
    if kind.scope is EndScope.CPU:
        return lambda row, ts, cpu: begin(values[row] << _CPU_BITS | cpu, row, ts, cpu)
    return lambda row, ts, cpu: begin(values[row], row, ts, cpu)


def _end(records: AnalysisRecords, kind: PairKind, machine: PairMachine) -> Callable[[int, int, int], object]:
    end = machine.end
    if not kind.field:
        return lambda row, ts, cpu: end(cpu, row, ts)
    values = records.column(kind.end, kind.field).numbers
    if kind.scope is EndScope.CPU:
        return lambda row, ts, cpu: end(values[row] << _CPU_BITS | cpu, row, ts)
    return lambda row, ts, _cpu: end(values[row], row, ts)
