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
    from tracepoint.analysis.spans import Spans
    from tracepoint.decode.trace import Trace

    KeyOf = Callable[[int], Hashable]

ANALYSIS = "latency"


class KeyedPairs(NamedTuple):
    """The times from one event to another, with the records that they are of.

    `events` are the begin and the end as `system:event`; `key` are the fields that join them.
    """

    records: AnalysisRecords
    spans: Spans
    events: tuple[str, str]
    key: Sequence[KeyField]


def pair_by_key(
    trace: Trace, begin: str, end: str, key: str, order: Order, *, is_whole: bool = False
) -> KeyedPairs:
    """Return the times from each event `begin` to the event `end` with the same key.

    With `is_whole` all fields of both events are read, and not only those of the key.  Raises TracepointError
    for events and fields that the recording does not have.
    """
    begin, end = _resolved(trace, begin), _resolved(trace, end)
    fields = read_key(key)
    if begin != end and begin.partition(":")[2] == end.partition(":")[2]:
        raise TracepointError(f"{begin} and {end} have one name: choose events with different names")
    needs = needs_of(begin, end, key)
    records = AnalysisRecords(trace, ANALYSIS, tuple(_whole(trace, needs)) if is_whole else needs)
    scope = EndScope.CPU if any(field.begin == CPU for field in fields) else EndScope.ALL
    machine = PairMachine(order, scope, records.coverage.gaps)
    begin_key = key_reader(records, begin, [field.begin for field in fields])
    end_key = key_reader(records, end, [field.end for field in fields])

    def take_begin(row: int, ts: int, cpu: int) -> None:
        machine.begin(begin_key(row), row, ts, cpu)

    def take_end(row: int, ts: int, _cpu: int) -> None:
        machine.end(end_key(row), row, ts)

    def take_both(row: int, ts: int, cpu: int) -> None:
        take_end(row, ts, cpu)
        take_begin(row, ts, cpu)

    records.run({begin: take_both} if begin == end else {begin: take_begin, end: take_end})
    spans = spans_of(machine.finish(records.coverage.stop), records.times)
    return KeyedPairs(records, spans, (begin, end), fields)


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


def key_reader(records: AnalysisRecords, event: str, fields: Sequence[str]) -> KeyOf:
    """Return what reads the key of a row: one value, or a tuple."""
    parts = [_field_reader(records, event, field) for field in fields]
    if len(parts) == 1:
        return parts[0]
    return lambda row: tuple(part(row) for part in parts)


def _field_reader(records: AnalysisRecords, event: str, field: str) -> KeyOf:
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
