"""One record as the event of a bundle: its own message where Perfetto has one, else a generic one."""

from __future__ import annotations

from struct import error
from typing import TYPE_CHECKING

from tracepoint.convert.perfetto.messages import MESSAGES, SYSTEMS, FtraceEvent, Generic, fields_of
from tracepoint.convert.protobuf import bytes_key, message, number, number_key, text, varint
from tracepoint.record.field import field_value, is_integer, is_text, unpacker
from tracepoint.source.types import IntType

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.layout.format import EventFormat, FieldFormat
    from tracepoint.record.field import Value

    Encode = Callable[[bytes], bytes]


def encoder_of(form: EventFormat) -> Encode:
    """Return a function that gives the message of a record, with its key."""
    return _native_encoder(form) or _generic_encoder(form)


def encode_unknown(record: bytes) -> bytes:
    """Return a generic event for a record whose format is not known: its bytes as hex digits."""
    fields = _generic_text("data", record.hex())
    return message(FtraceEvent.GENERIC, text(Generic.NAME, "unknown") + fields)


def _read_number(form: EventFormat, field: FieldFormat) -> Callable[[bytes], int] | None:
    """Return a function that reads a number from a record; None for what is not one at a fixed place."""
    if not is_integer(field):
        return None
    kind = IntType(field.size, is_signed=field.is_signed)
    unpack, offset = unpacker(kind, is_big_endian=form.is_big_endian), field.offset
    return lambda record: unpack(record, offset)[0]


def _native_encoder(form: EventFormat) -> Encode | None:
    """Return the encoder of an event that Perfetto knows; None when a field is of another type than there."""
    number_of_message, words = MESSAGES.get(form.name, (0, ""))
    if not number_of_message or form.system not in SYSTEMS:
        return None
    known, parts = fields_of(words), []
    for field in form.event_fields:
        if field.name in known:
            target = known[field.name]
            if is_text(field) != target.is_text:
                return None
            parts.append(_native_field(form, field, target.number))
    if not parts:
        return None
    key = bytes_key(number_of_message)

    def encode(record: bytes) -> bytes:
        data = b"".join([part(record) for part in parts])
        return key + varint(len(data)) + data

    return encode


def _native_field(form: EventFormat, field: FieldFormat, target: int) -> Encode:
    key, read = number_key(target), _read_number(form, field)
    if read is not None:

        def encode_number(record: bytes) -> bytes:
            try:
                return key + varint(read(record))
            except error:
                # The record is too short for this field.
                return b""

        return encode_number

    def encode_other(record: bytes) -> bytes:
        value = field_value(form, field, record)
        if isinstance(value, str):
            return text(target, value)
        numbers = value if isinstance(value, list) else [value]
        return b"".join(number(target, n) for n in numbers if isinstance(n, int))

    return encode_other


def _generic_encoder(form: EventFormat) -> Encode:
    parts = [_generic_field(form, field) for field in form.event_fields]
    head, key = text(Generic.NAME, form.name), bytes_key(FtraceEvent.GENERIC)

    def encode(record: bytes) -> bytes:
        data = b"".join([head, *(part(record) for part in parts)])
        return key + varint(len(data)) + data

    return encode


def _generic_field(form: EventFormat, field: FieldFormat) -> Encode:
    read, name = _read_number(form, field), field.name
    if read is None:
        return lambda record: _generic_other(name, field_value(form, field, record))
    kind = Generic.SIGNED if field.is_signed else Generic.UNSIGNED
    head, key = text(Generic.FIELD_NAME, name) + number_key(kind), bytes_key(Generic.FIELD)

    def encode(record: bytes) -> bytes:
        try:
            value = varint(read(record))
        except error:
            return b""
        return key + varint(len(head) + len(value)) + head + value

    return encode


def _generic_other(name: str, value: Value) -> bytes:
    if value is None:
        return b""
    if isinstance(value, list):
        return _generic_text(name, f"[{', '.join(map(str, value))}]")
    return _generic_text(name, value if isinstance(value, str) else str(value))


def _generic_text(name: str, value: str) -> bytes:
    return message(Generic.FIELD, text(Generic.FIELD_NAME, name) + text(Generic.TEXT, value))
