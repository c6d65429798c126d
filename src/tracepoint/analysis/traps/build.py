"""From records to the traps of a machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.needs import Fields, Need
from tracepoint.analysis.probes import find_probes
from tracepoint.analysis.records import AnalysisRecords
from tracepoint.analysis.traps.machine import NONE, TrapMachine, TrapSignal
from tracepoint.analysis.traps.needs import CHECK, ENTRY, EXIT, FAULTS, INTERRUPTS, NEEDS, NMI, SIGNAL
from tracepoint.analysis.traps.vectors import MACHINE_CHECK, PAGE_FAULT, vector_name
from tracepoint.analysis.traps.vectors import NMI as NMI_VECTOR

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.analysis.growing import ClosedPart
    from tracepoint.analysis.probes import Probe
    from tracepoint.analysis.records import RecordPart, Take
    from tracepoint.analysis.traps.machine import TrapRows
    from tracepoint.decode.trace import Trace

#: Functions that traps pass and that can be probed (arch/x86/kernel/traps.c); most entries cannot.
HANDLERS = ("do_error_trap", "do_trap", "math_error", "do_int3", "exc_divide_error", "exc_invalid_op")
_NUMBERS = ("trapnr", "trap", "vector")


class TrapReader:
    """Reads the traps of a recording, as often as they are asked for.

    `records` are those that they are read from; `machine` has what it found the last time, but for the rows.
    """

    def __init__(self, trace: Trace) -> None:
        self._probes = [probe for probe in find_probes(trace, HANDLERS) if not probe.is_return]
        found = {probe.event: Fields(("common_pid",), probe.fields) for probe in self._probes}
        own = tuple(Need({name: fields}, "traps by a probe") for name, fields in found.items())
        self.records = AnalysisRecords(trace, "traps", (*NEEDS, *own))
        self.machine = TrapMachine({})

    def read(self, take: Callable[[ClosedPart[TrapRows]], object]) -> None:
        """Give the traps to `take`, part by part."""
        records = self.records
        machine = self.machine = TrapMachine(records.coverage.gaps)
        records.run_parts(lambda part: self._takes(part, machine), lambda: take(machine.closed()))
        take(machine.finish(records.coverage.stop))

    def _takes(self, part: RecordPart, machine: TrapMachine) -> dict[str, Take]:
        takes = {probe.event: _probe_take(part, machine, probe) for probe in self._probes}
        takes |= _trap_takes(part, machine, has_entries=ENTRY in self.records.recorded)
        return takes | _interrupt_takes(part, machine)


def _probe_take(part: RecordPart, machine: TrapMachine, probe: Probe) -> Take:
    (pid,) = part.numbers(probe.event, "common_pid", codes="i")
    field = next((name for name in _NUMBERS if name in probe.fields), None)
    number = None if field is None else part.numbers(probe.event, field, codes="q")[0]

    def take(row: int, ts: int, cpu: int) -> None:
        vector = NONE if number is None else number[row]
        what = f"{vector_name(vector)}, {probe.function}" if number is not None else probe.function
        machine.trap(ts, cpu, pid[row], vector, what)

    return take


def _trap_takes(part: RecordPart, machine: TrapMachine, *, has_entries: bool) -> dict[str, Take]:
    found: dict[str, Take] = {}
    # trap_entry has page faults too: they are counted once.
    fixed = {} if has_entries else dict.fromkeys(FAULTS, PAGE_FAULT)
    for name, vector in (fixed | {NMI: NMI_VECTOR, CHECK: MACHINE_CHECK}).items():
        if name in part:
            found[name] = _fixed_take(part, machine, name, vector)
    if ENTRY in part:
        pid, number = part.numbers(ENTRY, "common_pid", "trap", codes="iq")
        found[ENTRY] = lambda row, ts, cpu: machine.enter(
            ts, cpu, pid[row], number[row], vector_name(number[row])
        )
    if EXIT in part:
        task, ended = part.numbers(EXIT, "common_pid", "trap", codes="iq")
        found[EXIT] = lambda row, ts, _cpu: machine.leave(ts, task[row], ended[row])
    if SIGNAL in part:
        found[SIGNAL] = _signal_take(part, machine)
    return found


def _fixed_take(part: RecordPart, machine: TrapMachine, event: str, vector: int) -> Take:
    (pid,) = part.numbers(event, "common_pid", codes="i")
    what = vector_name(vector)
    if event in FAULTS:
        what += ", kernel" if event == FAULTS[1] else ", user"
    add = machine.other if event == NMI else machine.trap
    return lambda row, ts, cpu: add(ts, cpu, pid[row], vector, what)


def _signal_take(part: RecordPart, machine: TrapMachine) -> Take:
    sender, tid, number, code = part.numbers(SIGNAL, "common_pid", "pid", "sig", "code", codes="iiqq")
    return lambda row, ts, cpu: machine.signal(
        TrapSignal(ts, cpu, tid[row], sender[row], number[row], code[row], NONE)
    )


def _interrupt_takes(part: RecordPart, machine: TrapMachine) -> dict[str, Take]:
    found: dict[str, Take] = {}
    for name in INTERRUPTS:
        begin, end = f"irq_vectors:{name}_entry", f"irq_vectors:{name}_exit"
        if begin in part:
            found[begin] = _begin_take(part, machine, begin, name)
        if end in part:
            found[end] = _end_take(machine, name)
    return found


def _begin_take(part: RecordPart, machine: TrapMachine, event: str, name: str) -> Take:
    pid, vector = part.numbers(event, "common_pid", "vector", codes="iq")
    return lambda row, ts, cpu: machine.interrupt(ts, cpu, pid[row], vector[row], name)


def _end_take(machine: TrapMachine, name: str) -> Take:
    return lambda _row, ts, cpu: machine.resume(ts, cpu, name)
