"""Idle states and frequencies of CPUs: how long in each, and the cycles of what ran."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from tracepoint.analysis.distribution import Bounds
from tracepoint.analysis.levels import LevelMachine
from tracepoint.analysis.power.needs import NEEDS
from tracepoint.analysis.records import AnalysisRecords
from tracepoint.analysis.report import ALL, Report
from tracepoint.analysis.sections import CPU, DistributionSection, Heading, TableSection, Unit
from tracepoint.analysis.spans import samples_of
from tracepoint.decode.column import number_column
from tracepoint.decode.table import ColumnTable
from tracepoint.errors import TracepointError
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracepoint.analysis.coverage import Coverage
    from tracepoint.analysis.distribution import Distribution
    from tracepoint.analysis.levels import LevelRows
    from tracepoint.analysis.sections import Choice, Section, Value
    from tracepoint.decode.trace import Trace

_IDLE, _FREQUENCY, _MISS = "power:cpu_idle", "power:cpu_frequency", "power:cpu_idle_miss"
_SWITCH = "sched:sched_switch"
# include/linux/cpuidle.h, PWR_EVENT_EXIT: the CPU is not idle any more.
_LEFT_IDLE = 0xFFFF_FFFF
#: The state of a CPU that is not idle, as Perfetto has it.
ACTIVE = -1

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


class PowerReport(Report):
    """Idle states and frequencies of the CPUs of a trace; `analyse_power` makes it."""

    name = "power"

    def __init__(self, records: AnalysisRecords) -> None:
        super().__init__(records.coverage, records.missing)
        gaps = self.coverage.gaps
        idle, busy = LevelMachine(gaps, has_own_gaps=True), LevelMachine(gaps, has_own_gaps=True)
        frequency = LevelMachine(gaps)
        self._misses: dict[int, list[int]] = {}
        takes = {}
        if _IDLE in records:
            states, ids = records.numbers(_IDLE, "state", "cpu_id")
            takes[_IDLE] = lambda row, ts, _cpu: idle.set(
                ids[row], ts, ACTIVE if states[row] == _LEFT_IDLE else states[row]
            )
        if _FREQUENCY in records:
            levels, owners = records.numbers(_FREQUENCY, "state", "cpu_id")
            takes[_FREQUENCY] = lambda row, ts, _cpu: frequency.set(owners[row], ts, levels[row])
        if _MISS in records:
            cpus, below = records.numbers(_MISS, "cpu_id", "below")
            takes[_MISS] = lambda row, _ts, _cpu: self._miss(cpus[row], is_below=bool(below[row]))
        self._has_switches = _SWITCH in records.recorded
        if self._has_switches:
            tasks = records.column(_SWITCH, "next_pid").numbers
            takes[_SWITCH] = lambda row, ts, cpu: busy.set(cpu, ts, int(tasks[row] != 0))
        records.run(takes)
        stop = self.coverage.stop
        self._idle, self._frequency, self._busy = idle.finish(stop), frequency.finish(stop), busy.finish(stop)

    def __repr__(self) -> str:
        return (
            f"<PowerReport of {len(self._idle.ts):,} changes of idle states, "
            f"{len(self._frequency.ts):,} of frequencies, {self.coverage.duration / 1e9:.6f} s>"
        )

    def _miss(self, cpu: int, *, is_below: bool) -> None:
        # drivers/cpuidle/cpuidle.c, cpuidle_enter_state(): below: a deeper state would have been better.
        self._misses.setdefault(cpu, [0, 0])[is_below] += 1

    @property
    def tables(self) -> Mapping[str, ColumnTable]:
        """The rows of `cpu_idle_counters` and `cpu_frequency_counters`, with Perfetto's columns."""
        return {
            "cpu_idle_counters": _counter_table("cpu_idle_counters", "idle", self._idle, 0),
            "cpu_frequency_counters": _counter_table(
                "cpu_frequency_counters", "freq", self._frequency, 1 << 16
            ),
        }

    @cached_property
    def cpus(self) -> list[CpuPower]:
        """What each CPU did, by its number."""
        rows = self._idle
        sums: dict[int, tuple[dict[int, int], dict[int, int]]] = {}
        for cpu, dur, state in zip(rows.key, rows.dur, rows.value, strict=True):
            times, entries = sums.setdefault(cpu, ({}, {}))
            times[state] = times.get(state, 0) + dur
            entries[state] = entries.get(state, 0) + 1
        found = []
        for cpu, (times, entries) in sorted(sums.items()):
            active = times.pop(ACTIVE, 0)
            entries.pop(ACTIVE, 0)
            unknown = max(self.coverage.duration - active - sum(times.values()), 0)
            deep, shallow = self._misses.get(cpu, (0, 0))
            found.append(
                CpuPower(cpu, active, times, entries, unknown, deep, shallow, rows.hidden.get(cpu, 0))
            )
        return found

    @cached_property
    def frequencies(self) -> list[FrequencyUse]:
        """How long each CPU had each frequency, by CPU and frequency."""
        times: dict[tuple[int, int], int] = {}
        rows = self._frequency
        for cpu, dur, khz in zip(rows.key, rows.dur, rows.value, strict=True):
            times[cpu, khz] = times.get((cpu, khz), 0) + dur
        busy = self._busy_at() if self._has_switches else None
        hidden, unseen = rows.hidden, self._busy.hidden
        return [
            FrequencyUse(
                cpu, khz, ns, None if busy is None else busy.get((cpu, khz), 0),
                hidden.get(cpu, 0), hidden.get(cpu, 0) + unseen.get(cpu, 0),
            )
            for (cpu, khz), ns in sorted(times.items())
        ]  # fmt: skip

    def _busy_at(self) -> dict[tuple[int, int], int]:
        """Return for how long tasks ran on each CPU at each frequency: the common time of both rows."""
        found: dict[tuple[int, int], int] = {}
        levels = _by_key(self._frequency)
        for cpu, runs in _by_key(self._busy).items():
            own = levels.get(cpu, [])
            at = 0
            for ts, end, is_busy in runs:
                while at < len(own) and own[at][1] <= ts:
                    at += 1
                scan = at
                while is_busy and scan < len(own) and own[scan][0] < end:
                    start, stop, khz = own[scan]
                    found[cpu, khz] = found.get((cpu, khz), 0) + min(stop, end) - max(start, ts)
                    scan += 1
        return found

    def sections(self, choice: Choice = ALL) -> Sequence[Section]:
        """Return the use of each CPU, its idle states and its frequencies."""
        span = self.coverage.duration or 1
        cpus = [use for use in self.cpus if choice.has_cpu(use.cpu)]
        return (
            TableSection("cpus", "CPUs", _CPUS, [self._cpu_row(use, span) for use in cpus], (_IDLE, _MISS)),
            TableSection(
                "idle_states", "Idle states", _STATES, list(_state_rows(cpus, self.coverage)), (_IDLE,)
            ),
            DistributionSection("idle_ns", "Idle times", self._lengths(choice), "state", events=(_IDLE,)),
            TableSection(
                "frequencies", "Frequencies", _FREQUENCIES,
                [_frequency_row(use, span) for use in self.frequencies if choice.has_cpu(use.cpu)],
                (_FREQUENCY, _SWITCH),
            ),
        )  # fmt: skip

    def _cpu_row(self, use: CpuPower, span: int) -> tuple[Value, ...]:
        bound, idle = self.coverage.bound, sum(use.idle.values())
        return (
            use.cpu, Bounds(use.active, use.active + use.hidden), use.active / span,
            Bounds(idle, idle + use.hidden), use.unknown, bound(use.too_deep), bound(use.too_shallow),
        )  # fmt: skip

    def _lengths(self, choice: Choice) -> dict[str, Distribution]:
        """Return the lengths of whole idle times by state; those at the end or at a loss are not whole."""
        rows = self._idle
        found: dict[int, list[int]] = {}
        cut: list[int] = []
        for cpu, ts, dur, state, is_cut, is_open in zip(
            rows.key, rows.ts, rows.dur, rows.value, rows.is_cut, rows.is_open, strict=True
        ):
            if state == ACTIVE or not choice.has_cpu(cpu):
                continue
            if is_cut:
                cut.append(ts)
            elif not is_open:
                found.setdefault(state, []).append(dur)
        return {str(state): samples_of(values, self.coverage, cut) for state, values in sorted(found.items())}

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


def _by_key(rows: LevelRows) -> dict[int, list[tuple[int, int, int]]]:
    found: dict[int, list[tuple[int, int, int]]] = {}
    for key, ts, dur, value in zip(rows.key, rows.ts, rows.dur, rows.value, strict=True):
        found.setdefault(key, []).append((ts, ts + dur, value))
    return found


def _counter_table(name: str, value: str, rows: LevelRows, first_track: int) -> ColumnTable:
    return ColumnTable(
        name,
        lambda: [
            number_column("id", range(len(rows.ts)), "q"),
            number_column("track_id", (first_track + cpu for cpu in rows.key), "q"),
            number_column("ts", rows.ts, "q"),
            number_column("dur", rows.dur, "q"),
            number_column(value, rows.value, "q"),
            number_column("ucpu", rows.key, "i"),
            number_column("cpu", rows.key, "i"),
            number_column("is_cut", rows.is_cut, "b"),
        ],
    )


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
    if _IDLE not in records and _FREQUENCY not in records:
        raise TracepointError(
            f"{trace.file.path}: no {_IDLE} and no {_FREQUENCY}; tracepoint analyse power --events "
            "says what to record"
        )
    return PowerReport(records)


analyse = analyse_power
