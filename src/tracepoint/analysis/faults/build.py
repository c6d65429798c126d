"""From records to the faults of a machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.faults.machine import Fault, FaultMachine
from tracepoint.analysis.faults.needs import HANDLER, NEEDS
from tracepoint.analysis.needs import Fields, Need
from tracepoint.analysis.probes import find_probes
from tracepoint.analysis.records import AnalysisRecords

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.analysis.probes import Probe
    from tracepoint.analysis.records import Take
    from tracepoint.decode.trace import Trace

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
    takes = _fault_takes(records, machine) | _mapping_takes(records, machine)
    takes |= _wait_takes(records, machine)
    if probes:
        takes[probes[0].event] = _probe_take(records, machine, probes[0])
    elif has_graph:
        takes[_GRAPH] = _graph_take(records, machine)
    records.run(takes)
    machine.finish(records.coverage.stop)
    return records, machine, list(ends)


def _fault_takes(records: AnalysisRecords, machine: FaultMachine) -> dict[str, Take]:
    def take(event: str, *, is_kernel: bool) -> Take:
        pid, address, ip, code = records.numbers(event, "common_pid", "address", "ip", "error_code")
        return lambda row, ts, cpu: machine.fault(
            ts, cpu, pid[row], Fault(address[row], ip[row], code[row], is_kernel)
        )

    names = {"exceptions:page_fault_user": False, "exceptions:page_fault_kernel": True}
    return {name: take(name, is_kernel=kernel) for name, kernel in names.items() if name in records}


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
