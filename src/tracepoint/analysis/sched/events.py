"""The records that scheduling is computed from, as one table by time."""

from __future__ import annotations

from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tracepoint.analysis.needs import needs_of
from tracepoint.decode.labels import value_labels
from tracepoint.errors import TracepointError

if TYPE_CHECKING:
    from collections.abc import Sequence

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


_COMMON = ("common_flags", "common_pid")
#: The fields that each event must have, and those that are read where it has them.
_FIELDS: dict[str, tuple[SchedKind, tuple[str, ...], tuple[str, ...]]] = {
    "sched:sched_switch": (
        SchedKind.SWITCH,
        ("prev_pid", "prev_state", "next_pid"),
        ("next_prio", "prev_comm", "next_comm"),
    ),
    "sched:sched_waking": (SchedKind.WAKING, (*_COMMON, "pid"), ("comm",)),
    "sched:sched_wakeup": (SchedKind.WAKEUP, (*_COMMON, "pid"), ("comm",)),
    "sched:sched_wakeup_new": (SchedKind.WAKEUP_NEW, (*_COMMON, "pid"), ("comm",)),
    "sched:sched_migrate_task": (SchedKind.MIGRATE, ("pid",), ()),
    "task:task_newtask": (SchedKind.NEW, (*_COMMON, "pid"), ("comm",)),
    "sched:sched_process_fork": (SchedKind.NEW, (*_COMMON, "child_pid"), ("child_comm",)),
    "sched:sched_process_exec": (SchedKind.EXEC, ("pid", "old_pid"), ()),
    "sched:sched_process_free": (SchedKind.FREE, ("pid",), ()),
    "task:task_rename": (SchedKind.RENAME, ("pid",), ("newcomm",)),
}
#: What the state machine calls a task's id and name, where an event has other names for them.
_PIDS, _COMMS = {"child_pid": "pid"}, {"child_comm": "comm", "newcomm": "comm"}
_NO_STATE = "?"


class SchedEvents:
    """The records of the scheduler by time; `kinds` are those that the recording has formats of.

    Raises TracepointError when sched_switch is not there, or lacks a field.
    """

    def __init__(self, trace: Trace) -> None:
        chosen = trace.selection
        if chosen.cpus is not None or chosen.pids is not None or chosen.where:
            raise TracepointError(
                "scheduling is computed from the records of all tasks and CPUs: choose of the result instead"
            )
        names = [name for need in needs_of("sched") for name in need.names if name in trace]
        if "sched:sched_switch" not in names:
            raise TracepointError(
                f"{trace.file.path}: no sched:sched_switch; tracepoint analyse sched --events "
                "says what to record"
            )
        self._trace = trace
        fields: dict[str, list[str]] = {}
        for name in names:
            _, needed, wanted = _FIELDS[name]
            own = {field.name for field in trace.format(name).fields}
            missing = [field for field in needed if field not in own]
            if not missing:
                fields[name] = [*needed, *(field for field in wanted if field in own)]
            elif name == "sched:sched_switch":
                raise TracepointError(f"{trace.file.path}: {name} has no field {', '.join(missing)}")
        self.table = trace.joined(fields)
        self._fields = fields

    def __len__(self) -> int:
        return len(self.table)

    @cached_property
    def kinds(self) -> dict[int, tuple[SchedKind, dict[str, Column]]]:
        """The kinds of records by the number in `common_type`, with the columns of their fields."""
        found = {}
        number_of = {name: number for number, name in self.table.events.items()}
        for full, names in self._fields.items():
            short = full.partition(":")[2]
            columns = {
                _PIDS.get(name, _COMMS.get(name, name)): self.table.column(short, name) for name in names
            }
            found[number_of[short]] = (_FIELDS[full][0], columns)
        return found

    @cached_property
    def recorded_names(self) -> frozenset[str]:
        """The events of which there are records, as `system:event`."""
        numbers = set(self.types.numbers)
        shorts = {name for number, name in self.table.events.items() if number in numbers}
        return frozenset(name for name in self._fields if name.partition(":")[2] in shorts)

    @property
    def recorded_kinds(self) -> frozenset[SchedKind]:
        """The kinds of which there are records."""
        return frozenset(_FIELDS[name][0] for name in self.recorded_names)

    @cached_property
    def types(self) -> Column:
        """The column `common_type`."""
        return self.table["common_type"]

    def label(self, state: int) -> str:
        """Return the letters of a value of prev_state, as the print format has them: S, R+, D|K."""
        label = self._labels(state) if self._labels is not None else ""
        return label or (_NO_STATE if state else "R")

    @cached_property
    def _labels(self) -> Any:
        return value_labels(self._trace.format("sched:sched_switch"), "prev_state")


def times_by_cpu(stamps: Sequence[int], cpus: Sequence[int]) -> dict[int, list[int]]:
    """Return the times of the rows of each CPU."""
    found: dict[int, list[int]] = {}
    for stamp, cpu in zip(stamps, cpus, strict=True):
        found.setdefault(cpu, []).append(stamp)
    return found
