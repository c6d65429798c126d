"""Begins and ends of any two events, joined by fields that have the same values in both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.latency.needs import needs_of, read_key
from tracepoint.analysis.needs import Fields
from tracepoint.analysis.pairs import EndScope, Order, PairMachine
from tracepoint.analysis.records import AnalysisRecords
from tracepoint.analysis.spans import spans_of
from tracepoint.decode.plan import CPU, ColumnKind
from tracepoint.errors import TracepointError
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from tracepoint.analysis.latency.needs import KeyField
    from tracepoint.analysis.needs import Need
    from tracepoint.analysis.records import RecordPart, Take
    from tracepoint.analysis.spans import Spans
    from tracepoint.decode.trace import Trace

    KeyOf = Callable[[int], Hashable]
    TakeKey = Callable[[Hashable, int, int, int], object]

ANALYSIS = "latency"


class KeyedEvents(NamedTuple):
    """Two events that `key` joins, the begin and the end as `system:event`, with their records."""

    records: AnalysisRecords
    begin: str
    end: str
    key: Sequence[KeyField]

    @property
    def scope(self) -> EndScope:
        """Where ends are written."""
        return EndScope.CPU if any(field.begin == CPU for field in self.key) else EndScope.ALL

    def takes(self, part: RecordPart, begin: TakeKey, end: TakeKey) -> dict[str, Take]:
        """Return what gives the records of a part to `begin` and `end`, each with its key before its row."""
        begin_key = _key_reader(part, self.begin, [field.begin for field in self.key])
        end_key = _key_reader(part, self.end, [field.end for field in self.key])

        def take_begin(row: int, ts: int, cpu: int) -> None:
            begin(begin_key(row), row, ts, cpu)

        def take_end(row: int, ts: int, cpu: int) -> None:
            end(end_key(row), row, ts, cpu)

        def take_both(row: int, ts: int, cpu: int) -> None:
            take_end(row, ts, cpu)
            take_begin(row, ts, cpu)

        if self.begin == self.end:
            return {self.begin: take_both}
        return {self.begin: take_begin, self.end: take_end}


def keyed_events(trace: Trace, begin: str, end: str, key: str, *, is_whole: bool = False) -> KeyedEvents:
    """Return two events that are joined by a key, as `analyse_latency` takes them.

    With `is_whole` all fields of both events are read, and not only those of the key.  Raises TracepointError
    for events and fields that the recording does not have.
    """
    begin, end = _resolved(trace, begin), _resolved(trace, end)
    fields = read_key(key)
    if begin != end and begin.partition(":")[2] == end.partition(":")[2]:
        raise TracepointError(f"{begin} and {end} have one name: choose events with different names")
    needs = needs_of(begin, end, key)
    records = AnalysisRecords(trace, ANALYSIS, tuple(_whole(trace, needs)) if is_whole else needs)
    return KeyedEvents(records, begin, end, fields)


def pair_by_key(events: KeyedEvents, order: Order) -> Spans:
    """Return the times from each begin to the end with the same key, with the rows of all records."""
    records = events.records
    machine = PairMachine(order, events.scope, records.coverage.gaps)
    takes = events.takes(records, machine.begin, lambda key, row, ts, _cpu: machine.end(key, row, ts))
    records.run(takes)
    return spans_of(machine.finish(records.coverage.stop), records.times)


def _whole(trace: Trace, needs: Sequence[Need]) -> Iterator[Need]:
    """Yield the needs with all fields of their events wanted."""
    for need in needs:
        yield need._replace(
            fields={
                name: Fields(
                    fields.needed,
                    tuple(one.name for one in trace.format(name).fields if one.name not in fields.needed),
                )
                for name, fields in need.fields.items()
            }
        )


def _key_reader(records: RecordPart, event: str, fields: Sequence[str]) -> KeyOf:
    """Return what reads the key of a row: one value, or a tuple."""
    parts = [_field_reader(records, event, field) for field in fields]
    if len(parts) == 1:
        return parts[0]
    return lambda row: tuple(part(row) for part in parts)


def _field_reader(records: RecordPart, event: str, field: str) -> KeyOf:
    if field == CPU:
        return records.cpus.__getitem__
    column = records.column(event, field)
    numbers = column.numbers
    if column.plan.kind is ColumnKind.TEXT:
        words = column.words
        return lambda row: words[numbers[row]]
    if column.plan.kind is not ColumnKind.NUMBER:
        raise TracepointError(f"{event}: {field} is a list or bytes, which cannot be a key")
    return numbers.__getitem__


def _resolved(trace: Trace, event: str) -> str:
    """Return an event as `system:event`; raises TracepointError where the recording has no format of it."""
    try:
        form = trace.format(event)
    except KeyError as error:
        raise TracepointError(f"{trace.file.path}: {error.args[0]}") from None
    return f"{form.system}:{form.name}"
