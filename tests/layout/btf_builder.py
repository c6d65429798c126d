"""Builds BTF bytes for tests."""

from __future__ import annotations

import struct


class BtfBuilder:
    """Adds types and returns their ids; `base` and `string_base` make split BTF, as modules have it."""

    def __init__(self, order: str = "<", first_id: int = 1, string_base: int = 0) -> None:
        self.order = order
        self.first_id = first_id
        self.string_base = string_base
        self.types = bytearray()
        self.n_types = 0
        self.strings = bytearray() if string_base else bytearray(b"\0")

    def string(self, text: str) -> int:
        if not text:
            return 0
        at = self.string_base + len(self.strings)
        self.strings += text.encode() + b"\0"
        return at

    def type(
        self, kind: int, name: str, size: int, words: list[int] | None = None, vlen: int = 0, flag: int = 0
    ) -> int:
        info = flag << 31 | kind << 24 | vlen
        self.types += struct.pack(self.order + "III", self.string(name), info, size)
        self.types += struct.pack(f"{self.order}{len(words or [])}I", *[w & 0xFFFFFFFF for w in words or []])
        self.n_types += 1
        return self.first_id + self.n_types - 1

    def int(self, name: str, size: int, signed: int) -> int:
        return self.type(1, name, size, [signed << 24 | size * 8])

    def struct(self, name: str, size: int, members: list[tuple[str, int, int]], kind: int = 4) -> int:
        words = [w for member, type_id, offset in members for w in (self.string(member), type_id, offset * 8)]
        return self.type(kind, name, size, words, len(members))

    def enum(self, name: str, values: dict[str, int], flag: int = 0) -> int:
        words = [w for key, value in values.items() for w in (self.string(key), value)]
        return self.type(6, name, 4, words, len(values), flag)

    def build(self) -> bytes:
        head = struct.pack(
            self.order + "HBBIIIII",
            0xEB9F,
            1,
            0,
            24,
            0,
            len(self.types),
            len(self.types),
            len(self.strings),
        )
        return bytes(head + self.types + self.strings)
