"""What is wrong with a trigger."""

from __future__ import annotations

import errno

from tracepoint.errors import TracepointError


class TriggerError(TracepointError):
    """A trigger that the kernel would refuse: `errno` is what it answers."""

    def __init__(self, message: str = "", number: int = errno.EINVAL) -> None:
        super().__init__(message)
        self.errno = number


class HistError(TriggerError):
    """A hist trigger that the kernel would refuse.

    `text` is its message (empty when it logs nothing), `needle` the text whose first occurrence in the
    command the caret points to (empty: its beginning), `number` the errno; `entries` are those two of
    every message that is logged, as a failure deep inside is reported again by its callers.  `why` is
    the reason where the kernel logs none.
    """

    def __init__(
        self, text: str = "", needle: str = "", number: int = errno.EINVAL, *, why: str = ""
    ) -> None:
        super().__init__(text or why, number)
        self.entries = [(text, needle)] if text else []

    def also(self, *texts: str, needle: str) -> HistError:
        """Add further messages and return itself."""
        self.entries.extend((text, needle) for text in texts)
        return self
