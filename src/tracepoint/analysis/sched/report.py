"""Scheduling of a trace: its tables, and the figures that people ask for first."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING

from tracepoint.analysis.distribution import Bounds
from tracepoint.analysis.folded import FOLDED, folded_columns
from tracepoint.analysis.parts import RowParts
from tracepoint.analysis.report import ALL, Report
from tracepoint.analysis.sched.build import run_machine
from tracepoint.analysis.sched.chains import ChainFinder
from tracepoint.analysis.sched.critical import PathRows, TaskSpan, path_of_task, read_span
from tracepoint.analysis.sched.events import SchedEvents
from tracepoint.analysis.sched.follow import Timeline
from tracepoint.analysis.sched.offcpu import NO_OFF_CPU, OffCpu, OffCpuSums, folded_paths, places_of
from tracepoint.analysis.sched.priorities import CLASSES, UNKNOWN_CLASS, priority_class
from tracepoint.analysis.sched.rows import StateClass
from tracepoint.analysis.sched.sections import (
    chain_section,
    class_section,
    cpu_section,
    latency_section,
    off_cpu_section,
    path_sections,
    task_section,
)
from tracepoint.analysis.sched.sums import SchedSums
from tracepoint.analysis.sched.tables import sched_table, spurious_table, thread_state_table, thread_table
from tracepoint.analysis.sched.threads import IDLE
from tracepoint.analysis.sched.use import CpuUse, TaskUse
from tracepoint.analysis.sched.waits import CAUSES
from tracepoint.analysis.sections import MAX_ROWS
from tracepoint.analysis.units import time_text
from tracepoint.decode.table import ColumnTable
from tracepoint.named import NamedTuple
from tracepoint.record.page import LOST_UNKNOWN
from tracepoint.tracefile.sieve import ALL_TIMES
from tracepoint.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from tracepoint.analysis.coverage import Coverage
    from tracepoint.analysis.distribution import Samples
    from tracepoint.analysis.needs import MissingEvent
    from tracepoint.analysis.sched.build import TakeRows
    from tracepoint.analysis.sched.chains import WakeChain
    from tracepoint.analysis.sched.critical import PathStep
    from tracepoint.analysis.sched.offcpu import OffTime, Places
    from tracepoint.analysis.sched.rows import AnyRows, SchedRows
    from tracepoint.analysis.sched.sums import StateSum
    from tracepoint.analysis.sections import Choice, Section
    from tracepoint.decode.column import Column
    from tracepoint.decode.trace import Trace
    from tracepoint.tracefile.sieve import Window


class ReadInParts(NamedTuple):
    """Sums of a recording that was read in parts, without those of its last rows, and what reads it again.

    `read` gives the rows of each of `windows` to what is called, and returns the last ones; without it, all.
    """

    sums: SchedSums
    windows: Sequence[Window]
    read: Callable[[TakeRows | None], SchedRows]


# A lost switch hides the latency of the thread that it put on a CPU, and of the one that it took off.
_HIDDEN_BY_EVENT = 2
# Of the time of all CPUs; the ends of a short recording are less of it.
_MUCH_UNKNOWN = 0.9


class SchedReport(Report):
    """How the threads of a trace were scheduled; `analyse_sched` makes it.

    `sched`, `thread_state`, `thread` and `spurious_sched_wakeup` are tables with the columns that Perfetto's
    SQL library gives them; rows whose end is not known have a `dur` of -1.  Of a large recording they are
    made on first use, while the recording is open: the other figures are added up part by part.
    """

    name = "sched"

    def __init__(
        self,
        rows: SchedRows,
        coverage: Coverage,
        missing: Sequence[MissingEvent],
        off: OffCpu = NO_OFF_CPU,
        *,
        critical: TaskSpan | None = None,
        has_priorities: bool = True,
        parts: ReadInParts | None = None,
    ) -> None:
        super().__init__(coverage, missing)
        self._rows = rows
        self._parts = parts
        self._given: RowParts[AnyRows] = RowParts(self._read_again, [rows] if parts is None else None)
        self._off = off
        self._critical = critical
        self._has_priorities = has_priorities
        # By the threads that were chosen.
        self._shown: dict[frozenset[int] | None, tuple[list[OffTime], list[WakeChain]]] = {}

    def __repr__(self) -> str:
        n = sum(cpu.n_rows for cpu in self._sums.cpus)
        return f"<SchedReport of {n:,} switches, {self.coverage.duration / 1e9:.6f} s>"

    @cached_property
    def _sums(self) -> SchedSums:
        sums = SchedSums() if self._parts is None else self._parts.sums
        sums.add(self._rows)
        return sums

    @cached_property
    def _all_rows(self) -> SchedRows:
        return self._rows if self._parts is None else self._parts.read(None)

    def _read_again(self, take: Callable[[AnyRows], object]) -> None:
        if self._parts is not None:
            take(self._parts.read(take))

    def read_rows(self, *takes: Callable[[AnyRows], None]) -> None:
        """Call all of `takes` with the rows of each part, as they come: once where all rows are kept."""
        self._given.give(*takes)

    @property
    def tables(self) -> dict[str, ColumnTable]:
        """The rows of `sched`, `thread_state`, `thread`, `spurious_sched_wakeup` and `folded_stacks`."""
        found = (self.sched, self.thread_state, self.thread, self.spurious_sched_wakeup, self.folded_stacks)
        return {table.name: table for table in found}

    def read_tables(self, *takes: Callable[[Mapping[str, ColumnTable]], None]) -> None:
        """Call all of `takes` with `sched` and `thread_state`, part by part, and with all of `thread`."""

        def take(rows: AnyRows) -> None:
            tables = {"thread": self.thread}
            if self._parts is None:
                tables |= {"sched": self.sched, "thread_state": self.thread_state}
            else:
                made = sched_table(lambda: rows), thread_state_table(lambda: rows)
                tables |= {table.name: table for table in made}
            for one in takes:
                one(tables)

        self.read_rows(take)

    def sections(self, choice: Choice = ALL) -> Sequence[Section]:
        """Return the use of CPUs, the threads that ran most, and how long they waited."""
        span = self.coverage.duration
        tasks = [task for task in self.tasks if choice.has_task(task.tid, task.name)]
        utids = {task.utid for task in tasks} if choice.tasks else None
        waits = {cause or "all": self.latency(cause, utids) for cause in (*CAUSES, None)}
        found: list[Section] = [
            cpu_section(self.cpus, span, choice),
            task_section(tasks, span, choice),
            latency_section(waits),
        ]
        if self._has_priorities:
            found.append(class_section(self.latency_by_class(utids)))
        if self._off.by:
            all_times, chains = self._off_and_chains(None if utids is None else frozenset(utids))
            times = [time for time in all_times if utids is None or time.utid in utids]
            found.append(off_cpu_section(times, self._rows.task_of, choice, self.coverage.at_least))
            found.append(chain_section(chains))
        if self._critical is not None:
            found += path_sections(self._critical_steps, self._rows.task_of, choice)
        # CPUs come first; what a thread did and waited for is of all CPUs that it was on.
        return [found[0], *(choice.whole(section, is_of_tasks=False) for section in found[1:])]

    def cautions(self) -> Iterator[str]:
        """Yield the notes that belong to the figures: also where those of CPUs say nearly nothing."""
        yield from super().cautions()
        whole, unknown = self.coverage.duration * len(self.cpus), sum(use.unknown for use in self.cpus)
        if whole and unknown > whole * _MUCH_UNKNOWN:
            share = f"{100 * unknown / whole:.2f} %"
            yield (
                f"what CPUs did is not known for {share} of the {self.coverage.span_text}: losses hide it, "
                "or a damaged time stretches the span; --from and --to choose a part"
            )

    def notes(self) -> Iterator[str]:
        """Yield what limits the figures: losses, missing events, sleeps without a wake-up."""
        yield from super().notes()
        if self.n_lost_switches:
            yield f"{self.n_lost_switches:,} switches are missing without a report of a loss"
        if self.n_unseen_wakes:
            yield f"{counted(self.n_unseen_wakes, 'sleep')} ended without a wake-up: not among the latencies"
        if self.overlap_ns:
            yield f"tasks were on two CPUs at once for {time_text(self.overlap_ns)}: clocks differ, or losses"

    @cached_property
    def sched(self) -> ColumnTable:
        """What each CPU ran."""
        return sched_table(lambda: self._all_rows)

    @cached_property
    def thread_state(self) -> ColumnTable:
        """What each thread did, but for the idle ones."""
        return thread_state_table(lambda: self._all_rows)

    @cached_property
    def thread(self) -> ColumnTable:
        """The threads, each id of a task with a `generation` for each time that it was used."""
        return thread_table(self._rows)

    @cached_property
    def spurious_sched_wakeup(self) -> ColumnTable:
        """Wakings of threads that were not asleep."""
        return spurious_table(lambda: self._all_rows)

    def off_cpu(self, places: Places | None = None) -> list[OffTime]:
        """Return the time that threads were off the CPUs, that with most time first.

        `places` tells for a window of time where tasks blocked: a system call or functions, by the time in ns
        and the id of a task; None: as `analyse_sched` was asked with `by`.
        """
        return self._off_by if places is None else self._off_times(places=places)

    @cached_property
    def _off_by(self) -> list[OffTime]:
        return self._off_times()

    def _off_and_chains(self, utids: frozenset[int] | None) -> tuple[list[OffTime], list[WakeChain]]:
        """Return what sections show of the time off the CPUs, of which one reading of the rows finds all."""
        if utids not in self._shown:
            finder = self._chain_finder(MAX_ROWS, utids)
            self._shown[utids] = self._off_times(finder.add), finder.chains()
        return self._shown[utids]

    def _off_times(self, *takes: Callable[[AnyRows], None], places: Places | None = None) -> list[OffTime]:
        """Return the time off the CPUs; others take the rows that it is summed of too."""
        wanted = places or self._off.places
        windows = [ALL_TIMES] if self._parts is None else self._parts.windows
        sums = OffCpuSums(self._rows, None if wanted is None else map(wanted, windows))
        self.read_rows(sums.add, *takes)
        return sums.times()

    def wake_chains(self, most: int | None = None, utids: Collection[int] | None = None) -> list[WakeChain]:
        """Return the `most` longest waits after a wake-up, or all, with who woke whom.

        `utids` chooses threads.
        """
        finder = self._chain_finder(most, utids)
        self.read_rows(finder.add)
        return finder.chains()

    def _chain_finder(self, most: int | None, utids: Collection[int] | None) -> ChainFinder:
        return ChainFinder(self._rows, self.coverage.stop, most, utids)

    def critical_path(self, tid: int, start: int | None = None, stop: int | None = None) -> list[PathStep]:
        """Return what a task depended on from `start` to `stop` in ns, by time, without a time left out.

        None: from when the task is first known, to the end of the trace or of the task.  While it was
        blocked, the path is that of the thread that woke it, up to what is no thread.  Raises
        TracepointError for a task that is not in the trace.
        """
        return self._path_of(TaskSpan(tid, start, stop))

    @cached_property
    def _critical_steps(self) -> list[PathStep]:
        return [] if self._critical is None else self._path_of(self._critical)

    def _path_of(self, span: TaskSpan) -> list[PathStep]:
        if self._parts is None:
            return path_of_task(self._lines, span, self.coverage.stop)
        rows = PathRows(self._rows, span)
        self.read_rows(rows.add)
        return path_of_task(Timeline(rows.kept(), self.coverage.stop), span, self.coverage.stop)

    @cached_property
    def _lines(self) -> Timeline:
        return Timeline(self._rows, self.coverage.stop)

    @cached_property
    def folded_stacks(self) -> ColumnTable:
        """The time off the CPUs as `task;state;where;woken by ...`, as flame graphs have it."""

        def columns() -> list[Column]:
            times = [time for time in self.off_cpu() if time.ns > 0]
            paths = folded_paths(times, self._rows.task_of)
            return folded_columns(paths, [time.ns for time in times], ("n", [time.n for time in times]))

        return ColumnTable(FOLDED, columns)

    @property
    def n_lost_switches(self) -> int:
        """Switches that are missing without a report of it: another task left a CPU than had come."""
        return self._rows.counts.n_lost_switches

    @property
    def n_unseen_wakes(self) -> int:
        """Sleeps that ended without a wake-up: how long of it the thread was runnable is not known."""
        return self._rows.counts.n_unseen_wakes

    @property
    def overlap_ns(self) -> int:
        """The time in which a thread was on two CPUs at once, as clocks differ or events are missing."""
        return self._rows.counts.overlap_ns

    @cached_property
    def n_hidden(self) -> int | None:
        """The most latencies that are not among the samples; None where losses were not counted."""
        lost = self.coverage.n_lost
        if lost == LOST_UNKNOWN:
            return None
        counts = self._rows.counts
        n_switches = lost + counts.n_lost_switches
        return _HIDDEN_BY_EVENT * n_switches + counts.n_dropped + counts.n_unseen_wakes

    def latency(self, cause: str | None = None, utids: Collection[int] | None = None) -> Samples:
        """Return how long threads waited for a CPU, in ns, for all causes or one of CAUSES.

        `utids` chooses threads.  Raises KeyError for an unknown cause.
        """
        causes = CAUSES if cause is None else (CAUSES[CAUSES.index(cause)],) if cause in CAUSES else None
        if causes is None:
            raise KeyError(f"no cause {cause!r}; there are: {', '.join(CAUSES)}")
        return self._sums.waits.samples(causes, (self.n_hidden, self.longest_hidden), utids)

    def latency_by_class(self, utids: Collection[int] | None = None) -> dict[str, Samples]:
        """Return how long threads waited for a CPU, in ns, by the class of their priority then.

        Classes are `deadline`, `real-time` and groups of nice values: those of which there are samples.
        `utids` chooses threads.  Without next_prio in the recording, none is known.
        """
        if not self._has_priorities:
            return {}
        found = self._sums.waits.by_priority(priority_class, (self.n_hidden, self.longest_hidden), utids)
        return {name: found[name] for name in (*CLASSES, UNKNOWN_CLASS) if name in found}

    def latency_by_task(self, cause: str | None, name_of: Callable[[int], str | None]) -> dict[str, Samples]:
        """Return how long threads waited for a CPU by a name for their `utid`; None leaves a thread out."""
        causes = CAUSES if cause is None else (cause,)
        found = self._sums.waits.by_thread(causes, name_of, (self.n_hidden, self.longest_hidden))
        return {str(name): own for name, own in found.items()}

    @property
    def longest_hidden(self) -> int | None:
        """The most, in ns, that a latency not among the samples can be; None where that is not known."""
        coverage = self.coverage
        # A thread that is first seen after a loss, or never, may have waited since it began.
        starts = [max(gap.start, coverage.start) for gaps in coverage.gaps.values() for gap in gaps]
        if coverage.n_unplaced or coverage.n_damaged:
            starts.append(coverage.start)
        since = coverage.stop - min(starts) if starts else 0
        return max(self._rows.counts.longest_hidden_ns, since) or None

    @cached_property
    def cpus(self) -> list[CpuUse]:
        """What each CPU did."""
        span = self.coverage.duration
        return [
            CpuUse(cpu, busy, idle, max(span - busy - idle, 0), n) for cpu, busy, idle, n in self._sums.cpus
        ]

    @cached_property
    def tasks(self) -> list[TaskUse]:
        """What each thread did, those that ran longest first."""
        sums: dict[int, list[StateSum]] = {}
        for found in self._sums.states:
            sums.setdefault(found.utid, []).append(found)
        tasks = (
            self._task(utid, sums.get(utid, ()))
            for utid, tid in enumerate(self._rows.threads.tid)
            if tid != IDLE
        )
        return sorted(tasks, key=lambda task: (-task.run.low, task.tid))

    def _task(self, utid: int, sums: Sequence[StateSum]) -> TaskUse:
        rows, threads, names = self._rows, self._rows.threads, self._rows.names
        runs = [own for own in sums if own.state == StateClass.RUNNING]
        run = sum(own.ns for own in runs)
        return TaskUse(
            utid,
            threads.tid[utid],
            threads.generation[utid],
            rows.name_of(utid),
            rows.task_of(utid),
            Bounds(run, run + rows.counts.lost_ns),
            sum(own.n_rows for own in runs),
            sum(own.ns for own in sums if names.classes[own.state] is StateClass.RUNNABLE),
            {
                names.names[own.state]: own.ns
                for own in sums
                if own.n_known and names.classes[own.state] is StateClass.ASLEEP
            },
            *self._sums.ends(utid),
            threads.migrations[utid],
            threads.cpu_changes[utid],
        )


def analyse_sched(trace: Trace, by: str = "", critical: str | None = None) -> SchedReport:
    """Return how the threads of a trace were scheduled.

    Times are those of `trace.between`; the records of all tasks and CPUs are needed.  `by` sums the time off
    the CPUs by "waker", or by where threads blocked as well: "call", which needs system calls, or "stack",
    which needs stacks of sched_switch.  `critical` shows the critical path of a task: its id, or
    `ID:FROM-TO` with times in seconds.  Raises TracepointError without sched_switch or what `by` needs, and
    for another `critical`; KeyError for an unknown `by`.

    >>> import tracepoint as tp
    >>> with tp.open_trace("tests/tracefile/golden/cut.v6.dat") as trace:
    ...     report = analyse_sched(trace)
    >>> report.tasks[0].name, report.tasks[0].run.low, report.latency("wake-up").count.low
    ('rcu_preempt', 19891120, 2)
    """
    span = read_span(critical)
    events = SchedEvents(trace)
    sums = SchedSums()
    # The rows of a large recording would fill the memory that its records do.
    take = sums.add if events.n_parts > 1 else None
    rows = run_machine(events, events.coverage.gaps, events.coverage.stop, take)
    has_priorities = "next_prio" in events.fields["sched:sched_switch"]
    off = OffCpu(by, places_of(trace, by))
    parts = None
    if take is not None:
        parts = ReadInParts(sums, events.windows, partial(_read_again, trace, events.coverage))
    return SchedReport(
        rows,
        events.coverage,
        events.missing,
        off,
        critical=span,
        has_priorities=has_priorities,
        parts=parts,
    )


def _read_again(trace: Trace, coverage: Coverage, take: TakeRows | None) -> SchedRows:
    return run_machine(SchedEvents(trace), coverage.gaps, coverage.stop, take)


analyse = analyse_sched
