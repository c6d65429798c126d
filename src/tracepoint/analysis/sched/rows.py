"""The rows that the state machine makes: columns of numbers, which grow."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from typing import TYPE_CHECKING, TypeAlias

from tracepoint.named import NamedTuple
from tracepoint.tracefile.sieve import MAX_TIME, MIN_TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Numbers: TypeAlias = Sequence[int]

#: The length of a row whose end is not known, as Perfetto has it.
OPEN = -1
#: Where a row has no CPU, waker or state.
NONE = -1
#: The number of the state of a thread on a CPU; others are those of `StateNames`.
RUNNING = 0


class RowFlag(IntFlag):
    """What is not usual about a row of states.

    CUT: it began earlier or ended at another time than the row says, or it is not known when.
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


def span_ns(start: int, stop: int) -> int:
    """Return the time from one stamp to another; the longest one where damaged ones are further apart."""
    return min(max(stop - start, MIN_TIME), MAX_TIME)


class Wakings(NamedTuple):
    """Which of the events that begin a runnable time were recorded: wakings, wake-ups, those of new tasks."""

    has_wakings: bool
    has_wakes: bool
    has_new: bool


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
    """The rows of `thread_state`: what each thread did; `state` is a number of `StateNames`.

    `priority` is that with which a thread ran after a row with the flag RAN.
    """

    ts: array[int] = field(default_factory=_numbers("q"))
    dur: array[int] = field(default_factory=_numbers("q"))
    cpu: array[int] = field(default_factory=_numbers("i"))
    utid: array[int] = field(default_factory=_numbers("i"))
    state: array[int] = field(default_factory=_numbers("i"))
    waker: array[int] = field(default_factory=_numbers("i"))
    irq: array[int] = field(default_factory=_numbers("b"))
    flags: array[int] = field(default_factory=_numbers("B"))
    priority: array[int] = field(default_factory=_numbers("i"))

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
        values = (ts, OPEN, cpu, utid, state, *source, flags, 0)
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

    def without_none(self) -> SpuriousRows:
        """Return the rows of wakings that were spurious after all."""
        kept = [row for row, utid in enumerate(self.utid) if utid != NONE]
        columns = vars(self).values()
        return SpuriousRows(*(array(column.typecode, (column[row] for row in kept)) for column in columns))


class ThreadRows(NamedTuple):
    """The threads by their `utid`; `cpu` is the last that they were on, `name` a number of `SchedRows.words`.

    `name` is NONE for the idle threads, `start` and `end` NO_TIME where they are not known.
    """

    tid: Numbers
    generation: Numbers
    name: Numbers
    cpu: Numbers
    start: Numbers
    end: Numbers
    migrations: Numbers
    cpu_changes: Numbers


class SchedCounts(NamedTuple):
    """What the state machine could not place; times in ns.

    `lost_ns` is the time of all CPUs in which it is not known what they ran, because events are missing.
    """

    n_lost_switches: int
    n_unseen_wakes: int
    n_dropped: int
    overlap_ns: int
    lost_ns: int
    longest_hidden_ns: int


#: Number of the state R, in which a waking puts a thread.
RUNNABLE = 1
#: The time of a thread whose begin or end is not known.
NO_TIME = MIN_TIME


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


class HeldRows(NamedTuple):
    """The row of states that each thread is in at the end of a part, which later records may change.

    Of a thread that was woken before it slept, `waker` and `irq` are those of that waking: a wake-up may say
    that it never slept.
    """

    ts: Numbers
    utid: Numbers
    state: Numbers
    flags: Numbers
    waker: Numbers
    irq: Numbers


class ClosedRows(NamedTuple):
    """Rows of a part of a recording that the rest of it cannot change; `threads` are all up to then.

    `held` are the rows of states that it can change.
    """

    runs: RunRows
    states: StateRows
    threads: ThreadRows
    names: StateNames
    held: HeldRows


class SchedRows(NamedTuple):
    """All that a machine found; `words` are the names of threads by their numbers.

    `saved` are the names of tasks by id that the recorder saved, for those whose names no record has.
    """

    runs: RunRows
    states: StateRows
    spurious: SpuriousRows
    threads: ThreadRows
    counts: SchedCounts
    names: StateNames
    words: Sequence[str]
    saved: Mapping[int, str]

    @property
    def held(self) -> HeldRows:
        """No rows: nothing comes after these."""
        return HeldRows((), (), (), (), (), ())

    def name_of(self, utid: int) -> str:
        """Return the name of a thread."""
        number = self.threads.name[utid]
        if number == NONE:
            return f"swapper/{self.threads.cpu[utid]}"
        return self.words[number] or self.saved.get(self.threads.tid[utid], "")

    def task_of(self, utid: int) -> str:
        """Return a thread as reports show it, `sh-104`, with the generation of an id that was used again."""
        threads, name = self.threads, self.name_of(utid)
        if threads.name[utid] == NONE:
            return name
        again = f".{threads.generation[utid]}" if threads.generation[utid] else ""
        return f"{name}-{threads.tid[utid]}{again}"


AnyRows: TypeAlias = SchedRows | ClosedRows
