"""Synthetic events: declared by text in `synthetic_events`, fired by the actions of hist triggers.

Kernel: kernel/trace/trace_events_synth.c for the grammar.  The record is laid out as that of any event
here, not in slots of 8 bytes.
"""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracepoint.errors import TracepointError
from tracepoint.model.python.declare import declare
from tracepoint.model.python.fields import array, scalar, string
from tracepoint.runtime.files.file import File, failure
from tracepoint.source.types import LLONG, IntType, conversion_of, int_type_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tracepoint.runtime.files.state import InstanceState
    from tracepoint.runtime.hierarchy import EventControl

SYSTEM = "synthetic"
MAX_FIELDS = 64
MAX_STRING = 256
BAD_COMMAND = "Command must be of the form: <name> field[;field] ..."
BAD_DYNAMIC = "Command must be of the form: s or -:[synthetic/]<name> field[;field] ..."
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_ARRAY = re.compile(r"\[([0-9]{0,3})\]", re.ASCII)


# synth_field_size() and synth_field_fmt() in kernel/trace/trace_events_synth.c.
_TYPES = ("s8 s16 s32 s64 u8 u16 u32 u64 int long char pid_t bool gfp_t".split()) + [
    f"unsigned {name}" for name in ("int", "long", "char")
]
_SHOWN = {name: conversion_of(name) for name in _TYPES} | {"gfp_t": "%x"}


@dataclass(frozen=True, slots=True)
class SynthField:
    """A field as it was written."""

    ctype: str
    name: str
    size: str | None

    @property
    def is_string(self) -> bool:
        """Whether its values are text."""
        return self.size is not None

    @property
    def is_dynamic(self) -> bool:
        """Whether texts of any length go in."""
        return self.size is not None and not int(self.size or "0")

    @property
    def n_bytes(self) -> int:
        """The size of a number."""
        return self._number.size

    @property
    def is_signed(self) -> bool:
        """Whether a number may be negative."""
        return self._number.is_signed

    @property
    def _number(self) -> IntType:
        return int_type_named(self.ctype) or LLONG

    def __str__(self) -> str:
        return f"{self.ctype}{'' if self.size is None else f'[{self.size}]'} {self.name}"


@dataclass(slots=True)
class Synthetic:
    """A synthetic event; `n_users` counts the hist triggers that fire it, `n_probes` its event probes."""

    name: str
    fields: tuple[SynthField, ...]
    tracepoint: Any
    n_users: int = 0
    n_probes: int = 0

    def __str__(self) -> str:
        return f"{self.name}\t{'; '.join(map(str, self.fields))}"


class SyntheticError(Exception):
    """A definition that the kernel would refuse: its message and the part that the caret shows."""

    def __init__(self, text: str, needle: str, number: int = errno.EINVAL) -> None:
        super().__init__(text)
        self.text = text
        self.needle = needle
        self.number = number


known: dict[str, Synthetic] = {}


def parse_fields(text: str) -> tuple[SynthField, ...]:
    """Read `TYPE NAME; TYPE NAME`; older kernels wanted no `;`.  Raises SyntheticError.

    >>> [str(f) for f in parse_fields("u64 lat; unsigned int n char who[16]")]
    ['u64 lat', 'unsigned int n', 'char[16] who']
    """
    found: list[SynthField] = []
    for piece in text.split(";"):
        words = piece.split()
        while words:
            n_words = 3 if words[0] == "unsigned" else 2
            if n_words == 3 and len(words) < 3:
                raise SyntheticError("Incomplete type", words[0])
            if len(words) < 2:
                raise SyntheticError("Invalid field", words[0])
            if len(found) == MAX_FIELDS:
                raise SyntheticError("Too many fields", "")
            found.append(_field(" ".join(words[: n_words - 1]), words[n_words - 1]))
            words = words[n_words:]
    if not found:
        raise SyntheticError(BAD_COMMAND, "")
    return tuple(found)


def _field(ctype: str, word: str) -> SynthField:
    """Read one field: parse_synth_field()."""
    name, bracket, _ = word.partition("[")
    if _NAME.fullmatch(name) is None:
        raise SyntheticError("Illegal name", word)
    if not bracket:
        if ctype not in _SHOWN:
            raise SyntheticError("Invalid type", ctype.rsplit(maxsplit=1)[-1])
        return SynthField(ctype, name, None)
    if ctype != "char":
        raise SyntheticError("Invalid type", ctype.rsplit(maxsplit=1)[-1])
    array = _ARRAY.fullmatch(word[len(name) :])
    if array is None or int(array[1] or "0") > MAX_STRING:
        raise SyntheticError("Invalid array specification", word)
    return SynthField(ctype, name, array[1])


def define(name: str, fields: tuple[SynthField, ...]) -> Synthetic:
    """Declare the event `synthetic:NAME`; raises SyntheticError, TracepointError."""
    if _NAME.fullmatch(name) is None:
        raise SyntheticError("Illegal name", name)
    if name in known:
        raise SyntheticError("Event already exists", name, errno.EEXIST)
    members = []
    for f in fields:
        if f.size is None:
            members.append(scalar(f.ctype, f.name))
        else:
            members.append(string(f.name) if f.is_dynamic else array("char", f.name, int(f.size)))
    words = " ".join(f"{f.name}={'%s' if f.is_string else _SHOWN[f.ctype]}" for f in fields)
    proto = ", ".join(f"const char *{f.name}" if f.is_string else f"{f.ctype} {f.name}" for f in fields)
    from tracepoint.runtime.declare.control import make_tracepoint  # noqa: PLC0415 - the hierarchy of now

    event = declare(
        name,
        system=SYSTEM,
        proto=proto,
        struct=members,
        assign={f.name: f.name for f in fields if not f.is_string},
        printk=", ".join([f'"{words}"', *(f.name for f in fields)]),
    )
    made = known[name] = Synthetic(name, fields, make_tracepoint(event))
    return made


def remove(state: InstanceState, name: str) -> None:
    """Take a synthetic event away; raises OSError (ENOENT, EBUSY)."""
    found = known.get(name)
    if found is None:
        raise failure(errno.ENOENT)
    if found.n_users or found.n_probes:
        raise failure(errno.EBUSY)
    forget_event(state, state.tracing.event(f"{SYSTEM}:{name}"))
    del known[name]


def forget_event(state: InstanceState, control: EventControl) -> None:
    """Take an event away for which nobody listens; raises OSError (EBUSY).

    Who recorded it begins anew, since nothing tells any more what its records are:
    trace_remove_event_call() in kernel/trace/trace_events.c.
    """
    instances = (state.tracing, *state.tracing.instances.values())
    if len(control.probes) or any(control.is_registered_in(instance) for instance in instances):
        raise failure(errno.EBUSY)
    for instance in instances:
        if control.was_enabled_in(instance):
            instance.clear()
    state.tracing._events.pop(control.full_name)  # noqa: SLF001 - nothing else is ever removed


def synthetic_file(state: InstanceState) -> File:
    """Make `synthetic_events`."""

    def write(data: bytes) -> None:
        for text in command_lines(data):
            take_command(state, text.lstrip(), _command)

    return File(lambda: "".join(f"{made}\n" for made in known.values()), write, lambda: _remove_all(state))


def command_lines(data: bytes) -> Iterator[str]:
    """Yield the lines of a write that say something, without comments: trace_parse_run_command()."""
    for line in data.decode(errors="replace").split("\n"):
        text = line.partition("#")[0].rstrip()
        if text:
            yield text


def _remove_all(state: InstanceState) -> None:
    if any(found.n_users for found in known.values()):
        raise failure(errno.EBUSY)
    for name in list(known):
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
    define(name, parse_fields(fields))


def define_dynamic(state: InstanceState, text: str) -> None:
    """Define by `s:[synthetic/]NAME FIELDS`: create_synth_event(); raises OSError."""
    take_command(state, text, _dynamic_command)


def _dynamic_command(state: InstanceState, text: str) -> None:
    del state
    name, _, fields = text[2:].replace("\t", " ").partition(" ")
    if not fields.strip():
        raise SyntheticError(BAD_COMMAND, "")
    if "/" in name and not name.startswith(f"{SYSTEM}/"):
        raise SyntheticError(BAD_DYNAMIC, "")
    name = name.removeprefix(f"{SYSTEM}/")
    if len(f"{name} {fields}".partition(";")[0].split()) < 3:
        raise SyntheticError(BAD_COMMAND, "")
    define(name, parse_fields(fields))
