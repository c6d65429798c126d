"""From the records of system calls to calls, each with its number and what it returned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.records import AnalysisRecords
from tracepoint.analysis.spans import SpanTally
from tracepoint.analysis.syscalls.calls import CallMachine
from tracepoint.analysis.syscalls.needs import ENTER, ENTER_ONE, EXEC, EXIT, EXIT_ONE, NUMBER, needs_in
from tracepoint.analysis.syscalls.numbers import names_on
from tracepoint.tracefile.options import uname_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tracepoint.analysis.growing import ClosedPart
    from tracepoint.analysis.records import RecordPart, Take
    from tracepoint.analysis.syscalls.calls import CallRows
    from tracepoint.decode.trace import Trace

ANALYSIS = "syscalls"


def machine_of(trace: Trace) -> str:
    """Return the kind of machine that a recording is of, as uname shows it; empty where nothing says it."""
    words = uname_of(trace.file.options)
    if words and names_on(words[-1]):
        return words[-1]
    # Only x86 has these events: arch/x86/include/asm/trace/irq_vectors.h.
    is_x86 = any(name.startswith("irq_vectors:") for name in trace.names)
    return "x86_64" if is_x86 and trace.file.layout.long_size == 8 else ""


def call_records(trace: Trace) -> AnalysisRecords:
    """Return the records of system calls; raises TracepointError where there are none."""
    return AnalysisRecords(trace, ANALYSIS, needs_in([name for name, n in trace.events.items() if n]))


class SyscallReader:
    """Reads the calls of all tasks, as often as they are asked for.

    `names` are those of calls by number, `counts` say how many calls there are without an end or a begin, of
    which `n_final` end their task.
    """

    def __init__(self, records: AnalysisRecords) -> None:
        self.records = records
        self._is_raw = ENTER in records or EXIT in records
        # Events of single calls have the names of their calls, which are found with their first records.
        self.names = dict(names_on(machine_of(records.trace))) if self._is_raw else {}
        self.counts = SpanTally()
        self.n_final = 0

    def machine(self) -> CallMachine:
        """Return a machine that has seen no records."""
        return CallMachine(self.names, self.records.coverage.gaps, has_returns=self._is_raw)

    def read(self, take: Callable[[ClosedPart[CallRows]], object]) -> None:
        """Give the calls to `take`, part by part."""
        records, counts, machine = self.records, SpanTally(), self.machine()

        def close(closed: ClosedPart[CallRows]) -> None:
            counts.add(closed.rows.ts, closed.rows.dur, closed.rows.is_cut)
            take(closed)

        records.run_parts(lambda part: self.takes(part, machine), lambda: close(machine.closed()))
        close(machine.finish(records.coverage.stop))
        counts.n_orphans = machine.n_orphans
        self.counts, self.n_final = counts, machine.n_final

    def takes(self, part: RecordPart, machine: CallMachine) -> dict[str, Take]:
        """Return what gives the records of a part to a machine."""
        if not self._is_raw:
            for number, name in _new_names(part, self.names):
                self.names[number] = name
                machine.learn(number, name)
        takes = (_raw if self._is_raw else _single)(part, machine)
        if EXEC in part:
            takes[EXEC] = _take_exec(part, machine)
        return takes


def _raw(part: RecordPart, machine: CallMachine) -> dict[str, Take]:
    tids, ids = part.numbers(ENTER, "common_pid", "id")
    exit_tids, exit_ids, returns = part.numbers(EXIT, "common_pid", "id", "ret")
    return {ENTER: _enter(machine, tids, ids), EXIT: _exit(machine, exit_tids, exit_ids, returns)}


def _single(part: RecordPart, machine: CallMachine) -> dict[str, Take]:
    takes: dict[str, Take] = {}
    for event in part.fields:
        if event.startswith(ENTER_ONE):
            takes[event] = _enter(machine, *part.numbers(event, "common_pid", NUMBER))
        elif event.startswith(EXIT_ONE):
            takes[event] = _exit(machine, *part.numbers(event, "common_pid", NUMBER, "ret"))
    return takes


def _enter(machine: CallMachine, tids: Sequence[int], ids: Sequence[int]) -> Take:
    enter = machine.enter
    return lambda row, ts, cpu: enter(tids[row], ids[row], ts, cpu)


def _exit(machine: CallMachine, tids: Sequence[int], ids: Sequence[int], returns: Sequence[int]) -> Take:
    leave = machine.exit
    return lambda row, ts, _cpu: leave(tids[row], ids[row], returns[row], ts)


def _take_exec(part: RecordPart, machine: CallMachine) -> Take:
    pids, old_pids = part.numbers(EXEC, "pid", "old_pid")
    return lambda row, _ts, _cpu: machine.exec(pids[row], old_pids[row])


def _new_names(part: RecordPart, known: Mapping[int, str]) -> list[tuple[int, str]]:
    """Return the numbers and names of calls of which a part has the first records: their events have both."""
    types = part.types.numbers
    first = dict(zip(reversed(types), range(len(types) - 1, -1, -1), strict=True))
    found, named = [], set(known.values())
    for number, short in part.table.events.items():
        event, name = f"syscalls:{short}", short.split("_", 2)[-1]
        if number in first and name not in named and event.startswith((ENTER_ONE, EXIT_ONE)):
            column = part.column(event, NUMBER)
            rows = (row for row in range(first[number], len(types)) if types[row] == number)
            row = next((row for row in rows if not column.is_null(row)), None)
            if row is not None:
                found.append((column.numbers[row], name))
                named.add(name)
    return found
