"""Synthetic events: declared by text in `synthetic_events`, fired by the actions of hist triggers.

Kernel: kernel/trace/trace_events_synth.c.  The record is laid out as that of any event here, not in slots
of 8 bytes.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from tracepoint.errors import TracepointError
from tracepoint.model.python.declare import declare
from tracepoint.model.python.fields import array, scalar, string
from tracepoint.runtime.declare.control import make_tracepoint
from tracepoint.runtime.dynamic.synthetic_fields import (
    BAD_COMMAND,
    GOOD_NAME,
    Synthetic,
    SyntheticError,
    SynthField,
    parse_fields,
)
from tracepoint.runtime.files.file import File, failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tracepoint.runtime.event_control import EventControl
    from tracepoint.runtime.files.state import InstanceState
    from tracepoint.runtime.hierarchy import Tracing

SYSTEM = "synthetic"
BAD_DYNAMIC = "Command must be of the form: s or -:[synthetic/]<name> field[;field] ..."


def define(tracing: Tracing, name: str, fields: tuple[SynthField, ...]) -> Synthetic:
    """Declare the event `synthetic:NAME`; raises SyntheticError, TracepointError."""
    if GOOD_NAME.fullmatch(name) is None:
        raise SyntheticError("Illegal name", name)
    if name in tracing.synthetic:
        raise SyntheticError("Event already exists", name, errno.EEXIST)
    members = []
    for f in fields:
        if f.size is None:
            members.append(scalar(f.ctype, f.name))
        else:
            members.append(string(f.name) if f.is_dynamic else array("char", f.name, int(f.size)))
    words = " ".join(f"{f.name}={f.shown}" for f in fields)
    proto = ", ".join(f"const char *{f.name}" if f.is_string else f"{f.ctype} {f.name}" for f in fields)
    event = declare(
        name,
        system=SYSTEM,
        proto=proto,
        struct=members,
        assign={f.name: f.name for f in fields if not f.is_string},
        printk=", ".join([f'"{words}"', *(f.name for f in fields)]),
    )
    made = tracing.synthetic[name] = Synthetic(name, fields, make_tracepoint(event, tracing=tracing))
    return made


def remove(state: InstanceState, name: str) -> None:
    """Take a synthetic event away; raises OSError (ENOENT, EBUSY)."""
    found = state.tracing.synthetic.get(name)
    if found is None:
        raise failure(errno.ENOENT)
    if found.n_users or found.n_probes:
        raise failure(errno.EBUSY)
    forget_event(state, state.tracing.event(f"{SYSTEM}:{name}"))
    del state.tracing.synthetic[name]


def forget_event(state: InstanceState, control: EventControl) -> None:
    """Remove an event that nothing uses; raises OSError (EBUSY).

    Instances that recorded it are cleared, since its records can no longer be decoded:
    trace_remove_event_call() in kernel/trace/trace_events.c.
    """
    instances = (state.tracing, *state.tracing.instances.values())
    if len(control.probes) or any(control.is_registered_in(instance) for instance in instances):
        raise failure(errno.EBUSY)
    for instance in instances:
        if control.was_enabled_in(instance):
            instance.clear()
    state.tracing.remove(control)


def synthetic_file(state: InstanceState) -> File:
    """Make `synthetic_events`."""

    def write(data: bytes) -> None:
        for text in command_lines(data):
            take_command(state, text.lstrip(), _command)

    def read() -> str:
        return "".join(f"{made}\n" for made in state.tracing.synthetic.values())

    return File(read, write, lambda: _remove_all(state))


def command_lines(data: bytes) -> Iterator[str]:
    """Yield the lines of a write that say something, without comments: trace_parse_run_command()."""
    for line in data.decode(errors="replace").split("\n"):
        text = line.partition("#")[0].rstrip()
        if text:
            yield text


def _remove_all(state: InstanceState) -> None:
    if any(found.n_users for found in state.tracing.synthetic.values()):
        raise failure(errno.EBUSY)
    for name in list(state.tracing.synthetic):
        remove(state, name)


def take_command(state: InstanceState, text: str, command: Callable[[InstanceState, str], None]) -> None:
    """Run a command; what the kernel's parser refuses goes into the log."""
    try:
        command(state, text)
    except SyntheticError as error:
        at = max(text.find(error.needle), 0)
        caret = " " * (len("  Command: ") + at) + "^"
        state.instance.log_error(f"synthetic_events: error: {error.text}\n  Command: {text}\n{caret}\n")
        raise failure(error.number) from None
    except TracepointError as error:
        raise failure(getattr(error, "errno", errno.EINVAL)) from None


def _command(state: InstanceState, text: str) -> None:
    """Define or remove: create_or_delete_synth_event()."""
    name, _, fields = text.replace("\t", " ").partition(" ")
    if text.startswith("!"):
        remove(state, name[1:].rstrip(";"))
        return
    if len(text.partition(";")[0].split()) < 3:
        raise SyntheticError(BAD_COMMAND, "")
    define(state.tracing, name, parse_fields(fields))


def define_dynamic(state: InstanceState, text: str) -> None:
    """Define by `s:[synthetic/]NAME FIELDS`: create_synth_event(); raises OSError."""
    take_command(state, text, _dynamic_command)


def _dynamic_command(state: InstanceState, text: str) -> None:
    name, _, fields = text[2:].replace("\t", " ").partition(" ")
    if not fields.strip():
        raise SyntheticError(BAD_COMMAND, "")
    if "/" in name and not name.startswith(f"{SYSTEM}/"):
        raise SyntheticError(BAD_DYNAMIC, "")
    name = name.removeprefix(f"{SYSTEM}/")
    if len(f"{name} {fields}".partition(";")[0].split()) < 3:
        raise SyntheticError(BAD_COMMAND, "")
    define(state.tracing, name, parse_fields(fields))
