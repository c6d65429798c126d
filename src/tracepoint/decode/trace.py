"""An open trace: `open_trace` returns a `Trace`, which has a table for each event."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

from tracepoint.closing import Closing
from tracepoint.decode.engine import (
    count_by_id,
    count_records,
    cpus_in_order,
    read_columns,
    read_tables,
    records_go_back,
    time_slices,
)
from tracepoint.decode.found import NO_ID
from tracepoint.decode.names import named_formats
from tracepoint.decode.plan import plan_together
from tracepoint.decode.selection import (
    UNKNOWN_SYSTEM,
    Selection,
    check_cpus,
    check_filter,
    check_texts,
    time_of,
    unknown_name,
)
from tracepoint.decode.table import ColumnTable, JoinedTable, Table
from tracepoint.decode.threads import thread_count
from tracepoint.errors import DecodeError, LayoutError
from tracepoint.layout.format import read_format
from tracepoint.model.patterns import matches_any
from tracepoint.record.page import add_lost
from tracepoint.tracefile.damage import Damage
from tracepoint.tracefile.opening import open_containers
from tracepoint.tracefile.order import narrowed
from tracepoint.tracefile.recording import read_pairs
from tracepoint.tracefile.sieve import ALL_TIMES, MAX_TIME, MIN_TIME, Window, shown_time
from tracepoint.wording import counted, no_such, tail

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracepoint.decode.column import Column
    from tracepoint.decode.engine import PartCounts
    from tracepoint.decode.plan import TablePlan
    from tracepoint.decode.records import Record, ShownRecord
    from tracepoint.decode.stacktable import StackTable
    from tracepoint.layout.format import EventFormat
    from tracepoint.printk.kallsyms import Kallsyms
    from tracepoint.record.raw import RawRecord
    from tracepoint.tracefile.buffers import TraceBuffer
    from tracepoint.tracefile.container import Container
    from tracepoint.tracefile.cpudata import CpuData
    from tracepoint.tracefile.text import TextWriter

_ALL = Selection()
# Recordings of one kernel have the same formats, and an analysis asks for each several times.
_read_format = lru_cache(maxsize=1024)(read_format)
_SYMBOLS = "_symbols"
STACKS = ("kernel_stack", "user_stack")
# As lines of `trace` have them, and what the tasks are called.
_IDLE = re.compile(r"<idle>|swapper(/[0-9]+)?")


class Trace(Closing):
    """The ring buffer of a recording; tables of its events are decoded on first use.

    `file` is the container; `instance` the name of the ring buffer, empty for the top one; `selection` the
    records that are read, which `between`, `select`, `on_cpus`, `of_tasks` and `where` narrow.
    """

    def __init__(
        self, file: Container, instance: str = "", selection: Selection = _ALL, threads: int = 0
    ) -> None:
        self._file = file
        self.instance = instance
        self.selection = selection
        self._threads = thread_count(threads)

    def close(self) -> None:
        """Close the file; tables that were decoded stay."""
        self._file.close()

    @property
    def file(self) -> Container:
        """The container; raises DecodeError when it is closed."""
        if self._file.is_closed:
            raise DecodeError("the recording is closed", self._file.path)
        return self._file

    def __reduce__(self) -> NoReturn:
        path = self._file.path
        raise TypeError(f"a Trace is an open file and cannot be pickled: open {path!r} in the other process")

    def __repr__(self) -> str:
        if self._file.is_closed:
            return f"<Trace {tail(self._file.path, 50)}, closed>"
        n_cpus = len({cpu.cpu for cpu in self._cpus})
        return f"<Trace {tail(self.file.path, 50)}, {counted(n_cpus, 'CPU')}, clock {self.clock}>"

    def _repr_html_(self) -> str:
        """Return the facts and a picture of the records over time, for a notebook."""
        from tracepoint.decode.overview import TraceFacts, trace_html  # noqa: PLC0415 - notebooks only

        file = self.file
        facts = TraceFacts(
            file.path, file.form, self.clock, self.span, self.n_records, self.lost, self.events
        )
        # What a filter leaves of a page is not known without reading it.
        return trace_html(facts, () if self.selection.is_by_record else self._cpus, self.losses)

    @cached_property
    def buffer(self) -> TraceBuffer | None:
        """The selected records of the ring buffer; None for a latency trace, which has no pages."""
        found = next((buffer for buffer in self.file.buffers if buffer.name == self.instance), None)
        if found is None or self.selection == _ALL:
            return found
        if not self.selection.is_by_record:
            return found.sifted(self.selection.window)
        from tracepoint.decode.programs import compile_selection  # noqa: PLC0415 - the filter language

        programs = compile_selection(self.selection, self.file)
        return found.sifted(self.selection.window, programs, self.selection.cpus)

    @property
    def in_order(self) -> TraceBuffer | None:
        """The selected records for reading them by time: CPUs whose pages go back are taken apart."""
        buffer = self.buffer
        if buffer is None or not self._cpus:
            return buffer
        # Expanding all chunks once more only to see their order would cost as much as counting.
        known = cpus_in_order(self._counts) if "_counts" in self.__dict__ else ()
        cpus = (replace(c, is_in_order=True) if c.cpu in known else c for c in buffer.cpus)
        return replace(buffer, cpus=tuple(cpus)).in_order()

    @property
    def _cpus(self) -> tuple[CpuData, ...]:
        _ = self.file
        return () if self.buffer is None else self.buffer.cpus

    @property
    def clock(self) -> str:
        """The name of the trace clock; empty when the file does not name it."""
        return (self.buffer.clock if self.buffer is not None else "") or self.file.clock

    @property
    def instances(self) -> tuple[str, ...]:
        """The names of the ring buffers beside the top one."""
        return tuple(buffer.name for buffer in self.file.buffers if buffer.name)

    def open_instance(self, name: str) -> Trace:
        """Return the trace of another ring buffer of the same file; raises KeyError."""
        check_texts("the name of an instance", name)
        if name and name not in self.instances:
            raise KeyError(no_such("instance", name, self.instances, 0))
        return Trace(self.file, name, self.selection, self._threads)

    def between(self, start_ns: int | None, stop_ns: int | None) -> Trace:
        """Return the same trace from `start_ns` on and before `stop_ns`; None: no limit.

        Pages outside this range are skipped, so a short range of a large file costs little.  Raises TypeError
        for what is not a whole number.
        """
        window = self.selection.window
        start = window.start if start_ns is None else max(time_of(start_ns), window.start)
        stop = window.stop if stop_ns is None else min(time_of(stop_ns), window.stop)
        limited = Window(min(max(start, MIN_TIME), MAX_TIME), min(max(stop, MIN_TIME), MAX_TIME))
        return self._with(window=limited)

    def _with(self, **changes: Any) -> Trace:
        return Trace(self.file, self.instance, self.selection._replace(**changes), self._threads)

    def select(self, *patterns: str) -> Trace:
        """Return the same trace with the events that match: `sched:*`, `*:sched_*`, `sched_switch`."""
        check_texts("a pattern of events", *patterns)
        return self._with(patterns=(*self.selection.patterns, patterns)) if patterns else self

    def on_cpus(self, *cpus: int) -> Trace:
        """Return the same trace with the records of some CPUs; raises TypeError and ValueError for others."""
        check_cpus(cpus)
        chosen, own = frozenset(cpus), self.selection.cpus
        return self._with(cpus=chosen if own is None else own & chosen)

    def of_tasks(self, *tasks: int | str) -> Trace:
        """Return the same trace with the records that tasks wrote: their ids, or names.

        Names are those of `saved_cmdlines`.  A name may have wildcards, `kworker*`; the idle tasks are 0,
        `<idle>` or `swapper/0`.
        Raises TypeError for what is neither.
        """
        for task in tasks:
            if isinstance(task, bool) or not isinstance(task, (int, str)):
                raise TypeError(f"a task is its id, an int, or its name, a str, not {task!r}")
        names = [task for task in tasks if isinstance(task, str)]
        comms = read_pairs(self.file.saved_cmdlines) if names else {}
        found = {pid for pid, comm in comms.items() if any(fnmatchcase(comm, name) for name in names)}
        if any(map(_IDLE.fullmatch, names)):
            found.add(0)
        pids, own = frozenset(found | {task for task in tasks if isinstance(task, int)}), self.selection.pids
        return self._with(pids=pids if own is None else own & pids)

    def where(self, text: str) -> Trace:
        """Return the same trace with the records that pass a filter in the kernel's language.

        `text` is as for the file `filter`: `prev_prio < 100 && prev_comm ~ "kworker*"`.  An event that lacks
        one of the fields is left out.  Reading raises FilterError when no event takes the filter.  Raises
        ValueError for an empty filter.
        """
        check_filter(text)
        return self._with(where=(*self.selection.where, text))

    @cached_property
    def _texts(self) -> dict[str, tuple[int, int]]:
        """The id and the place in `file.formats` of each event, by `system:event`."""
        return {own.name: (own.id, own.place) for own in named_formats(self.file.formats)}

    @cached_property
    def _systems_of(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for full in self._texts:
            found.setdefault(full.partition(":")[2], []).append(full)
        return found

    def _full_name(self, name: str) -> str:
        check_texts("the name of an event", name)
        if name in self._texts:
            return name
        known = self._systems_of.get(name, [])
        if len(known) > 1:
            raise KeyError(f"several events have the name {name!r}: {', '.join(known)}")
        if not known:
            system, _, number = name.partition(":")
            if system == UNKNOWN_SYSTEM and number.isdigit():
                raise KeyError(f"the recording has no format for event {number}: records() has its bytes")
            if not self._texts and self.file.damage:
                raise KeyError(f"no event {name!r}: no format could be read: {self.file.damage[0].reason}")
            raise KeyError(no_such("event", name, [*self._systems_of, *self._texts], 0))
        return known[0]

    def format(self, name: str) -> EventFormat:
        """Return the format of an event, recorded or not; raises KeyError and DecodeError."""
        system, text = self.file.formats[self._texts[self._full_name(name)][1]]
        big, long_size = self.file.is_big_endian, self.file.layout.long_size
        try:
            return _read_format(text, system, is_big_endian=big, long_size=long_size)
        except LayoutError as error:
            raise DecodeError(f"the format of {name}: {error}", self.file.path) from None

    def __getitem__(self, name: str) -> Table:
        """Return the table of an event, `sched_switch` or `sched:sched_switch`; raises KeyError."""
        form = self.format(name)
        return Table(form, lambda: read_columns(self._cpus, [form], self._threads)[0])

    def with_symbols(self, name: str, *columns: str) -> Table:
        """Return the table of an event with the names of addresses, as kallsyms of the recording has them.

        For each of `columns` (`caller` of `kernel_stack`) there is one more, `caller_symbols`: a dictionary
        of texts, lists of them where the column has lists.  Raises KeyError.
        """
        from tracepoint.decode.symbols import symbol_column  # noqa: PLC0415 - with what reads kallsyms

        table = self[name]

        def read() -> list[Column]:
            own = [table[column] for column in table.columns]
            found = [symbol_column(table[c], self.kallsyms, f"{c}{_SYMBOLS}") for c in columns]
            if None in found:
                raise KeyError(f"{columns[found.index(None)]} of {name} is no column of addresses")
            return [*own, *(column for column in found if column is not None)]

        for column in columns:
            if column not in table.columns:
                raise KeyError(no_such("column", column, table.columns, 0))
        return Table(table.format, read, tuple(f"{column}{_SYMBOLS}" for column in columns))

    def with_stacks(self, name: str) -> StackTable:
        """Return the table of an event with the stacks that were recorded with it.

        `kernel_stack` and `user_stack` are lists of addresses, `kernel_stack_symbols` lists of names; a row
        without a stack has None.  Those of another event are not counted; `n_unattached` of the table are
        stacks with no event before them, which may have been lost.  Raises KeyError.
        """
        from tracepoint.decode.stacktable import StackTable  # noqa: PLC0415 - with what reads kallsyms

        whole = Trace(self.file, self.instance)
        window = self.selection.window
        cpus = [part for cpu in whole._cpus for part in narrowed(cpu, window)]
        kinds = {kind: self.format(f"ftrace:{kind}") for kind in STACKS if f"ftrace:{kind}" in self}
        return StackTable(self[name], cpus, self._cpus, kinds, lambda: self.kallsyms)

    @cached_property
    def kallsyms(self) -> Kallsyms:
        """The symbols of the recording, for the addresses in it."""
        from tracepoint.printk.kallsyms import Kallsyms  # noqa: PLC0415 - for symbols only

        return Kallsyms(self.file.kallsyms)

    def __contains__(self, name: object) -> bool:
        return name in self._texts or name in self._systems_of

    def tables(self, *patterns: str) -> dict[str, Table]:
        """Return the recorded events that match, all without patterns, decoded in one go.

        A pattern is as in `set_event`: `sched:*`, `*:sched_*`, `sched_switch`, or a system, `sched`.
        """
        check_texts("a pattern of events", *patterns)
        names = [name for name in self.events if name in self._texts and matches_any(patterns, name)]
        forms = [self.format(name) for name in names]
        read = read_columns(self._cpus, forms, self._threads)
        return {
            name: Table(form, lambda columns=columns: columns)  # type: ignore[misc]
            for name, form, columns in zip(names, forms, read, strict=True)
        }

    def joined(self, fields: Mapping[str, Sequence[str]]) -> JoinedTable:
        """Return one table of several events by time, with the fields that are named of each.

        Rows of one CPU with equal times keep the order in which they were written.  Raises KeyError for an
        event or a field that is not there.
        """
        forms = {self._full_name(name): self.format(name) for name in fields}
        wanted = list(zip(forms.values(), fields.values(), strict=True))
        plan, column_of = plan_together([(form, ("common_type", *names)) for form, names in wanted])
        ids = {form.id: form.name for form in forms.values()}
        return JoinedTable(ids, column_of, lambda: self._read(plan))

    def windows(self) -> list[Window]:
        """Return the times in which a large recording is best read part by part, one after the other.

        Each has some hundred megabytes of pages; one of all times where there are fewer, or not in order.
        """
        found = time_slices(self._cpus)
        # Counting says of compressed data whether it is in order.
        ordered = None if not found or records_go_back(self._counts) else self.in_order
        return found if ordered is not None and len(ordered.cpus) == len(self._cpus) else [ALL_TIMES]

    def records(self) -> Iterator[Record]:
        """Yield the selected records of all CPUs by time, each with its fields and its text.

        Tables are a hundred times faster where many records are read.
        """
        from tracepoint.decode.records import Record  # noqa: PLC0415 - with what makes texts

        writer = self.text_writer
        events = self.file.events
        for raw in self._raw_records():
            yield Record(raw, events.get(writer.common(raw)[0]), writer)

    def record_table(self) -> ColumnTable:
        """Return the selected records of all events as one table by time.

        The columns are `timestamp` (int64, ns), `cpu`, `pid` (int32), and dictionaries of strings: `comm`,
        `event` and `text`, which is what `trace` shows after the event's name.
        """
        from tracepoint.decode.records import record_columns  # noqa: PLC0415

        return ColumnTable("records", lambda: record_columns(self.shown_records()))

    def shown_records(self) -> Iterator[ShownRecord]:
        """Yield what `trace` shows of the selected records, by time; many are rendered at once."""
        from tracepoint.decode.records import shown_records  # noqa: PLC0415

        return shown_records(self._raw_records(), self.text_writer)

    def _raw_records(self) -> Iterator[RawRecord]:
        buffer = self.in_order
        return buffer.records() if buffer is not None else iter(())

    @cached_property
    def text_writer(self) -> TextWriter:
        """What renders the records of this trace as text."""
        from tracepoint.tracefile.text import TextWriter, facts_of  # noqa: PLC0415

        file = self.file
        return TextWriter(file.events, facts_of(file), is_big_endian=file.is_big_endian)

    @property
    def names(self) -> tuple[str, ...]:
        """The events whose formats the recording has, recorded or not, as `system:event`."""
        return tuple(self._texts)

    @cached_property
    def _counts(self) -> list[PartCounts]:
        return count_records(self._cpus, self._threads)

    def _read(self, plan: TablePlan) -> list[Column]:
        """Read a table, and count all records where that reads all pages."""
        counts: list[PartCounts] | None = None if "_counts" in self.__dict__ else []
        columns = read_tables(self._cpus, [plan], self._threads, counts)[0]
        if counts:
            self._counts = counts
        return columns

    @cached_property
    def n_by_id(self) -> dict[int, int]:
        """The numbers of records by the id of their event; -1 for those too short for one."""
        return count_by_id(self._counts)

    def n_by_id_on(self, cpu: int) -> dict[int, int]:
        """Return the numbers of records of one CPU by the id of their event."""
        return count_by_id([part for part in self._counts if part.cpu == cpu])

    @cached_property
    def events(self) -> dict[str, int]:
        """The events that were recorded with the numbers of their records, by name.

        One whose format is not in the file is named by its number, `unknown:17`.
        """
        by_id = self.n_by_id
        names = {number: name for name, (number, _) in self._texts.items()}
        found = {names.get(n, unknown_name(n)): count for n, count in by_id.items() if n != NO_ID}
        return dict(sorted(found.items()))

    @property
    def n_records(self) -> int:
        """The number of records."""
        return sum(self.events.values())

    @cached_property
    def span(self) -> tuple[int, int]:
        """The times of the first and the last record in ns; (0, 0) without records."""
        found = [block for part in self._counts if part.by_id for block in part.found]
        return (min(b.first for b in found), max(b.last for b in found)) if found else (0, 0)

    @cached_property
    def lost(self) -> dict[int, int]:
        """How many events each CPU lost, as its pages report it; LOST_UNKNOWN (-1): some, not counted.

        Of a selection those are counted that its CPUs lost in its range of times, of whatever event.
        """
        chosen = self.selection.cpus
        cpus = {cpu.cpu for cpu in self._cpus}
        found = dict.fromkeys(sorted(cpus if chosen is None else cpus & chosen), 0)
        for part in (part for part in self._counts if part.cpu in found):
            for head in (head for block in part.found for head in block.heads):
                found[part.cpu] = add_lost(found[part.cpu], head.lost)
        return found

    def losses(self, cpu: int) -> list[tuple[int, int]]:
        """Return when a CPU lost events, in ns, and how many; LOST_UNKNOWN (-1): some.

        They were lost between the page before that time and the one that begins then.
        """
        blocks = (block for part in self._counts if part.cpu == cpu for block in part.found)
        convert = next((c.time_map for c in self._cpus if c.cpu == cpu), None)
        heads = (head for block in blocks for head in block.heads if head.lost)
        return sorted((shown_time(convert, head.stamp, cpu), head.lost) for head in heads)

    @property
    def damage(self) -> tuple[Damage, ...]:
        """What could not be read, all pages looked at: at most 10,000 entries."""
        short = sum(part.by_id.get(NO_ID, 0) for part in self._counts)
        # Pages that go back are reported to the file.
        _ = self.in_order
        unknown = {name: n for name, n in self.events.items() if name not in self._texts}
        found = [
            Damage(None, 0, f"{counted(n, 'record')} of {name}, which has no format")
            for name, n in unknown.items()
        ]
        if short:
            found.append(Damage(None, 0, f"{counted(short, 'record')} too short for an id"))
        return (*self.file.damage, *found)


def open_trace(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], *, instance: str = "", threads: int = 0
) -> Trace:
    """Open a recording: trace.dat, perf.data, text of `trace`, folder of `trace_pipe_raw`, or CTF trace.

    A folder of rings of Python processes too; `pid:1234` are those of a running one, as they are now.
    Of several paths the records are merged by time: of a guest and its host, a kernel and a Python process.
    `instance` names a ring buffer beside the top one; `threads` read at once, 0: one for each CPU that this
    process may use.  Raises OSError, DecodeError for a file whose head cannot be read, and KeyError for an
    unknown instance.
    """
    if isinstance(path, bytes):
        raise TypeError(f"a path is a str or an os.PathLike, not {path!r}: os.fsdecode() makes one")
    threads = thread_count(threads)
    paths = [*path] if isinstance(path, Iterable) and not isinstance(path, (str, os.PathLike)) else [path]
    if not all(isinstance(one, (str, os.PathLike)) for one in paths):
        raise TypeError(f"a path is a str or an os.PathLike, or there are several in a list, not {path!r}")
    if not paths:
        raise ValueError("no path of a recording")
    trace = Trace(open_containers(paths), threads=threads)
    if not instance:
        return trace
    try:
        return trace.open_instance(instance)
    except KeyError:
        trace.close()
        raise
