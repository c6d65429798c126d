"""Idle states and frequencies of CPUs: how long in each, and the cycles of what ran."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from tracepoint.analysis.distribution import Bounds
from tracepoint.analysis.levels import LevelRows, no_levels
from tracepoint.analysis.parts import PartedReport, SummedParts
from tracepoint.analysis.power.build import ACTIVE, IDLE_STATE, KHZ, PowerReader
from tracepoint.analysis.power.needs import FREQUENCY, IDLE, MISS, NEEDS, SWITCH
from tracepoint.analysis.power.sums import PowerSums
from tracepoint.analysis.records import AnalysisRecords
from tracepoint.analysis.report import ALL
from tracepoint.analysis.sections import CPU, Choice, DistributionSection, Heading, TableSection, Unit
from tracepoint.decode.column import number_column
from tracepoint.decode.table import ColumnTable
from tracepoint.errors import TracepointError
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tracepoint.analysis.coverage import Coverage
    from tracepoint.analysis.distribution import Samples
    from tracepoint.analysis.sections import Section, Value
    from tracepoint.decode.column import Column
    from tracepoint.decode.trace import Trace

_CPUS = (
    CPU,
    Heading("active_ns", "active", Unit.TIME),
    Heading("active_share", "of time", Unit.SHARE),
    Heading("idle_ns", "idle", Unit.TIME),
    Heading("unknown_ns", "unknown", Unit.TIME),
    Heading("too_deep", "too deep"),
    Heading("too_shallow", "too shallow"),
)
_STATES = (
    CPU,
    Heading("state", "state", Unit.NUMBER),
    Heading("entries", "entered"),
    Heading("idle_ns", "time", Unit.TIME),
    Heading("share", "of time", Unit.SHARE),
)
_FREQUENCIES = (
    CPU,
    Heading("khz", "kHz", Unit.NUMBER),
    Heading("ns", "time", Unit.TIME),
    Heading("share", "of time", Unit.SHARE),
    Heading("busy_ns", "busy", Unit.TIME),
    Heading("cycles", "cycles"),
)


class CpuPower(NamedTuple):
    """What one CPU did, in ns: `unknown` is before its first event, and what losses hide: `hidden` of it.

    `too_deep` and `too_shallow` are how often the idle state turned out to be so.
    """

    cpu: int
    active: int
    idle: dict[int, int]
    entries: dict[int, int]
    unknown: int
    too_deep: int
    too_shallow: int
    hidden: int


class FrequencyUse(NamedTuple):
    """How long a CPU had a frequency in kHz, and for how long of it a task ran, in ns.

    `busy` is None where sched_switch was not recorded.  `hidden` is for how long a loss hides its frequency,
    `unsure` that or what ran.
    """

    cpu: int
    khz: int
    ns: int
    busy: int | None
    hidden: int
    unsure: int

    @property
    def cycles(self) -> int | None:
        """The cycles of the time that tasks ran."""
        return None if self.busy is None else self.cycles_of(self.busy)

    def cycles_of(self, ns: int) -> int:
        """Return the cycles of a time."""
        return ns * self.khz // 1_000_000


class PowerReport(PartedReport[LevelRows, PowerSums]):
    """Idle states and frequencies of the CPUs of a trace; `analyse_power` makes it."""

    name = "power"

    def __init__(self, power: PowerReader) -> None:
        self._power = power
        records = power.records
        parts = SummedParts(power.read, lambda choice: PowerSums(choice.has_cpu))
        super().__init__(records.coverage, records.missing, parts)

    def __repr__(self) -> str:
        n_idle, n_frequency = self._power.n_changes
        return (
            f"<PowerReport of {n_idle:,} changes of idle states, "
            f"{n_frequency:,} of frequencies, {self.coverage.duration / 1e9:.6f} s>"
        )

    @cached_property
    def tables(self) -> Mapping[str, ColumnTable]:
        """The rows of `cpu_idle_counters` and `cpu_frequency_counters`, with Perfetto's columns."""
        return self.tables_of(lambda: self._all_rows)

    @cached_property
    def _all_rows(self) -> LevelRows:
        return self.parts.all_rows(no_levels())

    def tables_of(self, rows: Callable[[], LevelRows]) -> dict[str, ColumnTable]:
        """Return the tables of some values."""
        return {
            "cpu_idle_counters": _counter_table("cpu_idle_counters", "idle", rows, IDLE_STATE),
            "cpu_frequency_counters": _counter_table("cpu_frequency_counters", "freq", rows, KHZ),
        }

    @cached_property
    def cpus(self) -> list[CpuPower]:
        """What each CPU did, by its number."""
        sums, hidden, misses = self.parts.sums(Choice()), self._power.hidden[IDLE_STATE], self._power.misses
        by_cpu: dict[int, tuple[dict[int, int], dict[int, int]]] = {}
        for (cpu, state), ns in sums.idle.items():
            times, entries = by_cpu.setdefault(cpu, ({}, {}))
            times[state], entries[state] = ns, sums.entries[cpu, state]
        found = []
        for cpu, (times, entries) in sorted(by_cpu.items()):
            active = times.pop(ACTIVE, 0)
            entries.pop(ACTIVE, 0)
            unknown = max(self.coverage.duration - active - sum(times.values()), 0)
            deep, shallow = misses.get(cpu, (0, 0))
            found.append(CpuPower(cpu, active, times, entries, unknown, deep, shallow, hidden.get(cpu, 0)))
        return found

    @cached_property
    def frequencies(self) -> list[FrequencyUse]:
        """How long each CPU had each frequency, by CPU and frequency."""
        busy, hidden, unseen = self._power.busy, self._power.hidden[KHZ], self._power.hidden_runs
        return [
            FrequencyUse(
                cpu, khz, ns, None if busy is None else busy.get((cpu, khz), 0),
                hidden.get(cpu, 0), hidden.get(cpu, 0) + unseen.get(cpu, 0),
            )
            for (cpu, khz), ns in sorted(self.parts.sums(Choice()).frequency.items())
        ]  # fmt: skip

    def sections(self, choice: Choice = ALL) -> Sequence[Section]:
        """Return the use of each CPU, its idle states and its frequencies."""
        span = self.coverage.duration or 1
        cpus = [use for use in self.cpus if choice.has_cpu(use.cpu)]
        return (
            TableSection("cpus", "CPUs", _CPUS, [self._cpu_row(use, span) for use in cpus], (IDLE, MISS)),
            TableSection(
                "idle_states", "Idle states", _STATES, list(_state_rows(cpus, self.coverage)), (IDLE,)
            ),
            DistributionSection("idle_ns", "Idle times", self._lengths(choice), "state", events=(IDLE,)),
            TableSection(
                "frequencies", "Frequencies", _FREQUENCIES,
                [_frequency_row(use, span) for use in self.frequencies if choice.has_cpu(use.cpu)],
                (FREQUENCY, SWITCH),
            ),
        )  # fmt: skip

    def _cpu_row(self, use: CpuPower, span: int) -> tuple[Value, ...]:
        bound, idle = self.coverage.bound, sum(use.idle.values())
        return (
            use.cpu, Bounds(use.active, use.active + use.hidden), use.active / span,
            Bounds(idle, idle + use.hidden), use.unknown, bound(use.too_deep), bound(use.too_shallow),
        )  # fmt: skip

    def _lengths(self, choice: Choice) -> dict[str, Samples]:
        """Return the lengths of whole idle times by state; those at the end or at a loss are not whole."""
        sums = self.parts.sums(Choice(choice.cpus))
        found = sums.lengths.samples(sums.cut.hiding(self.coverage))
        return {str(state): samples for state, samples in sorted(found.items())}

    def notes(self) -> Iterator[str]:
        """Yield what limits the figures: losses, missing events, CPUs whose frequency is not known."""
        yield from super().notes()
        known = {use.cpu for use in self.frequencies}
        unknown = [use.cpu for use in self.cpus if use.cpu not in known]
        if known and unknown:
            yield f"no frequency of CPU {', '.join(map(str, unknown))}: it did not change while recording"


def _state_rows(cpus: Sequence[CpuPower], coverage: Coverage) -> Iterator[tuple[Value, ...]]:
    for use in cpus:
        for state, ns in sorted(use.idle.items()):
            time = Bounds(ns, ns + use.hidden)
            yield use.cpu, state, coverage.bound(use.entries[state]), time, ns / (coverage.duration or 1)


def _frequency_row(use: FrequencyUse, span: int) -> tuple[Value, ...]:
    time = Bounds(use.ns, use.ns + use.hidden)
    if use.busy is None:
        return use.cpu, use.khz, time, use.ns / span, None, None
    busy = Bounds(use.busy, use.busy + use.unsure)
    cycles = Bounds(use.cycles_of(use.busy), use.cycles_of(use.busy + use.unsure))
    return use.cpu, use.khz, time, use.ns / span, busy, cycles


def _counter_table(name: str, value: str, rows: Callable[[], LevelRows], kind: int) -> ColumnTable:
    """Return the values of a kind among rows; each CPU has a track of its own for each kind."""

    def columns() -> list[Column]:
        levels = rows()
        places = [at for at, own in enumerate(levels.kind) if own == kind]
        key, ts, dur, number, is_cut = (
            [column[at] for at in places]
            for column in (levels.key, levels.ts, levels.dur, levels.value, levels.is_cut)
        )
        return [
            number_column("id", range(len(places)), "q"),
            number_column("track_id", ((kind << 16) + cpu for cpu in key), "q"),
            number_column("ts", ts, "q"),
            number_column("dur", dur, "q"),
            number_column(value, number, "q"),
            number_column("ucpu", key, "i"),
            number_column("cpu", key, "i"),
            number_column("is_cut", is_cut, "b"),
        ]

    return ColumnTable(name, columns)


def analyse_power(trace: Trace) -> PowerReport:
    """Return the idle states and frequencies of the CPUs of a trace.

    Raises TracepointError without cpu_idle and cpu_frequency.

    >>> import tracepoint as tp
    >>> with tp.open_trace("tests/tracefile/golden/cut.v6.dat") as trace:
    ...     analyse_power(trace)
    Traceback (most recent call last):
    tracepoint.errors.TracepointError: tests/tracefile/golden/cut.v6.dat: no power:cpu_idle and no ...
    """
    records = AnalysisRecords(trace, "power", NEEDS)
    if IDLE not in records and FREQUENCY not in records:
        raise TracepointError(
            f"{trace.file.path}: no {IDLE} and no {FREQUENCY}; tracepoint analyse power --events "
            "says what to record"
        )
    return PowerReport(PowerReader(records))


analyse = analyse_power
