"""How a kernel lays out the pages of its ring buffers: `events/header_page` and `events/header_event`."""

from __future__ import annotations

import re

from tracepoint.errors import DecodeError
from tracepoint.named import NamedTuple

MAX_PAGE_BYTES = 1 << 27

_MEMBER = re.compile(
    r"field:[^;]*?\b(?P<name>\w+);\s*offset:(?P<offset>\d{1,9});\s*size:(?P<size>\d{1,9});", re.ASCII
)
_TYPE_LEN = re.compile(r"type_len\s*:\s*5 bits", re.ASCII)

# The same words on every kernel since 2.6.31.
HEADER_EVENT = (
    "# compressed entry header\n"
    "\ttype_len    :    5 bits\n"
    "\ttime_delta  :   27 bits\n"
    "\tarray       :   32 bits\n"
    "\n"
    "\tpadding     : type == 29\n"
    "\ttime_extend : type == 30\n"
    "\ttime_stamp : type == 31\n"
    "\tdata max type_len  == 28\n"
)


class PageLayout(NamedTuple):
    """The offsets of the parts of a page, in bytes; the default is that of 64-bit x86.

    `long_size` (4 or 8) is the width of `commit` and of a stored count of lost events.
    """

    data_offset: int = 16
    data_size: int = 4080
    commit_offset: int = 8
    long_size: int = 8
    is_big_endian: bool = False

    @property
    def page_size(self) -> int:
        """The bytes of a whole page."""
        return self.data_offset + self.data_size


def read_page_layout(text: str, *, is_big_endian: bool = False) -> PageLayout:
    r"""Read the text of `events/header_page`.

    Raises DecodeError when members are missing or contradict each other.

    >>> read_page_layout(
    ...     "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
    ...     "\tfield: local_t commit;\toffset:8;\tsize:4;\tsigned:1;\n"
    ...     "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
    ...     "\tfield: char data;\toffset:12;\tsize:4084;\tsigned:0;\n"
    ... ).page_size
    4096
    """
    members = {m["name"]: (int(m["offset"]), int(m["size"])) for m in _MEMBER.finditer(text)}
    if "timestamp" not in members or "commit" not in members or "data" not in members:
        raise DecodeError("header_page lacks timestamp, commit or data")
    commit, width = members["commit"]
    data, size = members["data"]
    if members["timestamp"] != (0, 8) or width not in (4, 8):
        raise DecodeError("header_page describes a time stamp or commit that no kernel has")
    if commit < 8 or commit + width > data or data % 4 or data > 64 or not 4 <= size <= MAX_PAGE_BYTES:
        raise DecodeError("header_page describes parts that overlap or a page that no kernel has")
    return PageLayout(data, size, commit, width, is_big_endian)


def check_header_event(text: str) -> None:
    """Raise DecodeError when `events/header_event` describes events as before Linux 2.6.31."""
    if text.strip() and not _TYPE_LEN.search(text):
        raise DecodeError("header_event describes events that are not laid out as 5 bits of type_len")


def header_page_text(layout: PageLayout) -> str:
    """Write the text of `events/header_page` for a layout."""

    def line(ctype: str, offset: int, size: int, *, signed: bool) -> str:
        return f"\tfield: {ctype};\toffset:{offset};\tsize:{size};\tsigned:{int(signed)};\n"

    commit = layout.commit_offset
    return (
        line("u64 timestamp", 0, 8, signed=False)
        + line("local_t commit", commit, layout.long_size, signed=True)
        + line("int overwrite", commit, 1, signed=True)
        + line("char data", layout.data_offset, layout.data_size, signed=True)
    )
