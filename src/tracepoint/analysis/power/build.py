"""From records to idle states and frequencies of CPUs, and for how long tasks ran at which."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.growing import GrowingRows
from tracepoint.analysis.levels import LevelMachine, no_levels
from tracepoint.analysis.power.needs import FREQUENCY, IDLE, MISS, SWITCH
from tracepoint.tracefile.sieve import MAX_TIME

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.analysis.growing import ClosedPart
    from tracepoint.analysis.levels import LevelRows
    from tracepoint.analysis.records import AnalysisRecords, RecordPart, Take

# include/linux/cpuidle.h, PWR_EVENT_EXIT: the CPU is not idle any more.
_LEFT_IDLE = 0xFFFF_FFFF
#: The state of a CPU that is not idle, as Perfetto has it.
ACTIVE = -1
#: The kinds of `LevelRows`.
IDLE_STATE, KHZ, _RUNS = range(3)


class PowerReader:
    """Reads the idle states and frequencies of CPUs, as often as they are asked for.

    Of each kind there is how many changes there were, and by CPU for how long losses hide the value, in ns;
    `misses` are how often the idle state of a CPU was too shallow and too deep.  `busy` is for how long tasks
    ran on a CPU at a frequency, None where sched_switch was not recorded, `hidden_runs` for how long it is
    not known if one did.
    """

    def __init__(self, records: AnalysisRecords) -> None:
        self.records = records
        self._has_switches = SWITCH in records.recorded
        self.n_changes = [0, 0]
        self.hidden: list[dict[int, int]] = [{}, {}]
        self.hidden_runs: dict[int, int] = {}
        self.misses: dict[int, list[int]] = {}
        self.busy: dict[tuple[int, int], int] | None = None

    def read(self, take: Callable[[ClosedPart[LevelRows]], object]) -> None:
        """Give the values to `take`, part by part."""
        reading = _Reading(self.records, has_switches=self._has_switches)
        self.records.run_parts(reading.takes, lambda: take(reading.closed()))
        take(reading.finish())
        levels = reading.idle, reading.frequency
        self.n_changes, self.hidden = [own.n for own in levels], [own.hidden for own in levels]
        self.hidden_runs, self.misses = reading.runs.hidden, reading.misses
        self.busy = reading.overlap.found if self._has_switches else None


class _Reading:
    """One reading of the records: which values hold, and the rows of those that do not any more."""

    def __init__(self, records: AnalysisRecords, *, has_switches: bool) -> None:
        gaps = records.coverage.gaps
        self._stop = records.coverage.stop
        self._has_switches = has_switches
        self._rows, self._run_rows = GrowingRows(no_levels()), GrowingRows(no_levels())
        self.idle = LevelMachine(self._rows, gaps, kind=IDLE_STATE, has_own_gaps=True)
        self.frequency = LevelMachine(self._rows, gaps, kind=KHZ)
        self.runs = LevelMachine(self._run_rows, gaps, kind=_RUNS, has_own_gaps=True)
        self.overlap = _Overlap(self.runs, self.frequency)
        self.misses: dict[int, list[int]] = {}

    def takes(self, part: RecordPart) -> dict[str, Take]:
        """Return what takes the records of a part."""
        idle, frequency, runs, overlap = self.idle, self.frequency, self.runs, self.overlap
        takes: dict[str, Take] = {}
        if IDLE in part:
            states, ids = part.numbers(IDLE, "state", "cpu_id")
            takes[IDLE] = lambda row, ts, _cpu: idle.set(
                ids[row], ts, ACTIVE if states[row] == _LEFT_IDLE else states[row]
            )
        if FREQUENCY in part:
            levels, owners = part.numbers(FREQUENCY, "state", "cpu_id")

            def change(row: int, ts: int, _cpu: int) -> None:
                overlap.change(owners[row], ts, khz=levels[row])
                frequency.set(owners[row], ts, levels[row])

            takes[FREQUENCY] = change
        if MISS in part:
            cpus, below = part.numbers(MISS, "cpu_id", "below")
            takes[MISS] = lambda row, _ts, _cpu: self._miss(cpus[row], is_below=bool(below[row]))
        if self._has_switches:
            tasks = part.column(SWITCH, "next_pid").numbers

            def switch(row: int, ts: int, cpu: int) -> None:
                is_busy = int(tasks[row] != 0)
                overlap.change(cpu, ts, is_busy=is_busy)
                runs.set(cpu, ts, is_busy)

            takes[SWITCH] = switch
        return takes

    def _miss(self, cpu: int, *, is_below: bool) -> None:
        # drivers/cpuidle/cpuidle.c, cpuidle_enter_state(): below: a deeper state would have been better.
        self.misses.setdefault(cpu, [0, 0])[is_below] += 1

    def closed(self) -> ClosedPart[LevelRows]:
        """Hand over the values that do not hold any more."""
        self._run_rows.close(self.runs.open_rows)
        return self._rows.close({*self.idle.open_rows, *self.frequency.open_rows})

    def finish(self) -> ClosedPart[LevelRows]:
        """Hand over the other values, at the end of the trace."""
        self.overlap.finish(self._stop)
        for machine in (self.idle, self.frequency, self.runs):
            machine.finish(self._stop)
        return self._rows.finish()


class _Overlap:
    """For how long tasks ran on each CPU at each frequency: the common time of both values, in ns."""

    def __init__(self, runs: LevelMachine, frequency: LevelMachine) -> None:
        self._runs = runs
        self._frequency = frequency
        self.found: dict[tuple[int, int], int] = {}
        # Of each CPU the time up to which it is summed, and of both values what it is and where it is hidden.
        self._since: dict[int, int] = {}
        self._khz: dict[int, tuple[int, int]] = {}
        self._busy: dict[int, tuple[int, int]] = {}

    def change(self, cpu: int, ts: int, *, khz: int | None = None, is_busy: int | None = None) -> None:
        """Take that a CPU has another frequency from a time on, or that a task runs there or not."""
        self._sum(cpu, ts)
        for value, machine, held in (
            (khz, self._frequency, self._khz), (is_busy, self._runs, self._busy),
        ):  # fmt: skip
            if value is not None:
                hidden = machine.hidden_from(cpu, ts)
                held[cpu] = value, MAX_TIME if hidden is None else hidden

    def _sum(self, cpu: int, ts: int) -> None:
        khz, busy = self._khz.get(cpu), self._busy.get(cpu)
        if khz is not None and busy is not None and busy[0]:
            ns = min(ts, khz[1], busy[1]) - self._since[cpu]
            if ns > 0:
                self.found[cpu, khz[0]] = self.found.get((cpu, khz[0]), 0) + ns
        self._since[cpu] = ts

    def finish(self, ts: int) -> None:
        """End at the time of the end of the trace."""
        for cpu in list(self._since):
            self._sum(cpu, ts)
