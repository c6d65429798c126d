"""Records out of pages, in C.  Its twin is `tracepoint.record.pages.read_pages_slowly`."""

from tracepoint.record.page import Buffer

def read_pages(
    data: Buffer,
    data_offset: int,
    data_size: int,
    commit_offset: int,
    long_size: int,
    is_big_endian: bool,
    /,
) -> tuple[bytes, bytes, bytes, list[tuple[int, int, int, int, tuple[tuple[int, int], ...], str, int]]]: ...
