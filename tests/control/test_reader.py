"""What the reader of one CPU finds in the pages that it moved."""

from __future__ import annotations

import pytest

from tracepoint.control.reader import CpuReader
from tracepoint.record.layout import PageLayout

LAYOUT = PageLayout()
SMALL = PageLayout(12, 4084, 8, 4, is_big_endian=True)
LOST, STORED = 1 << 31, 1 << 30


def page(number: int, layout: PageLayout, *, size: int = 8, flags: int = 0, lost: int = 0) -> bytes:
    """A page of one record, or of none that fits."""
    order = "big" if layout.is_big_endian else "little"
    head = number.to_bytes(8, order) + (size | flags).to_bytes(layout.long_size, order)
    event = (1 << 27 | 1 if layout.is_big_endian else 1).to_bytes(4, order) + (7).to_bytes(2, order)
    data = event.ljust(size, b"\0") + (lost.to_bytes(layout.long_size, order) if flags & STORED else b"")
    return (head + data).ljust(layout.page_size, b"\0")[: layout.page_size]


@pytest.mark.parametrize("layout", [LAYOUT, SMALL], ids=["64 bits", "32 bits, big-endian"])
def test_losses_are_counted_from_the_heads(tmp_path, layout):
    full = layout.data_size
    pages = [
        page(1, layout),
        page(2, layout, flags=LOST | STORED, lost=7),
        page(3, layout, flags=LOST),
        page(4, layout, size=full, flags=LOST | STORED),
        page(5, layout, flags=LOST | STORED, lost=5),
        page(6, layout, size=full + 4, flags=LOST | STORED),
    ]
    reader = CpuReader(0, None, tmp_path / "cpu0", 1, {})
    reader.spool.write_bytes(b"".join(pages))
    reader.moved.counts[0] = len(pages)
    found = reader.count(layout)
    assert reader.n_lost == 12
    assert reader.n_records == sum(found.values())
    assert found[7] >= 4
    reader.n_old = 2
    reader.count(layout)
    assert reader.n_lost == 5
