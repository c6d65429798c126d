"""The compressors a trace.dat may name: none, zlib, and zstd where a library for it is installed."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tracepoint.errors import DecodeError, TracepointError

if TYPE_CHECKING:
    from collections.abc import Callable

# More than any section of a real file: kallsyms of a large kernel has 20 MiB.
MAX_SECTION = 1 << 27
MAX_CHUNK = 1 << 26
_MAX_WINDOW = 1 << 27
_ZSTD_LIBRARIES = ("compression.zstd", "backports.zstd", "zstandard")


@dataclass(frozen=True, slots=True)
class Codec:
    """One compressor: its name and version as trace.dat has them, and both directions.

    `expand` takes data and the number of bytes to expect; it raises DecodeError when there are
    more or fewer of them, or when they are no such data.
    """

    name: str
    version: str
    compress: Callable[[bytes], bytes]
    expand: Callable[[bytes, int], bytes]


def has_zstd() -> bool:
    """Whether a library for zstd is installed."""
    return bool(_zstd_library())


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
            return Codec("zlib", zlib.ZLIB_VERSION, zlib.compress, _expand_zlib)
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


def _zstd_library() -> str:
    for name in _ZSTD_LIBRARIES:
        try:
            if find_spec(name) is not None:
                return name
        except ModuleNotFoundError:  # the parent package is not there
            continue
    return ""


def _zstd() -> Codec:
    name = _zstd_library()
    if not name:
        raise TracepointError("zstd needs a library: pip install zstandard (part of Python from 3.14)")
    library = import_module(name)
    if name == "zstandard":
        version = ".".join(str(n) for n in library.ZSTD_VERSION)
        return Codec("zstd", version, _compress_zstandard(library), _expand_zstandard(library))
    return Codec("zstd", library.zstd_version, library.compress, _expand_stdlib(library))


def _compress_zstandard(library: Any) -> Callable[[bytes], bytes]:
    compressor = library.ZstdCompressor()

    def compress(data: bytes) -> bytes:
        made: bytes = compressor.compress(data)
        return made

    return compress


def _expand_zstandard(library: Any) -> Callable[[bytes, int], bytes]:
    expander = library.ZstdDecompressor(max_window_size=_MAX_WINDOW)

    def expand(data: bytes, n_bytes: int) -> bytes:
        try:
            # The stream gives no more than is asked for, whatever the frame says of itself.
            with expander.stream_reader(data) as stream:
                return _checked(stream.read(n_bytes + 1), n_bytes)
        except library.ZstdError as error:
            raise DecodeError(f"compressed data is damaged: {error}") from None

    return expand


def _expand_stdlib(library: Any) -> Callable[[bytes, int], bytes]:
    options = {library.DecompressionParameter.window_log_max: _MAX_WINDOW.bit_length() - 1}

    def expand(data: bytes, n_bytes: int) -> bytes:
        try:
            return _checked(library.ZstdDecompressor(options=options).decompress(data, n_bytes + 1), n_bytes)
        except library.ZstdError as error:
            raise DecodeError(f"compressed data is damaged: {error}") from None

    return expand
