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
from tracepoint.model.python import array, declare, scalar, string
from tracepoint.runtime.files import File, failure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.runtime.files_state import InstanceState

SYSTEM = "synthetic"
MAX_FIELDS = 64
_NAME = re.compile(r"[A-Za-z_]\w*")
_FIELD = re.compile(r"\s*((?:unsigned\s+)?\w+)\s+([A-Za-z_]\w*)(?:\[(\d*)\])?(?=\s|$)")
_SIGNED = {
    "s8": "%d",
    "s16": "%d",
    "s32": "%d",
    "s64": "%lld",
    "int": "%d",
    "char": "%d",
    "short": "%d",
    "long": "%ld",
    "pid_t": "%d",
}
_UNSIGNED = {
    "u8": "%u",
    "u16": "%u",
    "u32": "%u",
    "u64": "%llu",
    "bool": "%d",
    "size_t": "%zu",
    "gfp_t": "%x",
    "unsigned int": "%u",
    "unsigned long": "%lu",
    "unsigned char": "%u",
    "unsigned short": "%u",
}
_FORMATS = _SIGNED | _UNSIGNED
MAX_STRING = 256


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

    def __str__(self) -> str:
        return f"{self.ctype}{'' if self.size is None else f'[{self.size}]'} {self.name}"


@dataclass(slots=True)
class Synthetic:
    """A synthetic event; `n_users` counts the hist triggers that fire it."""

    name: str
    fields: tuple[SynthField, ...]
    tracepoint: Any
    n_users: int = 0

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
    """Read `TYPE NAME; TYPE NAME`; raises SyntheticError."""
    found = []
    for part in _field_texts(text):
        match = _FIELD.fullmatch(part)
        if match is None:
            raise SyntheticError("Command must be of the form: <name> field[;field] ...", part)
        ctype, name, size = " ".join(match[1].split()), match[2], match[3]
        if size is not None and (ctype != "char" or (size and not 0 < int(size) <= MAX_STRING)):
            raise SyntheticError("Invalid type" if ctype != "char" else "Invalid array specification", part)
        if size is None and ctype not in _FORMATS:
            raise SyntheticError("Invalid type", ctype)
        found.append(SynthField(ctype, name, size))
    if not found:
        raise SyntheticError("Command must be of the form: <name> field[;field] ...", text)
    if len(found) > MAX_FIELDS:
        raise SyntheticError("Too many fields", text)
    return tuple(found)


def _field_texts(text: str) -> Iterator[str]:
    """Yield the fields: `;` stands between them, or nothing, as older kernels wanted it."""
    for piece in (part.strip() for part in text.split(";")):
        at = 0
        while at < len(piece):
            match = _FIELD.match(piece, at)
            end = match.end() if match else len(piece)
            yield piece[at:end].strip()
            at = end


def define(name: str, fields: tuple[SynthField, ...]) -> Synthetic:
    """Declare the event `synthetic:NAME`; raises SyntheticError, TracepointError."""
    from tracepoint.runtime.event import declare_event  # noqa: PLC0415 - that module listens when imported

    if _NAME.fullmatch(name) is None:
        raise SyntheticError("Illegal name", name)
    if name in known:
        raise SyntheticError("Event already exists", name, errno.EEXIST)
    members = []
    for f in fields:
        if f.size is None:
            members.append(scalar(f.ctype, f.name))
        else:
            members.append(array("char", f.name, int(f.size)) if f.size else string(f.name))
    words = " ".join(f"{f.name}={'%s' if f.is_string else _FORMATS[f.ctype]}" for f in fields)
    proto = ", ".join(f"const char *{f.name}" if f.is_string else f"{f.ctype} {f.name}" for f in fields)
    event = declare(
        name,
        system=SYSTEM,
        proto=proto,
        struct=members,
        assign={f.name: f.name for f in fields if not f.is_string},
        printk=", ".join([f'"{words}"', *(f.name for f in fields)]),
    )
    made = known[name] = Synthetic(name, fields, declare_event(event))
    return made


def remove(state: InstanceState, name: str) -> None:
    """Take a synthetic event away; raises OSError (ENOENT, EBUSY)."""
    found = known.get(name)
    if found is None:
        raise failure(errno.ENOENT)
    control = state.tracing.event(f"{SYSTEM}:{name}")
    instances = (state.tracing, *state.tracing.instances.values())
    if found.n_users or any(control.is_registered_in(instance) for instance in instances):
        raise failure(errno.EBUSY)
    del known[name]
    state.tracing._registry.events.pop(control.full_name)  # noqa: SLF001 - nothing else is ever removed


def synthetic_file(state: InstanceState) -> File:
    """Make `synthetic_events`."""

    def write(data: bytes) -> None:
        for line in data.decode(errors="replace").splitlines():
            text = line.partition("#")[0].strip()
            if text:
                _command(state, text)

    def truncate() -> None:
        for name in list(known):
            remove(state, name)

    return File(lambda: "".join(f"{made}\n" for made in known.values()), write, truncate)


def _command(state: InstanceState, text: str) -> None:
    name, _, rest = text.partition(" ")
    if text.startswith("!"):
        remove(state, name[1:])
        return
    try:
        define(name, parse_fields(rest))
    except SyntheticError as error:
        at = max(text.find(error.needle), 0)
        caret = " " * (len("  Command: ") + at) + "^"
        state.instance.log_error(f"synthetic_events: error: {error.text}\n  Command: {text}\n{caret}\n")
        raise failure(error.number) from None
    except TracepointError as error:
        raise failure(getattr(error, "errno", errno.EINVAL)) from None
