"""Counting the records of pages by event: in C (`csrc/decode/count.c`), or with the twin in Python."""

from __future__ import annotations

from array import array
from itertools import chain

from tracepoint.decode.found import N_IDS, NO_ID, Found, HeadFacts
from tracepoint.record.decode import DECODE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tracepoint.record.layout import PageLayout
    from tracepoint.record.page import Buffer

_STRETCH = 512
_NONE = array("Q", bytes(8 * _STRETCH))


def layout_numbers(layout: PageLayout) -> tuple[int, int, int, int, bool]:
    """Return a layout as the C module takes it."""
    return (
        layout.data_offset, layout.data_size, layout.commit_offset, layout.long_size, layout.is_big_endian
    )  # fmt: skip


class IdCounts:
    """The records of each event id in the pages that it was given."""

    def __init__(self) -> None:
        self._counts = array("Q", bytes(8 * (N_IDS + 1)))

    def add(self, data: Buffer, layout: PageLayout) -> Found:
        """Count the records of whole pages; return what the pages say beside them, in times of the pages."""
        if DECODE is None:
            from tracepoint.decode.rows import count_pages_slowly  # noqa: PLC0415 - the C module needs none

            return count_pages_slowly(data, layout, self._counts)
        found, *times = DECODE.count_pages(data, layout_numbers(layout), self._counts)
        return Found([HeadFacts(*head) for head in found], *times)

    def by_id(self) -> dict[int, int]:
        """Return the counts by event id, those of records too short for one under NO_ID."""
        counts = self._counts
        # Few of all ids are in a recording: stretches without any are passed over as a whole.
        used = (at for at in range(0, N_IDS + 1, _STRETCH) if counts[at : at + _STRETCH] != _NONE)
        numbers = chain.from_iterable(range(at, min(at + _STRETCH, N_IDS + 1)) for at in used)
        found = {number: counts[number] for number in numbers if counts[number]}
        if N_IDS in found:
            found[NO_ID] = found.pop(N_IDS)
        return found
