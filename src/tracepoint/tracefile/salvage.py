"""Version 7 without its last options, as a copy that was cut off: what stands in the file, from its begin.

Options say where sections and the data of CPUs are, and the last of them stand at the end of a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.errors import DecodeError
from tracepoint.named import NamedTuple
from tracepoint.tracefile.cursor import Cursor
from tracepoint.tracefile.head import COMPRESSED, SECTION_HEAD
from tracepoint.tracefile.options import OptionId

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.tracefile.filebytes import Bytes
    from tracepoint.tracefile.head import FileHead

_MAX_SECTIONS = 1024


class FoundSection(NamedTuple):
    """A section that begins at `offset`; its content, from `start` to `stop`, may be cut off."""

    id: int
    offset: int
    is_compressed: bool
    start: int
    stop: int


def walk_sections(data: Bytes, head: FileHead) -> Iterator[FoundSection]:
    """Yield the sections that follow each other, up to what is no section."""
    at = head.end
    for _ in range(_MAX_SECTIONS):
        if at + SECTION_HEAD > len(data):
            return
        cursor = Cursor(data, at, big=head.is_big_endian)
        number, flags, _, size = cursor.u16(), cursor.u16(), cursor.u32(), cursor.u64()
        if number > max(OptionId):
            return
        stop = min(cursor.at + size, len(data))
        yield FoundSection(number, at, bool(flags & COMPRESSED), cursor.at, stop)
        at = cursor.at + size


def find_chunked(data: Bytes, section: FoundSection, head: FileHead, most: int) -> Iterator[tuple[int, int]]:
    """Yield offset and size of the compressed data of at most `most` CPUs, each at a page of the file."""
    at = section.start
    for _ in range(most):
        at += -at % max(head.page_size, 1)
        if at >= section.stop:
            return
        cursor = Cursor(data, at, section.stop, big=head.is_big_endian)
        try:
            for _ in range(cursor.u32()):
                packed, _ = cursor.u32(), cursor.u32()
                cursor.skip(packed, "a chunk")
        except DecodeError:
            # What of it is whole is found where it is read.
            yield at, section.stop - at
            return
        yield at, cursor.at - at
        at = cursor.at
