"""The records that scheduling is computed from, as one table by time."""

from __future__ import annotations

from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tracepoint.analysis.names import saved_names
from tracepoint.analysis.records import AnalysisRecords
from tracepoint.analysis.sched.needs import NEEDS
from tracepoint.decode.labels import value_labels
from tracepoint.decode.plan import ColumnKind, plan_event
from tracepoint.decode.trace import Trace
from tracepoint.tracefile.sieve import ALL_TIMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracepoint.decode.column import Column
    from tracepoint.decode.plan import PlanColumn
    from tracepoint.decode.table import JoinedTable


class SchedKind(IntEnum):
    """What a record says of tasks."""

    SWITCH = 0
    WAKING = 1
    WAKEUP = 2
    WAKEUP_NEW = 3
    MIGRATE = 4
    NEW = 5
    EXEC = 6
    FREE = 7
    RENAME = 8


_KINDS = {
    "sched:sched_switch": SchedKind.SWITCH,
    "sched:sched_waking": SchedKind.WAKING,
    "sched:sched_wakeup": SchedKind.WAKEUP,
    "sched:sched_wakeup_new": SchedKind.WAKEUP_NEW,
    "sched:sched_migrate_task": SchedKind.MIGRATE,
    "task:task_newtask": SchedKind.NEW,
    "sched:sched_process_fork": SchedKind.NEW,
    "sched:sched_process_exec": SchedKind.EXEC,
    "sched:sched_process_free": SchedKind.FREE,
    "task:task_rename": SchedKind.RENAME,
}
#: What the state machine calls a task's id and name, where an event has other names for them.
_NAMES = {"child_pid": "pid", "child_comm": "comm", "newcomm": "comm"}
_NO_STATE = "?"
_WAKING = "sched:sched_waking"
_INTEGERS = "bBhHiIqQ"


class SchedPart:
    """Records of the scheduler by time; `kinds` has the columns of an event by the number in `types`."""

    def __init__(self, table: JoinedTable, fields: Mapping[str, Sequence[str]]) -> None:
        self.types = table["common_type"]
        self.stamps = table["common_timestamp"].numbers
        self.cpus = table["common_cpu"].numbers
        self.kinds: dict[int, tuple[SchedKind, dict[str, Column]]] = {}
        number_of = {name: number for number, name in table.events.items()}
        for full, names in fields.items():
            short = full.partition(":")[2]
            columns = {_NAMES.get(name, name): table.column(short, name) for name in names}
            self.kinds[number_of[short]] = (_KINDS[full], columns)


class SchedEvents(AnalysisRecords):
    """The records of the scheduler by time, in parts one after the other.

    Raises TracepointError when sched_switch is not there, or lacks a field.
    """

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace, "sched", NEEDS)

    def read_names(self) -> Mapping[int, str]:
        """Return the names that were saved; those in switches are read with all that these have."""
        return saved_names(self.trace)

    def fields_of(self, event: str) -> set[str]:
        """Return the fields of an event that are of the type that they have in the kernel."""
        return {column.name for column in plan_event(self.trace.format(event)).columns if _is_usable(column)}

    def parts(self) -> Iterator[SchedPart]:
        """Yield the records, those of one time after the other."""
        return (SchedPart(part.table, self.fields) for part in self.read_parts())

    @property
    def recorded_kinds(self) -> frozenset[SchedKind]:
        """The kinds of which there are records; wakings may be outside the times that are looked at."""
        found = {_KINDS[name] for name in self.recorded}
        if SchedKind.WAKEUP in found and SchedKind.WAKING not in found and self._has_earlier_wakings():
            found.add(SchedKind.WAKING)
        return frozenset(found)

    def _has_earlier_wakings(self) -> bool:
        if _WAKING not in self or self.trace.selection.window == ALL_TIMES:
            return False
        return bool(Trace(self.trace.file, self.trace.instance).events.get(_WAKING))

    def label(self, state: int) -> str:
        """Return the letters of a value of prev_state, as the print format has them: S, R+, D|K."""
        label = self._labels(state) if self._labels is not None else ""
        return label or (_NO_STATE if state else "R")

    @cached_property
    def _labels(self) -> Any:
        return value_labels(self.trace.format("sched:sched_switch"), "prev_state")


def _is_usable(column: PlanColumn) -> bool:
    """Whether a field is an integer, or the name of a task."""
    if column.name.endswith("comm"):
        return column.kind is ColumnKind.TEXT
    return column.kind is ColumnKind.NUMBER and column.code in _INTEGERS
