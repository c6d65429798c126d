"""The library for zstd that is installed: Python's own from 3.14 on, its backport, or `zstandard`."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib import import_module

from tracepoint.errors import LayoutError
from tracepoint.named import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_MAX_WINDOW = 1 << 27
_STEP = 1 << 10
_AT_ONCE = 1 << 20
_ZSTD_LIBRARIES = ("compression.zstd", "backports.zstd", "zstandard")


class Zstd(NamedTuple):
    """A library for zstd. `compress` takes a level (1 to 19, more is slower).

    `expand` gives up to a number of bytes; it raises ValueError for damaged data.
    """

    version: str
    compress: Callable[[bytes | bytearray | memoryview, int], bytes]
    expand: Callable[[bytes, int], bytes]


def find_zstd_name() -> str:
    """Return the module name of the library for zstd that is installed; empty without one."""
    from importlib.util import find_spec  # noqa: PLC0415 - most uses find what the system has

    for name in _ZSTD_LIBRARIES:
        try:
            if find_spec(name) is not None:
                return name
        except ModuleNotFoundError:  # the parent package is missing
            continue
    return ""


def load_zstd() -> Zstd | None:
    """Return the library for zstd that is installed, or None."""
    name = find_zstd_name()
    if not name:
        return None
    library = import_module(name)
    if name == "zstandard":
        version = ".".join(str(n) for n in library.ZSTD_VERSION)
        return Zstd(version, _compress_zstandard(library), _expand_zstandard(library))
    return Zstd(library.zstd_version, library.compress, _expand_stdlib(library))


def _compress_zstandard(library: Any) -> Callable[[bytes | bytearray | memoryview, int], bytes]:
    made = cache(library.ZstdCompressor)
    return lambda data, level: made(level).compress(data)


def _expand_zstandard(library: Any) -> Callable[[bytes, int], bytes]:
    expander = library.ZstdDecompressor(max_window_size=_MAX_WINDOW)

    def expand(data: bytes, limit: int) -> bytes:
        if limit <= _AT_ONCE:
            with suppress(library.ZstdError):
                # A frame that says its size would be given that much memory; -1: it does not.
                if library.frame_content_size(data) <= limit:
                    whole: bytes = expander.decompress(data, max_output_size=limit)
                    return whole
        frame, made, total = expander.decompressobj(), [], 0
        try:
            # In steps so short that even a bomb gives little more than the limit.
            for at in range(0, len(data), _STEP):
                made.append(frame.decompress(data[at : at + _STEP]))
                total += len(made[-1])
                if frame.eof or total >= limit:
                    return b"".join(made)[:limit]
        except library.ZstdError as error:
            raise ValueError(str(error)) from None
        raise ValueError("it is cut off")

    return expand


def _expand_stdlib(library: Any) -> Callable[[bytes, int], bytes]:
    options = {library.DecompressionParameter.window_log_max: _MAX_WINDOW.bit_length() - 1}

    def expand(data: bytes, limit: int) -> bytes:
        frame = library.ZstdDecompressor(options=options)
        try:
            made: bytes = frame.decompress(data, limit)
        except library.ZstdError as error:
            raise ValueError(str(error)) from None
        if not frame.eof and len(made) < limit:
            raise ValueError("it is cut off")
        return made

    return expand


class _ZstdExpander:
    """A library's expander of one frame, as those of `lzma` and `zlib` are used."""

    def __init__(self, expander: Any, error: type[Exception]) -> None:
        self._expander = expander
        self._error = error

    @property
    def eof(self) -> bool:
        """Whether the frame has ended."""
        return bool(self._expander.eof)

    @property
    def unused_data(self) -> bytes:
        """What follows the frame."""
        return bytes(self._expander.unused_data)

    def decompress(self, data: bytes) -> bytes:
        """Return what more data gives; raises ValueError for damaged data."""
        try:
            return bytes(self._expander.decompress(data))
        except self._error as error:
            raise ValueError(str(error)) from None


def new_zstd_expander() -> _ZstdExpander:
    """Return what expands a frame of zstd, a block at a time; raises LayoutError without a library."""
    name = find_zstd_name()
    if not name:
        raise LayoutError("compressed with zstd, which needs a library: pip install zstandard")
    library = import_module(name)
    if name == "zstandard":
        expander = library.ZstdDecompressor(max_window_size=_MAX_WINDOW).decompressobj()
    else:
        options = {library.DecompressionParameter.window_log_max: _MAX_WINDOW.bit_length() - 1}
        expander = library.ZstdDecompressor(options=options)
    return _ZstdExpander(expander, library.ZstdError)
