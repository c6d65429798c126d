"""The records that scheduling is computed from, as one table by time."""

from __future__ import annotations

from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tracepoint.analysis.records import AnalysisRecords
from tracepoint.analysis.sched.needs import NEEDS
from tracepoint.decode.labels import value_labels

if TYPE_CHECKING:
    from tracepoint.decode.column import Column
    from tracepoint.decode.trace import Trace


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


class SchedEvents(AnalysisRecords):
    """The records of the scheduler by time; `kinds` are those that the recording has formats of.

    Raises TracepointError when sched_switch is not there, or lacks a field.
    """

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace, "sched", NEEDS)

    @cached_property
    def kinds(self) -> dict[int, tuple[SchedKind, dict[str, Column]]]:
        """The kinds of records by the number in `common_type`, with the columns of their fields."""
        number_of = {name: number for number, name in self.table.events.items()}
        return {
            number_of[full.partition(":")[2]]: (
                _KINDS[full],
                {_NAMES.get(name, name): column for name, column in self.columns(full).items()},
            )
            for full in self.fields
        }

    @property
    def recorded_kinds(self) -> frozenset[SchedKind]:
        """The kinds of which there are records."""
        return frozenset(_KINDS[name] for name in self.recorded)

    def label(self, state: int) -> str:
        """Return the letters of a value of prev_state, as the print format has them: S, R+, D|K."""
        label = self._labels(state) if self._labels is not None else ""
        return label or (_NO_STATE if state else "R")

    @cached_property
    def _labels(self) -> Any:
        return value_labels(self.trace.format("sched:sched_switch"), "prev_state")
