"""What can be wrong with a filter: the kernel's error texts, errno and caret column.

Facts: kernel/trace/trace_events_filter.c (ERRORS, append_filter_err()) and kernel/trace/trace.c
(tracing_log_err()).
"""

from __future__ import annotations

import enum
import errno as errno_codes
from typing import TYPE_CHECKING

from tracepoint.errors import TracepointError
from tracepoint.wording import LONGEST, counted, no_such, one_line

if TYPE_CHECKING:
    from collections.abc import Collection

LOG_LOCATION = "event filter parse error"
LOG_CARET_INDENT = len("  Command: ")
_MAX_NAMED = 20


class FilterFault(enum.StrEnum):
    """The reasons for refusing a filter, in the kernel's words."""

    INVALID_OP = "Invalid operator"
    TOO_MANY_OPEN = "Too many '('"
    TOO_MANY_CLOSE = "Too few '('"
    MISSING_QUOTE = "Missing matching quote"
    MISSING_BRACE_OPEN = "Missing '{'"
    MISSING_BRACE_CLOSE = "Missing '}'"
    OPERAND_TOO_LONG = "Operand too long"
    EXPECT_STRING = "Expecting string field"
    EXPECT_DIGIT = "Expecting numeric field"
    ILLEGAL_FIELD_OP = "Illegal operation for field type"
    FIELD_NOT_FOUND = "Field not found"
    ILLEGAL_INTVAL = "Illegal integer value"
    BAD_SUBSYS_FILTER = "Couldn't find or set field in one of a subsystem's events"
    TOO_MANY_PREDS = "Too many terms in predicate expression"
    INVALID_FILTER = "Meaningless filter expression"
    INVALID_CPULIST = "Invalid cpulist"
    INVALID_VALUE = "Invalid value (did you forget quotes)?"
    ERRNO = "Error"
    NO_FUNCTION = "Function not found"
    NO_FILTER = "No filter found"


class FilterError(TracepointError):
    """A filter that the kernel would refuse, with what it would answer.

    `text` is the filter as written, `fault` the reason (`FilterFault.ERRNO` where the kernel says
    no more than `Error: (0)`), `position` the place in bytes that the error log counts, `errno`
    the positive number that write(2) fails with.  `wanted` is the name of a field that none of `known` is.
    """

    def __init__(
        self,
        text: bytes,
        fault: FilterFault,
        position: int = 0,
        errno: int = errno_codes.EINVAL,
        *,
        wanted: str = "",
        known: Collection[str] = (),
    ) -> None:
        super().__init__(text, fault, position, errno)
        self.text = text.decode(errors="surrogateescape")
        self.fault = fault
        self.position = position
        self.errno = errno
        self.wanted = wanted
        self._known = known
        self._n_bytes = len(text)

    def __str__(self) -> str:
        # Only now: a filter is tried for each event, and most that lack a field are nobody's mistake.
        printable = self.text.encode(errors="replace").decode()
        if self.fault is FilterFault.ERRNO:
            return f"{self.fault}: {one_line(printable)!r}, {counted(self._n_bytes, 'byte')}"
        hint = f": {no_such('field', self.wanted, self._known, _MAX_NAMED)}" if self.wanted else ""
        column, start = self.column, 0
        if len(printable) > LONGEST:
            start = max(min(column - LONGEST // 2, len(printable) - LONGEST), 0)
            cut = printable[start : start + LONGEST]
            hint += f", at byte {column:,} of {self._n_bytes:,}"
            printable = f"{'...' if start else ''}{cut}{'...' if start + LONGEST < len(printable) else ''}"
            column += 3 - start if start else 0
        return f"{self.fault}{hint}\n  {printable}\n  {' ' * column}^"

    @property
    def column(self) -> int:
        """The position of the caret under the text, from 0, in bytes."""
        return min(self.position, self._n_bytes)

    @property
    def report(self) -> str:
        """What the `filter` file shows after this failure, with its last newline.

        Kernel: append_filter_err() and print_event_filter() in kernel/trace/trace_events_filter.c.
        """
        if self.fault is FilterFault.ERRNO:
            return f"{self.text}\nError: (0)\n\n"
        width = self.column + 1 if self.column else 0
        return f"{self.text}\n{'^':>{width}}\nparse_error: {self.fault}\n\n"

    @property
    def log_entry(self) -> str:
        """The entry of `error_log` without its time stamp.

        Kernel: tracing_err_log_seq_show() in kernel/trace/trace.c; the position is 16 bits wide.
        """
        position = 0 if self.fault is FilterFault.ERRNO else self.position & 0xFFFF
        caret = " " * (LOG_CARET_INDENT + position) + "^"
        return f"{LOG_LOCATION}: error: {self.fault}\n  Command: {self.text}\n{caret}\n"

    def for_system(self) -> FilterError:
        """Return the error that an event shows when the filter was written for its whole system.

        Kernel: process_system_preds() in kernel/trace/trace_events_filter.c.
        """
        raw = self.text.encode(errors="surrogateescape")
        return FilterError(raw, FilterFault.BAD_SUBSYS_FILTER)
