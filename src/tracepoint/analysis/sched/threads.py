"""Threads by the ids of tasks: one that is used again is another thread, and each CPU has an idle one."""

from __future__ import annotations

from array import array

from tracepoint.analysis.sched.rows import NO_TIME, NONE, ThreadRows

IDLE = 0


class Thread:
    """What is known of one thread at the time that the machine has reached.

    `state` is NONE where nothing is known, `row` that of its state.  `seen` is when it was last known to be
    in that state.  `unknown_since` is where the time began that a loss hides, None without one.  `name` is
    the number of a word.
    """

    __slots__ = (
        "cpu",
        "cpu_changes",
        "end",
        "generation",
        "is_new",
        "last_cpu",
        "migrations",
        "name",
        "owes_wakeup",
        "pending",
        "row",
        "seen",
        "start",
        "state",
        "tid",
        "unknown_since",
        "utid",
    )

    def __init__(self, utid: int, tid: int, generation: int) -> None:
        self.utid = utid
        self.tid = tid
        self.generation = generation
        self.name = 0
        self.state = self.row = self.cpu = self.last_cpu = NONE
        self.seen = 0
        self.start: int | None = None
        self.end: int | None = None
        self.unknown_since: int | None = None
        # The row of the last waking while it ran, which is spurious unless a wake-up comes after it slept.
        self.pending = NONE
        self.migrations = self.cpu_changes = 0
        # A waking was seen, and its wake-up not yet: where clocks stand still it may come after it ran.
        self.owes_wakeup = False
        # Made by a fork, and nothing has happened to it yet.
        self.is_new = False

    def __repr__(self) -> str:
        return f"<Thread {self.tid}.{self.generation}>"


class Threads:
    """All threads, by their `utid`; a task's id leads to the thread that has it now."""

    def __init__(self) -> None:
        self.all: list[Thread] = []
        self._by_tid: dict[int, Thread] = {}
        self._idle: dict[int, Thread] = {}
        self._n_of_tid: dict[int, int] = {}

    def _add(self, tid: int) -> Thread:
        generation = self._n_of_tid.get(tid, 0)
        self._n_of_tid[tid] = generation + 1
        thread = self._by_tid[tid] = Thread(len(self.all), tid, generation)
        self.all.append(thread)
        return thread

    def find(self, tid: int, cpu: int) -> Thread:
        """Return the thread of a task's id; the idle tasks of all CPUs have the same."""
        if tid == IDLE:
            return self._idle.get(cpu) or self._add_idle(cpu)
        return self._by_tid.get(tid) or self._add(tid)

    def _add_idle(self, cpu: int) -> Thread:
        thread = self._idle[cpu] = Thread(len(self.all), IDLE, 0)
        thread.name, thread.last_cpu = NONE, cpu
        self.all.append(thread)
        return thread

    def known(self, tid: int) -> Thread | None:
        """Return the thread that has a task's id now; None when there is none yet."""
        return self._by_tid.get(tid)

    def begin(self, tid: int, time: int) -> Thread:
        """Return the thread of a new task: a new one, unless the id has just been given to it."""
        thread = self._by_tid.get(tid)
        if thread is None or not thread.is_new:
            thread = self._add(tid)
            thread.start, thread.is_new = time, True
        return thread

    def end(self, thread: Thread, time: int | None) -> None:
        """Note that a task is gone, at a time that may not be known; its id may be used again."""
        thread.end = time
        self._by_tid.pop(thread.tid, None)

    def rename(self, old_tid: int, tid: int, time: int) -> None:
        """Give a thread the id of its process, whose own thread is gone: an exec in another thread."""
        # No task becomes an idle one, whatever a damaged record says.
        thread = self._by_tid.pop(old_tid, None) if tid not in (old_tid, IDLE) else None
        if thread is None:
            return
        gone = self._by_tid.pop(tid, None)
        if gone is not None:
            gone.end = time
        thread.generation = self._n_of_tid.get(tid, 0)
        self._n_of_tid[tid] = thread.generation + 1
        thread.tid = tid
        self._by_tid[tid] = thread

    def rows(self) -> ThreadRows:
        """Return what is known of all threads."""
        threads = self.all
        return ThreadRows(
            array("i", (thread.tid for thread in threads)),
            array("i", (thread.generation for thread in threads)),
            array("i", (thread.name for thread in threads)),
            array("i", (thread.last_cpu for thread in threads)),
            array("q", (_time(thread.start) for thread in threads)),
            array("q", (_time(thread.end) for thread in threads)),
            array("q", (thread.migrations for thread in threads)),
            array("q", (thread.cpu_changes for thread in threads)),
        )


def _time(time: int | None) -> int:
    return NO_TIME if time is None else time
