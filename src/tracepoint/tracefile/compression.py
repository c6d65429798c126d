"""The compressors a trace.dat may name: none, zlib, and zstd where a library for it is installed."""

from __future__ import annotations

from tracepoint.errors import DecodeError, TracepointError
from tracepoint.layout.zstd import find_zstd_name, load_zstd
from tracepoint.named import NamedTuple
from tracepoint.record.decode import DECODE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.layout.zstd import Zstd
    from tracepoint.record.page import Buffer

# More than any section of a real file: kallsyms of a large kernel has 20 MiB.
MAX_SECTION = 1 << 27
MAX_CHUNK = 1 << 26
# In chunks of 40 pages, level 1 of zstd takes a sixth less time for pages than level 3 in chunks of 10, what
# trace-cmd writes, and makes less of them: 39.5 instead of 40.3 MB of 373 MB.
# Of texts it takes half the time of level 3, for 3 % more bytes.
_ZSTD_LEVEL = 1
_UNKNOWN = "compressed with {!r}, which is not none, zlib or zstd"


class Compressor(NamedTuple):
    """What compresses: its name and version as trace.dat has them, and what makes a chunk of data."""

    name: str
    version: str
    compress: Callable[[Buffer], bytes]


class Decompressor(NamedTuple):
    """What expands the chunks of a compressor.

    `expand` takes data and the number of bytes to expect; it raises DecodeError when there are
    more or fewer of them, or when they are no such data.
    """

    name: str
    expand: Callable[[bytes, int], bytes]


def has_zstd() -> bool:
    """Return whether zstd is installed: as a library for Python, or as libzstd of the system."""
    return bool(find_zstd_name() or _system_version())


def default_compression(version: int) -> str:
    """Return what a version of trace.dat is compressed with here: zstd where that can be had."""
    return "zstd" if version == 7 and has_zstd() else "none"


def compressor_named(name: str) -> Compressor | None:
    """Return the compressor of a name; None for `none`.

    Raises DecodeError for a name that is not known, and TracepointError where a library is missing.
    """
    match name:
        case "none" | "":
            return None
        case "zlib":
            import zlib  # noqa: PLC0415 - few recordings need it

            return Compressor("zlib", zlib.ZLIB_VERSION, zlib.compress)
        case "zstd":
            return _zstd_compressor()
    raise DecodeError(_UNKNOWN.format(name))


def decompressor_named(name: str) -> Decompressor | None:
    """Return what expands the data of a compressor; None for `none`.  Raises as `compressor_named` does."""
    match name:
        case "none" | "":
            return None
        case "zlib":
            return Decompressor("zlib", _expand_zlib)
        case "zstd":
            return _zstd_decompressor()
    raise DecodeError(_UNKNOWN.format(name))


def _checked(data: bytes, n_bytes: int) -> bytes:
    if len(data) != n_bytes:
        raise DecodeError(f"compressed data does not give the {n_bytes} bytes it should")
    return data


def _expand_zlib(data: bytes, n_bytes: int) -> bytes:
    import zlib  # noqa: PLC0415 - as above

    try:
        return _checked(zlib.decompressobj().decompress(data, n_bytes + 1), n_bytes)
    except zlib.error as error:
        raise DecodeError(f"compressed data is damaged: {error}") from None


def _system_version() -> str:
    """Return the version of libzstd; empty where there is none, or no C module to call it."""
    return "" if DECODE is None else str(DECODE.zstd_version())


def _zstd_compressor() -> Compressor:
    # The library of the system first: to import one for Python takes longer than a short recording.
    if DECODE is not None and (version := _system_version()):
        context, pack = DECODE.zstd_context(), DECODE.zstd_compress
        return Compressor("zstd", version, lambda data: pack(context, data, _ZSTD_LEVEL))
    library = _library()
    return Compressor("zstd", library.version, lambda data: library.compress(data, _ZSTD_LEVEL))


def _zstd_decompressor() -> Decompressor:
    # The library for Python first: it keeps what it needs to expand from one chunk to the next.
    if DECODE is not None and _system_version() and not find_zstd_name():
        expand_frame = DECODE.zstd_expand
    else:
        expand_frame = _library().expand

    def expand(data: bytes, n_bytes: int) -> bytes:
        try:
            return _checked(expand_frame(data, n_bytes + 1), n_bytes)
        except ValueError as error:
            raise DecodeError(f"compressed data is damaged: {error}") from None

    return Decompressor("zstd", expand)


def _library() -> Zstd:
    library = load_zstd()
    if library is None:
        raise TracepointError(
            "zstd needs a library: pip install zstandard, or libzstd of the system (Python 3.14 has one)"
        )
    return library
