"""From the records of the scheduler to the rows of its tables: in C, or with the twin in Python."""

from __future__ import annotations

from array import array
from functools import partial
from typing import TYPE_CHECKING

from tracepoint.analysis.coverage import join_gaps
from tracepoint.analysis.numbered import Numbered
from tracepoint.analysis.sched.events import SchedKind
from tracepoint.analysis.sched.machine import SchedMachine, TaskSwitch
from tracepoint.analysis.sched.rows import (
    ClosedRows,
    HeldRows,
    RunRows,
    SchedCounts,
    SchedRows,
    SpuriousRows,
    StateNames,
    StateRows,
    ThreadRows,
    Wakings,
)
from tracepoint.analysis.sched.threads import IDLE
from tracepoint.decode.numbers import fit_numbers, view_numbers
from tracepoint.named import NamedTuple
from tracepoint.record.decode import DECODE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import ModuleType
    from typing import Any

    from tracepoint.analysis.coverage import Gap
    from tracepoint.analysis.sched.events import SchedEvents, SchedPart
    from tracepoint.analysis.sched.threads import Thread
    from tracepoint.decode.column import Column

    Take = Callable[[int, int, int], None]
    TakeRows = Callable[[ClosedRows], object]

_NO_KIND = (None, ())


class _Event(NamedTuple):
    """The columns of an event: the numbers that the machine reads, and the names with those of its words."""

    number: int
    kind: SchedKind
    numbers: tuple[Column | None, ...]
    names: tuple[tuple[Column, array[int]] | None, ...]


#: The fields of each kind in the order of the C module: a task, another one, its state or flags, a priority.
_NUMBERS = {
    SchedKind.SWITCH: ("prev_pid", "next_pid", "prev_state", "next_prio"),
    SchedKind.EXEC: ("pid", "old_pid", "", ""),
    SchedKind.MIGRATE: ("pid", "", "", ""),
    SchedKind.FREE: ("pid", "", "", ""),
    SchedKind.RENAME: ("pid", "", "", ""),
}
_WAKE = ("pid", "common_pid", "common_flags", "")
_NAMES = {SchedKind.SWITCH: ("prev_comm", "next_comm")}


def run_machine(
    events: SchedEvents, gaps: Mapping[int, Sequence[Gap]], stop: int, take: TakeRows | None = None
) -> SchedRows:
    """Give all records to a machine, and end it at the time `stop` in ns; return what it found.

    `take` gets the rows that are closed after each part of the records: the result has the others.
    """
    kinds = events.recorded_kinds
    has_wakings = SchedKind.WAKING in kinds
    wakings = Wakings(has_wakings, has_wakings or SchedKind.WAKEUP in kinds, SchedKind.WAKEUP_NEW in kinds)
    run = run_slowly if DECODE is None else _run_quickly
    return run(events, gaps, wakings, stop, take)


def _events_of(part: SchedPart, words: Numbered[str]) -> list[_Event]:
    # The first word is that of a thread whose name is not known.
    found = []
    for number, (kind, columns) in part.kinds.items():
        numbers = tuple(columns.get(name) for name in _NUMBERS.get(kind, _WAKE))
        comms = (columns.get(name) for name in _NAMES.get(kind, ("comm", "")))
        names = tuple(
            None if comm is None else (comm, array("i", map(words.__getitem__, comm.words))) for comm in comms
        )
        found.append(_Event(number, kind, numbers, names))
    return found


# In C.


def _run_quickly(
    events: SchedEvents,
    gaps: Mapping[int, Sequence[Gap]],
    wakings: Wakings,
    stop: int,
    take: TakeRows | None = None,
) -> SchedRows:
    decode: Any = DECODE
    found = {cpu: join_gaps(own) for cpu, own in gaps.items()}
    all_gaps = join_gaps(gap for own in gaps.values() for gap in own)
    by_cpu = tuple((cpu, array("q", own.starts), array("q", own.stops)) for cpu, own in found.items())
    machine = decode.sched_machine(
        *wakings, by_cpu, (array("q", all_gaps.starts), array("q", all_gaps.stops))
    )
    names, words = StateNames(events.label), Numbered([""])
    for part in events.parts():
        _run_part(decode, machine, names, part, _events_of(part, words))
        if take is not None:
            runs, states, _, threads, held = decode.sched_closed(machine)
            held_rows: Any = map(view_numbers, held, "qiiBib")
            take(ClosedRows(*_views(runs, states, threads), names, HeldRows(*held_rows)))
        # Or it would stay while the next one is read.
        del part
    runs, states, spurious, threads, counts = decode.sched_rows(machine, stop)
    run_rows, state_rows, thread_rows = _views(runs, states, threads)
    spurious_rows: Any = map(view_numbers, spurious, "qqbii")
    return SchedRows(
        run_rows,
        state_rows,
        SpuriousRows(*spurious_rows),
        thread_rows,
        SchedCounts(*counts),
        names,
        words.all,
        events.names,
    )


def _views(runs: Any, states: Any, threads: Any) -> tuple[RunRows, StateRows, ThreadRows]:
    views: Any = partial(map, view_numbers)
    return (
        RunRows(*views(runs, "qqiiiiB")),
        StateRows(*views(states, "qqiiiibBi")),
        ThreadRows(*views(threads, "iiiiqqqq")),
    )


def _run_part(
    decode: ModuleType, machine: object, names: StateNames, part: SchedPart, events: Sequence[_Event]
) -> None:
    states = {event.number: event.numbers[2] for event in events}
    heads = (_packed(part.types), part.stamps, part.cpus)
    given = tuple(
        (event.number, event.kind, tuple(map(_packed, event.numbers)), tuple(map(_packed_name, event.names)))
        for event in events
    )
    row = decode.sched_run(machine, heads, given, 0)
    while row < len(part.stamps):
        # A value of prev_state that was not there before: its letters are those of the print format.
        column: Any = states[part.types.numbers[row]]
        value = column.numbers[row]
        number = names.number(value)
        decode.sched_state(machine, value, number, names.classes[number])
        row = decode.sched_run(machine, heads, given, row)


def _packed(column: Column | None) -> tuple[object, ...] | None:
    return None if column is None else (column.values, column.plan.code, column.validity)


def _packed_name(name: tuple[Column, array[int]] | None) -> tuple[object, ...] | None:
    return None if name is None else (name[0].values, name[1], name[0].validity)


# In Python.


def run_slowly(
    events: SchedEvents,
    gaps: Mapping[int, Sequence[Gap]],
    wakings: Wakings,
    stop: int,
    take: TakeRows | None = None,
) -> SchedRows:
    """Return the same as the C module, which this is the readable form of."""
    machine = SchedMachine(
        StateNames(events.label),
        wakings,
        {cpu: join_gaps(own) for cpu, own in gaps.items()},
        join_gaps(gap for own in gaps.values() for gap in own),
    )
    words = Numbered([""])
    for part in events.parts():
        found = _events_of(part, words)
        takes = {event.number: (_taker(event, machine), _columns_of(event)) for event in found}
        for row, (number, ts, cpu) in enumerate(zip(part.types.numbers, part.stamps, part.cpus, strict=True)):
            give, columns = takes.get(number, _NO_KIND)
            # A damaged record may end before its fields do.
            if give and not part.types.is_null(row) and not any(column.is_null(row) for column in columns):
                give(row, ts, cpu)
        if take is not None:
            take(machine.closed())
    return machine.finish(stop, words.all, events.names)


def _columns_of(event: _Event) -> Iterable[Column]:
    return tuple(column for column in event.numbers if column is not None)


def _int32s(column: Column | None) -> Sequence[int]:
    """Return numbers as the kernel's `pid_t` has them, which is int32; none without a column."""
    return () if column is None else fit_numbers(column.numbers, "i")


def _namer(name: tuple[Column, array[int]] | None) -> Callable[[int, Thread], None]:
    """Return what gives a thread the name that a row has."""
    if name is None:
        return lambda _row, _thread: None
    column, numbers = name
    indices = column.numbers

    def give(row: int, thread: Thread) -> None:
        if thread.tid != IDLE and not column.is_null(row):
            thread.name = numbers[indices[row]]

    return give


def _taker(event: _Event, machine: SchedMachine) -> Take:
    """Return what gives the records of one event to a machine."""
    pid, other, flags, _ = (_int32s(column) for column in event.numbers)
    name = _namer(event.names[0])
    match event.kind:
        case SchedKind.SWITCH:
            return _switch_taker(event, machine)
        case SchedKind.MIGRATE:
            return lambda row, _ts, cpu: machine.migrate(cpu, pid[row])
        case SchedKind.FREE:
            return lambda row, ts, _cpu: machine.free(ts, pid[row])
        case SchedKind.EXEC:
            return lambda row, ts, _cpu: machine.threads.rename(other[row], pid[row], ts)
        case SchedKind.RENAME:
            return lambda row, _ts, cpu: name(row, machine.threads.find(pid[row], cpu))
    wake = {
        SchedKind.WAKING: machine.waking,
        SchedKind.WAKEUP: machine.wakeup,
        SchedKind.WAKEUP_NEW: machine.wakeup_new,
        SchedKind.NEW: machine.new,
    }[event.kind]

    def take(row: int, ts: int, cpu: int) -> None:
        if pid[row] != IDLE:
            name(row, wake(ts, cpu, pid[row], other[row], flags[row]))

    return take


def _switch_taker(event: _Event, machine: SchedMachine) -> Take:
    prev, after, _, priorities = (_int32s(column) for column in event.numbers)
    name_prev, name_next = map(_namer, event.names)
    states: Any = event.numbers[2]
    values = states.numbers

    def take(row: int, ts: int, cpu: int) -> None:
        priority = priorities[row] if priorities else 0
        switch = TaskSwitch(prev[row], values[row], after[row], priority)
        left, entered = machine.switch(ts, cpu, switch)
        name_prev(row, left)
        name_next(row, entered)

    return take
