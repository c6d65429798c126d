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
    from tracepoint.analysis.probes import Probe
    from tracepoint.analysis.records import Take
    from tracepoint.decode.trace import Trace

#: Functions that traps pass and that can be probed (arch/x86/kernel/traps.c); most entries cannot.
HANDLERS = ("do_error_trap", "do_trap", "math_error", "do_int3", "exc_divide_error", "exc_invalid_op")
_NUMBERS = ("trapnr", "trap", "vector")


def read_traps(trace: Trace) -> tuple[AnalysisRecords, TrapMachine]:
    """Return the records and the traps that they tell of."""
    probes = [probe for probe in find_probes(trace, HANDLERS) if not probe.is_return]
    found = {probe.event: Fields(("common_pid",), probe.fields) for probe in probes}
    own = tuple(Need({name: fields}, "traps by a probe") for name, fields in found.items())
    records = AnalysisRecords(trace, "traps", (*NEEDS, *own))
    machine = TrapMachine(records.coverage.gaps)
    takes = {probe.event: _probe_take(records, machine, probe) for probe in probes}
    records.run(takes | _trap_takes(records, machine) | _interrupt_takes(records, machine))
    machine.finish(records.coverage.stop)
    return records, machine


def _probe_take(records: AnalysisRecords, machine: TrapMachine, probe: Probe) -> Take:
    pid = records.column(probe.event, "common_pid").numbers
    field = next((name for name in _NUMBERS if name in probe.fields), None)
    number = None if field is None else records.column(probe.event, field).numbers

    def take(row: int, ts: int, cpu: int) -> None:
        vector = NONE if number is None else number[row]
        what = f"{vector_name(vector)}, {probe.function}" if number is not None else probe.function
        machine.trap(ts, cpu, pid[row], vector, what)

    return take


def _trap_takes(records: AnalysisRecords, machine: TrapMachine) -> dict[str, Take]:
    found: dict[str, Take] = {}
    # trap_entry has page faults too: they are counted once.
    fixed = {name: PAGE_FAULT for name in FAULTS if ENTRY not in records.recorded}
    for name, vector in (fixed | {NMI: NMI_VECTOR, CHECK: MACHINE_CHECK}).items():
        if name in records:
            found[name] = _fixed_take(records, machine, name, vector)
    if ENTRY in records:
        pid, number = records.numbers(ENTRY, "common_pid", "trap")
        found[ENTRY] = lambda row, ts, cpu: machine.enter(
            ts, cpu, pid[row], number[row], vector_name(number[row])
        )
    if EXIT in records:
        task, ended = records.numbers(EXIT, "common_pid", "trap")
        found[EXIT] = lambda row, ts, _cpu: machine.leave(ts, task[row], ended[row])
    if SIGNAL in records:
        found[SIGNAL] = _signal_take(records, machine)
    return found


def _fixed_take(records: AnalysisRecords, machine: TrapMachine, event: str, vector: int) -> Take:
    pid = records.column(event, "common_pid").numbers
    what = vector_name(vector)
    if event in FAULTS:
        what += ", kernel" if event == FAULTS[1] else ", user"
    add = machine.other if event == NMI else machine.trap
    return lambda row, ts, cpu: add(ts, cpu, pid[row], vector, what)


def _signal_take(records: AnalysisRecords, machine: TrapMachine) -> Take:
    sender, tid, number, code = records.numbers(SIGNAL, "common_pid", "pid", "sig", "code")
    return lambda row, ts, cpu: machine.signal(
        TrapSignal(ts, cpu, tid[row], sender[row], number[row], code[row], NONE)
    )


def _interrupt_takes(records: AnalysisRecords, machine: TrapMachine) -> dict[str, Take]:
    found: dict[str, Take] = {}
    for name in INTERRUPTS:
        begin, end = f"irq_vectors:{name}_entry", f"irq_vectors:{name}_exit"
        if begin in records:
            found[begin] = _begin_take(records, machine, begin, name)
        if end in records:
            found[end] = _end_take(machine, name)
    return found


def _begin_take(records: AnalysisRecords, machine: TrapMachine, event: str, name: str) -> Take:
    pid, vector = records.numbers(event, "common_pid", "vector")
    return lambda row, ts, cpu: machine.interrupt(ts, cpu, pid[row], vector[row], name)


def _end_take(machine: TrapMachine, name: str) -> Take:
    return lambda _row, ts, cpu: machine.resume(ts, cpu, name)
