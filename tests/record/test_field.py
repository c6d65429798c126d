"""Fields of a record as plain values."""

import struct

import pytest

from tracepoint.layout.format import EventFormat, FieldFormat
from tracepoint.record.field import field_value, field_values


def form(*fields, **more):
    return EventFormat("s", "e", tuple(fields), '""', n_common=0, **more)


@pytest.mark.parametrize("is_big_endian", [False, True])
@pytest.mark.parametrize(
    ("ctype", "size", "is_signed", "code", "values", "expected"),
    [
        ("int", 4, True, "i", (-5,), -5),
        ("u64", 8, False, "Q", ((1 << 64) - 1,), (1 << 64) - 1),
        ("char[8]", 8, False, "8s", (b"ab\0cd\0\0\0",), "ab"),
        ("char[2]", 2, False, "2s", (b"\xff\0",), "\udcff"),
        ("u16[3]", 6, False, "3H", (1, 2, 3), [1, 2, 3]),
        ("s16[2]", 4, True, "2h", (-1, 2), [-1, 2]),
        ("struct thing[2]", 4, False, "4s", (b"\1\2\3\4",), "01020304"),
        ("struct thing", 3, False, "3s", (b"\1\2\3",), "010203"),
        ("void *", 8, False, "Q", (5,), 5),
    ],
)
def test_fields_in_place(is_big_endian, ctype, size, is_signed, code, values, expected):
    field = FieldFormat("f", ctype, 4, size, is_signed)
    record = bytes(4) + struct.pack((">" if is_big_endian else "<") + code, *values)
    event = form(field, is_big_endian=is_big_endian)
    assert field_values(event, record) == {"f": expected}
    assert field_values(event, record[:-1]) == {"f": None}


def test_fields_elsewhere():
    text = FieldFormat("t", "__data_loc char[]", 0, 4, is_signed=False)
    numbers = FieldFormat("n", "__rel_loc u32[]", 4, 4, is_signed=False)
    record = struct.pack("<III", 16 | 3 << 16, 0 | 8 << 16, 0)[:8] + struct.pack("<II", 7, 8) + b"hi\0"
    assert field_values(form(text, numbers), record) == {"t": "hi", "n": [7, 8]}
    assert field_value(form(text), text, struct.pack("<I", 400 | 3 << 16)) is None
    assert field_value(form(text), text, b"\0") is None


def test_array_to_the_end_of_the_record():
    buf = FieldFormat("buf", "char[]", 8, 0, is_signed=False)
    assert field_value(form(buf), buf, bytes(8) + b"marker\n\0") == "marker\n"
