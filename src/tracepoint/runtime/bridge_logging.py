"""Bridges for programs that are written: log records as events, functions as entry and exit events."""

from __future__ import annotations

import functools
import logging
import time
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from tracepoint.model.python_types import s32, string_t, u64  # noqa: TC001 - read when an event is declared
from tracepoint.runtime.event import trace_event

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")


@functools.cache
def _log_event() -> Any:
    @trace_event(
        system="logging",
        printk='"%s %s: %s (%s:%d)", levelname, logger, message, file, line',
        name="log_record",
    )
    def log_record(  # noqa: PLR0917 - the fields of a log record
        level: s32, levelname: string_t, logger: string_t, message: string_t, file: string_t, line: s32
    ) -> None:
        del level, levelname, logger, message, file, line

    return log_record


class TraceHandler(logging.Handler):
    """A logging handler that fires `logging:log_record` for every log record.

    The message is formatted only while the event is recorded, so that it costs next to nothing
    when it is off:

    >>> import logging
    >>> logging.getLogger("shop").addHandler(TraceHandler())
    """

    def __init__(self, level: int = logging.NOTSET) -> None:
        super().__init__(level)
        self._event = _log_event()

    def handle(self, record: logging.LogRecord) -> bool:
        """Fire without taking the handler's lock when nothing listens."""
        return super().handle(record) if self._event else False

    def emit(self, record: logging.LogRecord) -> None:
        """Fire."""
        try:
            text = self.format(record)
        except Exception:  # noqa: BLE001 - logging's own rule: a bad record is reported, never raised
            self.handleError(record)
            return
        self._event(record.levelno, record.levelname, record.name, text, record.filename, record.lineno)


def trace_calls(
    *, system: str, name: str = "", result: Callable[[Any], object] = repr
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function fire `NAME_entry` and `NAME_exit` of `system`; `name` is the function's without it.

    The entry has the arguments as text, the exit the time in ns (`duration_ns`), and what was returned
    (`result` makes its text) or raised.  Nothing is turned into text while nobody listens.

    >>> @trace_calls(system="shop")
    ... def price_of(item):
    ...     return 350
    >>> price_of("tea")
    350
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        word = name or function.__name__
        entry: Any = trace_event(system=system, name=f"{word}_entry", printk='"(%s)", arguments')(_entry)
        exit_: Any = trace_event(
            system=system, name=f"{word}_exit", printk='"%s took=%lluns", outcome, duration_ns'
        )(_exit)

        @functools.wraps(function)
        def traced(*args: P.args, **kwargs: P.kwargs) -> R:
            if not entry and not exit_:
                return function(*args, **kwargs)
            if entry:
                entry(_text(lambda: _arguments(args, kwargs)))
            begin = time.monotonic_ns()
            try:
                made = function(*args, **kwargs)
            except BaseException as error:
                kind = type(error).__name__
                exit_(f"raised {kind}", time.monotonic_ns() - begin)
                raise
            exit_(_text(lambda: f"returned {result(made)}"), time.monotonic_ns() - begin)
            return made

        return traced

    return decorate


def _entry(arguments: string_t) -> None:
    del arguments


def _exit(outcome: string_t, duration_ns: u64) -> None:
    del outcome, duration_ns


def _text(make: Callable[[], str]) -> str:
    """Return a text; where making it fails, what failed: the program must not notice."""
    try:
        return make()
    except Exception as error:  # noqa: BLE001 - whatever a value's own repr raises
        return f"<{type(error).__name__}>"


def _arguments(args: tuple[object, ...], kwargs: dict[str, object]) -> str:
    return ", ".join([*map(repr, args), *(f"{key}={value!r}" for key, value in kwargs.items())])
