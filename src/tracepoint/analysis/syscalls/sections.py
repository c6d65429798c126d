"""System calls as sections: by name, what they failed with, by task, and the longest."""

from __future__ import annotations

import errno
from collections import Counter
from typing import TYPE_CHECKING

from tracepoint.analysis.chosen import ChosenSpans
from tracepoint.analysis.sections import MAX, MEAN, P50, P99, TOTAL, Heading, N, Unit
from tracepoint.analysis.syscalls.calls import RESTARTS, SIGRETURN, Restart
from tracepoint.analysis.syscalls.needs import ENTER, EXIT
from tracepoint.analysis.syscalls.numbers import name_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.analysis.records import AnalysisRecords
    from tracepoint.analysis.sections import Choice, Section, Value
    from tracepoint.analysis.syscalls.build import Calls

_EVENTS = (ENTER, EXIT)
# IS_ERR_VALUE() of include/linux/err.h.
_MAX_ERRNO = 4095
_CALL = Heading("name", "call", Unit.WORD)
_NAMES = (N, Heading("n_errors", "errors"), TOTAL, MEAN, P50, P99, MAX, _CALL)
_ERRORS = (N, _CALL, Heading("error", "error", Unit.WORD))
_LONGEST = (Heading("ret", "returned", Unit.NUMBER), _CALL)


def is_error(ret: int) -> bool:
    """Whether a call failed: it returned -4095 to -1."""
    return -_MAX_ERRNO <= ret < 0


def error_text(ret: int) -> str:
    """Return the name of an error that a call returned.

    >>> error_text(-2), error_text(-512), error_text(-3000)
    ('ENOENT', 'ERESTARTSYS', 'error 3000')
    """
    return Restart(ret).name if ret in RESTARTS else errno.errorcode.get(-ret, f"error {-ret}")


def call_sections(records: AnalysisRecords, calls: Calls, choice: Choice) -> list[Section]:
    """Return the sections of the chosen calls."""
    chosen = ChosenSpans(records, calls.spans, calls.tids, choice)
    failed = Counter(
        (number, ret)
        for number, ret, is_chosen in zip(calls.numbers, calls.returns, chosen.flags, strict=True)
        if is_chosen and is_error(ret) and calls.names.get(number) != SIGRETURN
    )

    def details(at: int) -> tuple[int, str]:
        return calls.returns[at], name_of(calls.names, calls.numbers[at])

    return [
        choice.table("calls", "Calls", _NAMES, _by_name(calls, chosen, failed), _EVENTS),
        choice.table("errors", "Errors", _ERRORS, _errors(calls, failed), _EVENTS),
        chosen.task_section(_EVENTS),
        chosen.longest_section(_LONGEST, details, _EVENTS),
    ]


def _by_name(
    calls: Calls, chosen: ChosenSpans, failed: Mapping[tuple[int, int], int]
) -> list[Sequence[Value]]:
    n_failed: Counter[int] = Counter()
    for (number, _), n in failed.items():
        n_failed[number] += n
    return [
        (
            made.count, n_failed[number], made.sum, made.mean, *made.quantiles(0.5, 0.99, 1.0),
            name_of(calls.names, number),
        )
        for number, made in chosen.samples(calls.numbers).items()
    ]  # fmt: skip


def _errors(calls: Calls, failed: Counter[tuple[int, int]]) -> list[tuple[int, str, str]]:
    return [(n, name_of(calls.names, number), error_text(ret)) for (number, ret), n in failed.most_common()]
