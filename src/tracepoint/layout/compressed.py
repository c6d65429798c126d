"""Undo what modules and boot images are compressed with.

xz, lzma, gzip and bzip2 are Python's own, though a Python may be built without all but gzip; zstd needs a
library; lz4, which no library of Python has, is read here in the form that kernels are built with.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

from tracepoint.errors import LayoutError
from tracepoint.layout.zstd import load_zstd, new_zstd_expander

_XZ_MAGIC, _BZIP2_MAGIC, _GZIP_MAGIC, _ZSTD_MAGIC = b"\xfd7zXZ\0", b"BZh", b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_MAGICS = {_XZ_MAGIC: "xz", _BZIP2_MAGIC: "bzip2", _GZIP_MAGIC: "gzip", _ZSTD_MAGIC: "zstd"}
#: How a compressed file begins; of gzip with its only method (RFC 1952), as some pages have the magic alone.
COMPRESSED_STARTS = (_XZ_MAGIC, _BZIP2_MAGIC, _GZIP_MAGIC + b"\x08", _ZSTD_MAGIC)
#: How an object file begins, plain or compressed.
OBJECT_STARTS = (b"\x7fELF", *COMPRESSED_STARTS)
#: How the names of object files end: modules as they are and compressed, and what a compiler makes.
MODULE_ENDS = (".ko", ".ko.xz", ".ko.gz", ".ko.bz2", ".ko.zst")
OBJECT_ENDS = (*MODULE_ENDS, ".o")
_MAX_OBJECT = 1 << 30
_LONGEST_MAGIC = 6
_LZ4_MAGIC = b"\x02\x21\x4c\x18"
# What the form of `lz4 -l` allows: a block, and the compressed bytes of one that does not get smaller.
_LZ4_BLOCK = 8 << 20
_LZ4_BOUND = _LZ4_BLOCK + _LZ4_BLOCK // 255 + 16
#: What an expander raises for damaged data, besides `LZMAError`, which is not a ValueError.
_DAMAGE = (OSError, EOFError, zlib.error, ValueError)


def compression_of(head: bytes) -> str:
    """Return the name of what a stream that begins with `head` is compressed with; empty for plain data.

    >>> compression_of(b"BZh91AY"), compression_of(b"trace")
    ('bzip2', '')
    """
    return next((name for magic, name in _MAGICS.items() if head.startswith(magic)), "")


def new_expander(head: bytes) -> Any:
    """Return what expands a stream that begins with `head`, a block at a time; None for plain data.

    It has `decompress(data)`, `eof` and `unused_data`, as `lzma.LZMADecompressor`.  Raises LayoutError for
    zstd where no library for it is installed, and for xz and bzip2 where Python was built without them.
    """
    match compression_of(head):
        case "xz":
            return _new_xz_expander()
        case "bzip2":
            return _new_bzip2_expander()
        case "gzip":
            return zlib.decompressobj(wbits=31)
        case "zstd":
            return new_zstd_expander()
    return None


def _new_xz_expander() -> Any:
    try:
        import lzma  # noqa: PLC0415 - not every Python has it
    except ImportError as error:
        raise _without("xz", error) from None
    return lzma.LZMADecompressor()


def _new_bzip2_expander() -> Any:
    try:
        import bz2  # noqa: PLC0415 - not every Python has it
    except ImportError as error:
        raise _without("bzip2", error) from None
    return bz2.BZ2Decompressor()


def _without(what: str, error: ImportError) -> LayoutError:
    return LayoutError(
        f"it is compressed with {what}, and this Python was built without that ({error}): "
        "expand it with another program, or use a Python that has it"
    )


def is_damage(error: BaseException) -> bool:
    """Return whether an expander, or `decompress`, raised this because its data is damaged."""
    return isinstance(error, _DAMAGE) or type(error).__name__ == "LZMAError"


def decompress(data: bytes) -> bytes:
    """Undo xz, lzma, gzip, bzip2, zstd or lz4, as of modules and kernels; other bytes come back as they are.

    What follows the compressed data is left out.  Raises LayoutError for damaged data, for more than
    1 GiB of it, and where nothing is installed that expands it.
    """
    try:
        result = _decompress(data)
    except Exception as error:
        if not is_damage(error):
            raise
        raise LayoutError(f"the compressed data is damaged: {error}") from None
    if result is None:
        return data
    if len(result) >= _MAX_OBJECT:
        raise LayoutError("the data is larger than 1 GiB when decompressed")
    return result


def _decompress(data: bytes) -> bytes | None:
    if data[:4] == _LZ4_MAGIC:
        return _expand_lz4(data)
    if data[:4] == _ZSTD_MAGIC and (zstd := load_zstd()) is not None:
        return zstd.expand(data, _MAX_OBJECT)
    # A magic so short that only the parts of a kernel, which have no other form, are tried by it.
    is_lzma = data[:3] == b"\x5d\0\0"
    expander = new_expander(_XZ_MAGIC if is_lzma else data[:_LONGEST_MAGIC])
    return None if expander is None else _whole(expander, data)


def _whole(decompressor: Any, data: bytes) -> bytes:
    made: bytes = decompressor.decompress(data, _MAX_OBJECT)
    if not decompressor.eof and len(made) < _MAX_OBJECT:
        raise EOFError("it is cut off")
    return made


def kernel_payload(image: bytes) -> bytes:
    """Return the kernel inside an x86 boot image (`vmlinuz`); other bytes come back as they are.

    Documentation/arch/x86/boot.rst: payload_offset and payload_length; the payload ends with the size of
    what is in it.  Raises LayoutError where it is cut off, damaged, or cannot be decompressed.
    """
    if image[0x202:0x206] != b"HdrS":
        return image
    if len(image) < 0x250:
        raise LayoutError("the boot image is cut off")
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = ((image[0x1F1] or 4) + 1) * 512 + offset
    packed = image[start : start + length]
    if not length or len(packed) != length:
        raise LayoutError("the boot image is cut off")
    kernel = decompress(packed)
    if kernel is not packed and len(kernel) != int.from_bytes(packed[-4:], "little"):
        raise LayoutError("the kernel in the boot image has another size than the image says")
    return kernel


def _expand_lz4(data: bytes) -> bytes:
    """Undo `lz4 -l`: blocks with their size before them, up to the end or to what cannot be such a size."""
    blocks = []
    total, at = 0, len(_LZ4_MAGIC)
    while len(data) - at > 4 and total < _MAX_OBJECT:
        size = int.from_bytes(data[at : at + 4], "little")
        if size > _LZ4_BOUND:
            break
        block = data[at + 4 : at + 4 + size]
        if len(block) != size:
            raise ValueError("a block is cut off")
        blocks.append(_expand_lz4_block(block))
        total += len(blocks[-1])
        at += 4 + size
    return b"".join(blocks)


def _expand_lz4_block(data: bytes) -> bytes:
    """Undo one block: runs of bytes as they are, each followed by a repetition of bytes before it."""
    made = bytearray()
    at, end = 0, len(data)
    try:
        while at < end:
            token = data[at]
            n_plain, at = _lz4_length(data, at + 1, token >> 4)
            made += data[at : at + n_plain]
            at += n_plain
            if at >= end:
                break
            distance = data[at] | data[at + 1] << 8
            n_again, at = _lz4_length(data, at + 2, token & 15)
            n_again += 4
            start = len(made) - distance
            if not distance or start < 0 or len(made) + n_again > _LZ4_BLOCK:
                raise ValueError("a repetition outside its block")
            if n_again > distance:
                made += (made[start:] * (n_again // distance + 1))[:n_again]
            else:
                made += made[start : start + n_again]
    except IndexError:
        raise ValueError("a block is cut off") from None
    if at != end or len(made) > _LZ4_BLOCK:
        raise ValueError("a block is longer than it may be")
    return bytes(made)


def _lz4_length(data: bytes, at: int, length: int) -> tuple[int, int]:
    """Return a length and where it ends: 15 goes on in bytes that are added, up to one below 255."""
    if length == 15:
        while True:
            length += data[at]
            at += 1
            if data[at - 1] != 255:
                break
    return length, at
