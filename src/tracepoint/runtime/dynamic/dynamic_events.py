"""The file `dynamic_events`: synthetic events and event probes, made and removed by text.

Kernel: kernel/trace/trace_dynevent.c.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from tracepoint.filter.error import FilterError
from tracepoint.runtime.dynamic.event_probe import EventProbe, define_probe
from tracepoint.runtime.dynamic.probe_args import EventProbeError
from tracepoint.runtime.dynamic.synthetic import (
    SYSTEM,
    command_lines,
    define_dynamic,
    forget_event,
    remove,
)
from tracepoint.runtime.files.file import File, failure
from tracepoint.runtime.fire.probes import EventError

if TYPE_CHECKING:
    from tracepoint.runtime.event_control import EventControl
    from tracepoint.runtime.files.state import InstanceState


def dynamic_file(state: InstanceState) -> File:
    """Make `dynamic_events`."""

    def write(data: bytes) -> None:
        for text in command_lines(data):
            _command(state, text)

    def read() -> str:
        return "".join(f"{_line(state, control)}\n" for control in _all(state))

    return File(read, write, lambda: _remove_all(state))


def _all(state: InstanceState) -> list[EventControl]:
    """Return the events that can be removed, oldest first."""
    return [e for e in state.tracing.events if isinstance(e, EventProbe) or _is_synthetic(state, e)]


def _is_synthetic(state: InstanceState, control: EventControl) -> bool:
    return control.system == SYSTEM and control.event.name in state.tracing.synthetic


def _line(state: InstanceState, control: EventControl) -> str:
    if isinstance(control, EventProbe):
        return str(control)
    return f"s:{SYSTEM}/{state.tracing.synthetic[control.event.name]}"


def _command(state: InstanceState, text: str) -> None:
    """Make or remove events: create_dyn_event()."""
    words = text.split()
    if text[0] in "-!":
        _release(state, words)
    elif words[0].startswith("s:"):
        define_dynamic(state, text.lstrip())
    elif words[0][0] == "e" and len(words) > 1:
        _define_probe(state, words)
    else:
        raise failure(errno.EINVAL)


def _define_probe(state: InstanceState, words: list[str]) -> None:
    try:
        made = define_probe(state.tracing, words)
    except EventProbeError as error:
        for text, place in error.entries:
            caret = " " * (len("  Command: ") + place) + "^"
            state.instance.log_error(f"event_probe: error: {text}\n  Command: {' '.join(words)}\n{caret}\n")
        raise failure(error.number) from None
    except FilterError as error:
        state.instance.log_error(error.log_entry)
        raise failure(errno.EINVAL) from None
    except EventError as error:
        raise failure(error.errno) from None
    _count_probe(state, made, 1)


def _count_probe(state: InstanceState, probe: EventProbe, n: int) -> None:
    """Let a synthetic event stay as long as a probe is attached to it."""
    if _is_synthetic(state, probe.source):
        state.tracing.synthetic[probe.source.event.name].n_probes += n


def _release(state: InstanceState, words: list[str]) -> None:
    """Remove by `-:[GROUP/][NAME] [SYSTEM.EVENT [ARGS]]`, or with `!` and a type: dyn_event_release()."""
    before, colon, name = words[0].partition(":")
    if not colon or (before[0] == "-" and before != "-"):
        raise failure(errno.EINVAL)
    group, slash, event = name.partition("/")
    if not slash:
        event = group
    if not slash and not event:
        raise failure(errno.EINVAL)
    found = [e for e in _all(state) if _matches(e, group if slash else None, event, words[1:])]
    if not found:
        raise failure(errno.ENOENT)
    for control in found:
        _free(state, control)


def _matches(control: EventControl, group: str | None, event: str, words: list[str]) -> bool:
    """Say whether a removal means this event: eprobe_dyn_event_match(), synth_event_match()."""
    if group is not None and group != control.system:
        return False
    if not isinstance(control, EventProbe):
        return event == control.event.name
    if event and event != control.event.name:
        return False
    if not words:
        return True
    attached = words[0].partition("/" if "/" in words[0] else ".")
    if (attached[0], attached[2]) != (control.source.system, control.source.event.name):
        return False
    args = [f"{arg.name}={arg.expression}" for arg in control.args]
    return words[1:] == args[: len(words) - 1]


def _free(state: InstanceState, control: EventControl) -> None:
    if not isinstance(control, EventProbe):
        remove(state, control.event.name)
        return
    forget_event(state, control)
    _count_probe(state, control, -1)


def _remove_all(state: InstanceState) -> None:
    """Remove everything, or nothing when one is in use: dyn_events_release_all()."""
    instances = (state.tracing, *state.tracing.instances.values())
    for control in _all(state):
        if isinstance(control, EventProbe):
            is_busy = any(control.is_registered_in(instance) for instance in instances)
        else:
            is_busy = state.tracing.synthetic[control.event.name].n_users > 0
        if is_busy:
            raise failure(errno.EBUSY)
    for control in _all(state):
        _free(state, control)
