"""The records of function_graph: entries and returns as calls, each leaf as one.

kernel/trace/trace_functions_graph.c: get_return_for_leaf().
"""

from __future__ import annotations

import struct
from operator import itemgetter
from typing import TYPE_CHECKING

from tracepoint.named import NamedTuple
from tracepoint.printk.own_events import is_own_event

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tracepoint.layout.format import EventFormat
    from tracepoint.record.raw import RawRecord

ENTRY, EXIT = "funcgraph_entry", "funcgraph_exit"
_ENTRY_FIELDS = ("func", "depth")
_EXIT_FIELDS = (*_ENTRY_FIELDS, "calltime", "rettime")
# Not in every kernel.
_MORE_FIELDS = ("overrun", "retval")
_CODES = {1: "b", 2: "h", 4: "i", 8: "q"}
# No kernel nests deeper, in either direction; a damaged record may say anything.
_MOST_DEPTH = 1024
_U64 = (1 << 64) - 1


class GraphCall(NamedTuple):
    """What an entry or a return says: `duration` in ns, `overrun` and `value` are those of a return."""

    is_entry: bool
    function: int
    depth: int
    duration: int = 0
    overrun: int = 0
    value: int = 0


class Step(NamedTuple):
    """A record: with `call` it is an entry or a return, with `end` the return that follows it at once."""

    record: RawRecord
    number: int
    call: GraphCall | None = None
    end: GraphCall | None = None


class CallReader:
    """Reads entries, or returns, by their format; `is_known` says whether it has what a call needs."""

    def __init__(self, event: EventFormat) -> None:
        self.is_entry = event.name == ENTRY
        needed = _ENTRY_FIELDS if self.is_entry else _EXIT_FIELDS
        found = [event[n] for n in (*needed, *_MORE_FIELDS) if n in event and event[n].size in _CODES]
        found.sort(key=lambda one: one.offset)
        code, end = ">" if event.is_big_endian else "<", 0
        for one in found:
            letter = _CODES[one.size]
            code += f"{max(one.offset - end, 0)}x{letter if one.is_signed else letter.upper()}"
            end = one.offset + one.size
        names = [one.name for one in found]
        self._struct = struct.Struct(code)
        places = [names.index(name) if name in names else -1 for name in (*_EXIT_FIELDS, *_MORE_FIELDS)]
        self._pick = itemgetter(*places)
        #: The fields of a return in their order, None for what is not recorded.
        self.fields = [found[place] if place >= 0 else None for place in places]
        self.size = self._struct.size
        # Fields that overlap have no such struct.
        self.is_known = set(needed) <= set(names) and self._struct.size == end

    def read(self, data: bytes) -> GraphCall | None:
        """Return what a record says, None where it is cut off or cannot be."""
        if len(data) < self.size:
            return None
        found = self._pick((*self._struct.unpack_from(data), 0))
        function, depth, begin, end, overrun, value = found
        if not -_MOST_DEPTH <= depth <= _MOST_DEPTH:
            return None
        duration = end - begin & _U64
        return GraphCall(self.is_entry, function & _U64, depth, duration, overrun & _U64, value & _U64)


def call_readers(events: Mapping[int, EventFormat]) -> dict[int, CallReader]:
    """Return what reads entries and returns, by the number of their type."""
    readers = {n: CallReader(event) for n, event in events.items() if is_graph_event(event)}
    return {n: reader for n, reader in readers.items() if reader.is_known}


def is_graph_event(event: EventFormat) -> bool:
    """Return whether records of an event are calls and returns of the function_graph tracer."""
    return is_own_event(event) and event.name in (ENTRY, EXIT)


class CallSteps:
    """Finds the calls among the records of a CPU, by the formats of all events."""

    def __init__(self, events: Mapping[int, EventFormat], *, is_big_endian: bool) -> None:
        self._readers = call_readers(events)
        self._number = struct.Struct(">H" if is_big_endian else "<H").unpack_from

    def of(self, records: Iterable[RawRecord]) -> Iterator[Step]:
        """Yield records as steps, an entry together with the return behind it where that is its own."""
        held: Step | None = None
        readers, number_of = self._readers, self._number
        for record in records:
            data = record.data
            number = number_of(data if len(data) > 1 else data.ljust(2, b"\0"))[0]
            call = readers[number].read(data) if number in readers else None
            if held is not None:
                if call is not None and _ends(held, record, call):
                    yield Step(held.record, held.number, held.call, call)
                    held = None
                    continue
                yield held
                held = None
            step = Step(record, number, call)
            if call is not None and call.is_entry:
                held = step
            else:
                yield step
        if held is not None:
            yield held


def _ends(held: Step, record: RawRecord, end: GraphCall) -> bool:
    entry, begin = held.record, held.call
    if begin is None or end.is_entry or record.lost or record.cpu != entry.cpu:
        return False
    return begin.function == end.function and entry.data[4:8] == record.data[4:8]
