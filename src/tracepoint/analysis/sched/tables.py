"""The rows of scheduling as tables with the names and columns of Perfetto's SQL library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.sched.rows import NO_TIME, NONE
from tracepoint.analysis.sched.threads import IDLE
from tracepoint.analysis.spans import span_columns
from tracepoint.decode.column import number_column, text_column
from tracepoint.decode.numbers import add_lengths, count_up, keep_below, numbers_of
from tracepoint.decode.table import ColumnTable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from tracepoint.analysis.sched.rows import AnyRows, SchedRows
    from tracepoint.decode.column import Column

    #: What gives the rows of a table when a column of it is used first.
    ReadRows: TypeAlias = Callable[[], AnyRows]


def sched_table(read: ReadRows) -> ColumnTable:
    """Return what each CPU ran: `sched`, with `is_cut` for rows that a loss ended."""

    def columns() -> list[Column]:
        found = read()
        rows = found.runs
        return [
            *span_columns(rows.ts, rows.dur, rows.cpu),
            number_column("utid", rows.utid, "i"),
            _words("end_state", rows.end, found.names.names),
            number_column("priority", rows.priority, "i"),
            number_column("ucpu", rows.cpu, "i"),
            number_column("ts_end", add_lengths(numbers_of(rows.ts, "q"), numbers_of(rows.dur, "q")), "q"),
            # The only flag of such a row.
            number_column("is_cut", memoryview(rows.flags).cast("b"), "b"),
        ]

    return ColumnTable("sched", columns)


def thread_state_table(read: ReadRows) -> ColumnTable:
    """Return what each thread did: `thread_state`, with the flags of `RowFlag`."""

    def columns() -> list[Column]:
        found = read()
        rows = found.states
        return [
            *span_columns(rows.ts, rows.dur),
            number_column("cpu", rows.cpu, "i", NONE),
            number_column("utid", rows.utid, "i"),
            _words("state", rows.state, found.names.names),
            number_column("waker_utid", rows.waker, "i", NONE),
            number_column("irq_context", rows.irq, "b", NONE),
            number_column("ucpu", rows.cpu, "i", NONE),
            number_column("flags", rows.flags, "B"),
        ]

    return ColumnTable("thread_state", columns)


def spurious_table(read: Callable[[], SchedRows]) -> ColumnTable:
    """Return the wakings of threads that were not asleep: `spurious_sched_wakeup`."""

    def columns() -> list[Column]:
        rows = read().spurious
        return [
            number_column("id", count_up(len(rows.ts)), "q"),
            number_column("ts", rows.ts, "q"),
            number_column("thread_state_id", rows.row, "q"),
            number_column("irq_context", rows.irq, "b"),
            number_column("utid", rows.utid, "i"),
            number_column("waker_utid", rows.waker, "i"),
        ]

    return ColumnTable("spurious_sched_wakeup", columns)


def thread_table(found: SchedRows) -> ColumnTable:
    """Return the threads: `thread`, with the `generation` of an id that was used again."""
    threads = found.threads

    def columns() -> list[Column]:
        names = [found.name_of(utid) for utid in range(len(threads.tid))]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        return [
            number_column("id", count_up(len(names)), "q"),
            number_column("utid", range(len(names)), "i"),
            number_column("tid", threads.tid, "i"),
            _words("name", numbers_of((numbers[name] for name in names), "i"), list(numbers)),
            number_column("start_ts", threads.start, "q", NO_TIME),
            number_column("end_ts", threads.end, "q", NO_TIME),
            number_column("is_idle", (tid == IDLE for tid in threads.tid), "b"),
            number_column("generation", threads.generation, "i"),
            number_column("migrations", threads.migrations, "q"),
            number_column("cpu_changes", threads.cpu_changes, "q"),
        ]

    return ColumnTable("thread", columns)


def _words(name: str, rows: Sequence[int], words: Sequence[str]) -> Column:
    """Return a column of texts by numbers of them, NONE where there is none."""
    indices = number_column(name, rows, "i", NONE)
    texts = (word.encode("utf-8", "surrogateescape") for word in words)
    values = keep_below(indices.numbers, len(words))
    return text_column(name, values, texts, indices.n_nulls, indices.validity)
