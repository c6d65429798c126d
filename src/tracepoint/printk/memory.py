"""What a running program reads: the record at hand, and bytes of it with their bounds checked."""

from __future__ import annotations

from tracepoint.printk.facts import NO_FACTS, RenderFacts, UnknownPartError

#: Bytes and an offset in them.
Location = tuple[bytes, int]


class RecordMemory:
    """The record at hand: its bytes from `common_type` on, the facts, notes and symbols found so far.

    `symbols` are texts by letters and address, as `symbols.symbol_text` made them.
    """

    __slots__ = ("data", "facts", "notes", "symbols")

    def __init__(self, data: bytes, facts: RenderFacts = NO_FACTS) -> None:
        self.data = data
        self.facts = facts
        self.notes: list[str] = []
        self.symbols: dict[tuple[str, int], str] = {}

    def note(self, text: str) -> None:
        """Add a note once."""
        if text not in self.notes:
            self.notes.append(text)


NO_RECORD = RecordMemory(b"")


def c_string(data: bytes, at: int, limit: int = -1) -> str:
    """Return the string at an offset up to its NUL, or `limit` bytes of it when that comes first."""
    end = data.find(0, at)
    if at < 0 or at > len(data):
        raise UnknownPartError("a string begins outside the record")
    if end < 0:
        if limit < 0 or at + limit > len(data):
            raise UnknownPartError("a string runs past the end of the record")
        end = at + limit
    elif 0 <= limit < end - at:
        end = at + limit
    return data[at:end].decode("latin-1")


def take(place: Location | None, size: int) -> bytes:
    """Return `size` bytes at a place; raises `UnknownPartError` when the record does not hold them."""
    if place is None:
        raise UnknownPartError("a NULL pointer is dereferenced")
    data, at = place
    if at < 0 or size < 0 or at + size > len(data):
        raise UnknownPartError("bytes outside the record are shown")
    return data[at : at + size]
