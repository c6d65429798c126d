"""Filter text to predicate tree, or the kernel's error, errno and caret column.

    expr := or ; or := and {'||' and} ; and := unary {'&&' unary}
    unary := {'!'} ( '(' expr ')' | predicate )

Kernel: calc_stack(), predicate_parse() and process_preds() in kernel/trace/trace_events_filter.c.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.filter.error import FilterError, FilterFault
from tracepoint.filter.numbers import MAX_CPUS, SPACE
from tracepoint.filter.predicate import QUOTES, PredicateReader
from tracepoint.filter.profile import KERNEL_6_1, FilterProfile, FilterType
from tracepoint.filter.tree import And, Expression, Not, Or
from tracepoint.wording import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tracepoint.layout.format import EventFormat

# A `filter` file takes less than a page at once (event_filter_write() in kernel/trace/trace_events.c).
MAX_FILTER = 4095


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter that the kernel would accept: the text as the `filter` file shows it, and its meaning."""

    text: str
    expression: Expression
    event: EventFormat
    n_cpus: int = MAX_CPUS

    def __repr__(self) -> str:
        return f"<Filter {one_line(self.text)}>"


def is_clear(text: str | bytes) -> bool:
    """Return whether writing `text` removes the filter instead of setting one: a lone `0`."""
    return _as_bytes(text).strip(bytes(SPACE)) == b"0"


def parse_filter(
    text: str | bytes,
    event: EventFormat,
    profile: FilterProfile = KERNEL_6_1,
    *,
    n_cpus: int = MAX_CPUS,
    filter_types: Mapping[str, FilterType] | None = None,
    find_function: Callable[[bytes | int], tuple[int, int] | None] = lambda _: None,
) -> Filter:
    """Read a filter for `event` as the kernel of `profile` does.

    `n_cpus` is the number of possible CPUs (1 and more) for `CPUS{...}`; `filter_types` gives the
    types that `__field_ext` set; `find_function` returns first address and size in bytes of a
    function by name or address, for `.function`.  White space at the end is dropped, as
    strstrip() does before the kernel keeps the text.  Raises FilterError.

    >>> from tracepoint.layout.format import EventFormat, FieldFormat
    >>> event = EventFormat("s", "e", (FieldFormat("n", "int", 8, 4, True),), "", n_common=0)
    >>> parse_filter("n > 3", event).expression.value
    3
    >>> parse_filter("n = 3", event)
    Traceback (most recent call last):
    ...
    tracepoint.filter.error.FilterError: Invalid operator
      n = 3
         ^
    """
    raw = _as_bytes(text).rstrip(bytes(SPACE))
    if len(raw) > MAX_FILTER:
        raise FilterError(raw, FilterFault.ERRNO)
    _check_balance(raw)
    reader = PredicateReader(
        raw, event, profile, n_cpus=n_cpus, filter_types=filter_types or {}, find_function=find_function
    )
    expression = _Parser(raw, reader, profile).parse()
    return Filter(raw.decode(errors="surrogateescape"), expression, event, n_cpus)


def _as_bytes(text: str | bytes) -> bytes:
    raw = text.encode(errors="surrogateescape") if isinstance(text, str) else text
    return raw.split(b"\0", 1)[0]


def _check_balance(text: bytes) -> None:
    """Refuse unbalanced parentheses and quotes before anything else is looked at."""
    n_open = n_terms = quote = quote_at = 0
    in_term = False
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if quote or char in SPACE:
            quote = 0 if char == quote else quote
        elif char in b"|&" and text[at : at + 1] == bytes((char,)):
            # Only this one is passed over: the kernel looks at the second again, as a single one.
            in_term = False
        elif char in b"()":
            in_term = False
            n_open += 1 if char == ord("(") else -1
            if n_open < 0:
                raise FilterError(text, FilterFault.TOO_MANY_CLOSE, at - 1, errno.EPERM)
        else:
            if char in QUOTES:
                quote, quote_at = char, at - 1
            n_terms += not in_term
            in_term = True
    if quote:
        raise FilterError(text, FilterFault.MISSING_QUOTE, quote_at, errno.ESRCH)
    if n_open:
        raise FilterError(text, FilterFault.TOO_MANY_OPEN, _bad_open(text), errno.ENOENT)
    if not n_terms:
        raise FilterError(text, FilterFault.ERRNO)


def _bad_open(text: bytes) -> int:
    """Return the place of the innermost parenthesis that nothing closes, looking from the end."""
    depth = quote = 0
    for at in range(len(text) - 1, 0, -1):
        char = text[at]
        if quote:
            quote = 0 if char == quote else quote
        elif char in QUOTES:
            quote = char
        elif char == ord(")"):
            depth += 1
        elif char == ord("("):
            if not depth:
                return at
            depth -= 1
    return 0


@dataclass(slots=True)
class _Group:
    """What is between two parentheses, so far: finished `||` terms and the `&&` terms of the next."""

    is_inverted: bool
    any_of: list[Expression] = field(default_factory=list)
    all_of: list[Expression] = field(default_factory=list)

    def end_and(self) -> None:
        terms = tuple(self.all_of)
        self.any_of.append(terms[0] if len(terms) == 1 else And(terms))
        self.all_of.clear()

    def finish(self) -> Expression:
        if self.all_of:
            self.end_and()
        terms = tuple(self.any_of)
        made = terms[0] if len(terms) == 1 else Or(terms)
        return Not(made) if self.is_inverted else made


class _Parser:
    def __init__(self, text: bytes, reader: PredicateReader, profile: FilterProfile) -> None:
        self._text = text
        self._reader = reader
        self._profile = profile
        self._groups = [_Group(is_inverted=False)]

    def parse(self) -> Expression:
        at = 0
        is_inverted = False
        n_predicates = 0
        while at < len(self._text):
            char = self._text[at]
            if char in SPACE:
                at += 1
            elif char == ord("("):
                self._groups.append(_Group(is_inverted))
                is_inverted = False
                at += 1
            elif char == ord("!") and self._text[at + 1 : at + 2] not in (b"=", b"~"):
                is_inverted = not is_inverted
                at += 1
            else:
                predicate, at = self._reader.read(at)
                n_predicates += 1
                self._groups[-1].all_of.append(Not(predicate) if is_inverted else predicate)
                is_inverted = False
                after = self._after_term(at)
                if after is None:
                    return self._finish()
                at = after
        return self._incomplete(n_predicates)

    def _after_term(self, at: int) -> int | None:
        """Close groups and take the next operator; return the place after it, None at the end."""
        while True:
            while at < len(self._text) and self._text[at] in SPACE:
                at += 1
            if at == len(self._text):
                return None
            operator = self._text[at : at + 2]
            if operator == b"&&":
                return at + 2
            if operator == b"||":
                self._groups[-1].end_and()
                return at + 2
            if operator[:1] != b")":
                raise FilterError(self._text, FilterFault.TOO_MANY_PREDS, at, errno.EPERM)
            at += 1
            if len(self._groups) == 1:
                raise FilterError(self._text, FilterFault.TOO_MANY_CLOSE, at, errno.EPERM)
            closed = self._groups.pop().finish()
            self._groups[-1].all_of.append(closed)

    def _finish(self) -> Expression:
        if len(self._groups) > 1:
            raise FilterError(self._text, FilterFault.TOO_MANY_OPEN, len(self._text) + 1, errno.EPERM)
        return self._groups[0].finish()

    def _incomplete(self, n_predicates: int) -> Expression:
        """Handle an expression that stops after an operator; older kernels forget the operator.

        Where those would lose track (`a || b &&` leaves the `||` without a target), it is refused
        as their last check does.
        """
        end = len(self._text)
        if not n_predicates:
            raise FilterError(self._text, FilterFault.NO_FILTER, end)
        if self._profile.rejects_incomplete:
            raise FilterError(self._text, FilterFault.INVALID_FILTER, end)
        if len(self._groups) > 1:
            raise FilterError(self._text, FilterFault.TOO_MANY_OPEN, end, errno.EPERM)
        group = self._groups[0]
        if group.any_of and group.all_of:
            raise FilterError(self._text, FilterFault.ERRNO)
        return group.finish()
