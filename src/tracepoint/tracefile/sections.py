"""The parts that describe a recording, which versions 6 and 7 of trace.dat write alike.

Each `read_…` takes a cursor at the part and leaves it after; each `write_…` makes the same bytes.
"""

from __future__ import annotations

import struct

from tracepoint.tracefile.compression import MAX_SECTION
from tracepoint.tracefile.cursor import decode, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.record.page import Buffer
    from tracepoint.tracefile.compression import Compressor, Decompressor
    from tracepoint.tracefile.cursor import Cursor

_HEADER_PAGE = b"header_page\0"
_HEADER_EVENT = b"header_event\0"
FTRACE = "ftrace"
#: How the file begins that has a compressed section with kallsyms, next to pages; then its compressor.
PACKED_KALLSYMS = "kallsyms.section."
_U64_LITTLE, _U64_BIG = struct.Struct("<Q"), struct.Struct(">Q")
# Of the formats, which are a kilobyte each, read at once.
_WINDOW = 1 << 18


def read_header_info(cursor: Cursor) -> tuple[str, str]:
    """Read the texts of `header_page` and `header_event`."""
    texts = []
    for magic in (_HEADER_PAGE, _HEADER_EVENT):
        if cursor.take(len(magic), "a heading") != magic:
            cursor.at -= len(magic)
            raise cursor.error(f"{decode(magic[:-1])} is missing here")
        texts.append(cursor.text(cursor.u64(), decode(magic[:-1])))
    return texts[0], texts[1]


def write_header_info(header_page: str, header_event: str, order: str) -> bytes:
    """Write both texts; `order` is `<` or `>`."""
    return b"".join(
        magic + write_sized(text, order, is_wide=True)
        for magic, text in ((_HEADER_PAGE, header_page), (_HEADER_EVENT, header_event))
    )


def _skip_formats(cursor: Cursor, count: int) -> list[tuple[int, int]]:
    if count > cursor.left // 8:
        raise cursor.error(f"{count} formats in {cursor.left} bytes")
    places = []
    # A kernel has thousands, and opening a recording reads them all: so without a call for each number.
    end, unpack = cursor.end, (_U64_BIG if cursor.is_big_endian else _U64_LITTLE).unpack_from
    base, block = cursor.at, b""
    for _ in range(count):
        start = cursor.at + 8
        if start > base + len(block) and start <= end:
            base = cursor.at
            block = bytes(cursor.data[base : min(base + _WINDOW, end)])
        size = unpack(block, cursor.at - base)[0] if start <= end else cursor.u64()
        if size > end - start:
            cursor.at = start
            cursor.skip(size, "a format")
        places.append((start, size))
        cursor.at = start + size
    return places


def _texts(cursor: Cursor, system: str, places: list[tuple[int, int]]) -> list[tuple[str, str]]:
    if not places:
        return []
    base, (last, size) = places[0][0], places[-1]
    data = bytes(cursor.data[base : last + size])
    return [(system, decode(data[at - base : at - base + size])) for at, size in places]


def read_ftrace_formats(cursor: Cursor) -> list[tuple[str, str]]:
    """Read the formats of the tracer's own events, as (system, text)."""
    return _texts(cursor, FTRACE, _skip_formats(cursor, cursor.u32()))


def read_system_formats(cursor: Cursor) -> list[tuple[str, str]]:
    """Read the formats of all other events, as (system, text)."""
    n_systems = cursor.u32()
    if n_systems > cursor.left // 5:
        raise cursor.error(f"{n_systems} systems in {cursor.left} bytes")
    found = []
    for _ in range(n_systems):
        system = cursor.c_string("the name of a system")
        found.extend(_texts(cursor, system, _skip_formats(cursor, cursor.u32())))
    return found


def _formats(texts: Sequence[str], order: str) -> bytes:
    encoded = [encode(text) for text in texts]
    return struct.pack(order + "I", len(encoded)) + b"".join(
        struct.pack(order + "Q", len(text)) + text for text in encoded
    )


def write_ftrace_formats(formats: Sequence[tuple[str, str]], order: str) -> bytes:
    """Write the formats of the tracer's own events."""
    return _formats([text for system, text in formats if system == FTRACE], order)


def write_system_formats(formats: Sequence[tuple[str, str]], order: str) -> bytes:
    """Write the formats of all other events, systems in the order of their first event."""
    systems: dict[str, list[str]] = {}
    for system, text in formats:
        if system != FTRACE:
            systems.setdefault(system, []).append(text)
    parts = [struct.pack(order + "I", len(systems))]
    parts.extend(encode(name) + b"\0" + _formats(texts, order) for name, texts in systems.items())
    return b"".join(parts)


def read_sized(cursor: Cursor, what: str, *, is_wide: bool) -> str:
    """Read a text with its size before it, of 8 bytes when `is_wide` and else of 4."""
    return cursor.text(cursor.u64() if is_wide else cursor.u32(), what)


def write_sized(text: str, order: str, *, is_wide: bool) -> bytes:
    """Write a text with its size before it."""
    data = encode(text)
    return struct.pack(order + ("Q" if is_wide else "I"), len(data)) + data


def read_packed(cursor: Cursor, codec: Decompressor) -> bytes:
    """Read compressed data with both of its sizes before it."""
    packed, unpacked = cursor.u32(), cursor.u32()
    if unpacked > MAX_SECTION:
        raise cursor.error(f"a section that grows to {unpacked} bytes")
    return codec.expand(cursor.take(packed, "a section"), unpacked)


def write_packed(data: Buffer, codec: Compressor, order: str) -> bytes:
    """Write data compressed, with both of its sizes before it: of a section, and of a chunk of pages."""
    packed = codec.compress(data)
    return struct.pack(order + "II", len(packed), len(data)) + packed


def skip_descriptions(cursor: Cursor) -> dict[str, int]:
    """Pass over all parts of version 6 up to the number of CPUs; return where each begins."""
    places = {"header": cursor.at}
    read_header_info(cursor)
    places["ftrace"] = cursor.at
    _skip_formats(cursor, cursor.u32())
    places["systems"] = cursor.at
    for _ in range(cursor.u32()):
        cursor.c_string("the name of a system")
        _skip_formats(cursor, cursor.u32())
    places["kallsyms"] = cursor.at
    cursor.skip(cursor.u32(), "kallsyms")
    places["printk"] = cursor.at
    cursor.skip(cursor.u32(), "printk_formats")
    places["cmdlines"] = cursor.at
    cursor.skip(cursor.u64(), "saved_cmdlines")
    return places
