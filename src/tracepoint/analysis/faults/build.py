"""From records to the faults of a machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.faults.machine import FaultColumns, FaultMachine
from tracepoint.analysis.faults.needs import HANDLER, NEEDS
from tracepoint.analysis.needs import Fields, Need
from tracepoint.analysis.probes import find_probes
from tracepoint.analysis.records import AnalysisRecords
from tracepoint.decode.numbers import numbers_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.analysis.probes import Probe
    from tracepoint.analysis.records import Take
    from tracepoint.decode.trace import Trace

_FAULTS = ("exceptions:page_fault_user", "exceptions:page_fault_kernel")
_GRAPH = "ftrace:funcgraph_exit"
_GRAPH_FIELDS = Fields(("common_pid", "func"), ("retval",))
# What calls handle_mm_fault() without a trap: mm/gup.c.
_WITHOUT_TRAP = ("faultin_page", "__get_user_pages", "fixup_user_fault", "hmm_vma_fault")
# TASK_UNINTERRUPTIBLE in include/linux/sched.h.
_SLEEPS = 2


def read_faults(trace: Trace) -> tuple[AnalysisRecords, FaultMachine, list[str]]:
    """Return the records, the faults, and which events say how faults ended."""
    probes = [probe for probe in find_probes(trace, (HANDLER,)) if probe.is_return]
    has_graph = not probes and trace.events.get(_GRAPH, 0) > 0
    ends = {probe.event: Fields(("common_pid",), ("__probe_ret_ip", *probe.fields)) for probe in probes[:1]}
    if has_graph:
        ends[_GRAPH] = _GRAPH_FIELDS
    needs = (*NEEDS, *(Need({name: fields}, "ends of faults") for name, fields in ends.items()))
    if not ends:
        needs = (
            *needs,
            Need({f"kprobes:{HANDLER}": Fields()}, "how long faults took, exact minor and major"),
        )
    records = AnalysisRecords(trace, "faults", needs)
    machine = FaultMachine(records.coverage.gaps, records.processes)
    machine.take(_columns(records))
    takes = _mapping_takes(records, machine) | _wait_takes(records, machine)
    if probes:
        takes[probes[0].event] = _probe_take(records, machine, probes[0])
    elif has_graph:
        takes[_GRAPH] = _graph_take(records, machine)
    # Faults alone, without losses, have no state: they are counted as they are.
    if machine.has_losses or takes.keys() & records.recorded:
        for name in _FAULTS:
            if name in records:
                takes[name] = lambda _row, ts, cpu: machine.fault(ts, cpu)
        records.run(takes)
    machine.finish(records.coverage.stop)
    return records, machine, list(ends)


def _columns(records: AnalysisRecords) -> FaultColumns:
    events = [name for name in _FAULTS if name in records]
    rows = records.rows_of(*events)
    pid, address, ip, code = (
        records.gathered(rows, field, events) for field in ("common_pid", "address", "ip", "error_code")
    )
    times, cpus, types = records.times, records.cpus, records.types.numbers
    if not isinstance(rows, range):
        times = numbers_of(map(times.__getitem__, rows), "q")
        cpus = numbers_of(map(cpus.__getitem__, rows), "i")
    kernel = {number for number, name in records.table.events.items() if name == "page_fault_kernel"}
    is_kernel = numbers_of(map(kernel.__contains__, map(types.__getitem__, rows)), "b")
    return FaultColumns(times, cpus, pid, address, ip, code, is_kernel)


def _wait_takes(records: AnalysisRecords, machine: FaultMachine) -> dict[str, Take]:
    found: dict[str, Take] = {}
    if "sched:sched_switch" in records:
        prev, state = records.numbers("sched:sched_switch", "prev_pid", "prev_state")

        def switch(row: int, ts: int, _cpu: int) -> None:
            if state[row] & _SLEEPS:
                machine.sleep(ts, prev[row])

        found["sched:sched_switch"] = switch
    for name in ("block:block_bio_queue", "block:block_rq_issue"):
        if name in records:
            found[name] = _block_take(records, machine, name)
            break
    if "raw_syscalls:sys_enter" in records:
        pid = records.column("raw_syscalls:sys_enter", "common_pid").numbers
        found["raw_syscalls:sys_enter"] = lambda row, _ts, _cpu: machine.leave(pid[row])
    return found


def _block_take(records: AnalysisRecords, machine: FaultMachine, name: str) -> Take:
    pid, flags = records.column(name, "common_pid").numbers, records.column(name, "rwbs")
    reads = [word.lstrip("F").startswith("R") for word in flags.words]
    index = flags.numbers

    def take(row: int, ts: int, _cpu: int) -> None:
        if reads[index[row]]:
            machine.read(ts, pid[row])

    return take


def _mapping_takes(records: AnalysisRecords, machine: FaultMachine) -> dict[str, Take]:
    spaces, process_of = machine.spaces, machine.process_of
    makers: dict[str, tuple[Callable[..., None], tuple[str, ...]]] = {
        "syscalls:sys_enter_mmap": (spaces.ask, ("common_pid", "len", "flags", "fd")),
        "syscalls:sys_exit_mmap": (
            lambda tid, ret: spaces.get(tid, process_of(tid), ret), ("common_pid", "ret"),
        ),
        "syscalls:sys_exit_brk": (lambda tid, ret: spaces.grow(process_of(tid), ret), ("common_pid", "ret")),
        "syscalls:sys_enter_munmap": (
            lambda tid, start, size: spaces.drop(process_of(tid), start, size),
            ("common_pid", "addr", "len"),
        ),
        "sched:sched_process_exec": (lambda tid: spaces.clear(process_of(tid)), ("pid",)),
        "sched:sched_process_fork": (
            lambda parent, child: spaces.fork(process_of(parent), process_of(child)),
            ("parent_pid", "child_pid"),
        ),
    }  # fmt: skip
    return {
        event: _call(machine, function, *records.numbers(event, *fields))
        for event, (function, fields) in makers.items()
        if event in records
    }


def _call(machine: FaultMachine, function: Callable[..., None], *columns: memoryview[int]) -> Take:
    def take(row: int, ts: int, _cpu: int) -> None:
        machine.follow(ts)
        function(*(column[row] for column in columns))

    return take


def _probe_take(records: AnalysisRecords, machine: FaultMachine, probe: Probe) -> Take:
    pid = records.column(probe.event, "common_pid").numbers
    result = None if probe.result is None else records.column(probe.event, probe.result).numbers
    callers = records.optional(probe.event, "__probe_ret_ip")
    find = records.function

    def take(row: int, ts: int, _cpu: int) -> None:
        is_trap = callers is None or find(callers[row]) not in _WITHOUT_TRAP
        machine.handled(ts, pid[row], None if result is None else result[row], is_trap)

    return take


def _graph_take(records: AnalysisRecords, machine: FaultMachine) -> Take:
    function, pid = records.numbers(_GRAPH, "func", "common_pid")
    result = records.optional(_GRAPH, "retval")
    find = records.function

    def take(row: int, ts: int, _cpu: int) -> None:
        if find(function[row]) == HANDLER:
            machine.handled(ts, pid[row], None if result is None else result[row], True)

    return take
