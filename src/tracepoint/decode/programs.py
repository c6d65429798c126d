"""A selection as a filter program for each event."""

from __future__ import annotations

import re
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING

from tracepoint.decode.selection import UNKNOWN_SYSTEM, Selection
from tracepoint.filter.error import FilterError, FilterFault
from tracepoint.filter.match import match_pattern
from tracepoint.filter.numbers import MAX_CPUS
from tracepoint.filter.parse import Filter, parse_filter
from tracepoint.filter.profile import KERNEL_6_12
from tracepoint.filter.program import COMM_SIZE, compile_filter
from tracepoint.filter.tree import And, Comparator, Not, Or, Predicate, Source
from tracepoint.layout.format import COMMON_FIELDS, EventFormat
from tracepoint.model.patterns import matches_any, names_matching
from tracepoint.printk.kallsyms import Kallsyms
from tracepoint.tracefile.recording import read_pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tracepoint.filter.program import FilterProgram
    from tracepoint.filter.tree import Expression
    from tracepoint.tracefile.container import Container

_PID_SIZES = (1, 2, 4)
_N_IDS = 1 << 16
_OF_NUMBERS = re.compile(r"[0-9*?]*|.*\[.*", re.DOTALL)


def compile_selection(selection: Selection, file: Container) -> dict[int, FilterProgram | None] | None:
    """Return the programs by the id of each event that can be in a selection; None when all records are.

    An event that lacks a field of `where` is not in the selection; an id without a format has the common
    fields.  Raises FilterError when no event takes the filter.
    """
    if not selection.is_by_record:
        return None
    names = {number: f"{form.system}:{form.name}" for number, form in file.events.items()}
    chosen = {
        number: file.events[number]
        for number, name in names.items()
        if all(matches_any(group, name) for group in selection.patterns)
    }
    known = _Known(file)
    found: dict[int, FilterProgram | None] = {}
    refused: list[FilterError] = []
    for number, form in chosen.items():
        try:
            found[number] = _compile(selection, form, known)
        except FilterError as error:
            refused.append(error)
    unknown = _unknown_ids(selection, file)
    if unknown:
        try:
            found |= dict.fromkeys(unknown, _compile(selection, _common_form(file), known))
        except FilterError as error:
            refused.append(error)
    if not found and refused:
        worst = max(
            refused, key=lambda error: (error.fault is not FilterFault.FIELD_NOT_FOUND, error.position)
        )
        # Filters that other events take each on its own leave nothing, which is no fault of theirs.
        if worst.fault is not FilterFault.FIELD_NOT_FOUND or not all(
            _takes_any(text, file, known) for text in selection.where
        ):
            raise _with_fields(worst, chosen.values())
    return found


def _with_fields(error: FilterError, forms: Iterable[EventFormat]) -> FilterError:
    """Return an error of one event as that of all: a field that none has may be meant for one of any."""
    if not error.wanted:
        return error
    fields = {field.name for form in forms for field in form.fields}
    text = error.text.encode("utf-8", "surrogateescape")
    return FilterError(text, error.fault, error.position, wanted=error.wanted, known=sorted(fields))


def _unknown_ids(selection: Selection, file: Container) -> Sequence[int]:
    """Return the ids without a format that patterns choose, recorded or not: to count them takes a pass."""
    if not all(any(map(_may_be_unknown, group)) for group in selection.patterns):
        return ()
    known = file.events
    numbers = [number for number in range(_N_IDS) if number not in known]
    if not selection.patterns:
        return numbers
    names = [str(number) for number in numbers]
    chosen = set(names)
    for group in selection.patterns:
        chosen &= names_matching(group, UNKNOWN_SYSTEM, names)
    return [number for number, name in zip(numbers, names, strict=True) if name in chosen]


def _may_be_unknown(pattern: str) -> bool:
    """Whether a pattern can match the name of an id without a format, so that it is worth trying all ids."""
    left, colon, right = pattern.partition(":")
    may_be_number = _OF_NUMBERS.fullmatch(right if colon else pattern) is not None
    if colon:
        return may_be_number and fnmatchcase(UNKNOWN_SYSTEM, left or "*")
    return may_be_number or fnmatchcase(UNKNOWN_SYSTEM, pattern)


def _common_form(file: Container) -> EventFormat:
    """Return the format of records of which only the common fields are known."""
    known = next(iter(file.events.values()), None)
    fields = COMMON_FIELDS if known is None else known.common_fields
    big, long_size = file.is_big_endian, file.layout.long_size
    return EventFormat(
        UNKNOWN_SYSTEM, "", fields, "", n_common=len(fields), is_big_endian=big, long_size=long_size
    )


def _takes_any(text: str, file: Container, known: _Known) -> bool:
    """Whether an event of a file has the fields of a filter."""
    only = Selection(where=(text,))
    for form in file.events.values():
        with suppress(FilterError):
            _compile(only, form, known)
            return True
    return False


class _Known:
    """What a recording says of the machine: its CPUs, the names of tasks, and functions."""

    def __init__(self, file: Container) -> None:
        self.n_cpus = min(max(file.n_cpus, 1), MAX_CPUS)
        self.comms = read_pairs(file.saved_cmdlines)
        self._file = file
        self._kallsyms: Kallsyms | None = None

    def function(self, wanted: bytes | int) -> tuple[int, int] | None:
        """Return the first address and the size of a function."""
        if self._kallsyms is None:
            self._kallsyms = Kallsyms(self._file.kallsyms)
        return self._kallsyms.find(wanted if isinstance(wanted, int) else wanted.decode(errors="replace"))


def _compile(selection: Selection, form: EventFormat, known: _Known) -> FilterProgram | None:
    terms: list[Expression] = []
    if selection.cpus is not None:
        mask = sum(1 << cpu for cpu in selection.cpus if cpu < MAX_CPUS)
        terms.append(Predicate("common_cpu", Comparator.BAND, Source.CPU_IN_CPUS, value=mask))
    if selection.pids is not None:
        terms.append(_has_pid(form, selection.pids))
    for text in selection.where:
        parsed = parse_filter(text, form, KERNEL_6_12, n_cpus=known.n_cpus, find_function=known.function)
        terms.append(_with_names(parsed.expression, partial(_has_comm, form, known)))
    if not terms:
        return None
    expression = terms[0] if len(terms) == 1 else And(tuple(terms))
    return compile_filter(Filter(" && ".join(selection.where), expression, form, known.n_cpus))


def _has_pid(form: EventFormat, pids: frozenset[int]) -> Predicate:
    field = next((f for f in form.common_fields if f.name == "common_pid"), None)
    if field is None or field.size not in _PID_SIZES:
        return Predicate("common_pid", Comparator.EQ, Source.NOTHING)
    # A record has 32 bits of it, so a larger number is not the id of a task.
    numbers = frozenset(pid & 0xFFFFFFFF for pid in pids if -(1 << 31) <= pid < 1 << 31)
    return Predicate(
        field.name, Comparator.EQ, Source.NUMBER_IN_SET, field.offset, field.size, numbers=numbers
    )


def _with_names(expression: Expression, has_comm: Callable[[Predicate], Expression]) -> Expression:
    """Put what is known of tasks' names in place of the name of the task that runs."""
    match expression:
        case Predicate():
            return has_comm(expression) if expression.source is Source.COMM else expression
        case Not(term):
            return Not(_with_names(term, has_comm))
        case And(terms):
            return And(tuple(_with_names(term, has_comm) for term in terms))
        case Or(terms):
            return Or(tuple(_with_names(term, has_comm) for term in terms))


def _has_comm(form: EventFormat, known: _Known, predicate: Predicate) -> Expression:
    """Return which tasks have a name that matches: a record holds the task's id only.

    Of the idle tasks each CPU has its own: swapper/0, swapper/1.
    """
    pattern = predicate.pattern
    if pattern is None:
        return predicate

    def matches(name: str) -> bool:
        raw = name.encode("utf-8", "surrogateescape")[: COMM_SIZE - 1].ljust(COMM_SIZE, b"\0")
        return match_pattern(pattern, raw)

    pids = frozenset(pid for pid, name in known.comms.items() if pid and matches(name))
    idle = sum(1 << cpu for cpu in range(known.n_cpus) if matches(f"swapper/{cpu}"))
    is_idle = And(
        (
            _has_pid(form, frozenset({0})),
            Predicate("common_cpu", Comparator.BAND, Source.CPU_IN_CPUS, value=idle),
        )
    )
    found = Or((_has_pid(form, pids), is_idle))
    return Not(found) if pattern.is_inverted else found
