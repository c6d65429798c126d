"""The fields of synthetic events: their types, and how a definition is read.

Kernel: kernel/trace/trace_events_synth.c.
"""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass
from typing import Any

from tracepoint.source.types import LLONG, IntType, conversion_of, int_type_named

MAX_FIELDS = 64
MAX_STRING = 256
BAD_COMMAND = "Command must be of the form: <name> field[;field] ..."
GOOD_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
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
    def shown(self) -> str:
        """The conversion that prints it."""
        return "%s" if self.is_string else _SHOWN[self.ctype]

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
    if GOOD_NAME.fullmatch(name) is None:
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
