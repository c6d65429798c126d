"""Functions of a recording of function_graph: calls, total and own time, folded stacks."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from tracepoint.analysis.coverage import join_gaps
from tracepoint.analysis.distribution import Bounds
from tracepoint.analysis.folded import FOLDED, folded_table
from tracepoint.analysis.functions.machine import UNKNOWN, Call, FunctionMachine
from tracepoint.analysis.functions.needs import NEEDS
from tracepoint.analysis.records import AnalysisRecords
from tracepoint.analysis.report import ALL, Report
from tracepoint.analysis.sections import DistributionSection, Heading, Unit
from tracepoint.analysis.spans import hiding_of
from tracepoint.analysis.sums import SampleSums
from tracepoint.named import NamedTuple
from tracepoint.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracepoint.analysis.distribution import Samples
    from tracepoint.analysis.records import RecordPart, Take
    from tracepoint.analysis.sections import Choice, Section
    from tracepoint.decode.table import ColumnTable
    from tracepoint.decode.trace import Trace

_EXIT, _ENTRY = "ftrace:funcgraph_exit", "ftrace:funcgraph_entry"
_MOST_GROUPS = 8
# Many times what kernels have (FTRACE_RETFUNC_DEPTH is 50): a damaged record has any number.
_DEPTHS = range(1024)
_FUNCTIONS = (
    Heading("own_ns", "own time", Unit.TIME),
    Heading("total_ns", "total", Unit.TIME),
    Heading("calls", "calls"),
    Heading("mean_ns", "mean", Unit.TIME),
    Heading("max_ns", "max", Unit.TIME),
    Heading("function", "function", Unit.WORD),
    Heading("unsure_ns", "", Unit.TIME),
    Heading("address", "", Unit.ADDRESS),
)


class FunctionUse(NamedTuple):
    """What is known of one function, times in ns.

    `total` counts calls within calls of the same function once; `own` is without the calls below it.
    `unsure` is the part of `own` in which a loss may hide calls below: `own` may be less by it.  `unplaced`
    is the time of calls whose callers are not known: those may be within calls of the same function.
    """

    name: str
    address: int
    calls: Samples
    total: int
    own: int
    unsure: int
    unplaced: int


class FunctionsReport(Report):
    """The functions of a recording of function_graph; `analyse_functions` makes it."""

    name = "functions"

    def __init__(self, records: AnalysisRecords, machine: FunctionMachine, lengths: SampleSums[int]) -> None:
        super().__init__(records.coverage, records.missing)
        self._machine = machine
        # The calls of lost exits may have begun any time before.
        hiding = hiding_of(self.coverage, [] if self.coverage.is_complete else [machine.first])
        self._lengths = lengths.samples(hiding)
        # The recording may be closed before names are asked for.
        self._names = {at: records.function(at) or f"{at:#x}" for at in machine.functions}
        self._tasks = {path[0]: records.task(path[0]) for path in machine.paths}

    def __repr__(self) -> str:
        n = sum(map(len, self._lengths.values()))
        return f"<FunctionsReport of {n:,} calls of {counted(len(self._machine.functions), 'function')}>"

    def _name(self, address: int) -> str:
        return "[unknown]" if address == UNKNOWN else self._names.get(address, f"{address:#x}")

    @cached_property
    def functions(self) -> list[FunctionUse]:
        """The functions, those with most time of their own first."""
        found = []
        for address, sums in self._machine.functions.items():
            calls = self._lengths[address]
            rest = calls.total - sums.nested, sums.own, sums.unsure, sums.unplaced
            found.append(FunctionUse(self._name(address), address, calls, *rest))
        return sorted(found, key=lambda use: (-use.own, use.name))

    @property
    def tables(self) -> Mapping[str, ColumnTable]:
        """The table `folded_stacks`: each path of calls as `task;caller;function`, with its time in ns."""
        return {FOLDED: self._folded}

    @cached_property
    def _folded(self) -> ColumnTable:
        found = self._machine.paths
        paths = [(self._tasks[path[0]], *map(self._name, path[1:])) for path in found]
        own, calls = ([sums[at] for sums in found.values()] for at in (0, 1))
        return folded_table(paths, own, ("calls", calls))

    def sections(self, choice: Choice = ALL) -> Sequence[Section]:
        """Return the functions by their own time, and how long calls of the first ones took."""
        rows = [
            (
                *self._times(use), use.calls.count, use.calls.mean, use.calls.quantile(1.0), use.name,
                use.unsure, use.address,
            )
            for use in self.functions
        ]  # fmt: skip
        lengths = {use.name: use.calls for use in self.functions[:_MOST_GROUPS]}
        return (
            choice.whole(choice.table("functions", "Functions", _FUNCTIONS, rows, (_EXIT, _ENTRY))),
            choice.whole(
                DistributionSection("call_ns", "Lengths of calls", lengths, "function", events=(_EXIT,))
            ),
        )

    def _times(self, use: FunctionUse) -> tuple[Bounds, Bounds]:
        """Return the time of a function itself, and that of its calls."""
        most, unplaced = use.calls.sum, use.unplaced if not self.coverage.is_complete else 0
        if most.high is None:
            return Bounds(use.own - use.unsure, None), Bounds(use.total - unplaced, None)
        hidden = most.high - most.low
        return (
            Bounds(use.own - use.unsure, use.own + hidden),
            Bounds(use.total - unplaced, use.total + hidden),
        )

    def notes(self) -> Iterator[str]:
        """Yield what limits the figures: losses, calls whose callers are not known."""
        yield from super().notes()
        if n := self._machine.n_without_entry:
            yield f"{counted(n, 'call')} without an entry: callers are not known"
        if unsure := sum(use.unsure for use in self.functions):
            yield f"losses may hide calls in {unsure / 1e6:,.3f} ms of functions' own time: it may be less"


def analyse_functions(trace: Trace) -> FunctionsReport:
    """Return the functions of a recording of the tracer function_graph.

    Totals hold the time in which a task slept, unless the option sleep-time was off.  Raises TracepointError
    without funcgraph_exit.
    """
    records = AnalysisRecords(trace, "functions", NEEDS)
    machine = FunctionMachine(join_gaps(gap for own in records.coverage.gaps.values() for gap in own))
    lengths: SampleSums[int] = SampleSums()

    def takes_of(part: RecordPart) -> dict[str, Take]:
        takes: dict[str, Take] = {_EXIT: _leaver(part, machine)}
        if _ENTRY in part:
            takes[_ENTRY] = _enterer(part, machine)
        return takes

    records.run_parts(takes_of, lambda: lengths.add_values(machine.closed()))
    lengths.add_values(machine.closed())
    return FunctionsReport(records, machine, lengths)


def _enterer(records: RecordPart, machine: FunctionMachine) -> Take:
    tids, funcs, depths = records.numbers(_ENTRY, "common_pid", "func", "depth")

    def take(row: int, ts: int, cpu: int) -> None:
        if depths[row] in _DEPTHS:
            # Each CPU has an idle task of its own.
            machine.enter(tids[row] or ~cpu, funcs[row], depths[row], ts)

    return take


def _leaver(records: RecordPart, machine: FunctionMachine) -> Take:
    tids, funcs, depths, starts, stops = records.numbers(
        _EXIT, "common_pid", "func", "depth", "calltime", "rettime"
    )

    def take(row: int, ts: int, cpu: int) -> None:
        tid = tids[row]
        call = Call(funcs[row], depths[row], starts[row], stops[row])
        if call.depth in _DEPTHS and call.start <= call.stop:
            machine.leave(tid or ~cpu, tid, call, ts)

    return take


analyse = analyse_functions
