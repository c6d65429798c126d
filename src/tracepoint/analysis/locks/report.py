"""The locks of a trace that tasks waited for: how long, by kind, by lock and by task."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING

from tracepoint.analysis.chosen import ChosenSpans
from tracepoint.analysis.locks.build import LockFlag, kind_of, read_waits
from tracepoint.analysis.locks.needs import BEGIN, END, NEEDS
from tracepoint.analysis.records import AnalysisRecords
from tracepoint.analysis.report import ALL, Report
from tracepoint.analysis.sections import MAX, MEAN, P99, TOTAL, DistributionSection, Heading, N, Unit
from tracepoint.analysis.spans import span_columns, unpaired_notes
from tracepoint.decode.column import names_column, number_column
from tracepoint.decode.table import ColumnTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracepoint.analysis.distribution import Samples
    from tracepoint.analysis.locks.build import LockWaits
    from tracepoint.analysis.sections import Choice, Section, Value
    from tracepoint.decode.column import Column
    from tracepoint.decode.trace import Trace

_EVENTS = (BEGIN, END)
_LOCK = (Heading("kind", "kind", Unit.WORD), Heading("lock", "lock", Unit.WORD))
_LOCKS = (N, Heading("n_failed", "failed"), TOTAL, MEAN, P99, MAX, *_LOCK)


class LockReport(Report):
    """Waits for contended locks; `analyse_locks` makes it."""

    name = "locks"

    def __init__(self, records: AnalysisRecords, waits: LockWaits) -> None:
        super().__init__(records.coverage, records.missing)
        self._records = records
        self._waits = waits

    def __repr__(self) -> str:
        return f"<LockReport of {len(self._waits.spans):,} waits>"

    @property
    def tables(self) -> Mapping[str, ColumnTable]:
        """The rows of `lock_contention`."""
        return {"lock_contention": self.lock_contention}

    @cached_property
    def lock_contention(self) -> ColumnTable:
        """Each wait by its begin: `ts`, `dur` in ns (-1: no end), the lock, its kind, the task.

        `is_failed` says that the task did not get the lock, `is_cut` that a loss may hide the end.
        """
        return ColumnTable("lock_contention", self._columns)

    def _columns(self) -> list[Column]:
        waits, spans = self._waits, self._waits.spans
        cpus = (self._records.cpus[row] for row in spans.begin)
        return [
            *span_columns(spans.ts, spans.dur, cpus, waits.tids),
            number_column("lock_addr", waits.addresses, "Q"),
            names_column("lock", (waits.names[address] for address in waits.addresses)),
            names_column("kind", map(kind_of, waits.flags)),
            names_column("flags", ("|".join(_flag_names(flags)) for flags in waits.flags)),
            number_column("is_failed", waits.is_failed, "b"),
            number_column("is_cut", spans.is_cut, "b"),
        ]

    def waits(self, choice: Choice = ALL) -> Mapping[str, Samples]:
        """Return how long tasks waited in ns, by the kind of lock."""
        return self._chosen(choice).samples([*map(kind_of, self._waits.flags)])

    def _chosen(self, choice: Choice) -> ChosenSpans:
        return ChosenSpans(self._records, self._waits.spans, self._waits.tids, choice)

    def sections(self, choice: Choice = ALL) -> Sequence[Section]:
        """Return how long tasks waited, by kind, lock and task, and the longest waits."""
        chosen = self._chosen(choice)
        return [
            DistributionSection("wait_ns", "Waits for locks", self.waits(choice), "kind", events=_EVENTS),
            choice.table("locks", "Locks", _LOCKS, self._locks(chosen), _EVENTS),
            chosen.task_section(_EVENTS),
            chosen.longest_section(_LOCK, self._lock, _EVENTS),
        ]

    def _locks(self, chosen: ChosenSpans) -> list[Sequence[Value]]:
        waits = self._waits
        kinds = list(map(kind_of, waits.flags))
        failed = Counter(
            (address, kind)
            for address, kind, is_failed, is_chosen in zip(
                waits.addresses, kinds, waits.is_failed, chosen.flags, strict=True
            )
            if is_failed and is_chosen
        )
        groups = list(zip(waits.addresses, kinds, strict=True))
        return [
            (
                made.count, failed[group], made.sum, made.mean, *made.quantiles(0.99, 1.0), group[1],
                waits.names[group[0]],
            )
            for group, made in chosen.samples(groups).items()
        ]  # fmt: skip

    def _lock(self, at: int) -> tuple[str, str]:
        return kind_of(self._waits.flags[at]), self._waits.names[self._waits.addresses[at]]

    def notes(self) -> Iterator[str]:
        """Yield what limits the figures: losses, waits without an end and ends without a begin."""
        yield from super().notes()
        yield from unpaired_notes(self._waits.spans.counts, BEGIN, END)


def _flag_names(flags: int) -> list[str]:
    return [flag.name for flag in LockFlag if flags & flag and flag.name]


def analyse_locks(trace: Trace) -> LockReport:
    """Return the waits for contended locks of a trace.

    Raises TracepointError when lock:contention_begin and lock:contention_end were not recorded.
    """
    records = AnalysisRecords(trace, LockReport.name, NEEDS)
    return LockReport(records, read_waits(records))


analyse = analyse_locks
