"""The compressors a trace.dat may name: none, zlib, and zstd where a library for it is installed."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, NamedTuple

from tracepoint.errors import DecodeError, TracepointError
from tracepoint.layout.zstd import find_zstd_name, load_zstd

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.record.page import Buffer

# More than any section of a real file: kallsyms of a large kernel has 20 MiB.
MAX_SECTION = 1 << 27
MAX_CHUNK = 1 << 26
# In chunks of 40 pages, level 1 of zstd takes a sixth less time for pages than level 3 in chunks of 10, what
# trace-cmd writes, and makes less of them: 39.5 instead of 40.3 MB of 373 MB.  Level 3 makes texts smaller.
_ZSTD_TEXT_LEVEL, _ZSTD_PAGE_LEVEL = 3, 1


class Codec(NamedTuple):
    """One compressor: its name and version as trace.dat has them, and both directions.

    `compress` is for texts, `compress_pages` for the pages of a ring buffer.
    `expand` takes data and the number of bytes to expect; it raises DecodeError when there are
    more or fewer of them, or when they are no such data.
    """

    name: str
    version: str
    compress: Callable[[Buffer], bytes]
    compress_pages: Callable[[Buffer], bytes]
    expand: Callable[[bytes, int], bytes]


def has_zstd() -> bool:
    """Return whether a library for zstd is installed."""
    return bool(find_zstd_name())


def default_compression(version: int) -> str:
    """Return what a version of trace.dat is compressed with here: zstd where that can be had."""
    return "zstd" if version == 7 and has_zstd() else "none"


def codec_named(name: str) -> Codec | None:
    """Return the compressor of a name; None for `none`.

    Raises DecodeError for a name that is not known, and TracepointError where a library is missing.
    """
    match name:
        case "none" | "":
            return None
        case "zlib":
            return Codec("zlib", zlib.ZLIB_VERSION, zlib.compress, zlib.compress, _expand_zlib)
        case "zstd":
            return _zstd()
    raise DecodeError(f"compressed with {name!r}, which is not none, zlib or zstd")


def _checked(data: bytes, n_bytes: int) -> bytes:
    if len(data) != n_bytes:
        raise DecodeError(f"compressed data does not give the {n_bytes} bytes it should")
    return data


def _expand_zlib(data: bytes, n_bytes: int) -> bytes:
    try:
        return _checked(zlib.decompressobj().decompress(data, n_bytes + 1), n_bytes)
    except zlib.error as error:
        raise DecodeError(f"compressed data is damaged: {error}") from None


def _zstd() -> Codec:
    library = load_zstd()
    if library is None:
        raise TracepointError("zstd needs a library: pip install zstandard (part of Python from 3.14)")

    def expand(data: bytes, n_bytes: int) -> bytes:
        try:
            return _checked(library.expand(data, n_bytes + 1), n_bytes)
        except ValueError as error:
            raise DecodeError(f"compressed data is damaged: {error}") from None

    def compress(data: Buffer) -> bytes:
        return library.compress(data, _ZSTD_TEXT_LEVEL)

    def compress_pages(data: Buffer) -> bytes:
        return library.compress(data, _ZSTD_PAGE_LEVEL)

    return Codec("zstd", library.version, compress, compress_pages, expand)
