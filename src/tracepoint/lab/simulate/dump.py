"""A record in hex, cut at the borders of its fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.record.field import integer, is_text, location_origin, unpack_location

if TYPE_CHECKING:
    from tracepoint.layout.format import EventFormat, FieldFormat


@dataclass(frozen=True, slots=True)
class DumpRow:
    """One field's bytes: `offset` and `size` in the record, `name` and `ctype` of the field.

    A row without a name is a hole or padding; the data of a dynamic field has a row of its own
    with `is_data` set.  `value` is the number or text in short.
    """

    offset: int
    size: int
    data: bytes
    name: str = ""
    ctype: str = ""
    value: str = ""
    is_data: bool = False

    def __str__(self) -> str:
        name = f"{self.name} (data)" if self.is_data else self.name or "(hole)"
        shown = self.data[:16].hex(" ") + (" ..." if len(self.data) > 16 else "")
        return f"{self.offset:4d}  {shown:<51}  {name}" + (f" = {self.value}" if self.value else "")


def dump_record(record: bytes, layout: EventFormat) -> tuple[DumpRow, ...]:
    """Cut a record at its fields' borders, holes and dynamic data included.

    Bytes beyond the record's end are left out; nothing is raised for a short record.
    """
    rows: list[DumpRow] = []
    data_rows: list[DumpRow] = []
    at = 0
    for field in sorted(layout.fields, key=lambda f: f.offset):
        if field.offset > at:
            rows.append(_hole(record, at, field.offset))
        raw = record[field.offset : field.offset + field.size]
        rows.append(_field_row(field, raw, layout))
        at = max(at, field.offset + field.size)
        if field.is_data_loc and len(raw) == 4:
            data_rows.append(_data_row(record, field, raw, layout))
    data_rows.sort(key=lambda row: row.offset)
    for row in data_rows:
        if row.offset > at:
            rows.append(_hole(record, at, row.offset))
        rows.append(row)
        at = max(at, row.offset + row.size)
    if at < len(record):
        rows.append(_hole(record, at, len(record)))
    return tuple(rows)


def _hole(record: bytes, start: int, end: int) -> DumpRow:
    return DumpRow(start, end - start, record[start:end])


def _field_row(field: FieldFormat, raw: bytes, layout: EventFormat) -> DumpRow:
    if field.is_data_loc:
        start, size = unpack_location(integer(layout, raw))
        value = f"{size} bytes at {'+' if field.is_rel_loc else ''}{start}"
    elif field.is_array:
        value = _text(raw) if is_text(field) else ""
    elif len(raw) in (1, 2, 4, 8):
        number = integer(layout, raw, is_signed=field.is_signed)
        value = hex(number) if "*" in field.ctype or number > 0xFFFF_FFFF else str(number)
    else:
        value = ""
    return DumpRow(field.offset, field.size, raw, field.name, field.ctype, value)


def _data_row(record: bytes, field: FieldFormat, raw: bytes, layout: EventFormat) -> DumpRow:
    offset, size = unpack_location(integer(layout, raw), location_origin(field))
    data = record[offset : offset + size]
    value = _text(data) if is_text(field) else ""
    return DumpRow(offset, len(data), data, field.name, field.ctype, value, is_data=True)


def _text(raw: bytes) -> str:
    text = raw.split(b"\0", 1)[0].decode("latin-1")
    return '"' + "".join(c if " " <= c <= "~" else f"\\x{ord(c):02x}" for c in text) + '"'
