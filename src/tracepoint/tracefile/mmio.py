"""The text of the mmiotrace tracer: a line for each access to the memory of a device, and each mapping of it.

kernel/trace/trace_mmiotrace.c.  A layout over records: there is no context, and of other records only text
from trace_marker is shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.printk.own_events import is_own_event
from tracepoint.record.field import field_values
from tracepoint.tracefile.text import microseconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tracepoint.record.field import Value
    from tracepoint.record.raw import RawRecord
    from tracepoint.tracefile.text import TextWriter

RW, MAP, MARK = "mmiotrace_rw", "mmiotrace_map", "print"
# include/linux/mmiotrace.h: enum mm_io_opcode.
_READ, _WRITE, _PROBE, _UNPROBE, _UNKNOWN = 1, 2, 3, 4, 5


def mmio_lines(writer: TextWriter, records: Iterable[RawRecord]) -> Iterator[str]:
    """Yield the text of each record that has one."""
    shown = {n: e for n, e in writer.events.items() if is_own_event(e) and e.name in (RW, MAP, MARK)}
    for record in records:
        event = shown.get(record.id(is_big_endian=writer.is_big_endian))
        if event is None:
            yield writer.lost_text(record)
            continue
        seconds, rest = divmod(microseconds(record.timestamp), 1_000_000)
        time = f"{seconds}.{rest:06d}"
        if event.name == MARK:
            text = f"MARK {time} {writer.body(record)}"
        else:
            fields = field_values(event, record.data)
            text = _map(time, fields) if event.name == MAP else _access(time, fields)
        yield f"{writer.lost_text(record)}{text}\n"


def _number(fields: dict[str, Value], name: str) -> int:
    value = fields.get(name)
    return value if isinstance(value, int) else 0


def _access(time: str, fields: dict[str, Value]) -> str:
    opcode, value = _number(fields, "opcode"), _number(fields, "value")
    place = f"{_number(fields, 'map_id')} {_number(fields, 'phys'):#x}"
    end = f"{_number(fields, 'pc'):#x} 0"
    if opcode in (_READ, _WRITE):
        letter = "R" if opcode == _READ else "W"
        return f"{letter} {_number(fields, 'width')} {time} {place} {value:#x} {end}"
    if opcode == _UNKNOWN:
        code = ",".join(f"{value >> shift & 0xFF:02x}" for shift in (16, 8, 0))
        return f"UNKNOWN {time} {place} {code} {end}"
    return "rw what?"


def _map(time: str, fields: dict[str, Value]) -> str:
    number = _number(fields, "map_id")
    if _number(fields, "opcode") == _PROBE:
        place = " ".join(f"{_number(fields, name):#x}" for name in ("phys", "virt", "len"))
        return f"MAP {time} {number} {place} 0x0 0"
    return f"UNMAP {time} {number} 0x0 0" if _number(fields, "opcode") == _UNPROBE else "map what?"
