"""From records to interrupts, softirqs, what they ran, and how long that had waited."""

from __future__ import annotations

from collections import Counter
from itertools import compress
from typing import TYPE_CHECKING

from tracepoint.analysis.growing import GrowingRows
from tracepoint.analysis.irq.needs import VECTORS
from tracepoint.analysis.irq.nesting import Nesting
from tracepoint.analysis.irq.rows import NO_PARENT, UNPLACED, no_irqs
from tracepoint.analysis.numbered import Numbered
from tracepoint.analysis.pair_events import PairKind, pair_machines, pair_takes
from tracepoint.analysis.pairs import NO_ROW, EndScope, Order
from tracepoint.analysis.spans import OPEN, SpanTally
from tracepoint.decode.labels import value_labels
from tracepoint.tracefile.sieve import MAX_TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tracepoint.analysis.growing import ClosedPart
    from tracepoint.analysis.irq.rows import IrqRows
    from tracepoint.analysis.pair_events import TakeKey
    from tracepoint.analysis.pairs import PairMachine, Pairs
    from tracepoint.analysis.records import AnalysisRecords, RecordPart, Take

HARD, SOFT, RAISED = "irq_handler", "softirq", "softirq_raise"
DUE, TIMER_DUE = "hrtimer_start", "timer_start"
QUEUED, WORK = "workqueue_queue_work", "workqueue_execute"
#: Functions that ran, with the event and the field that name them.
FUNCTIONS = {
    "tasklet": ("irq:tasklet_entry", "func"),
    "hrtimer": ("timer:hrtimer_expire_entry", "function"),
    "timer": ("timer:timer_expire_entry", "function"),
    WORK: ("workqueue:workqueue_execute_start", "function"),
}
_CPU, _ALL = EndScope.CPU, EndScope.ALL
_ENTRY, _EXPIRE = "irq:softirq_entry", "timer:hrtimer_expire_entry"
_START = "workqueue:workqueue_execute_start"

KINDS = {
    # One pair for each action of a shared line: kernel/irq/handle.c: __handle_irq_event_percpu().
    HARD: PairKind("irq:irq_handler_entry", "irq:irq_handler_exit", "irq", Order.STACK, _CPU),
    # Vectors are entered once at a time on a CPU.
    **{
        name: PairKind(f"irq_vectors:{name}_entry", f"irq_vectors:{name}_exit", "", Order.LAST, _CPU)
        for name in VECTORS
    },
    # Raising sets a bit, so the first counts: kernel/softirq.c: __raise_softirq_irqoff().
    RAISED: PairKind("irq:softirq_raise", _ENTRY, "vec", Order.FIRST, _CPU),
    SOFT: PairKind(_ENTRY, "irq:softirq_exit", "vec", Order.LAST, _CPU),
    "tasklet": PairKind("irq:tasklet_entry", "irq:tasklet_exit", "tasklet", Order.LAST, _CPU),
    # Starting a timer that is queued moves it; what is cancelled is started again before it expires.
    DUE: PairKind("timer:hrtimer_start", _EXPIRE, "hrtimer", Order.LAST, _ALL),
    "hrtimer": PairKind(_EXPIRE, "timer:hrtimer_expire_exit", "hrtimer", Order.LAST, _CPU),
    TIMER_DUE: PairKind("timer:timer_start", "timer:timer_expire_entry", "timer", Order.LAST, _ALL),
    "timer": PairKind("timer:timer_expire_entry", "timer:timer_expire_exit", "timer", Order.LAST, _CPU),
    QUEUED: PairKind("workqueue:workqueue_queue_work", _START, "work", Order.LAST, _ALL),
    # The work may be freed or queued again before its end, so the worker counts.
    WORK: PairKind(_START, "workqueue:workqueue_execute_end", "common_pid", Order.LAST, _ALL),
}


#: The numbers of kinds in `IrqRows.kind`, and those of interrupts and softirqs.
NUMBERS = {kind: number for number, kind in enumerate(KINDS)}
IRQS = (HARD, SOFT, *VECTORS)
# Of what wakes up later: when it is due, and in the end what time it is then, of the event's clock.
_DUE_FIELDS = {DUE: ("softexpires",), TIMER_DUE: ("bucket_expiry", "expires")}


class IrqReader:
    """Reads the interrupts of a recording and what they deferred, as often as they are asked for.

    `kinds` are those whose events are there; `tallies` say of
    each kind how many have no end or no begin.
    """

    def __init__(self, records: AnalysisRecords) -> None:
        self._records = records
        self.kinds = tuple(pair_machines(records, KINDS))
        self._names: Numbered[tuple[str, str]] = Numbered()
        self.tallies: dict[str, SpanTally] = {}

    def read(self, take: Callable[[ClosedPart[IrqRows]], object]) -> None:
        """Give the times to `take`, part by part."""
        reading = _Reading(self, self._records)
        self._records.run_parts(reading.takes, lambda: take(reading.closed()))
        take(reading.finish())
        self.tallies = reading.tallies

    def number(self, kind: str, name: str) -> int:
        """Return the number of a name of a kind."""
        return self._names[kind, name]

    @property
    def names(self) -> list[str]:
        """What rows are of, by number."""
        return [name for _, name in self._names.all]

    def namer(self, part: RecordPart, kind: str) -> Callable[[int], int]:
        """Return what gives the number of the name that a begin of a kind has, by its row in a part."""
        event = KINDS[kind].begin
        if kind == HARD:
            return self._handler_namer(part)
        if kind in (SOFT, RAISED):
            labels = value_labels(self._records.trace.format(event), "vec")

            def name_of(vec: int) -> str:
                return (labels(vec) if labels is not None else "") or f"softirq {vec}"

            return self._each_once(kind, part.column(event, "vec").numbers, name_of)
        if kind in FUNCTIONS:
            addresses = part.column(*FUNCTIONS[kind]).numbers
            function = self._records.function
            return self._each_once(kind, addresses, lambda address: function(address) or hex(address))
        if kind == QUEUED and "workqueue" in part.fields[event]:
            column = part.column(event, "workqueue")
            return self._each_once(kind, column.numbers, column.words.__getitem__)
        number = self.number(kind, "?" if kind == QUEUED else kind)
        return lambda _row: number

    def _each_once(
        self, kind: str, numbers: Sequence[int], name_of: Callable[[int], str]
    ) -> Callable[[int], int]:
        known: dict[int, int] = {}

        def find(row: int) -> int:
            value = numbers[row]
            found = known.get(value)
            if found is None:
                found = known[value] = self.number(kind, name_of(value))
            return found

        return find

    def _handler_namer(self, part: RecordPart) -> Callable[[int], int]:
        columns = part.columns(KINDS[HARD].begin)
        lines, names = columns["irq"].numbers, columns.get("name")
        if names is None:
            return self._each_once(HARD, lines, lambda line: f"irq {line}")
        indices, words = names.numbers, names.words
        known: dict[tuple[int, int], int] = {}

        def find(row: int) -> int:
            pair = lines[row], indices[row]
            found = known.get(pair)
            if found is None:
                found = known[pair] = self.number(HARD, f"{pair[0]} {words[pair[1]]}")
            return found

        return find


class _Reading:
    """One reading of the records: what is open, and the rows that may still change."""

    def __init__(self, reader: IrqReader, records: AnalysisRecords) -> None:
        self._reader = reader
        self._stop = records.coverage.stop
        self._machines = pair_machines(records, KINDS)
        self._rows = GrowingRows(no_irqs())
        self._nesting = Nesting(self._rows, NUMBERS[SOFT])
        self._n_irqs = 0
        self._last = 0
        # When what is open is due.
        self._due: dict[int, int] = {}
        self.tallies = {kind: SpanTally() for kind in self._machines}

    def takes(self, part: RecordPart) -> dict[str, Take]:
        """Return what takes the records of a part."""
        self._last = part.times[-1] if len(part) else self._last
        begins = {kind: self._begin(part, kind, machine) for kind, machine in self._machines.items()}
        ends = {kind: self._end(part, kind, machine) for kind, machine in self._machines.items()}
        return pair_takes(part, KINDS, begins, ends)

    def _begin(self, part: RecordPart, kind: str, machine: PairMachine) -> TakeKey:
        rows, columns, number = self._rows, self._rows.columns, NUMBERS[kind]
        name_of = self._reader.namer(part, kind)
        fields = part.fields[KINDS[kind].begin]
        tids = part.column(KINDS[kind].begin, "common_pid").numbers if kind in IRQS else None
        field = next((name for name in _DUE_FIELDS.get(kind, ()) if name in fields), None)
        due = None if field is None else part.column(KINDS[kind].begin, field).numbers

        def begin(key: int, row: int, ts: int, cpu: int) -> None:
            if not machine.begin(key, rows.last + 1, ts, cpu):
                return
            columns.kind.append(number)
            columns.ts.append(ts)
            columns.dur.append(OPEN)
            columns.cpu.append(cpu)
            columns.what.append(name_of(row))
            columns.late.append(OPEN)
            columns.net.append(OPEN)
            columns.is_cut.append(0)
            if tids is None:
                columns.tid.append(OPEN)
                columns.id.append(OPEN)
                columns.parent.append(NO_PARENT)
            else:
                columns.tid.append(tids[row])
                columns.id.append(self._n_irqs)
                columns.parent.append(UNPLACED)
                self._n_irqs += 1
            if due is not None:
                self._due[rows.last] = due[row]

        return begin

    def _end(self, part: RecordPart, kind: str, machine: PairMachine) -> TakeKey:
        rows, columns, tally, due = self._rows, self._rows.columns, self.tallies[kind], self._due
        gone = self._nesting.given_up
        now = part.column(KINDS[kind].end, "now").numbers if kind in _DUE_FIELDS else None

        def end(key: int, row: int, ts: int, _cpu: int) -> None:
            number = machine.end(key, NO_ROW, ts)
            if number == NO_ROW:
                return
            if number in gone:
                tally.n_orphans += 1
                return
            at = rows.place(number)
            columns.dur[at] = columns.net[at] = ts - columns.ts[at]
            if now is not None:
                # A timer of another clock base may be early.
                columns.late[at] = min(max(now[row] - due.pop(number), 0), MAX_TIME)

        return end

    def closed(self) -> ClosedPart[IrqRows]:
        """Hand over the times that no record can change any more."""
        for kind, machine in self._machines.items():
            # Or all that begins after them would wait for their end.
            machine.drop_hidden(self._last)
            self._settle(kind, machine.closed())
        still_open = {row for machine in self._machines.values() for row in machine.open_rows}
        return self._given(self._rows.close(self._nesting.place(still_open)))

    def finish(self) -> ClosedPart[IrqRows]:
        """Hand over the other times, at the end of the trace."""
        for kind, machine in self._machines.items():
            self._settle(kind, machine.finish(self._stop))
        self._nesting.place(frozenset())
        return self._given(self._rows.finish())

    def _settle(self, kind: str, pairs: Pairs) -> None:
        self.tallies[kind].n_orphans += len(pairs.orphans)
        for number in pairs.opens:
            self._due.pop(number, None)
        for number in pairs.cut:
            if number not in self._nesting.given_up:
                self._rows.columns.is_cut[self._rows.place(number)] = 1

    def _given(self, part: ClosedPart[IrqRows]) -> ClosedPart[IrqRows]:
        rows = part.rows
        n_of = Counter(rows.kind)
        n_open = Counter(compress(rows.kind, map(OPEN.__eq__, rows.dur)))
        n_cut = Counter(compress(rows.kind, rows.is_cut))
        for kind, tally in self.tallies.items():
            number = NUMBERS[kind]
            tally.n += n_of[number]
            tally.n_open += n_open[number] - n_cut[number]
            if n_cut[number]:
                cut = compress(zip(rows.kind, rows.ts, strict=True), rows.is_cut)
                tally.cut(ts for own, ts in cut if own == number)
        return part
