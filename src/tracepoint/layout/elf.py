"""A small reader of relocatable ELF objects: sections, symbols, and pointers through relocations.

It knows just what `objects` needs, for 32- and 64-bit files of both byte orders, and trusts
nothing: every offset and size is checked against the data before it is used.
"""

from __future__ import annotations

import struct

from tracepoint.errors import LayoutError
from tracepoint.layout.abi import Abi
from tracepoint.named import NamedTuple

_SHT_SYMTAB, _SHT_RELA, _SHT_NOBITS, _SHT_REL, _SHT_SYMTAB_SHNDX = 2, 4, 8, 9, 18
_SHN_UNDEF, _SHN_LORESERVE, _SHN_XINDEX = 0, 0xFF00, 0xFFFF
_SHF_COMPRESSED = 0x800
_MAX_STRING = 1 << 20


class Section(NamedTuple):
    """One section header; `size` is 0 bytes in the file for a NOBITS section."""

    number: int
    name: str
    type: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    entry_size: int


class ElfSymbol(NamedTuple):
    """One symbol; `section` is -1 when it is not defined here; `Elf.symbol_name` gives its name."""

    name_offset: int
    section: int
    value: int
    size: int


class Address(NamedTuple):
    """A place in the object: section number and offset, or an undefined symbol (section -1)."""

    section: int
    offset: int
    symbol: str = ""


class Elf:
    """An ELF object file; LayoutError when the bytes are not one.

    `abi` is the architecture, `is_big_endian` and `long_size` what the file's header says.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        if len(data) < 52 or data[:4] != b"\x7fELF":
            raise LayoutError("not an ELF file")
        if data[4] not in (1, 2) or data[5] not in (1, 2):
            raise LayoutError("ELF: neither 32- nor 64-bit, or no byte order")
        self.long_size = 4 * data[4]
        self.is_big_endian = data[5] == 2
        self.order = ">" if self.is_big_endian else "<"
        self._word = struct.Struct(self.order + ("Q" if self.long_size == 8 else "I"))
        self._read_header()
        self.sections = self._read_sections()
        self._by_name = {s.name: s for s in self.sections}
        self.symbols = self._read_symbols()
        self._pointers: dict[int, dict[int, Address]] = {}
        self._relocations: dict[int, list[Section]] = {}
        for section in self.sections:
            if section.type in (_SHT_REL, _SHT_RELA):
                self._relocations.setdefault(section.info, []).append(section)

    def _unpack(self, code: str, at: int) -> tuple[int, ...]:
        try:
            return struct.unpack_from(self.order + code, self.data, at)
        except (struct.error, OverflowError):
            raise LayoutError(f"ELF: the file ends before byte {at}") from None

    def _read_header(self) -> None:
        kind, machine = self._unpack("HH", 16)
        if kind != 1:
            raise LayoutError("ELF: not a relocatable object (.o or .ko), but a linked program or library")
        self.abi = next((a for a in Abi if a.value.machine == machine), None)
        if self.abi is None or self.abi.long_size != self.long_size:
            raise LayoutError(f"ELF: machine {machine} is not one that is known here")
        if self.long_size == 8:
            if len(self.data) < 64:
                raise LayoutError("ELF: the header is cut off")
            (self._table,) = self._unpack("Q", 40)
            self._entry, self._count, self._names = self._unpack("HHH", 58)
        else:
            (self._table,) = self._unpack("I", 32)
            self._entry, self._count, self._names = self._unpack("HHH", 46)

    def _section_header(self, index: int) -> tuple[int, ...]:
        """Name, type, flags, offset, size, link, info, entry size."""
        at = self._table + index * self._entry
        if self.long_size == 8:
            name, kind, flags, _, offset, size, link, info, _, entry = self._unpack("IIQQQQIIQQ", at)
        else:
            name, kind, flags, _, offset, size, link, info, _, entry = self._unpack("IIIIIIIIII", at)
        return name, kind, flags, offset, size, link, info, entry

    def _read_sections(self) -> list[Section]:
        if self._entry != (64 if self.long_size == 8 else 40):
            raise LayoutError("ELF: section headers have a wrong size")
        count, names = self._count, self._names
        if not count or names == _SHN_XINDEX:  # more than fit in the file header
            first = self._section_header(0)
            count = count or first[4]
            names = first[5] if names == _SHN_XINDEX else names
        if self._table + count * self._entry > len(self.data) or names >= count:
            raise LayoutError("ELF: the section table points outside the file")
        headers = [self._section_header(index) for index in range(count)]
        _, _, _, start, size, *_ = headers[names]
        strings = self.data[start : start + size]
        sections = []
        for index, (name, kind, flags, offset, length, link, info, entry) in enumerate(headers):
            if kind not in (_SHT_NOBITS, 0) and offset + length > len(self.data):
                raise LayoutError(f"ELF: section {index} points outside the file")
            held = 0 if kind == _SHT_NOBITS else length
            sections.append(
                Section(index, _string(strings, name), kind, flags, offset, held, link, info, entry)
            )
        return sections

    def _read_symbols(self) -> list[ElfSymbol]:
        table = next((s for s in self.sections if s.type == _SHT_SYMTAB), None)
        if table is None or table.link >= len(self.sections):
            raise LayoutError("ELF: there is no symbol table")
        extended = next((s for s in self.sections if s.type == _SHT_SYMTAB_SHNDX), None)
        self._symbol_strings = self.content(self.sections[table.link])
        code = "IBBHQQ" if self.long_size == 8 else "IIIBBH"
        unpacker = struct.Struct(self.order + code)
        usable = table.size - table.size % unpacker.size
        symbols = []
        records = unpacker.iter_unpack(self.data[table.offset : table.offset + usable])
        for index, fields in enumerate(records):
            if self.long_size == 8:
                name, _, _, section, value, size = fields
            else:
                name, value, size, _, _, section = fields
            if section == _SHN_XINDEX and extended is not None:
                (section,) = self._unpack("I", extended.offset + 4 * index)
            elif section == _SHN_UNDEF or section >= _SHN_LORESERVE:
                section = -1
            symbols.append(ElfSymbol(name, section, value, size))
        return symbols

    def content(self, section: Section) -> bytes:
        """Return the bytes of a section; LayoutError when it is compressed."""
        if section.flags & _SHF_COMPRESSED:
            raise LayoutError(f"ELF: section {section.name} is compressed")
        return self.data[section.offset : section.offset + section.size]

    def symbol_name(self, symbol: ElfSymbol) -> str:
        """Return the name of a symbol."""
        return _string(self._symbol_strings, symbol.name_offset)

    def section(self, name: str) -> Section | None:
        """Return the section called `name`, or None."""
        return self._by_name.get(name)

    def pointers(self, section: int) -> dict[int, Address]:
        """Return where the pointers in a section point, by their offset in it."""
        found = self._pointers.get(section)
        if found is None:
            found = self._pointers[section] = {}
            for table in self._relocations.get(section, ()):
                self._read_relocations(table, self.sections[section], found)
        return found

    def _read_relocations(self, table: Section, section: Section, found: dict[int, Address]) -> None:
        has_addend = table.type == _SHT_RELA
        code = ("QQq" if has_addend else "QQ") if self.long_size == 8 else ("IIi" if has_addend else "II")
        unpacker = struct.Struct(self.order + code)
        data = self.data[table.offset : table.offset + table.size - table.size % unpacker.size]
        shift, mask = (32, 0xFFFFFFFF) if self.long_size == 8 else (8, 0xFF)
        wanted = self.abi.value.pointer_reloc if self.abi else 0
        symbols = self.symbols
        for offset, info, *rest in unpacker.iter_unpack(data):
            if info & mask != wanted or info >> shift >= len(symbols):
                continue
            symbol = symbols[info >> shift]
            addend = rest[0] if rest else self._stored_addend(section, offset)
            if symbol.section < 0:
                found[offset] = Address(-1, addend, self.symbol_name(symbol))
            else:
                found[offset] = Address(symbol.section, symbol.value + addend)

    def _stored_addend(self, section: Section, offset: int) -> int:
        if offset + self.long_size > section.size:
            return 0
        return int(self._word.unpack_from(self.data, section.offset + offset)[0])

    def pointer(self, at: Address) -> Address | None:
        """Return where the pointer stored at `at` points; None when there is no relocation."""
        return self.pointers(at.section).get(at.offset) if 0 <= at.section < len(self.sections) else None

    def read(self, at: Address, size: int) -> bytes:
        """Return `size` bytes stored at an address; LayoutError when they are not in the file."""
        if not 0 <= at.section < len(self.sections):
            raise LayoutError(f"ELF: '{at.symbol}' is not defined in this object")
        section = self.sections[at.section]
        if at.offset < 0 or at.offset + size > section.size:
            raise LayoutError(f"ELF: an address points outside section {section.name}")
        start = section.offset + at.offset
        return self.data[start : start + size]

    def ints(self, at: Address, count: int) -> tuple[int, ...]:
        """Return `count` signed 32-bit numbers stored at an address."""
        return struct.unpack(f"{self.order}{count}i", self.read(at, 4 * count))

    def long(self, at: Address) -> int:
        """Return the signed `long` stored at an address."""
        return int(
            struct.unpack(self.order + ("q" if self.long_size == 8 else "i"), self.read(at, self.long_size))[
                0
            ]
        )

    def string(self, at: Address, limit: int = _MAX_STRING) -> bytes:
        """Return the NUL-terminated string at an address; LayoutError if none of at most `limit` bytes is."""
        self.read(at, 1)
        section = self.sections[at.section]
        start = section.offset + at.offset
        end = self.data.find(b"\0", start, min(section.offset + section.size, start + limit))
        if end < 0:
            raise LayoutError(f"ELF: a string in section {section.name} does not end")
        return self.data[start:end]


def _string(strings: bytes, at: int) -> str:
    end = strings.find(b"\0", at)
    return strings[at : end if end >= 0 else len(strings)].decode("utf-8", "replace")
