"""What the bytes of a record look like: `EventFormat`, and the tracefs `format` text.

An `EventFormat` is computed from a declaration, read out of an object, or read from a `format`
file; whoever uses it cannot tell which.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class FieldFormat:
    """One member of a record.

    `ctype` is the type exactly as the kernel keeps it (`char[16]`, `unsigned int`,
    `__data_loc char[]`, `__rel_loc u8[]`); `offset` and `size` are bytes; for a `__data_loc`
    field the size is that of the word (4).
    """

    name: str
    ctype: str
    offset: int
    size: int
    is_signed: bool

    @property
    def is_data_loc(self) -> bool:
        """Whether the record holds offset and length here and the data further on."""
        return self.ctype.startswith(("__data_loc ", "__rel_loc "))

    @property
    def is_rel_loc(self) -> bool:
        """Whether the offset counts from the end of this word instead of the record's start."""
        return self.ctype.startswith("__rel_loc ")

    @property
    def element_ctype(self) -> str:
        """The type of one element: `char` for `char[16]` and for `__data_loc char[]`."""
        text = self.ctype.split(" ", 1)[1] if self.is_data_loc else self.ctype
        return text.split("[", 1)[0].strip()

    @property
    def is_array(self) -> bool:
        """Whether the field holds several elements, here or through `__data_loc`."""
        return "[" in self.ctype


@dataclass(frozen=True, slots=True)
class EventFormat:
    """The record of one event, and its print format.

    `fields` are all members in order, the common ones first (`n_common` of them); `print_fmt`
    is the text after `print fmt: `; `id` is 0 when no kernel has given one; `size_bytes` is the
    fixed part of the record with its tail padding, 0 when not known (a `format` file does not
    say it); `is_big_endian` and `long_size` come from the ABI.
    """

    system: str
    name: str
    fields: tuple[FieldFormat, ...]
    print_fmt: str
    id: int = 0
    n_common: int = 4
    size_bytes: int = 0
    is_big_endian: bool = False
    long_size: int = 8
    _by_name: dict[str, FieldFormat] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        self._by_name.update((f.name, f) for f in self.fields)

    def __getitem__(self, name: str) -> FieldFormat:
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    @property
    def event_fields(self) -> tuple[FieldFormat, ...]:
        """The fields without the common ones."""
        return self.fields[self.n_common :]

    @property
    def common_fields(self) -> tuple[FieldFormat, ...]:
        """`common_type`, `common_flags`, `common_preempt_count`, `common_pid`."""
        return self.fields[: self.n_common]
