"""Bridges for programs that are written: log records as events, functions as entry and exit events."""

from __future__ import annotations

import functools
import inspect
import logging
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from tracepoint.model.python.types import DeclarationTypeError, s32, string_t, u64
from tracepoint.runtime.declare.event import trace_event
from tracepoint.runtime.hierarchy import tracing
from tracepoint.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping

    from tracepoint.runtime.hierarchy import Tracing

P = ParamSpec("P")
R = TypeVar("R")
# A record has 4072 bytes, and some are for the other fields.
_MAX_TEXT = 3000
_MAX_EXTRA = 600
_PLAIN_KEY = re.compile(r"[^\s='\"]+")
# What every record has; the rest came with `extra=`.
_OWN_ATTRIBUTES = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


def _log_event(tracing: Tracing) -> Any:
    @trace_event(
        system="logging",
        printk='"%s %s: %s (%s:%d) %s", levelname, logger, message, file, line, extra',
        name="log_record",
        tracing=tracing,
    )
    def log_record(  # noqa: PLR0917 - the fields of a log record
        level: s32,
        levelname: string_t,
        logger: string_t,
        message: string_t,
        file: string_t,
        line: s32,
        extra: string_t,
    ) -> None:
        del level, levelname, logger, message, file, line, extra

    return log_record


class TraceHandler(logging.Handler):
    """A logging handler that fires `logging:log_record` for every log record.

    `tracing` is the hierarchy that gets the event.  What a call gives as `extra=` is in the field `extra`,
    as `order=7 customer='ada'`.  The message is formatted only while the event is recorded, so that it costs
    next to nothing when it is off:

    >>> import logging
    >>> logging.getLogger("shop").addHandler(TraceHandler())
    """

    def __init__(self, level: int = logging.NOTSET, *, tracing: Tracing = tracing) -> None:
        super().__init__(level)
        self._event = _log_event(tracing)

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
        extra = _extra_of(record)
        message = _cut(text)[: _MAX_TEXT - len(extra)]
        place = record.filename, record.lineno
        self._event(record.levelno, record.levelname, record.name, message, *place, extra)


class TraceProcessor:
    """A structlog processor that fires declared events, and hands the entry on as it is.

    `events` gives the event for a message, `{"order placed": order_placed}`; its parameters are filled from
    the entry's keys, so a filter or a hist trigger sees numbers, not text.  An entry without one of them is a
    fault of the event, as any call that does not fit: it is counted, and nothing is raised.  While an event
    is off, an entry costs one look into the dictionary.

    >>> import tracepoint as tp
    >>> @tp.trace_event(system="placed", printk='"id=%llu", id')
    ... def order_placed(id: tp.u64) -> None: ...
    >>> processor = TraceProcessor({"order placed": order_placed})
    >>> processor(None, "info", {"event": "order placed", "id": 7})
    {'event': 'order placed', 'id': 7}
    """

    def __init__(self, events: Mapping[str, Any]) -> None:
        self._events = {
            message: (event, tuple(inspect.signature(event).parameters)) for message, event in events.items()
        }

    def __repr__(self) -> str:
        return f"<TraceProcessor, {counted(len(self._events), 'message')}>"

    def __call__(
        self, logger: object, method: str, entry: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        """Fire the event of this message, if there is one."""
        del logger, method
        message = entry.get("event")
        found = self._events.get(message) if isinstance(message, str) else None
        if found is not None and found[0]:
            event, parameters = found
            event(**{name: entry[name] for name in parameters if name in entry})
        return entry


def _extra_of(record: logging.LogRecord) -> bytes:
    """Return what came with `extra=`, as `key=value`, with the room of a short text."""
    given = record.__dict__.keys() - _OWN_ATTRIBUTES
    return pairs_text({key: value for key, value in record.__dict__.items() if key in given})


def pairs_text(pairs: Mapping[str, object], room: int = _MAX_EXTRA) -> bytes:
    """Return `key=value` of each pair, `...` at its end where that is more than `room` bytes.

    A key with what separates pairs, such as a space, is its repr; a repr that fails is named in it.

    >>> pairs_text({"order": 7, "paid by": "card"}), pairs_text({"order": 1234567}, 10)
    (b"order=7 'paid by'='card'", b'order=1...')
    """
    text = _cut(" ".join(f"{_key(key)}={_repr(value)}" for key, value in pairs.items()))
    return text if len(text) <= room else text[: room - 3] + b"..."


def _key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) else _repr(key)


def trace_calls(
    *,
    system: str,
    name: str = "",
    result: Callable[[Any], object] = repr,
    tracing: Tracing = tracing,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function fire `NAME_entry` and `NAME_exit` of `system`; `name` is the function's without it.

    The entry has the arguments as text, the exit the time in ns (`duration_ns`), and what was returned
    (`result` makes its text) or raised.  Nothing is turned into text while the event is off.  Coroutine
    functions and generators, also asynchronous ones, stay what they are: their entry is where their
    body begins, their exit where it ends, and the time between has their waiting in it.  Raises
    DeclarationTypeError for what is not a function.  `tracing` is the hierarchy that gets the events.

    >>> @trace_calls(system="shop")
    ... def price_of(item):
    ...     return 350
    >>> price_of("tea")
    350
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        if isinstance(function, (classmethod, staticmethod)):
            return type(function)(decorate(function.__func__))
        if isinstance(function, type) or not callable(function):
            raise DeclarationTypeError(f"trace_calls() is for functions, not for {function!r}")
        word = name or function.__name__
        make = functools.partial(trace_event, system=system, tracing=tracing)
        entry: Any = make(name=f"{word}_entry", printk='"(%s)", arguments')(_entry)
        exit_: Any = make(name=f"{word}_exit", printk='"%s took=%lluns", outcome, duration_ns')(_exit)
        traced: Any = _wrapper_of(function, _Call(entry, exit_, result))
        return functools.wraps(function)(traced)

    return decorate


@dataclass(slots=True)
class _Call:
    """The two events of a function; `begin` gives the time, 0 while it is off."""

    entry: Any
    exit: Any
    result: Callable[[Any], object]

    def begin(self, args: tuple[object, ...], kwargs: dict[str, object]) -> int:
        if not self.entry and not self.exit:
            return 0
        if self.entry:
            self.entry(bounded_text(lambda: _arguments(args, kwargs)))
        return time.monotonic_ns()

    def returned(self, begin: int, value: object) -> None:
        if begin and self.exit:
            self.exit(bounded_text(lambda: f"returned {self.result(value)}"), time.monotonic_ns() - begin)

    def raised(self, begin: int, error: BaseException) -> None:
        if begin and self.exit:
            self.exit(f"raised {type(error).__name__}", time.monotonic_ns() - begin)


def _wrapper_of(function: Callable[..., Any], call: _Call) -> Callable[..., Any]:
    """Return a function of the same kind: callers ask which it is (inspect.iscoroutinefunction)."""
    if inspect.isasyncgenfunction(function):
        return _of_async_generator(function, call)
    if inspect.iscoroutinefunction(function):
        return _of_coroutine(function, call)
    if inspect.isgeneratorfunction(function):
        return _of_generator(function, call)

    entry, exit_ = call.entry, call.exit

    def traced(*args: Any, **kwargs: Any) -> Any:
        # Asked here, not in begin(): this is all that a call costs while the events are off.
        if not entry and not exit_:
            return function(*args, **kwargs)
        begin = call.begin(args, kwargs)
        try:
            made = function(*args, **kwargs)
        except BaseException as error:
            call.raised(begin, error)
            raise
        call.returned(begin, made)
        return made

    return traced


def _of_coroutine(function: Callable[..., Any], call: _Call) -> Callable[..., Any]:
    async def traced(*args: Any, **kwargs: Any) -> Any:
        begin = call.begin(args, kwargs)
        try:
            made = await function(*args, **kwargs)
        except BaseException as error:
            call.raised(begin, error)
            raise
        call.returned(begin, made)
        return made

    return traced


def _of_generator(function: Callable[..., Any], call: _Call) -> Callable[..., Any]:
    def traced(*args: Any, **kwargs: Any) -> Any:
        begin = call.begin(args, kwargs)
        try:
            made = yield from function(*args, **kwargs)
        except BaseException as error:
            call.raised(begin, error)
            raise
        call.returned(begin, made)
        return made

    return traced


def _of_async_generator(function: Callable[..., Any], call: _Call) -> Callable[..., Any]:
    async def traced(*args: Any, **kwargs: Any) -> Any:
        begin = call.begin(args, kwargs)
        inner = function(*args, **kwargs)
        try:
            item = await anext(inner)
            while True:
                try:
                    sent = yield item
                except GeneratorExit:
                    await inner.aclose()
                    raise
                except BaseException as error:  # noqa: BLE001 - all that athrow() was given goes on inside
                    item = await inner.athrow(error)
                else:
                    item = await inner.asend(sent)
        except StopAsyncIteration:
            call.returned(begin, None)
        except BaseException as error:
            call.raised(begin, error)
            raise

    return traced


def _entry(arguments: string_t) -> None:
    del arguments


def _exit(outcome: string_t, duration_ns: u64) -> None:
    del outcome, duration_ns


def bounded_text(make: Callable[[], str]) -> bytes:
    """Return the beginning of a text; where making it fails, what failed: the program must not notice."""
    try:
        return _cut(make())
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever a value's own repr raises
        return _cut(f"<{type(error).__name__}>")


def _repr(value: object) -> str:
    return bounded_text(lambda: repr(value)).decode(errors="replace")


def _cut(text: str) -> bytes:
    """Return a text as bytes, as many as a record has room for."""
    return text.encode(errors="backslashreplace")[:_MAX_TEXT]


def _arguments(args: tuple[object, ...], kwargs: dict[str, object]) -> str:
    return ", ".join([*map(repr, args), *(f"{key}={value!r}" for key, value in kwargs.items())])
