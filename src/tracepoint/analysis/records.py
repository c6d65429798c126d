"""The records that an analysis reads, by time, in parts or as one table, and what was lost of them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from tracepoint.analysis.coverage import read_coverage
from tracepoint.analysis.names import task_names
from tracepoint.analysis.registry import missing_of
from tracepoint.analysis.units import task_text
from tracepoint.decode.numbers import fit_numbers, numbers_of
from tracepoint.errors import TracepointError
from tracepoint.tracefile.recording import read_tgids
from tracepoint.tracefile.textfile import TEXT_FORM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tracepoint.analysis.coverage import Coverage
    from tracepoint.analysis.needs import MissingEvent, Need
    from tracepoint.decode.column import Column
    from tracepoint.decode.table import JoinedTable
    from tracepoint.decode.trace import Trace
    from tracepoint.tracefile.sieve import Window

    Take = Callable[[int, int, int], object]


class RecordPart:
    """Records by time over all CPUs: those of one window of a recording, or of all of it.

    A row is a number in these columns and means nothing in another part, so no row outlives its part.
    """

    def __init__(self, table: JoinedTable, fields: Mapping[str, Sequence[str]]) -> None:
        self.table = table
        self.fields = fields

    def __len__(self) -> int:
        return len(self.table)

    def __contains__(self, name: object) -> bool:
        return name in self.fields

    def column(self, event: str, field: str) -> Column:
        """Return the column with a field of an event, over all rows; raises KeyError."""
        return self.table.column(event.partition(":")[2], field)

    def numbers(self, event: str, *fields: str, codes: str = "") -> list[memoryview[int]]:
        """Return the numbers of fields of an event, over all rows; raises KeyError.

        With `codes`, numbers that fit in those of a `struct` code for each field, as `fit_numbers` has them.
        """
        found = [self.column(event, field).numbers for field in fields]
        return [fit_numbers(*one) for one in zip(found, codes, strict=True)] if codes else found

    def optional(self, event: str, field: str) -> memoryview[int] | None:
        """Return the numbers of a field of an event, None where the recording does not have it."""
        return self.column(event, field).numbers if field in self.fields.get(event, ()) else None

    def columns(self, event: str) -> dict[str, Column]:
        """Return the columns of an event by field, over all rows; raises KeyError."""
        return {field: self.column(event, field) for field in self.fields[event]}

    @cached_property
    def types(self) -> Column:
        """The column `common_type`."""
        return self.table["common_type"]

    @cached_property
    def times(self) -> Sequence[int]:
        """The time of each row in ns."""
        return self.table["common_timestamp"].numbers

    @cached_property
    def cpus(self) -> Sequence[int]:
        """The CPU of each row."""
        return self.table["common_cpu"].numbers

    def run(self, takes: Mapping[str, Take]) -> None:
        """Give the row, the time and the CPU of each record, by time, to what takes records of its event.

        A damaged record that ends before its fields do is not given.
        """
        number_of = {name: number for number, name in self.table.events.items()}
        by_number = {
            number_of[name.partition(":")[2]]: (take, self._last_field(name))
            for name, take in takes.items()
            if name in self.fields
        }
        rows = zip(self.types.numbers, self.times, self.cpus, strict=True)
        for row, (number, ts, cpu) in enumerate(rows):
            found = by_number.get(number)
            if found is not None and not (found[1] is not None and found[1].is_null(row)):
                found[0](row, ts, cpu)

    def rows_of(self, *events: str) -> Sequence[int]:
        """Return the rows of the records of some events, damaged ones left out as in `run`."""
        number_of = {name: number for number, name in self.table.events.items()}
        last = {number_of[name.partition(":")[2]]: self._last_field(name) for name in events}
        types = self.types.numbers
        if any(column is not None for column in last.values()):
            return [
                row
                for row, number in enumerate(types)
                if number in last and not ((column := last[number]) is not None and column.is_null(row))
            ]
        if last.keys() >= set(types):
            return range(len(types))
        return [row for row, number in enumerate(types) if number in last]

    def gathered(self, rows: Sequence[int], field: str, events: Sequence[str], code: str) -> memoryview[int]:
        """Return the numbers that a field of some events has in rows of these, fitting `code`."""
        columns = {event: self.column(event, field) for event in events}
        first, *others = columns.values()
        if all(column is first for column in others):
            numbers = fit_numbers(first.numbers, code)
            return numbers if isinstance(rows, range) else numbers_of(map(numbers.__getitem__, rows), code)
        number_of = {name: number for number, name in self.table.events.items()}
        own = {
            number_of[event.partition(":")[2]]: fit_numbers(column.numbers, code)
            for event, column in columns.items()
        }
        types = self.types.numbers
        return numbers_of((own[types[row]][row] for row in rows), code)

    def _last_field(self, event: str) -> Column | None:
        """Return the field of an event that ends last: a record that holds it holds all; None: all do."""
        columns = self.columns(event).values()
        last = max(columns, key=lambda column: column.plan.offset + column.plan.size, default=None)
        return None if last is None or last.validity is None else last


class AnalysisRecords(RecordPart):
    """The records of the events that an analysis reads, by time over all CPUs.

    A large recording is best read part by part (`run_parts`): then only what comes of its records is kept.
    Its own columns are those of the whole recording, as one part.

    `fields` are the fields that are there, by event (`system:event`); events that lack a field that must be
    there are left out.  `names` are the names of tasks by id.

    Raises TracepointError when one that the analysis needs is not there or lacks a field, when none is there,
    and for a trace of some CPUs or tasks only, which would give other figures.
    """

    def __init__(self, trace: Trace, analysis: str, needs: Sequence[Need]) -> None:
        chosen = trace.selection
        if chosen.cpus is not None or chosen.pids is not None or chosen.where:
            raise TracepointError(
                f"{analysis} is computed from the records of all tasks and CPUs: choose of the result instead"
            )
        self.trace = trace
        self._needs = needs
        fields: dict[str, tuple[str, ...]] = {}
        lacking = [text for need in needs if (text := self._find(need, analysis, fields))]
        if not fields and trace.file.form == TEXT_FORM:
            lacks = (
                f"a text has no fields for {analysis} without the formats of its events: put their folder "
                "events/ next to it, or analyse the recording that the text was made from"
            )
            lacking.insert(0, lacks)
        if not fields:
            lacking.append(
                f"no events of {analysis}; tracepoint analyse {analysis} --events says what to record"
            )
        if lacking:
            raise TracepointError(f"{trace.file.path}: {lacking[0]}")
        super().__init__(trace.joined(fields), fields)
        # Read now: a report is used after its recording was closed.
        self.names = self.read_names()
        self._functions: dict[int, str] = {}

    def read_names(self) -> Mapping[int, str]:
        """Return the names of tasks by id."""
        return task_names(self.trace)

    def _find(self, need: Need, analysis: str, found: dict[str, tuple[str, ...]]) -> str:
        """Add the fields of an event; return why the analysis cannot do without it, empty where it can."""
        lacks = []
        for name, fields in need.fields.items():
            if name not in self.trace:
                continue
            own = self.fields_of(name)
            missing = [field for field in fields.needed if field not in own]
            if missing:
                lacks.append(f"{name} has no field {', '.join(missing)}")
            else:
                found[name] = (*fields.needed, *(field for field in fields.wanted if field in own))
        if need.is_needed and not any(name in found for name in need.fields):
            names = " or ".join(need.names)
            unrecorded = f"no {names}; tracepoint analyse {analysis} --events says what to record"
            return lacks[0] if lacks else unrecorded
        return ""

    def fields_of(self, event: str) -> set[str]:
        """Return the fields of an event that can be read."""
        return {field.name for field in self.trace.format(event).fields}

    @cached_property
    def recorded(self) -> frozenset[str]:
        """The events of which there are records, as `system:event`."""
        numbers = self.trace.n_by_id
        return frozenset(name for name in self.fields if self.trace.format(name).id in numbers)

    @cached_property
    def missing(self) -> list[MissingEvent]:
        """What the analysis lacks, as there are no records of it."""
        return list(missing_of(self._needs, self.recorded))

    @cached_property
    def windows(self) -> Sequence[Window]:
        """The times of the parts: those that a large recording is best read by."""
        return self.trace.windows()

    @property
    def n_parts(self) -> int:
        """The number of parts: one, but for a large recording."""
        return len(self.windows)

    def read_parts(self) -> Iterator[RecordPart]:
        """Yield the records in parts by time, each as large as memory allows."""
        if self.n_parts == 1:
            yield self
            return
        for window in self.windows:
            yield RecordPart(self.trace.between(*window).joined(self.fields), self.fields)

    def run_parts(
        self, takes_of: Callable[[RecordPart], Mapping[str, Take]], close: Callable[[], object]
    ) -> None:
        """Give the records of each part to what `takes_of` returns for it, as `run` does.

        `close` is called after each part but the last, to hand over what later records cannot change.  No
        columns are kept: those of all records are read again where they are asked for.
        """
        for is_last in self.running(takes_of):
            if not is_last:
                close()

    def running(self, takes_of: Callable[[RecordPart], Mapping[str, Take]]) -> Iterator[bool]:
        """Give the records to what `takes_of` returns, part by part; yield whether each was the last."""
        for number, part in enumerate(self.read_parts(), 1):
            part.run(takes_of(part))
            # Its columns would stay while the caller goes on.
            del part
            if number == self.n_parts:
                self.table = self.trace.joined(self.fields)
                for name in ("types", "times", "cpus"):
                    vars(self).pop(name, None)
            yield number == self.n_parts

    @cached_property
    def coverage(self) -> Coverage:
        """The time of the trace, and what was lost of it."""
        if self.n_parts == 1:
            # Reading the table first counts the records too.
            rows = self.times, self.cpus
            return read_coverage(self.trace, lambda: [rows])
        bare: dict[str, Sequence[str]] = dict.fromkeys(self.fields, ())
        windows = (self.trace.between(*window) for window in self.windows)
        parts = (RecordPart(trace.joined(bare), bare) for trace in windows)
        return read_coverage(self.trace, lambda: ((part.times, part.cpus) for part in parts))

    @cached_property
    def processes(self) -> Mapping[int, int]:
        """The processes of tasks that the recorder saved (`saved_tgids`), by id."""
        return read_tgids(self.trace.file.saved_tgids or "")

    def task(self, tid: int) -> str:
        """Return a task as reports show it, `name-tid`; `<...>` where no name is recorded."""
        return task_text(self.names, tid)

    def function(self, address: int) -> str:
        """Return the function that an address is in, by kallsyms; empty where there is none."""
        name = self._functions.get(address)
        if name is None:
            symbol = self.trace.kallsyms.lookup(address)
            name = self._functions[address] = "" if symbol is None else symbol.name
        return name
