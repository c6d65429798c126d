"""The text of CTF metadata out of its file, and a place in its tokens.

TSDL has the comments, literals and names of C, so its tokens are those of C: `:=` is two of them.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from tracepoint.errors import DecodeError, SourceError
from tracepoint.source.cwrite import decode_string
from tracepoint.source.lexer import Kind, lex
from tracepoint.source.text import SourceFile
from tracepoint.tracefile.cursor import decode
from tracepoint.tracefile.damage import Damage

if TYPE_CHECKING:
    from tracepoint.source.lexer import Token
    from tracepoint.tracefile.cpudata import Report
    from tracepoint.tracefile.filebytes import Bytes

_MAGIC = 0x75D11D57
_MAGICS = {order: struct.pack(f"{order}I", _MAGIC) for order in "<>"}
_SIGNATURE = b"/* CTF 1."
# magic, uuid[16], checksum, content_size and packet_size in bits, schemes of compression, encryption and
# checksum, major, minor.
_HEAD = "I16sIIIBBBBB"
_MAX_TEXT = 1 << 26
_WINDOW = 1 << 18
_MAX_LINE = 1 << 20
# The metadata of a kernel with all events in three channels have a million.
_MAX_TOKENS = 4_000_000
_MAX_DIGITS = 70


def is_metadata(head: bytes) -> bool:
    """Say whether a file that begins so is the metadata of a CTF 1.8 trace."""
    return head.startswith((_SIGNATURE, *_MAGICS.values()))


def metadata_text(data: Bytes, path: str, report: Report) -> str:
    """Return the text of metadata, which may be in packets; what is cut off is reported.

    Raises DecodeError for packets that are compressed or encrypted, and for texts that nobody writes.
    """
    if len(data) > _MAX_TEXT:
        raise DecodeError(f"metadata of {len(data)} bytes", path, 0)
    data = bytes(data)
    order = next((order for order, magic in _MAGICS.items() if data[:4] == magic), "")
    if not order:
        return decode(data)
    head, at, parts = struct.Struct(order + _HEAD), 0, []
    while at < len(data):
        if len(data) - at < head.size:
            report(Damage(None, at, "the metadata are cut off"))
            break
        magic, _, _, content, size, compression, encryption, *_ = head.unpack_from(data, at)
        content, size = content // 8, size // 8
        if magic != _MAGIC or not head.size <= content <= size:
            report(Damage(None, at, "a packet of the metadata with a damaged head: the rest is left out"))
            break
        if compression or encryption:
            raise DecodeError("metadata that are compressed or encrypted", path, at)
        if at + content > len(data):
            report(Damage(None, at, "the metadata are cut off"))
        parts.append(data[at + head.size : at + content])
        at += size
    return decode(b"".join(parts))


class TsdlTokens:
    """A place in the tokens of a TSDL text; every mistake is a DecodeError that names the line.

    Some tokens are in memory at once: each takes a hundred times its text.
    """

    def __init__(self, text: str, path: str) -> None:
        self._path = path
        self._file = SourceFile(path, text)
        self._at = 0
        self._tokens: list[Token] = []
        self._last = self._reached = self._n_passed = 0
        self._need(1)

    def _need(self, n_tokens: int) -> None:
        """Take tokens from the text until there are some from here on, or the text ends."""
        text = self._file.text
        while len(self._tokens) - self._at <= n_tokens and self._reached >= 0:
            passed, size = self._at, _WINDOW
            while True:
                end = text.find("\n", self._reached + size) + 1 or len(text)
                if end - self._reached > size + _MAX_LINE:
                    raise DecodeError(f"a line of more than {_MAX_LINE:,} characters", self._path)
                found = self._lexed(end)
                # A comment or a string goes on after the window.
                if end == len(text) or not any(token.kind is Kind.BAD for token in found):
                    break
                size *= 2
            self._n_passed += passed
            self._reached = end if end < len(text) else -1
            self._tokens = self._tokens[passed:] + (found if self._reached < 0 else found[:-1])
            self._last = len(self._tokens) - 1
            self._at = 0

    def _lexed(self, end: int) -> list[Token]:
        try:
            return lex(self._file, self._reached, end, limit=_MAX_TOKENS - self._n_passed)
        except SourceError:
            raise DecodeError(f"more than {_MAX_TOKENS:,} tokens", self._path) from None

    def wrong(self, reason: str) -> DecodeError:
        """Make the error that says what is wrong at the next token."""
        line = self._file.position(self._token.start)[0]
        return DecodeError(f"line {line}: {reason}", self._path)

    @property
    def _token(self) -> Token:
        if self._at < self._last:
            return self._tokens[self._at]
        self._need(1)
        return self._tokens[min(self._at, self._last)]

    def skip_tokens(self, n_tokens: int) -> None:
        """Pass over tokens that `ahead` has shown."""
        self._at += n_tokens

    @property
    def text(self) -> str:
        """What the next token says; empty at the end."""
        return self._tokens[self._at].text if self._at < self._last else self._token.text

    @property
    def kind(self) -> Kind:
        """What the next token is."""
        return self._token.kind

    def ahead(self, n_tokens: int) -> Token:
        """Return a token further on."""
        self._need(n_tokens + 1)
        return self._tokens[min(self._at + n_tokens, self._last)]

    def take(self) -> str:
        """Pass over a token and return what it says."""
        text = self._token.text
        if self._token.kind is Kind.END:
            raise self.wrong("the text ends too early")
        self._at += 1
        return text

    def expect(self, *texts: str) -> None:
        """Pass over tokens that must be there."""
        for text in texts:
            if self.text != text:
                raise self.wrong(f"`{text}` expected, not `{self.text[:40]}`")
            self._at += 1

    def skip(self, text: str) -> bool:
        """Pass over a token if it is there, and say whether it was."""
        is_there = self.text == text and self.kind is not Kind.END
        self._at += is_there
        return is_there

    def name(self) -> str:
        """Pass over a name and return it."""
        if self.kind is not Kind.NAME:
            raise self.wrong(f"a name expected, not `{self.text[:40]}`")
        return self.take()

    def string(self) -> str:
        """Pass over string literals and return their value."""
        parts = []
        while self.kind is Kind.STRING:
            parts.append(decode_string(self.take()[1:-1]))
        return decode("".join(parts).encode("latin-1", "replace"))

    def number(self) -> int:
        """Pass over an integer with its sign and return it."""
        low, rest = self._signed()
        if rest is not None:
            raise self.wrong("a number expected, not a range")
        return low

    def range(self) -> tuple[int, int]:
        """Pass over an integer or a range, `0 ... 30`, and return its ends."""
        low, rest = self._signed()
        if rest is None and not self.skip("..."):
            return low, low
        if rest:
            return low, self._value(rest)
        return low, self.number()

    def _signed(self) -> tuple[int, str | None]:
        """Pass over a number; return it with what follows dots in its token: C takes `0...30` for one."""
        is_negative = False
        while self.text in ("-", "+"):
            is_negative ^= self.take() == "-"
        if self.kind is not Kind.NUMBER:
            raise self.wrong(f"a number expected, not `{self.text[:40]}`")
        digits, dots, rest = self.text.partition("...")
        number = self._value(digits)
        self._at += 1
        return -number if is_negative else number, rest if dots else None

    def _value(self, digits: str) -> int:
        digits = digits.rstrip("uUlL")
        is_octal = len(digits) > 1 and digits[0] == "0" and digits.isdigit()
        try:
            number = int(digits, 8 if is_octal else 0) if len(digits) <= _MAX_DIGITS else 1 << 64
        except ValueError:
            raise self.wrong(f"`{digits[:40]}` is not a number") from None
        if number >> 64:
            raise self.wrong(f"a number of more than 64 bits: {digits[:40]}")
        return number
