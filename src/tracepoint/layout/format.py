"""What the bytes of a record look like: `EventFormat`, and the tracefs `format` text.

An `EventFormat` is computed from a declaration, read out of an object, or read from a `format`
file; its users cannot tell which.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tracepoint.errors import LayoutError
from tracepoint.wording import counted, html_table, one_line


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

    @property
    def declaration(self) -> str:
        """The field as `format` declares it: `char comm[16]`, `__data_loc char[] name`."""
        bracket = self.ctype.find("[")
        if bracket < 0 or self.is_data_loc:
            return f"{self.ctype} {self.name}"
        return f"{self.ctype[:bracket]} {self.name}{self.ctype[bracket:]}"

    def __repr__(self) -> str:
        declared = one_line(f"{self.ctype} {self.name}", 70)
        return f"<FieldFormat {declared}, offset {self.offset}, size {self.size}>"


# struct trace_entry of include/linux/trace_events.h.
COMMON_FIELDS = (
    FieldFormat("common_type", "unsigned short", 0, 2, is_signed=False),
    FieldFormat("common_flags", "unsigned char", 2, 1, is_signed=False),
    FieldFormat("common_preempt_count", "unsigned char", 3, 1, is_signed=False),
    FieldFormat("common_pid", "int", 4, 4, is_signed=True),
)


@dataclass(frozen=True, slots=True)
class RecordRow:
    """A stretch of a record: `offset` and `size` in bytes, and its field, None for a hole or padding."""

    offset: int
    size: int
    text: str
    field: FieldFormat | None = None


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
    _by_name: dict[str, FieldFormat] = field(init=False, default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        self._by_name.update((f.name, f) for f in self.fields)

    def __getitem__(self, name: str) -> FieldFormat:
        """Return a field by name; of two with one name (`ring` and its string) the last, as filters do."""
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __repr__(self) -> str:
        name = one_line(f"{self.system}:{self.name}")
        return f"<EventFormat {name}, {counted(len(self.event_fields), 'field')}, {self.end} bytes>"

    def _repr_html_(self) -> str:
        """Return a table of the offsets for a notebook."""
        rows = ((str(f.offset), str(f.size), f.ctype, f.name) for f in self.fields)
        return html_table(("offset", "size", "type", "field"), rows)

    @property
    def kernel_system(self) -> str:
        """The system that the event has in its kernel: a merge of recordings calls one of two `SYSTEM@FILE`.

        >>> EventFormat("syscalls@part", "sys_exit_read", (), "").kernel_system
        'syscalls'
        """
        return self.system.partition("@")[0]

    @property
    def event_fields(self) -> tuple[FieldFormat, ...]:
        """The fields without the common ones."""
        return self.fields[self.n_common :]

    @property
    def common_fields(self) -> tuple[FieldFormat, ...]:
        """`common_type`, `common_flags`, `common_preempt_count`, `common_pid`."""
        return self.fields[: self.n_common]

    @property
    def end(self) -> int:
        """The offset after the fixed part: after the last field, or with tail padding when known."""
        return max(self.size_bytes, max((f.offset + f.size for f in self.fields), default=0))

    @property
    def holes(self) -> tuple[tuple[int, int], ...]:
        """The gaps `(offset, size)` in bytes between fields; tail padding is not among them."""
        gaps = []
        at = 0
        for item in sorted(self.fields, key=lambda f: f.offset):
            if item.offset > at:
                gaps.append((at, item.offset - at))
            at = max(at, item.offset + item.size)
        return tuple(gaps)

    @property
    def tail_padding(self) -> int:
        """Bytes between the last field and the end of the fixed part; 0 when the size is not known."""
        return self.end - max((f.offset + f.size for f in self.fields), default=0)

    @property
    def rows(self) -> tuple[RecordRow, ...]:
        """The record from its first byte to its last, holes and padding included."""
        rows = []
        hole_before = {at + size: RecordRow(at, size, "(hole)") for at, size in self.holes}
        for item in self.fields:
            if item.offset in hole_before:
                rows.append(hole_before.pop(item.offset))
            rows.append(RecordRow(item.offset, item.size, item.declaration, item))
        if self.tail_padding:
            rows.append(RecordRow(self.end - self.tail_padding, self.tail_padding, "(padding)"))
        return tuple(rows)

    def same_record(self, other: EventFormat) -> bool:
        """Return whether both have the same layout; id, system and print format do not count."""
        return (
            self.fields == other.fields
            and self.n_common == other.n_common
            and self.is_big_endian == other.is_big_endian
        )

    @property
    def text(self) -> str:
        """The `format` text, as `write_format` makes it."""
        return write_format(self)


_FIELD = re.compile(
    r"[ \t]*field:(?P<declaration>[^;]*);[ \t]*offset:(?P<offset>[0-9]{1,9});"
    r"[ \t]*size:(?P<size>[0-9]{1,9});[ \t]*signed:(?P<signed>[01]);[ \t]*"
)
_PRINT_FMT = "print fmt: "
_ID_DIGITS = 10


def read_format(
    text: str, system: str = "", *, is_big_endian: bool = False, long_size: int = 8
) -> EventFormat:
    r"""Read the text of a tracefs `format` file.

    `system` is the folder the file stood in; byte order and the size of a `long` (4 or 8 bytes)
    come from the recording.  A print format may run over several lines.  Raises LayoutError,
    which names the line, for anything that is not such a file.

    >>> f = read_format(
    ...     "name: a\nID: 7\nformat:\n"
    ...     "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
    ...     "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:1;\n\n"
    ...     'print fmt: "%s", REC->comm\n'
    ... )
    >>> f.id, f["comm"].ctype, f["comm"].offset
    (7, 'char[16]', 8)
    """
    head, found, tail = text.partition("\n" + _PRINT_FMT)
    if not found:
        raise LayoutError(f"line {text.count(chr(10)) + 1}: the text ends without a 'print fmt:' line")
    lines = head.split("\n")
    name = _header_value(lines, 0, "name:")
    number = _header_value(lines, 1, "ID:")
    if not (number.isascii() and number.isdigit() and len(number) <= _ID_DIGITS):
        raise LayoutError("line 2: the ID is not a number", event=name)
    _header_value(lines, 2, "format:")
    groups = _field_groups(lines[3:], name)
    fields = [f for group in groups for f in group]
    n_common = len(groups[0])
    if not any(groups[1:]):  # no blank line between them, or no fields of its own
        n_common = sum(1 for f in fields if f.name.startswith("common_"))
    return EventFormat(
        system,
        name,
        tuple(fields),
        tail.removesuffix("\n"),
        id=int(number),
        n_common=n_common,
        is_big_endian=is_big_endian,
        long_size=long_size,
    )


def _header_value(lines: list[str], index: int, key: str) -> str:
    line = lines[index].rstrip("\r") if index < len(lines) else ""
    if not line.startswith(key):
        raise LayoutError(f"line {index + 1}: expected '{key}', found {line[:60]!r}")
    return line[len(key) :].strip()


def _field_groups(lines: list[str], event: str) -> list[list[FieldFormat]]:
    """Read the field lines; a blank line separates the common fields from the event's own."""
    groups: list[list[FieldFormat]] = [[]]
    # An event without fields of its own leaves the separator as the last line.
    for number, line in enumerate(lines, 4):
        if not line.rstrip("\r"):
            if len(groups) == 1:
                groups.append([])
            continue
        match = _FIELD.fullmatch(line.rstrip("\r"))
        if match is None:
            raise LayoutError(f"line {number}: not a field line: {line[:80]!r}", event=event)
        name, ctype = _split_declaration(match["declaration"])
        if not name or not ctype:
            raise LayoutError(
                f"line {number}: no type and name in {match['declaration'][:80]!r}", event=event
            )
        groups[-1].append(
            FieldFormat(name, ctype, int(match["offset"]), int(match["size"]), match["signed"] == "1")
        )
    return groups


def _split_declaration(text: str) -> tuple[str, str]:
    """Split `char comm[16]` into `comm` and `char[16]`; `__data_loc char[] s` into `s` and the rest."""
    bracket = text.find("[")
    if bracket < 0 or text.startswith("__data_loc ") or not text.endswith("]"):
        ctype, _, name = text.rpartition(" ")
        return name, ctype
    ctype, _, name = text[:bracket].rpartition(" ")
    return name, ctype + text[bracket:] if ctype else ""


def write_format(event: EventFormat) -> str:
    """Write the text that tracefs shows for an event, byte for byte.

    Arrays are shown as `char comm[16]` and `__data_loc char[] name`; the kernel shows a
    `__rel_loc` as `__rel_loc char name[]` (kernel/trace/trace_events.c: f_show()).
    """
    parts = [f"name: {event.name}\nID: {event.id}\nformat:\n"]
    parts.extend(_field_line(f) for f in event.common_fields)
    parts.append("\n")
    parts.extend(_field_line(f) for f in event.event_fields)
    parts.append(f"\n{_PRINT_FMT}{event.print_fmt}\n")
    return "".join(parts)


def _field_line(item: FieldFormat) -> str:
    declaration = f"{item.ctype} {item.name}"
    bracket = item.ctype.find("[")
    if bracket >= 0 and not item.ctype.startswith("__data_loc"):
        declaration = f"{item.ctype[:bracket]} {item.name}{item.ctype[bracket:]}"
    signed = int(item.is_signed)
    return f"\tfield:{declaration};\toffset:{item.offset};\tsize:{item.size};\tsigned:{signed};\n"
