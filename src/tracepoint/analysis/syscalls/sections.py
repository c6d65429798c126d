"""System calls as sections: by name, what they failed with, by task, and the longest."""

from __future__ import annotations

import errno
from collections import Counter
from typing import TYPE_CHECKING

from tracepoint.analysis.sections import Heading, TableSection, Unit
from tracepoint.analysis.spans import OPEN, samples_by
from tracepoint.analysis.syscalls.calls import RESTARTS, SIGRETURN, Restart
from tracepoint.analysis.syscalls.needs import ENTER, EXIT
from tracepoint.analysis.syscalls.numbers import name_of
from tracepoint.analysis.units import task_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.analysis.coverage import Coverage
    from tracepoint.analysis.sections import Choice, Section
    from tracepoint.analysis.syscalls.build import Calls

_EVENTS = (ENTER, EXIT)
# IS_ERR_VALUE() of include/linux/err.h.
_MAX_ERRNO = 4095
_NAMES = (
    Heading("n", "n"),
    Heading("n_errors", "errors"),
    Heading("total", "total", Unit.TIME),
    Heading("mean", "mean", Unit.TIME),
    Heading("p50", "p50", Unit.TIME),
    Heading("p99", "p99", Unit.TIME),
    Heading("max", "max", Unit.TIME),
    Heading("name", "call", Unit.WORD),
)
_ERRORS = (Heading("n", "n"), Heading("name", "call", Unit.WORD), Heading("error", "error", Unit.WORD))
_TASKS = (
    Heading("n", "n"),
    Heading("total", "total", Unit.TIME),
    Heading("max", "max", Unit.TIME),
    Heading("task", "task", Unit.WORD),
    Heading("tid", "", Unit.NUMBER),
)
_LONGEST = (
    Heading("dur", "time", Unit.TIME),
    Heading("ts", "begin (ns)", Unit.NUMBER),
    Heading("cpu", "cpu", Unit.NUMBER),
    Heading("ret", "returned", Unit.NUMBER),
    Heading("name", "call", Unit.WORD),
    Heading("task", "task", Unit.WORD),
)


def is_error(ret: int) -> bool:
    """Whether a call failed: it returned -4095 to -1."""
    return -_MAX_ERRNO <= ret < 0


def error_text(ret: int) -> str:
    """Return the name of an error that a call returned.

    >>> error_text(-2), error_text(-512), error_text(-3000)
    ('ENOENT', 'ERESTARTSYS', 'error 3000')
    """
    return Restart(ret).name if ret in RESTARTS else errno.errorcode.get(-ret, f"error {-ret}")


def call_sections(
    calls: Calls, coverage: Coverage, cpus: Sequence[int], tasks: Mapping[int, str], choice: Choice
) -> list[Section]:
    """Return the sections of the chosen calls; `cpus` are those of the rows, `tasks` names by id."""
    spans = calls.spans
    chosen = [
        choice.has_cpu(cpus[row]) and choice.has_task(tid, tasks.get(tid, ""))
        for row, tid in zip(spans.begin, calls.tids, strict=True)
    ]
    failed = Counter(
        (number, ret)
        for number, ret, is_chosen in zip(calls.numbers, calls.returns, chosen, strict=True)
        if is_chosen and is_error(ret) and calls.names.get(number) != SIGRETURN
    )
    return [
        _by_name(calls, coverage, chosen, failed, choice),
        choice.table("errors", "Errors", _ERRORS, _errors(calls, failed), _EVENTS),
        _by_task(calls, coverage, chosen, tasks, choice),
        _longest(calls, chosen, cpus, tasks, choice),
    ]


def _by_name(
    calls: Calls,
    coverage: Coverage,
    chosen: Sequence[bool],
    failed: Mapping[tuple[int, int], int],
    choice: Choice,
) -> TableSection:
    groups = [number if is_chosen else None for number, is_chosen in zip(calls.numbers, chosen, strict=True)]
    n_failed: Counter[int] = Counter()
    for (number, _), n in failed.items():
        n_failed[number] += n
    rows = [
        (
            made.count, n_failed[number], made.sum, made.mean, *made.quantiles(0.5, 0.99, 1.0),
            name_of(calls.names, number),
        )
        for number, made in samples_by(calls.spans, groups, coverage).items()
    ]  # fmt: skip
    return choice.table("calls", "Calls", _NAMES, rows, _EVENTS)


def _errors(calls: Calls, failed: Counter[tuple[int, int]]) -> list[tuple[int, str, str]]:
    return [(n, name_of(calls.names, number), error_text(ret)) for (number, ret), n in failed.most_common()]


def _by_task(
    calls: Calls, coverage: Coverage, chosen: Sequence[bool], tasks: Mapping[int, str], choice: Choice
) -> TableSection:
    groups = [tid if is_chosen else None for tid, is_chosen in zip(calls.tids, chosen, strict=True)]
    rows = [
        (made.count, made.sum, made.quantile(1.0), task_text(tasks, tid), tid)
        for tid, made in samples_by(calls.spans, groups, coverage).items()
    ]
    return choice.table("tasks", "Tasks", _TASKS, rows, _EVENTS)


def _longest(
    calls: Calls, chosen: Sequence[bool], cpus: Sequence[int], tasks: Mapping[int, str], choice: Choice
) -> TableSection:
    spans = calls.spans
    found = [at for at, dur in enumerate(spans.dur) if chosen[at] and dur != OPEN]
    rows = [
        (
            spans.dur[at], spans.ts[at], cpus[spans.begin[at]], calls.returns[at],
            name_of(calls.names, calls.numbers[at]), task_text(tasks, calls.tids[at]),
        )
        for at in choice.most_of(found, key=spans.dur.__getitem__)
    ]  # fmt: skip
    return TableSection("longest", "Longest", _LONGEST, rows, _EVENTS, len(found) - len(rows))
