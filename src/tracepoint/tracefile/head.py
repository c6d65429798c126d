"""The head of a trace.dat: what its first bytes say; those that tell a perf.data from it."""

from __future__ import annotations

from tracepoint.errors import DecodeError
from tracepoint.named import NamedTuple
from tracepoint.tracefile.cursor import Cursor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tracepoint.tracefile.filebytes import Bytes

MAGIC = b"\x17\x08\x44tracing"
# How a perf.data begins, of a little-endian and of a big-endian machine.
PERF_MAGICS = (b"PERFILE2", b"2ELIFREP")
# What parts of version 6 begin with.
OPTIONS_TAG = b"options  \0"
LATENCY_TAG = b"latency  \0"
FLYRECORD_TAG = b"flyrecord\0"
# A section of version 7: its flag, and the bytes of its head.
COMPRESSED = 1
SECTION_HEAD = 16


class FileHead(NamedTuple):
    """What the first bytes say; `end` is the offset after them, `first_options` only in version 7."""

    version: int
    is_big_endian: bool
    long_size: int
    page_size: int
    compression: str
    first_options: int
    end: int


def read_head(data: Bytes, path: str = "") -> FileHead:
    """Read the head of a trace.dat; raises DecodeError for another file or version."""
    cursor = Cursor(data, path=path)
    if cursor.left < len(MAGIC) or cursor.take(len(MAGIC)) != MAGIC:
        raise DecodeError("not a trace.dat: it does not begin as one", path, 0)
    word = cursor.c_string("the version", 8)
    if word not in ("6", "7"):
        raise DecodeError(f"trace.dat of version {word!r}; 6 and 7 can be read", path, len(MAGIC))
    order, long_size = cursor.take(2, "the head")
    if order > 1 or long_size not in (4, 8):
        cursor.at -= 2
        raise cursor.error("byte order or size of a long that no machine has")
    cursor = Cursor(data, cursor.at, big=order == 1, path=path)
    page_size = cursor.u32()
    compression, first = "none", 0
    if word == "7":
        compression = cursor.c_string("the name of the compressor", 64)
        cursor.c_string("the version of the compressor", 64)
        first = cursor.u64()
    return FileHead(int(word), order == 1, long_size, page_size, compression, first, cursor.at)
