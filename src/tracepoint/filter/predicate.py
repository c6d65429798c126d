"""One predicate of a filter: text to `Predicate`, or the kernel's error.

Kernel: parse_pred() in kernel/trace/trace_events_filter.c.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, NoReturn

from tracepoint.filter.error import FilterError, FilterFault
from tracepoint.filter.numbers import ALNUM, DIGITS, NAME, SPACE, read_cpulist, read_s64, read_u64
from tracepoint.filter.profile import FilterType
from tracepoint.filter.tree import Comparator, Predicate, Source, read_pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tracepoint.filter.profile import FilterProfile
    from tracepoint.filter.tree import Pattern
    from tracepoint.layout.format import EventFormat, FieldFormat

MAX_STRING = 256
MAX_NUMBER = 24
SCALAR_SIZES = (1, 2, 4, 8)
QUOTES = frozenset(b"'\"")

# What a Python process may record and no kernel does.
_FLOATS = ("float", "double")
_STRING_SOURCE = {
    FilterType.COMM: Source.COMM,
    FilterType.STATIC_STRING: Source.STATIC_STRING,
    FilterType.DYN_STRING: Source.DATA_LOC,
    FilterType.RDYN_STRING: Source.REL_LOC,
    FilterType.PTR_STRING: Source.POINTER,
}


class PredicateReader:
    """Reads the predicates of one filter text for one event.

    `filter_types` overrides the type of a field by name (`__field_ext`); `find_function` returns
    the first address and the size of the function with a name (bytes) or around an address (int),
    or None.
    """

    def __init__(
        self,
        text: bytes,
        event: EventFormat,
        profile: FilterProfile,
        *,
        n_cpus: int,
        filter_types: Mapping[str, FilterType],
        find_function: Callable[[bytes | int], tuple[int, int] | None],
    ) -> None:
        self._text = text
        self._event = event
        self._profile = profile
        self._n_cpus = n_cpus
        self._filter_types = filter_types
        self._find_function = find_function

    def read(self, start: int) -> tuple[Predicate, int]:
        """Return the predicate at `start`, which is not white space, and the place after it."""
        at = self._skip(start, NAME)
        if at == start:
            raise FilterError(self._text, FilterFault.ERRNO, 0, errno.EPERM)
        name = self._text[start:at].decode("latin-1")
        field, kind = self._find_field(name, at)
        at, is_user, is_function = self._suffixes(at)
        at = self._skip(at, SPACE)
        op = next((op for op in Comparator if self._text.startswith(op.encode(), at)), None)
        if op is None:
            self._fail(FilterFault.INVALID_OP, at)
        at = self._skip(at + len(op), SPACE)
        if is_function:
            return self._function(field, op, at)
        if self._byte(at) in QUOTES:
            return self._string(field, kind, op, at, is_user=is_user)
        if self._profile.has_cpus and self._text.startswith(b"CPUS", at):
            return self._cpus(field, kind, op, at)
        if self._byte(at) not in DIGITS and self._byte(at) != ord("-"):
            self._fail(FilterFault.INVALID_VALUE, at)
        return self._number(field, kind, op, at)

    def _find_field(self, name: str, at: int) -> tuple[FieldFormat | str, FilterType]:
        """Look in the event, then the generic fields, then the common ones (trace_find_event_field())."""
        common = {f.name for f in self._event.common_fields}
        generic = dict(self._profile.generic)
        if name in self._event and name not in common:
            field = self._event[name]
        elif name in generic:
            return name, generic[name]
        elif name in common:
            field = self._event[name]
        else:
            known = [*(field.name for field in self._event.fields), *dict(self._profile.generic)]
            raise FilterError(self._text, FilterFault.FIELD_NOT_FOUND, at + 1, wanted=name, known=known)
        if field.ctype in _FLOATS:
            # No kernel has these; the number in the record is its bits, which compare in no useful way.
            self._fail(FilterFault.FIELD_NOT_FOUND, at)
        return field, self._filter_types.get(name) or self._profile.assign_type(field.ctype)

    def _suffixes(self, at: int) -> tuple[int, bool, bool]:
        is_user = self._text.startswith(b".ustring", at)
        at += len(b".ustring") if is_user else 0
        is_function = self._profile.has_function and self._text.startswith(b".function", at)
        at += len(b".function") if is_function else 0
        return at, is_user, is_function

    def _string(
        self, field: FieldFormat | str, kind: FilterType, op: Comparator, at: int, *, is_user: bool
    ) -> tuple[Predicate, int]:
        if op not in (Comparator.GLOB, Comparator.EQ, Comparator.NE):
            self._fail(FilterFault.ILLEGAL_FIELD_OP, at)
        if not kind.is_string:
            self._fail(FilterFault.EXPECT_DIGIT, at)
        end = self._text.find(self._text[at : at + 1], at + 1)
        if end < 0:
            self._fail(FilterFault.MISSING_QUOTE, len(self._text))
        value = self._text[at + 1 : end]
        if len(value) >= MAX_STRING:
            self._fail(FilterFault.OPERAND_TOO_LONG, end)
        source = _STRING_SOURCE[kind]
        if source is Source.POINTER and is_user:
            source = Source.USER_POINTER
        return self._make(field, op, source, pattern=read_pattern(value, op)), end + 1

    def _number(
        self, field: FieldFormat | str, kind: FilterType, op: Comparator, at: int
    ) -> tuple[Predicate, int]:
        if kind.is_string:
            self._fail(FilterFault.EXPECT_STRING, at)
        if op is Comparator.GLOB:
            self._fail(FilterFault.ILLEGAL_FIELD_OP, at)
        value, end = self._integer(at, is_signed=kind is FilterType.CPU or _is_signed(field))
        if value is None:
            self._fail(FilterFault.ILLEGAL_INTVAL, at)
        if kind is FilterType.CPU:
            return self._make(field, op, Source.CPU, value=value), end
        return self._make(field, op, self._scalar(field), value=value), end

    def _integer(self, at: int, *, is_signed: bool) -> tuple[int | None, int]:
        end = self._skip(at + (self._byte(at) == ord("-")), ALNUM)
        if end - at >= MAX_NUMBER:
            self._fail(FilterFault.OPERAND_TOO_LONG, end)
        digits = self._text[at:end]
        return (read_s64(digits) if is_signed else read_u64(digits)), end

    def _cpus(
        self, field: FieldFormat | str, kind: FilterType, op: Comparator, at: int
    ) -> tuple[Predicate, int]:
        if kind not in (FilterType.CPUMASK, FilterType.CPU, FilterType.OTHER) or op not in (
            Comparator.EQ,
            Comparator.NE,
            Comparator.BAND,
        ):
            self._fail(FilterFault.ILLEGAL_FIELD_OP, at)
        at += len(b"CPUS")
        if self._byte(at) != ord("{"):
            self._fail(FilterFault.MISSING_BRACE_OPEN, at + 1)
        start = at + 1
        end = self._text.find(b"}", start)
        if end < 0:
            self._fail(FilterFault.MISSING_BRACE_CLOSE, len(self._text))
        mask = read_cpulist(self._text[start:end], self._n_cpus) if end > start else None
        if mask is None:
            self._fail(FilterFault.INVALID_CPULIST, end)
        return self._cpu_predicate(field, kind, op, mask), end + 1

    def _cpu_predicate(
        self, field: FieldFormat | str, kind: FilterType, op: Comparator, mask: int
    ) -> Predicate:
        """Compare with a mask; a mask of one CPU is compared as that CPU's number."""
        is_single = mask.bit_count() == 1
        cpu = mask.bit_length() - 1
        if kind is FilterType.CPUMASK:
            source = Source.CPUMASK_HAS_CPU if is_single else Source.CPUMASK
            return self._make(field, op, source, value=cpu if is_single else mask)
        if is_single:
            op = Comparator.EQ if op is Comparator.BAND else op
            source = Source.CPU if kind is FilterType.CPU else self._scalar(field)
            made = self._make(field, op, source, value=cpu)
            return Predicate(made.field, op, source, made.offset, made.size, False, cpu)
        source = Source.CPU_IN_CPUS
        if kind is FilterType.OTHER:
            has_size = self._scalar(field) is Source.SCALAR
            source = Source.SCALAR_IN_CPUS if has_size else Source.NOTHING
        return self._make(field, op, source, value=mask)

    def _function(self, field: FieldFormat | str, op: Comparator, at: int) -> tuple[Predicate, int]:
        if isinstance(field, str) or field.size != self._event.long_size:
            self._fail(FilterFault.ILLEGAL_FIELD_OP, at)
        if op not in (Comparator.EQ, Comparator.NE):
            self._fail(FilterFault.INVALID_OP, at)
        wanted: bytes | int | None
        if self._byte(at) in DIGITS:
            wanted, end = self._integer(at, is_signed=False)
            if wanted is None:
                self._fail(FilterFault.INVALID_VALUE, end)
        else:
            end = at
            while end < len(self._text) and self._text[end] not in SPACE:
                end += 1
            wanted = self._text[at:end]
        found = self._find_function(wanted)
        if found is None:
            self._fail(FilterFault.NO_FUNCTION, end)
        first, size = found
        made = self._make(field, op, Source.FUNCTION, value=first)
        return Predicate(made.field, op, made.source, made.offset, made.size, False, first, first + size), end

    def _make(
        self,
        field: FieldFormat | str,
        op: Comparator,
        source: Source,
        value: int = 0,
        pattern: Pattern | None = None,
    ) -> Predicate:
        if isinstance(field, str):
            return Predicate(field, op, source, value=value, is_signed=True, pattern=pattern)
        return Predicate(
            field.name, op, source, field.offset, field.size, field.is_signed, value, pattern=pattern
        )

    @staticmethod
    def _scalar(field: FieldFormat | str) -> Source:
        """A field of another size than 1, 2, 4 or 8 compares as false (select_comparison_fn())."""
        has_size = not isinstance(field, str) and field.size in SCALAR_SIZES
        return Source.SCALAR if has_size else Source.NOTHING

    def _skip(self, at: int, wanted: frozenset[int]) -> int:
        while at < len(self._text) and self._text[at] in wanted:
            at += 1
        return at

    def _byte(self, at: int) -> int:
        return self._text[at] if at < len(self._text) else 0

    def _fail(self, fault: FilterFault, at: int) -> NoReturn:
        # The kernel counts from the character after the predicate's first.
        raise FilterError(self._text, fault, at + 1)


def _is_signed(field: FieldFormat | str) -> bool:
    # The generic fields are `int` and `char *`.
    return isinstance(field, str) or field.is_signed
