"""From records to the faults of a machine."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING

from tracepoint.analysis.faults.machine import FaultColumns, FaultMachine
from tracepoint.analysis.faults.needs import HANDLER, NEEDS
from tracepoint.analysis.needs import Fields, Need
from tracepoint.analysis.probes import find_probes
from tracepoint.analysis.records import AnalysisRecords
from tracepoint.decode.numbers import numbers_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.analysis.faults.machine import FaultRows
    from tracepoint.analysis.growing import ClosedPart
    from tracepoint.analysis.probes import Probe
    from tracepoint.analysis.records import RecordPart, Take
    from tracepoint.decode.trace import Trace

_FAULTS = ("exceptions:page_fault_user", "exceptions:page_fault_kernel")
_GRAPH = "ftrace:funcgraph_exit"
_GRAPH_FIELDS = Fields(("common_pid", "func"), ("retval",))
# What calls handle_mm_fault() without a trap: mm/gup.c.
_WITHOUT_TRAP = ("faultin_page", "__get_user_pages", "fixup_user_fault", "hmm_vma_fault")
# TASK_UNINTERRUPTIBLE in include/linux/sched.h.
_SLEEPS = 2
# The names that recorders run under.
_RECORDERS = frozenset(("tracepoint", "trace-cmd", "perf", "lttng-consumerd", "bpftrace"))


class FaultReader:
    """Reads the faults of a recording, as often as they are asked for.

    `records` are those that they are read from, `ends` the events that say how faults ended; `machine` counts
    what it found the last time, and has the names of regions.
    """

    def __init__(self, trace: Trace) -> None:
        probes = [probe for probe in find_probes(trace, (HANDLER,)) if probe.is_return]
        self._probe = probes[0] if probes else None
        self._has_graph = not probes and trace.events.get(_GRAPH, 0) > 0
        ends = {
            probe.event: Fields(("common_pid",), ("__probe_ret_ip", *probe.fields)) for probe in probes[:1]
        }
        if self._has_graph:
            ends[_GRAPH] = _GRAPH_FIELDS
        needs = (*NEEDS, *(Need({name: fields}, "ends of faults") for name, fields in ends.items()))
        if not ends:
            needs = (
                *needs,
                Need({f"kprobes:{HANDLER}": Fields()}, "how long faults took, exact minor and major"),
            )
        self.records = AnalysisRecords(trace, "faults", needs)
        self.ends = list(ends)
        self.machine = FaultMachine({}, {})
        self._recorders = {tid for tid, name in self.records.names.items() if name in _RECORDERS}
        #: How many faults there are of tasks that recorded, by their id.
        self.n_by_recorders: Counter[int] = Counter()

    @property
    def is_in_order(self) -> bool:
        """Whether all rows come by their numbers, those of parts one after the other."""
        return self._are_alone or self.records.n_parts == 1

    @cached_property
    def _are_alone(self) -> bool:
        """Whether faults have no state: without losses and other records, they are counted as they are."""
        records = self.records
        return not records.coverage.gaps and records.recorded <= set(_FAULTS)

    def read(self, take: Callable[[ClosedPart[FaultRows]], object]) -> None:
        """Give the faults to `take`, part by part."""
        records = self.records
        machine = self.machine = FaultMachine(records.coverage.gaps, records.processes)
        by_recorders = self.n_by_recorders = Counter()

        def close(closed: ClosedPart[FaultRows]) -> None:
            # Looked up now: a report is used after its recording was closed.
            for ip in set(closed.rows.ip):
                records.function(ip)
            if self._recorders:
                by_recorders.update(filter(self._recorders.__contains__, closed.rows.tid))
            take(closed)

        if self._are_alone:
            for part in records.read_parts():
                close(machine.take_alone(_columns(part)))
            return
        records.run_parts(lambda part: self._takes(part, machine), lambda: close(machine.closed()))
        close(machine.finish(records.coverage.stop))

    def _takes(self, part: RecordPart, machine: FaultMachine) -> dict[str, Take]:
        machine.take(_columns(part))
        takes = _mapping_takes(part, machine) | _wait_takes(part, machine)
        if self._probe is not None:
            takes[self._probe.event] = _probe_take(part, machine, self._probe, self.records.function)
        elif self._has_graph:
            takes[_GRAPH] = _graph_take(part, machine, self.records.function)
        return takes | {
            name: lambda _row, ts, cpu: machine.fault(ts, cpu) for name in _FAULTS if name in part
        }


def _columns(part: RecordPart) -> FaultColumns:
    events = [name for name in _FAULTS if name in part]
    rows = part.rows_of(*events)
    pid, address, ip, code = (
        part.gathered(rows, field, events, code)
        for field, code in zip(("common_pid", "address", "ip", "error_code"), "iQQQ", strict=True)
    )
    times, cpus, types = part.times, part.cpus, part.types.numbers
    if not isinstance(rows, range):
        times = numbers_of(map(times.__getitem__, rows), "q")
        cpus = numbers_of(map(cpus.__getitem__, rows), "i")
    kernel = {number for number, name in part.table.events.items() if name == "page_fault_kernel"}
    is_kernel = numbers_of(map(kernel.__contains__, map(types.__getitem__, rows)), "b")
    return FaultColumns(times, cpus, pid, address, ip, code, is_kernel)


def _wait_takes(part: RecordPart, machine: FaultMachine) -> dict[str, Take]:
    found: dict[str, Take] = {}
    if "sched:sched_switch" in part:
        prev, state = part.numbers("sched:sched_switch", "prev_pid", "prev_state")

        def switch(row: int, ts: int, _cpu: int) -> None:
            if state[row] & _SLEEPS:
                machine.sleep(ts, prev[row])

        found["sched:sched_switch"] = switch
    for name in ("block:block_bio_queue", "block:block_rq_issue"):
        if name in part:
            found[name] = _block_take(part, machine, name)
            break
    if "raw_syscalls:sys_enter" in part:
        pid = part.column("raw_syscalls:sys_enter", "common_pid").numbers
        found["raw_syscalls:sys_enter"] = lambda row, _ts, _cpu: machine.leave(pid[row])
    return found


def _block_take(part: RecordPart, machine: FaultMachine, name: str) -> Take:
    pid, flags = part.column(name, "common_pid").numbers, part.column(name, "rwbs")
    reads = [word.lstrip("F").startswith("R") for word in flags.words]
    index = flags.numbers

    def take(row: int, ts: int, _cpu: int) -> None:
        if reads[index[row]]:
            machine.read(ts, pid[row])

    return take


def _mapping_takes(part: RecordPart, machine: FaultMachine) -> dict[str, Take]:
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
        event: _call(machine, function, *part.numbers(event, *fields))
        for event, (function, fields) in makers.items()
        if event in part
    }


def _call(machine: FaultMachine, function: Callable[..., None], *columns: memoryview[int]) -> Take:
    def take(row: int, ts: int, _cpu: int) -> None:
        machine.follow(ts)
        function(*(column[row] for column in columns))

    return take


def _probe_take(part: RecordPart, machine: FaultMachine, probe: Probe, find: Callable[[int], str]) -> Take:
    pid = part.column(probe.event, "common_pid").numbers
    result = None if probe.result is None else part.column(probe.event, probe.result).numbers
    callers = part.optional(probe.event, "__probe_ret_ip")

    def take(row: int, ts: int, _cpu: int) -> None:
        is_trap = callers is None or find(callers[row]) not in _WITHOUT_TRAP
        machine.handled(ts, pid[row], None if result is None else result[row], is_trap)

    return take


def _graph_take(part: RecordPart, machine: FaultMachine, find: Callable[[int], str]) -> Take:
    function, pid = part.numbers(_GRAPH, "func", "common_pid")
    result = part.optional(_GRAPH, "retval")

    def take(row: int, ts: int, _cpu: int) -> None:
        if find(function[row]) == HANDLER:
            machine.handled(ts, pid[row], None if result is None else result[row], True)

    return take
