"""Formats and records for tests, made from a list of fields with values."""

import re
import struct

from tracepoint.layout.format import EventFormat, FieldFormat
from tracepoint.printk.facts import NO_FACTS, Rendered
from tracepoint.printk.printer import Printer
from tracepoint.printk.program import compile_print
from tracepoint.printk.render import render_record

CODES = {1: "b", 2: "h", 4: "i", 8: "q"}
SIZES = {"char": 1, "u8": 1, "s8": 1, "bool": 1, "u16": 2, "s16": 2, "__be16": 2, "short": 2, "int": 4, "u32": 4,
         "unsigned int": 4, "__be32": 4, "__le32": 4, "u64": 8, "s64": 8, "__le64": 8, "long long": 8}  # fmt: skip
SIGNED = {"char", "s8", "s16", "short", "int", "s64", "long", "long long"}
COMMON = (
    FieldFormat("common_type", "unsigned short", 0, 2, is_signed=False),
    FieldFormat("common_flags", "unsigned char", 2, 1, is_signed=False),
    FieldFormat("common_preempt_count", "unsigned char", 3, 1, is_signed=False),
    FieldFormat("common_pid", "int", 4, 4, is_signed=True),
)


def make(print_fmt, *fields, big=False, long_size=8, system="demo", name="event", flags=0):
    """Return (format, record); a field is (ctype, name, value), bytes for arrays and dynamic data."""
    order = ">" if big else "<"
    body = bytearray(struct.pack(order + "HBBi", 1, flags, 0, 42))
    formats = list(COMMON)
    dynamic = []
    for ctype, field, value in fields:
        if ctype.startswith(("__data_loc", "__rel_loc")):
            body += bytes(-len(body) % 4)
            formats.append(FieldFormat(field, ctype, len(body), 4, is_signed=False))
            dynamic.append((len(body), ctype, value))
            body += bytes(4)
            continue
        if isinstance(value, bytes):
            formats.append(FieldFormat(field, ctype, len(body), len(value), is_signed=False))
            body += value
            continue
        size = SIZES.get(ctype, long_size)
        body += bytes(-len(body) % size)
        formats.append(FieldFormat(field, ctype, len(body), size, is_signed=ctype in SIGNED))
        body += struct.pack(order + CODES[size].upper(), value & ((1 << 8 * size) - 1))
    for at, ctype, data in dynamic:
        start = len(body) - (at + 4 if ctype.startswith("__rel_loc") else 0)
        struct.pack_into(order + "I", body, at, len(data) << 16 | start)
        body += data
    form = EventFormat(system, name, tuple(formats), print_fmt, is_big_endian=big, long_size=long_size)
    return form, bytes(body)


def both(program, record, facts=NO_FACTS):
    """Render by the twin and by C, which must agree; the two are one where C is not built."""
    result = render_record(program, record, facts)
    lines = Printer({0: program}, facts, any_type=True).render_list([record])
    shown = lines.noted.get(0)
    assert lines.texts == [result.text]
    noted = ((), True) if shown is None else (shown.notes, shown.is_exact)
    assert noted == (result.notes, result.is_exact)
    return result


def rendered(print_fmt, *fields, facts=NO_FACTS, constants=None, source=None, layouts=None, **how):
    form, record = make(print_fmt, *fields, **how)
    program = compile_print(form, constants=constants, source=source, layouts=layouts)
    return both(program, record, facts)


def line(print_fmt, *fields, **how):
    """Return the text; the record must tell everything."""
    result = rendered(print_fmt, *fields, **how)
    assert result.is_exact, result.notes
    assert result.notes == (), result.notes
    return result.text


def words(text):
    return re.findall(r"\S+", text)


def render_records(program, records, facts=NO_FACTS):
    """What `render_record` returns for each of many records of one event."""
    lines = Printer({0: program}, facts, any_type=True).render_list(records)
    return [lines.noted.get(index) or Rendered(text) for index, text in enumerate(lines.texts)]
