"""From the records of system calls to calls, each with its number and what it returned."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from tracepoint.analysis.pairs import NO_ROW
from tracepoint.analysis.spans import OPEN, Spans, spans_of
from tracepoint.analysis.syscalls.calls import CallMachine
from tracepoint.analysis.syscalls.needs import ENTER, ENTER_ONE, EXEC, EXIT, EXIT_ONE, NUMBER
from tracepoint.analysis.syscalls.numbers import names_on
from tracepoint.named import NamedTuple
from tracepoint.tracefile.options import uname_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.analysis.records import AnalysisRecords, Take
    from tracepoint.analysis.syscalls.calls import CallRows
    from tracepoint.decode.trace import Trace

    ByRow = Mapping[int, int] | Sequence[int]

#: What an open call returned.
NO_RETURN = -(1 << 63)


class Calls(NamedTuple):
    """Calls by their first entry, with the columns of their times (`spans`).

    `numbers` are those of the calls, `tids` the tasks, `returns` what they returned (NO_RETURN: no end),
    `n_parts` how often each was entered.  `n_final` have no end as they end their task.
    """

    spans: Spans
    numbers: array[int]
    tids: array[int]
    returns: array[int]
    n_parts: array[int]
    names: Mapping[int, str]
    n_final: int


def machine_of(trace: Trace) -> str:
    """Return the kind of machine that a recording is of, as uname shows it; empty where nothing says it."""
    words = uname_of(trace.file.options)
    if words and names_on(words[-1]):
        return words[-1]
    # Only x86 has these events: arch/x86/include/asm/trace/irq_vectors.h.
    is_x86 = any(name.startswith("irq_vectors:") for name in trace.names)
    return "x86_64" if is_x86 and trace.file.layout.long_size == 8 else ""


def read_calls(records: AnalysisRecords) -> Calls:
    """Return the calls of all tasks."""
    is_raw = ENTER in records or EXIT in records
    names = names_on(machine_of(records.trace)) if is_raw else _recorded_names(records)
    machine = CallMachine(names, records.coverage.gaps, has_returns=is_raw)
    numbers, returns, takes = (_raw if is_raw else _single)(records, machine)
    if EXEC in records:
        takes[EXEC] = _take_exec(records, machine)
    records.run(takes)
    rows = machine.finish(records.coverage.stop)
    spans, n_parts = _joined(rows, records.times)
    event = ENTER if is_raw else next(name for name in records.fields if name.startswith(ENTER_ONE))
    pids = records.column(event, "common_pid").numbers
    return Calls(
        spans,
        array("q", (numbers[row] for row in spans.begin)),
        array("q", (pids[row] for row in spans.begin)),
        array("q", (NO_RETURN if row == NO_ROW else returns[row] for row in spans.end)),
        n_parts,
        names,
        len(rows.final),
    )


def _raw(records: AnalysisRecords, machine: CallMachine) -> tuple[ByRow, ByRow, dict[str, Take]]:
    entry, leaving = records.columns(ENTER), records.columns(EXIT)
    tids, ids = entry["common_pid"].numbers, entry["id"].numbers
    exit_tids, exit_ids, returns = (leaving[name].numbers for name in ("common_pid", "id", "ret"))

    def take_enter(row: int, ts: int, cpu: int) -> None:
        machine.enter(tids[row], ids[row], row, ts, cpu)

    def take_exit(row: int, ts: int, _cpu: int) -> None:
        machine.exit(exit_tids[row], exit_ids[row], returns[row], row, ts)

    return ids, returns, {ENTER: take_enter, EXIT: take_exit}


def _single(records: AnalysisRecords, machine: CallMachine) -> tuple[ByRow, ByRow, dict[str, Take]]:
    numbers: dict[int, int] = {}
    returns: dict[int, int] = {}

    def enter_of(event: str) -> Take:
        tids, ids = records.numbers(event, "common_pid", NUMBER)

        def take(row: int, ts: int, cpu: int) -> None:
            numbers[row] = ids[row]
            machine.enter(tids[row], ids[row], row, ts, cpu)

        return take

    def exit_of(event: str) -> Take:
        tids, ids, rets = records.numbers(event, "common_pid", NUMBER, "ret")

        def take(row: int, ts: int, _cpu: int) -> None:
            returns[row] = rets[row]
            machine.exit(tids[row], ids[row], rets[row], row, ts)

        return take

    takes = {event: enter_of(event) for event in records.fields if event.startswith(ENTER_ONE)}
    takes |= {event: exit_of(event) for event in records.fields if event.startswith(EXIT_ONE)}
    return numbers, returns, takes


def _take_exec(records: AnalysisRecords, machine: CallMachine) -> Take:
    pids, old_pids = records.numbers(EXEC, "pid", "old_pid")
    return lambda row, _ts, _cpu: machine.exec(pids[row], old_pids[row])


def _recorded_names(records: AnalysisRecords) -> dict[int, str]:
    """Return the names of calls by number, as the events of single calls have both."""
    found: dict[int, str] = {}
    for event in records.fields:
        if event.startswith((ENTER_ONE, EXIT_ONE)):
            numbers = records.column(event, NUMBER)
            short = event.partition(":")[2]
            types = {number for number, name in records.table.events.items() if name == short}
            row = next((row for row, kind in enumerate(records.types.numbers) if kind in types), None)
            if row is not None and not numbers.is_null(row):
                found[numbers.numbers[row]] = short.split("_", 2)[2]
    return found


def _joined(rows: CallRows, times: Sequence[int]) -> tuple[Spans, array[int]]:
    """Return each call once, from its first entry to its last exit, and how often it was entered."""
    opens = sorted([*rows.pairs.opens, *rows.final])
    parts = spans_of(rows.pairs._replace(opens=opens), times)
    found = Spans(array("q"), array("q"), array("q"), array("q"), bytearray(), parts.orphans)
    n_parts = array("q")
    place: dict[int, int] = {}
    firsts = frozenset(rows.first_of.values())
    for begin, end, ts, dur, is_cut in zip(*parts[:5], strict=True):
        at = place.get(rows.first_of.get(begin, begin))
        if at is not None:
            found.end[at] = end
            found.dur[at] = OPEN if dur == OPEN else ts + dur - found.ts[at]
            found.is_cut[at] |= is_cut
            n_parts[at] += 1
            continue
        if begin in firsts:
            place[begin] = len(found.ts)
        found.begin.append(begin)
        found.end.append(end)
        found.ts.append(ts)
        found.dur.append(dur)
        found.is_cut.append(is_cut)
        n_parts.append(1)
    for at, begin in enumerate(found.begin):
        if begin in rows.torn:
            found.dur[at], found.is_cut[at] = OPEN, 1
    return found, n_parts
