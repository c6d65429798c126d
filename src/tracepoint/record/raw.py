"""One record as bytes."""

from __future__ import annotations

from tracepoint.named import NamedTuple


class RawRecord(NamedTuple):
    """One record: its time, CPU, bytes from `common_type` on, and how many were lost before it there.

    `lost` is LOST_UNKNOWN (-1) when the number could not be kept.  The CPU is 0 where it is not known.
    """

    timestamp: int
    cpu: int
    data: bytes
    lost: int = 0

    def __repr__(self) -> str:
        return f"<RawRecord at {self.timestamp}, CPU {self.cpu}, {len(self.data)} bytes>"

    def id(self, *, is_big_endian: bool = False) -> int:
        """Return the number of its event, `common_type`."""
        return int.from_bytes(self.data[:2], "big" if is_big_endian else "little")

    def pid(self, *, is_big_endian: bool = False) -> int:
        """Return the thread that recorded it, `common_pid`."""
        return int.from_bytes(self.data[4:8], "big" if is_big_endian else "little", signed=True)
