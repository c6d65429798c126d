"""Records out of ring buffer sub-buffers as `per_cpu/cpuN/trace_pipe_raw` gives them.

For what a guest fired a moment ago: little-endian, 64 bits, nothing lost.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from tracepoint.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE_BYTES = 4096
_HEAD_BYTES = 16
_COMMIT_MASK = 0xFFFFF
# include/linux/ring_buffer.h: enum ring_buffer_type.
_PADDING, _TIME_EXTEND, _TIME_STAMP = 29, 30, 31


def read_records(data: bytes, page_bytes: int = PAGE_BYTES) -> Iterator[bytes]:
    """Yield the records of whole sub-buffers of `page_bytes` each, in order.

    A record may carry up to three bytes more than were written: lengths are multiples of four.
    Raises LabError when the bytes are no sub-buffers.
    """
    for start in range(0, len(data), page_bytes):
        page = data[start : start + page_bytes]
        try:
            yield from _page(page)
        except struct.error:
            raise LabError(f"the guest's ring buffer page at byte {start} cannot be read") from None


def _page(page: bytes) -> Iterator[bytes]:
    (commit,) = struct.unpack_from("<Q", page, 8)
    at, end = _HEAD_BYTES, _HEAD_BYTES + (commit & _COMMIT_MASK)
    if end > len(page):
        raise struct.error("a commit beyond the page")
    while at < end:
        (head,) = struct.unpack_from("<I", page, at)
        kind, delta = head & 31, head >> 5
        if kind == 0 or (kind == _PADDING and delta):
            (length,) = struct.unpack_from("<I", page, at + 4)
            if kind == 0:
                yield page[at + 8 : at + 4 + length]
            at += 4 + max(length, 4)
        elif kind == _PADDING:
            return
        elif kind in (_TIME_EXTEND, _TIME_STAMP):
            at += 8
        else:
            yield page[at + 4 : at + 4 + 4 * kind]
            at += 4 + 4 * kind
