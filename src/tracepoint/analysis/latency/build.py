"""From records to the times between two events, part by part."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from tracepoint.analysis.growing import GrowingRows
from tracepoint.analysis.numbered import Numbered
from tracepoint.analysis.pairs import NO_ROW, PairMachine
from tracepoint.analysis.spans import OPEN, SpanTally
from tracepoint.named import NamedTuple
from tracepoint.wording import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from tracepoint.analysis.growing import ClosedPart
    from tracepoint.analysis.latency.pairing import KeyedEvents
    from tracepoint.analysis.pairs import Order, Pairs
    from tracepoint.analysis.records import RecordPart, Take


class LatencyRows(NamedTuple):
    """Times by their begin in ns (`dur`: OPEN without an end), CPU and task of begin and end.

    `key` is the number of a key (`LatencyReader.key_text`); `is_cut` says that a loss may hide the end.
    """

    ts: array[int]
    dur: array[int]
    cpu: array[int]
    tid: array[int]
    end_cpu: array[int]
    end_tid: array[int]
    key: array[int]
    is_cut: array[int]


def no_latencies() -> LatencyRows:
    """Return no rows."""
    return LatencyRows(*(array(code) for code in "qqiqiqib"))


class LatencyReader:
    """Reads the times from each begin to its end, as often as they are asked for.

    `tally` says how many have no end or no begin.
    """

    def __init__(self, events: KeyedEvents, order: Order) -> None:
        self.events = events
        self.order = order
        self._keys: Numbered[Hashable] = Numbered()
        self.tally = SpanTally()

    def read(self, take: Callable[[ClosedPart[LatencyRows]], object]) -> None:
        """Give the times to `take`, part by part."""
        records, tally = self.events.records, SpanTally()
        pairs = PairMachine(self.order, self.events.scope, records.coverage.gaps)
        rows = GrowingRows(no_latencies())

        def settle(found: Pairs) -> None:
            tally.n_orphans += len(found.orphans)
            rows.mark(rows.columns.is_cut, found.cut)

        def give(closed: ClosedPart[LatencyRows]) -> None:
            tally.add(closed.rows.ts, closed.rows.dur, closed.rows.is_cut)
            take(closed)

        def close() -> None:
            settle(pairs.closed())
            give(rows.close(set(pairs.open_rows)))

        records.run_parts(lambda part: self._takes(part, pairs, rows), close)
        settle(pairs.finish(records.coverage.stop))
        give(rows.finish())
        self.tally = tally

    def _takes(
        self, part: RecordPart, pairs: PairMachine, rows: GrowingRows[LatencyRows]
    ) -> Mapping[str, Take]:
        tids, end_tids = (part.numbers(name, "common_pid")[0] for name in self.events[1:3])
        columns, keys = rows.columns, self._keys

        def begin(key: Hashable, row: int, ts: int, cpu: int) -> None:
            if not pairs.begin(key, rows.last + 1, ts, cpu):
                return
            columns.ts.append(ts)
            columns.dur.append(OPEN)
            columns.cpu.append(cpu)
            columns.tid.append(tids[row])
            columns.end_cpu.append(OPEN)
            columns.end_tid.append(OPEN)
            columns.key.append(keys[key])
            columns.is_cut.append(0)

        def end(key: Hashable, row: int, ts: int, cpu: int) -> None:
            number = pairs.end(key, NO_ROW, ts)
            if number != NO_ROW:
                at = rows.place(number)
                columns.dur[at] = ts - columns.ts[at]
                columns.end_cpu[at], columns.end_tid[at] = cpu, end_tids[row]

        return self.events.takes(part, begin, end)

    def key_text(self, number: int) -> str:
        """Return the values of a key with the names of their fields."""
        key = self._keys.all[number]
        values = key if isinstance(key, tuple) else (key,)
        named = zip(self.events.key, values, strict=False)
        return " ".join(f"{field.begin}={one_line(str(value))}" for field, value in named) or "all"
