"""The words for SCSI commands in the events of scsi: drivers/scsi/scsi_trace.c writes them.

Operation codes and where a command's fields stand are those of the SCSI standards (SPC, SBC, ZBC).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.printk import operators, ops
from tracepoint.printk.facts import UnknownPartError
from tracepoint.printk.memory import take
from tracepoint.printk.values import TextValue, Value, place_of
from tracepoint.source.types import INT

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.printk.expressions import Lowering
    from tracepoint.printk.memory import Location, RecordMemory

_WRITE_SAME, _WRITE_SAME_16, _WRITE_SAME_32 = 0x41, 0x93, 0x0D
#: Decoded from 6.11 on, a dash before: the record does not say which kernel wrote it.
_WRITE_ATOMIC_16 = 0x9C
#: After which operation code a service action follows, with the names of those that are shown.
_ACTIONS = {
    0x7F: {0x09: "READ_32", 0x0A: "VERIFY_32", 0x0B: "WRITE_32", _WRITE_SAME_32: "WRITE_SAME_32"},
    0x94: {1: "CLOSE_ZONE", 2: "FINISH_ZONE", 3: "OPEN_ZONE", 4: "RESET_WRITE_POINTER"},
    0x95: {0: "REPORT_ZONES"},
    0x9E: {0x10: "READ_CAPACITY_16", 0x12: "GET_LBA_STATUS"},
    0xA3: {
        0x05: "REPORT_IDENTIFYING_INFORMATION",
        0x0A: "REPORT_TARGET_PORT_GROUPS",
        0x0B: "REPORT_ALIASES",
        0x0C: "REPORT_SUPPORTED_OPERATION_CODES",
        0x0D: "REPORT_SUPPORTED_TASK_MANAGEMENT_FUNCTIONS",
        0x0E: "REPORT_PRIORITY",
        0x0F: "REPORT_TIMESTAMP",
        0x10: "MANAGEMENT_PROTOCOL_IN",
    },
    0xA4: {
        0x06: "SET_IDENTIFYING_INFORMATION",
        0x0A: "SET_TARGET_PORT_GROUPS",
        0x0B: "CHANGE_ALIASES",
        0x0E: "SET_PRIORITY",
        0x0F: "SET_TIMESTAMP",
        0x10: "MANAGEMENT_PROTOCOL_OUT",
    },
}
#: Reads, writes and verifies: where the block's address and the length stand, each with its size.
_TRANSFERS = {
    **dict.fromkeys((0x28, 0x2A, 0x2F, _WRITE_SAME), ((2, 4), (7, 2))),
    **dict.fromkeys((0xA8, 0xAA, 0xAF), ((2, 4), (6, 4))),
    **dict.fromkeys((0x88, 0x8A, 0x8F, _WRITE_SAME_16), ((2, 8), (10, 4))),
}


class _Command:
    """The bytes of a command."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def number(self, at: int, size: int = 1) -> int:
        """Return the number at a place; raises `UnknownPartError` past the end."""
        if at + size > len(self.data):
            raise UnknownPartError("the fields of a SCSI command that is cut off")
        return int.from_bytes(self.data[at : at + size], "big")

    def text(self) -> str:
        """Return what the kernel shows for it."""
        code = self.number(0)
        if code == _WRITE_ATOMIC_16:
            raise UnknownPartError("whether the kernel that was recorded knows WRITE_ATOMIC_16")
        if code in (0x08, 0x0A):
            return f"lba={self.number(1, 3) & 0x1FFFFF} txlen={self.number(4) or 256}"
        if code in _TRANSFERS:
            return self._transfer(code)
        if code == 0x42:
            return f"regions={((self.number(7, 2) - 8) & 0xFFFFFFFF) // 16}"
        if code in _ACTIONS:
            return self._action(code)
        return "-"

    def _transfer(self, code: int) -> str:
        where, length = _TRANSFERS[code]
        flags = self.number(1)
        text = f"lba={self.number(*where)} txlen={self.number(*length)} protect={flags >> 5}"
        return f"{text} unmap={flags >> 3 & 1}" if code in (_WRITE_SAME, _WRITE_SAME_16) else text

    def _action(self, code: int) -> str:
        action = self.number(8, 2) if code == 0x7F else self.number(1) & 0x1F
        name = _ACTIONS[code].get(action)
        if name is None:
            return "-" if code == 0x7F else "UNKNOWN"
        if code == 0x7F:
            flags = self.number(10)
            text = f"{name} lba={self.number(12, 8)} txlen={self.number(28, 4)} protect={flags >> 5}"
            text += f" ei_lbrt={self.number(20, 4)}"
            return f"{text} unmap={flags >> 3 & 1}" if action == _WRITE_SAME_32 else text
        if code == 0x94:
            return f"{name} zone={self.number(2, 8)} all={self.number(14) & 1}"
        if code == 0x95:
            options = self.number(14)
            text = f"{name} zone={self.number(2, 8)} alloc_len={self.number(10, 4)}"
            return f"{text} options={options & 0x3F} partial={options >> 7}"
        if code == 0x9E:
            return f"{name} lba={self.number(2, 8)} alloc_len={self.number(10, 4)}"
        return f"{name} alloc_len={self.number(6, 4)}"


def command_text(_: RecordMemory, place: Location | None, length: int) -> str:
    """Return the words for the command at a place."""
    return _Command(take(place, max(length, 0))).text()


def _parse_cdb(lowering: Lowering, arguments: list[Value]) -> Value | None:
    """Lower `scsi_trace_parse_cdb(p, bytes, length)`."""
    if len(arguments) != 3:
        return None
    length = operators.converted(lowering.as_integer(arguments[2]), INT).op
    return TextValue(ops.Call("scsi_command", (place_of(arguments[1]), length)))


SCSI_DECODERS: dict[str, Callable[[Lowering, list[Value]], Value | None]] = {
    "scsi_trace_parse_cdb": _parse_cdb
}
