"""The rows that the state machine makes: columns of numbers, which grow."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: The length of a row whose end is not known, as Perfetto has it.
OPEN = -1
#: Where a row has no CPU, waker or state.
NONE = -1
#: The number of the state of a thread on a CPU; others are those of `StateNames`.
RUNNING = 0


class RowFlag(IntFlag):
    """What is not usual about a row of states.

    CUT: it began earlier or ended at another time than the row says, or nobody knows when.
    UNSEEN_WAKE: the thread slept and ran without a wake-up between: it was runnable for a part of the row.
    LATE: the waking was not seen, so that the row begins with the wake-up.
    RAN: it is a runnable row up to the time when the thread ran, so its length is a latency.
    WOKEN, NEW: it is a runnable row that a waking began, or the first wake-up of a task.
    """

    CUT = 1
    UNSEEN_WAKE = 2
    LATE = 4
    RAN = 8
    WOKEN = 16
    NEW = 32


def _numbers(code: str) -> Callable[[], array[int]]:
    return lambda: array(code)


@dataclass
class RunRows:
    """The rows of `sched`: what each CPU ran, from switch to switch; `end` is a number of `StateNames`."""

    ts: array[int] = field(default_factory=_numbers("q"))
    dur: array[int] = field(default_factory=_numbers("q"))
    cpu: array[int] = field(default_factory=_numbers("i"))
    utid: array[int] = field(default_factory=_numbers("i"))
    end: array[int] = field(default_factory=_numbers("i"))
    priority: array[int] = field(default_factory=_numbers("i"))
    flags: array[int] = field(default_factory=_numbers("B"))

    def open(self, ts: int, cpu: int, utid: int, priority: int) -> int:
        """Add a row that begins; return its number."""
        for column, value in zip(vars(self).values(), (ts, OPEN, cpu, utid, NONE, priority, 0), strict=True):
            column.append(value)
        return len(self.ts) - 1


@dataclass
class StateRows:
    """The rows of `thread_state`: what each thread did; `state` is a number of `StateNames`."""

    ts: array[int] = field(default_factory=_numbers("q"))
    dur: array[int] = field(default_factory=_numbers("q"))
    cpu: array[int] = field(default_factory=_numbers("i"))
    utid: array[int] = field(default_factory=_numbers("i"))
    state: array[int] = field(default_factory=_numbers("i"))
    waker: array[int] = field(default_factory=_numbers("i"))
    irq: array[int] = field(default_factory=_numbers("b"))
    flags: array[int] = field(default_factory=_numbers("B"))

    def open(
        self,
        ts: int,
        cpu: int,
        utid: int,
        state: int,
        *,
        source: tuple[int, int] = (NONE, NONE),
        flags: int = 0,
    ) -> int:
        """Add a row that begins; `source` is who woke the thread, and whether in an interrupt."""
        values = (ts, OPEN, cpu, utid, state, *source, flags)
        for column, value in zip(vars(self).values(), values, strict=True):
            column.append(value)
        return len(self.ts) - 1


@dataclass
class SpuriousRows:
    """The rows of `spurious_sched_wakeup`: wakings of threads that were not asleep; `row` is that of states.

    A row whose `utid` is NONE was none after all.
    """

    ts: array[int] = field(default_factory=_numbers("q"))
    row: array[int] = field(default_factory=_numbers("q"))
    irq: array[int] = field(default_factory=_numbers("b"))
    utid: array[int] = field(default_factory=_numbers("i"))
    waker: array[int] = field(default_factory=_numbers("i"))

    def add(self, ts: int, row: int, irq: int, utid: int, waker: int) -> int:
        """Add a row; return its number."""
        for column, value in zip(vars(self).values(), (ts, row, irq, utid, waker), strict=True):
            column.append(value)
        return len(self.ts) - 1


#: Number of the state R, in which a waking puts a thread.
RUNNABLE = 1


class StateClass(IntEnum):
    """What a state says of a thread."""

    RUNNING = 0
    RUNNABLE = 1
    ASLEEP = 2
    DEAD = 3


class StateNames:
    """Numbers of states by their names: RUNNING is `Running`, RUNNABLE is `R`, which a waking makes.

    `label` gives the letters of a value of prev_state.
    """

    def __init__(self, label: Callable[[int], str]) -> None:
        self._label = label
        self._of_value: dict[int, int] = {}
        self.names = ["Running", "R"]
        self.classes = [StateClass.RUNNING, StateClass.RUNNABLE]

    def number(self, value: int) -> int:
        """Return the number of the state that a value of prev_state is."""
        found = self._of_value.get(value)
        if found is None:
            name = self._label(value)
            if name not in self.names[1:]:
                self.names.append(name)
                self.classes.append(_class_of(name))
            found = self._of_value[value] = self.names.index(name, 1)
        return found


def _class_of(name: str) -> StateClass:
    if name.startswith("R"):
        return StateClass.RUNNABLE
    return StateClass.DEAD if name[:1] in {"X", "Z", "x"} else StateClass.ASLEEP
