"""The rows of scheduling as tables with the names and columns of Perfetto's SQL library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.sched.rows import NONE, OPEN, RowFlag
from tracepoint.analysis.sched.threads import IDLE
from tracepoint.decode.column import number_column, text_column
from tracepoint.decode.table import ColumnTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracepoint.analysis.sched.machine import SchedMachine
    from tracepoint.decode.column import Column

_NO_TIME = -(1 << 63)


def sched_table(machine: SchedMachine) -> ColumnTable:
    """Return what each CPU ran: `sched`, with `is_cut` for rows that a loss ended."""
    rows = machine.runs

    def columns() -> list[Column]:
        return [
            number_column("id", range(len(rows.ts)), "q"),
            number_column("ts", rows.ts, "q"),
            number_column("dur", rows.dur, "q"),
            number_column("cpu", rows.cpu, "i"),
            number_column("utid", rows.utid, "i"),
            _words("end_state", rows.end, machine.names.names),
            number_column("priority", rows.priority, "i"),
            number_column("ucpu", rows.cpu, "i"),
            number_column("ts_end", _ends(rows.ts, rows.dur), "q"),
            number_column("is_cut", (flags & RowFlag.CUT for flags in rows.flags), "b"),
        ]

    return ColumnTable("sched", columns)


def thread_state_table(machine: SchedMachine) -> ColumnTable:
    """Return what each thread did: `thread_state`, with the flags of `RowFlag`."""
    rows = machine.states

    def columns() -> list[Column]:
        return [
            number_column("id", range(len(rows.ts)), "q"),
            number_column("ts", rows.ts, "q"),
            number_column("dur", rows.dur, "q"),
            number_column("cpu", rows.cpu, "i", NONE),
            number_column("utid", rows.utid, "i"),
            _words("state", rows.state, machine.names.names),
            number_column("waker_utid", rows.waker, "i", NONE),
            number_column("irq_context", rows.irq, "b", NONE),
            number_column("ucpu", rows.cpu, "i", NONE),
            number_column("flags", rows.flags, "B"),
        ]

    return ColumnTable("thread_state", columns)


def spurious_table(machine: SchedMachine) -> ColumnTable:
    """Return the wakings of threads that were not asleep: `spurious_sched_wakeup`."""
    rows = machine.spurious

    def columns() -> list[Column]:
        chosen = [row for row, utid in enumerate(rows.utid) if utid != NONE]
        return [
            number_column("id", range(len(chosen)), "q"),
            number_column("ts", (rows.ts[row] for row in chosen), "q"),
            number_column("thread_state_id", (rows.row[row] for row in chosen), "q"),
            number_column("irq_context", (rows.irq[row] for row in chosen), "b"),
            number_column("utid", (rows.utid[row] for row in chosen), "i"),
            number_column("waker_utid", (rows.waker[row] for row in chosen), "i"),
        ]

    return ColumnTable("spurious_sched_wakeup", columns)


def thread_table(machine: SchedMachine) -> ColumnTable:
    """Return the threads: `thread`, with the `generation` of an id that was used again."""
    threads = machine.threads.all

    def columns() -> list[Column]:
        names = list(dict.fromkeys(thread.name for thread in threads))
        place = {name: number for number, name in enumerate(names)}
        return [
            number_column("id", range(len(threads)), "q"),
            number_column("utid", range(len(threads)), "i"),
            number_column("tid", (thread.tid for thread in threads), "i"),
            _words("name", [place[thread.name] for thread in threads], names),
            number_column("start_ts", (_time(thread.start) for thread in threads), "q", _NO_TIME),
            number_column("end_ts", (_time(thread.end) for thread in threads), "q", _NO_TIME),
            number_column("is_idle", (thread.tid == IDLE for thread in threads), "b"),
            number_column("generation", (thread.generation for thread in threads), "i"),
            number_column("migrations", (thread.migrations for thread in threads), "q"),
            number_column("cpu_changes", (thread.cpu_changes for thread in threads), "q"),
        ]

    return ColumnTable("thread", columns)


def _time(time: int | None) -> int:
    return _NO_TIME if time is None else time


def _ends(starts: Sequence[int], durations: Sequence[int]) -> Iterable[int]:
    return (ts + (0 if dur == OPEN else dur) for ts, dur in zip(starts, durations, strict=True))


def _words(name: str, rows: Sequence[int], words: Sequence[str]) -> Column:
    """Return a column of texts by numbers of them, NONE where there is none."""
    indices = number_column(name, rows, "i", NONE)
    texts = (word.encode("utf-8", "surrogateescape") for word in words)
    return text_column(name, (max(row, 0) for row in rows), texts, indices.n_nulls, indices.validity)
