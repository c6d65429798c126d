"""The files that switch events: set_event, set_event_pid, and everything below events/."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from tracepoint.errors import TracepointError
from tracepoint.filter.error import FilterError
from tracepoint.filter.numbers import read_u64
from tracepoint.layout.format import write_format
from tracepoint.layout.process_events import FUNCTION_ID, OWN_BY_NAME, OWN_EVENTS, PRINT_ID
from tracepoint.record.layout import HEADER_EVENT, PageLayout, header_page_text
from tracepoint.runtime.files.file import (
    MAX_WRITE,
    SPACE,
    File,
    Folder,
    failure,
    first_word,
    fixed_folder,
    made_folder,
    read_decimal,
    text_file,
)
from tracepoint.runtime.files.texts import SYSTEM_FILTER
from tracepoint.runtime.fire.probes import EventError
from tracepoint.runtime.hierarchy import System, state_of, switch_events
from tracepoint.runtime.triggers.trigger import PRINT, trigger_set

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tracepoint.runtime.event_control import EventControl
    from tracepoint.runtime.files.state import InstanceState

MAX_PID = 1 << 22
PIECE = 4096


def set_event_file(state: InstanceState) -> File:
    """Make `set_event`: one word a write."""

    def write(data: bytes) -> int:
        word, taken = first_word(data)
        if word:
            state.expand()
            try:
                state.instance.set_event(word.decode(errors="surrogateescape"))
            except TracepointError as error:
                raise failure(getattr(error, "errno", errno.EINVAL)) from None
        return taken

    def read() -> str:
        return "".join(f"{name}\n" for name in state.instance.enabled_events)

    def truncate() -> None:
        _switch(state, state.tracing.events, is_on=False)

    return File(read, write, truncate)


def pid_file(state: InstanceState, *, is_hidden: bool) -> File:
    """Make `set_event_pid` or `set_event_notrace_pid`: trace_pid_write() in kernel/trace/trace_pid.c."""

    def pids() -> set[int]:
        return state.hidden_pids if is_hidden else state.pids

    def write(data: bytes) -> int:
        data = data[: _whole_words(data)]
        found = set()
        for word in data.split():
            value = read_u64(word)
            if value is None or value >= MAX_PID:
                raise failure(errno.EINVAL)
            found.add(value)
        pids().update(found)
        state.apply_gate()
        return len(data)

    def truncate() -> None:
        pids().clear()
        state.apply_gate()

    return File(lambda: "".join(f"{pid}\n" for pid in sorted(pids())), write, truncate)


def _whole_words(data: bytes) -> int:
    """Return how much of a write to take: a mount hands on a long one in pieces that may end in a word."""
    is_piece = bool(data) and len(data) % PIECE == 0 and data[-1] not in SPACE
    end = max(data.rfind(char) for char in SPACE) + 1 if is_piece else 0
    return end or len(data)


def switch_file(read: Callable[[], str], switch: Callable[[bool], None]) -> File:
    """Make an `enable` file: 0 or 1."""

    def write(data: bytes) -> None:
        value = read_decimal(data)
        if value > 1:
            raise failure(errno.EINVAL)
        switch(bool(value))

    return File(lambda: f"{read()}\n", write)


def _switch_all(state: InstanceState, events: Callable[[], Iterable[EventControl]]) -> File:
    def switch(is_on: bool) -> None:
        state.expand()
        _switch(state, events(), is_on=is_on)

    return switch_file(lambda: state_of(tuple(events()), state.instance), switch)


def _switch(state: InstanceState, events: Iterable[EventControl], *, is_on: bool) -> None:
    try:
        switch_events(events, state.instance, is_on=is_on)
    except EventError as error:
        raise failure(error.errno) from None


def event_filter_file(state: InstanceState, event: EventControl) -> File:
    """Make an event's `filter`."""

    def write(data: bytes) -> None:
        if len(data) > MAX_WRITE:
            raise failure(errno.EINVAL)
        try:
            event.set_filter(data.rstrip(SPACE).decode(errors="surrogateescape"), state.instance)
        except FilterError as error:
            raise failure(error.errno) from None

    return File(lambda: f"{event.filter_in(state.instance)}\n", write)


def system_filter_file(system: System) -> File:
    """Make a system's `filter`, which shows the same text always."""

    def write(data: bytes) -> None:
        if len(data) > MAX_WRITE:
            raise failure(errno.EINVAL)
        system.set_filter(data.rstrip(SPACE).decode(errors="surrogateescape"))

    return File(lambda: SYSTEM_FILTER, write)


def event_folder(state: InstanceState, event: EventControl) -> Folder:
    """Make events/SYSTEM/EVENT."""

    def switch(is_on: bool) -> None:
        state.expand()
        _switch(state, (event,), is_on=is_on)

    triggers = trigger_set(state, event.full_name)
    return made_folder(
        {
            "enable": lambda: switch_file(lambda: event.state_in(state.instance), switch),
            "filter": lambda: event_filter_file(state, event),
            "format": lambda: text_file(lambda: write_format(event.layout)),
            "hist": lambda: text_file(triggers.hist_text),
            "id": lambda: text_file(lambda: f"{event.id}\n"),
            "trigger": lambda: File(triggers.text, triggers.write, triggers.truncate),
        }
    )


def system_folder(state: InstanceState, name: str) -> Folder | None:
    """Make events/SYSTEM, or nothing when there is no such event."""
    events = {e.event.name: e for e in state.tracing.events if e.system == name}
    if not events:
        return None
    fixed: dict[str, Callable[[], File]] = {
        "enable": lambda: _switch_all(state, lambda: [e for e in state.tracing.events if e.system == name]),
        "filter": lambda: system_filter_file(System(name, state.instance)),
    }

    def child(word: str) -> File | Folder | None:
        if word in fixed:
            return fixed[word]()
        return event_folder(state, events[word]) if word in events else None

    return Folder(lambda: [*fixed, *events], child)


def ftrace_folder(state: InstanceState) -> Folder:
    """Make events/ftrace: the tracer's own events, which cannot be enabled."""

    def own(name: str) -> Folder:
        form = OWN_BY_NAME[name]
        files = {"format": text_file(lambda: write_format(form)), "hist": text_file(lambda: "")}
        if form.id in (PRINT_ID, FUNCTION_ID):
            files["id"] = text_file(lambda: f"{form.id}\n")
        if form.id == PRINT_ID:
            triggers = trigger_set(state, PRINT)
            files["trigger"] = File(triggers.text, triggers.write, triggers.truncate)
            files["hist"] = text_file(triggers.hist_text)
        return fixed_folder(files)

    return Folder(
        lambda: [form.name for form in OWN_EVENTS], lambda name: own(name) if name in OWN_BY_NAME else None
    )


def events_folder(state: InstanceState) -> Folder:
    """Make events/."""
    fixed: dict[str, Callable[[], File]] = {
        "enable": lambda: _switch_all(state, lambda: state.tracing.events),
        "header_event": lambda: text_file(lambda: HEADER_EVENT),
        "header_page": lambda: text_file(lambda: header_page_text(PageLayout())),
    }

    def child(name: str) -> File | Folder | None:
        if name in fixed:
            return fixed[name]()
        return ftrace_folder(state) if name == "ftrace" else system_folder(state, name)

    return Folder(lambda: [*fixed, "ftrace", *state.tracing.systems], child)
