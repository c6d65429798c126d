"""Reading numbers, strings and sized texts out of bytes that may say anything."""

from __future__ import annotations

import struct

from tracepoint.errors import DecodeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tracepoint.tracefile.filebytes import Bytes


class Cursor:
    """A place in `data[at:end]`; every read that would leave it raises DecodeError.

    `base` is added to offsets in messages, for data that was taken out of a file; `path` names it.
    """

    def __init__(
        self,
        data: Bytes,
        at: int = 0,
        end: int | None = None,
        *,
        big: bool = False,
        path: str = "",
        base: int = 0,
    ) -> None:
        self.data = data
        self.end = len(data) if end is None else end
        self.at = at
        self.path = path
        self.base = base
        self.is_big_endian = big
        self._order = ">" if big else "<"
        if not 0 <= at <= self.end <= len(data):
            raise self.error("an offset leads out of the file")

    def error(self, reason: str) -> DecodeError:
        """Make the error that says what is wrong here."""
        return DecodeError(reason, self.path, self.base + self.at)

    @property
    def left(self) -> int:
        """Bytes not read yet."""
        return self.end - self.at

    def skip(self, n_bytes: int, what: str = "data") -> int:
        """Pass over bytes and return where they began."""
        if not 0 <= n_bytes <= self.left:
            # A wrong size and a short file look the same here.
            # With what expands compressed files, which a writer of options does without.
            from tracepoint.tracefile.filebytes import FileBytes  # noqa: PLC0415

            is_end = self.end == len(self.data) and isinstance(self.data, FileBytes)
            hint = "; the file may be cut off" if is_end else ""
            raise self.error(f"{what} of {n_bytes} bytes where {self.left} are left{hint}")
        self.at += n_bytes
        return self.at - n_bytes

    def take(self, n_bytes: int, what: str = "data") -> bytes:
        """Read bytes."""
        start = self.skip(n_bytes, what)
        return bytes(self.data[start : start + n_bytes])

    def _number(self, code: str, size: int) -> int:
        start = self.skip(size, "a number")
        number: int = struct.unpack(self._order + code, self.data[start : start + size])[0]
        return number

    def u16(self) -> int:
        """Read 2 bytes."""
        return self._number("H", 2)

    def u32(self) -> int:
        """Read 4 bytes."""
        return self._number("I", 4)

    def u64(self) -> int:
        """Read 8 bytes."""
        return self._number("Q", 8)

    def text(self, n_bytes: int, what: str) -> str:
        """Read a text; bytes that are not UTF-8 survive as surrogates."""
        return decode(self.take(n_bytes, what))

    def c_string(self, what: str, limit: int = 4096) -> str:
        """Read a string that ends with NUL, of at most `limit` bytes."""
        window = bytes(self.data[self.at : min(self.end, self.at + limit)])
        length = window.find(b"\0")
        if length < 0:
            raise self.error(f"{what} does not end")
        self.at += length + 1
        return decode(window[:length])


def decode(data: bytes) -> str:
    """Return bytes as text; what is not UTF-8 survives as surrogates."""
    return data.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """Return the bytes of a text that `decode` made."""
    return text.encode("utf-8", "surrogateescape")
