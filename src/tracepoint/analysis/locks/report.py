"""The locks of a trace that tasks waited for: how long, by kind, by lock and by task."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING

from tracepoint.analysis.chosen import longest_section, task_section
from tracepoint.analysis.locks.build import LockFlag, LockReader, LockRows, kind_of, no_waits
from tracepoint.analysis.locks.needs import BEGIN, END, NEEDS
from tracepoint.analysis.parts import PartedReport, SummedParts
from tracepoint.analysis.records import AnalysisRecords
from tracepoint.analysis.report import ALL
from tracepoint.analysis.sections import (
    MAX,
    MEAN,
    P99,
    TOTAL,
    Choice,
    DistributionSection,
    Heading,
    N,
    Unit,
)
from tracepoint.analysis.spans import hiding_of, span_columns, unpaired_notes
from tracepoint.analysis.sums import LongestRows, SampleSums
from tracepoint.analysis.units import task_text
from tracepoint.decode.column import names_column, number_column
from tracepoint.decode.table import ColumnTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tracepoint.analysis.distribution import Samples
    from tracepoint.analysis.growing import ClosedPart
    from tracepoint.analysis.sections import Section, Value
    from tracepoint.analysis.spans import Hiding
    from tracepoint.decode.column import Column
    from tracepoint.decode.trace import Trace

_EVENTS = (BEGIN, END)
_LOCK = (Heading("kind", "kind", Unit.WORD), Heading("lock", "lock", Unit.WORD))
_LOCKS = (N, Heading("n_failed", "failed"), TOTAL, MEAN, P99, MAX, *_LOCK)


class LockSums:
    """The figures of the chosen waits; `tasks` are the names of tasks by id, locks an address and a kind."""

    def __init__(self, locks: LockReader, choice: Choice) -> None:
        self._locks = locks
        self.tasks = locks.records.names
        self._choice = choice
        self.by_kind: SampleSums[str] = SampleSums()
        self.by_lock: SampleSums[tuple[int, str]] = SampleSums()
        self.by_tid: SampleSums[int] = SampleSums()
        self.failed: Counter[tuple[int, str]] = Counter()
        self.longest: LongestRows[Sequence[Value]] = LongestRows(choice.most)

    def add(self, part: ClosedPart[LockRows]) -> None:
        """Add the waits of a part."""
        rows, numbers = part.rows, part.numbers
        flags = self._choice.flags(rows.tid, rows.cpu, self.tasks)
        kind_of_flags = {own: kind_of(own) for own in set(rows.flags)}
        kinds = list(map(kind_of_flags.__getitem__, rows.flags))
        locks = list(zip(rows.address, kinds, strict=True))
        self.by_kind.add(kinds, rows.dur, rows.is_cut, numbers, flags)
        self.by_lock.add(locks, rows.dur, rows.is_cut, numbers, flags)
        self.by_tid.add(rows.tid, rows.dur, rows.is_cut, numbers, flags)
        failed = compress(range(len(part)), rows.is_failed)
        self.failed.update(locks[at] for at in failed if flags is None or flags[at])

        def shown(at: int) -> tuple[Value, ...]:
            what = kinds[at], self._locks.names[rows.address[at]]
            return (rows.dur[at], rows.ts[at], rows.cpu[at], *what, task_text(self.tasks, rows.tid[at]))

        self.longest.add(rows.dur, numbers, shown, flags)


class LockReport(PartedReport[LockRows, LockSums]):
    """Waits for contended locks; `analyse_locks` makes it."""

    name = "locks"

    def __init__(self, locks: LockReader) -> None:
        self._locks = locks
        records = locks.records
        parts = SummedParts(locks.read, lambda choice: LockSums(locks, choice))
        super().__init__(records.coverage, records.missing, parts)

    def __repr__(self) -> str:
        return f"<LockReport of {self._locks.tally.n:,} waits>"

    @property
    def tables(self) -> Mapping[str, ColumnTable]:
        """The rows of `lock_contention`."""
        return {"lock_contention": self.lock_contention}

    @cached_property
    def lock_contention(self) -> ColumnTable:
        """Each wait by its begin: `ts`, `dur` in ns (-1: no end), the lock, its kind, the task.

        `is_failed` says that the task did not get the lock, `is_cut` that a loss may hide the end.
        """
        return self.tables_of(lambda: self.parts.all_rows(no_waits()))["lock_contention"]

    def tables_of(self, rows: Callable[[], LockRows]) -> dict[str, ColumnTable]:
        """Return the table `lock_contention` of some waits."""
        return {"lock_contention": ColumnTable("lock_contention", lambda: self._columns(rows()))}

    def _columns(self, rows: LockRows) -> list[Column]:
        return [
            *span_columns(rows.ts, rows.dur, rows.cpu, rows.tid),
            number_column("lock_addr", rows.address, "Q"),
            names_column("lock", (self._locks.names[address] for address in rows.address)),
            names_column("kind", map(kind_of, rows.flags)),
            names_column("flags", ("|".join(_flag_names(flags)) for flags in rows.flags)),
            number_column("is_failed", rows.is_failed, "b"),
            number_column("is_cut", rows.is_cut, "b"),
        ]

    @cached_property
    def _hiding(self) -> Hiding:
        return hiding_of(self.coverage, self._locks.tally.first_cut)

    def waits(self, choice: Choice = ALL) -> Mapping[str, Samples]:
        """Return how long tasks waited in ns, by the kind of lock."""
        return self.parts.figures(choice).by_kind.samples(self._hiding)

    def sections(self, choice: Choice = ALL) -> Sequence[Section]:
        """Return how long tasks waited, by kind, lock and task, and the longest waits."""
        sums, hiding = self.parts.sums(choice), self._hiding
        waits = sums.by_kind.samples(hiding)
        return [
            DistributionSection("wait_ns", "Waits for locks", waits, "kind", events=_EVENTS),
            choice.table("locks", "Locks", _LOCKS, self._rows_of(sums), _EVENTS),
            task_section(sums.by_tid.samples(hiding), sums.tasks, choice, _EVENTS),
            longest_section(sums.longest, choice, _LOCK, _EVENTS),
        ]

    def _rows_of(self, sums: LockSums) -> list[Sequence[Value]]:
        return [
            (
                made.count, sums.failed[lock], made.sum, made.mean, *made.quantiles(0.99, 1.0), lock[1],
                self._locks.names[lock[0]],
            )
            for lock, made in sums.by_lock.samples(self._hiding).items()
        ]  # fmt: skip

    def notes(self) -> Iterator[str]:
        """Yield what limits the figures: losses, waits without an end and ends without a begin."""
        yield from super().notes()
        yield from unpaired_notes(self._locks.tally, BEGIN, END)


def _flag_names(flags: int) -> list[str]:
    return [flag.name for flag in LockFlag if flags & flag and flag.name]


def analyse_locks(trace: Trace) -> LockReport:
    """Return the waits for contended locks of a trace.

    Raises TracepointError when lock:contention_begin and lock:contention_end were not recorded.
    """
    return LockReport(LockReader(AnalysisRecords(trace, LockReport.name, NEEDS)))


analyse = analyse_locks
