"""From the records of the scheduler to the rows of its tables, in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracepoint.analysis.sched.events import SchedKind
from tracepoint.analysis.sched.machine import SchedMachine, TaskSwitch
from tracepoint.analysis.sched.rows import StateNames
from tracepoint.analysis.sched.threads import IDLE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tracepoint.analysis.coverage import Gap
    from tracepoint.analysis.sched.events import SchedEvents
    from tracepoint.decode.column import Column

    Take = Callable[[int, int, int], None]


def run_machine(events: SchedEvents, gaps: Mapping[int, Sequence[Gap]], stop: int) -> SchedMachine:
    """Give all records to a machine, and end it at the time `stop` in ns."""
    kinds = events.recorded_kinds
    machine = SchedMachine(StateNames(events.label), kinds, gaps)
    takes = {number: _reader(kind, columns, machine) for number, (kind, columns) in events.kinds.items()}
    ends = {number: _last_field(columns) for number, (_, columns) in events.kinds.items()}
    table = events.table
    rows = zip(
        events.types.numbers, table["common_timestamp"].numbers, table["common_cpu"].numbers, strict=True
    )
    for row, (number, ts, cpu) in enumerate(rows):
        # A damaged record may end before its fields do.
        if not ends[number].is_null(row):
            takes[number](row, ts, cpu)
    machine.finish(stop)
    return machine


def _rename(thread: Any, name: str) -> None:
    if thread.tid != IDLE:
        thread.name = name


def _last_field(columns: Mapping[str, Column]) -> Column:
    return max(columns.values(), key=lambda column: column.plan.offset + column.plan.size)


def _names(column: Column | None) -> Callable[[int, Any], None]:
    """Return what gives a thread the name that a row has."""
    if column is None:
        return lambda _row, _thread: None
    indices, words = column.numbers, column.words
    return lambda row, thread: _rename(thread, words[indices[row]])


def _reader(kind: SchedKind, columns: Mapping[str, Column], machine: SchedMachine) -> Take:
    """Return what gives the records of one event to a machine."""
    if kind is SchedKind.SWITCH:
        return _switch_reader(columns, machine)
    pid = columns["pid"].numbers
    name = _names(columns.get("comm"))
    if kind is SchedKind.MIGRATE:
        return lambda row, _ts, cpu: machine.migrate(cpu, pid[row])
    if kind is SchedKind.FREE:
        return lambda row, ts, _cpu: machine.free(ts, pid[row])
    if kind is SchedKind.EXEC:
        old = columns["old_pid"].numbers
        return lambda row, ts, _cpu: machine.threads.rename(old[row], pid[row], ts)
    if kind is SchedKind.RENAME:
        return lambda row, _ts, cpu: name(row, machine.threads.find(pid[row], cpu))
    take = {
        SchedKind.WAKING: machine.waking,
        SchedKind.WAKEUP: machine.wakeup,
        SchedKind.WAKEUP_NEW: machine.wakeup_new,
        SchedKind.NEW: machine.new,
    }[kind]
    flags, waker = columns["common_flags"].numbers, columns["common_pid"].numbers

    def read(row: int, ts: int, cpu: int) -> None:
        if pid[row] != IDLE:
            name(row, take(ts, cpu, pid[row], waker[row], flags[row]))

    return read


def _switch_reader(columns: Mapping[str, Column], machine: SchedMachine) -> Take:
    prev, after, state = (columns[name].numbers for name in ("prev_pid", "next_pid", "prev_state"))
    priority = columns["next_prio"].numbers if "next_prio" in columns else [0] * len(prev)
    name_prev, name_next = (_names(columns.get(name)) for name in ("prev_comm", "next_comm"))

    def read(row: int, ts: int, cpu: int) -> None:
        left, entered = machine.switch(ts, cpu, TaskSwitch(prev[row], state[row], after[row], priority[row]))
        name_prev(row, left)
        name_next(row, entered)

    return read
