"""System calls as sections: by name, what they failed with, by task, and the longest."""

from __future__ import annotations

import errno
from collections import Counter
from typing import TYPE_CHECKING

from tracepoint.analysis.chosen import longest_section, task_section
from tracepoint.analysis.sections import MAX, MEAN, P50, P99, TOTAL, Heading, N, Unit
from tracepoint.analysis.syscalls.calls import RESTARTS, Restart
from tracepoint.analysis.syscalls.needs import ENTER, EXIT
from tracepoint.analysis.syscalls.numbers import name_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.analysis.sections import Choice, Section, Value
    from tracepoint.analysis.spans import Hiding
    from tracepoint.analysis.syscalls.build import SyscallReader
    from tracepoint.analysis.syscalls.sums import CallSums

_EVENTS = (ENTER, EXIT)
_CALL = Heading("name", "call", Unit.WORD)
_NAMES = (N, Heading("n_errors", "errors"), TOTAL, MEAN, P50, P99, MAX, _CALL)
_ERRORS = (N, _CALL, Heading("error", "error", Unit.WORD))
_LONGEST = (Heading("ret", "returned", Unit.NUMBER), _CALL)


def error_text(ret: int) -> str:
    """Return the name of an error that a call returned.

    >>> error_text(-2), error_text(-512), error_text(-3000)
    ('ENOENT', 'ERESTARTSYS', 'error 3000')
    """
    return Restart(ret).name if ret in RESTARTS else errno.errorcode.get(-ret, f"error {-ret}")


def call_sections(calls: SyscallReader, sums: CallSums, hiding: Hiding, choice: Choice) -> list[Section]:
    """Return the sections of calls; `choice` has the number of rows that are shown."""
    failed = sums.failed.most_common()
    return [
        choice.table("calls", "Calls", _NAMES, _by_name(calls, sums, hiding), _EVENTS),
        choice.table("errors", "Errors", _ERRORS, _errors(calls, failed), _EVENTS),
        task_section(sums.by_tid.samples(hiding), sums.tasks, choice, _EVENTS),
        longest_section(sums.longest, choice, _LONGEST, _EVENTS),
    ]


def _by_name(calls: SyscallReader, sums: CallSums, hiding: Hiding) -> list[Sequence[Value]]:
    n_failed: Counter[int] = Counter()
    for (number, _), n in sums.failed.most_common():
        n_failed[number] += n
    return [
        (
            made.count, n_failed[number], made.sum, made.mean, *made.quantiles(0.5, 0.99, 1.0),
            name_of(calls.names, number),
        )
        for number, made in sums.by_number.samples(hiding).items()
    ]  # fmt: skip


def _errors(calls: SyscallReader, failed: list[tuple[tuple[int, int], int]]) -> list[tuple[int, str, str]]:
    return [(n, name_of(calls.names, number), error_text(ret)) for (number, ret), n in failed]
