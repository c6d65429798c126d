"""BTF bytes (`/sys/kernel/btf/vmlinux`, a `.BTF` section) to sizes, enum values and structs.

Only an index is built when reading; a type is looked at when asked for.  Everything in the data
is checked before use, since it may come from anywhere.  The format is described in the kernel's
Documentation/bpf/btf.rst.
"""

from __future__ import annotations

import enum
import struct

from tracepoint.errors import LayoutError
from tracepoint.named import NamedTuple

_MAGIC = 0xEB9F
# Magic number, version, flags and length of the header, in either byte order.
_STARTS = (b"\x9f\xeb\x01\0\x18\0\0\0", b"\xeb\x9f\x01\0\0\0\0\x18")
_MAX_DEPTH = 64


class BtfKind(enum.IntEnum):
    """The kinds of BTF types."""

    VOID = 0
    INT = 1
    PTR = 2
    ARRAY = 3
    STRUCT = 4
    UNION = 5
    ENUM = 6
    FWD = 7
    TYPEDEF = 8
    VOLATILE = 9
    CONST = 10
    RESTRICT = 11
    FUNC = 12
    FUNC_PROTO = 13
    VAR = 14
    DATASEC = 15
    FLOAT = 16
    DECL_TAG = 17
    TYPE_TAG = 18
    ENUM64 = 19


# Bytes after the 12-byte head: a fixed number, and a number for each of `vlen` members.
_EXTRA = {
    BtfKind.INT: (4, 0),
    BtfKind.ARRAY: (12, 0),
    BtfKind.STRUCT: (0, 12),
    BtfKind.UNION: (0, 12),
    BtfKind.ENUM: (0, 8),
    BtfKind.FUNC_PROTO: (0, 8),
    BtfKind.VAR: (4, 0),
    BtfKind.DATASEC: (0, 12),
    BtfKind.DECL_TAG: (4, 0),
    BtfKind.ENUM64: (0, 12),
}
_FIXED = [_EXTRA.get(BtfKind(k), (0, 0))[0] if k <= BtfKind.ENUM64 else -1 for k in range(32)]
_EACH = [_EXTRA.get(BtfKind(k), (0, 0))[1] if k <= BtfKind.ENUM64 else 0 for k in range(32)]
_ALIASES = {
    BtfKind.TYPEDEF,
    BtfKind.VOLATILE,
    BtfKind.CONST,
    BtfKind.RESTRICT,
    BtfKind.TYPE_TAG,
}
_NAMESPACE = {
    BtfKind.INT: "",
    BtfKind.FLOAT: "",
    BtfKind.TYPEDEF: "",
    BtfKind.STRUCT: "struct ",
    BtfKind.UNION: "union ",
    BtfKind.ENUM: "enum ",
    BtfKind.ENUM64: "enum ",
}
# GCC and clang write the words of an integer type in other orders than people do.
_INT_SPELLINGS = {
    "int": ("signed int", "signed"),
    "unsigned int": ("unsigned",),
    "long int": ("long", "signed long"),
    "long unsigned int": ("unsigned long", "unsigned long int"),
    "long long int": ("long long", "signed long long"),
    "long long unsigned int": ("unsigned long long", "unsigned long long int"),
    "short int": ("short", "signed short"),
    "short unsigned int": ("unsigned short", "unsigned short int"),
}


class BtfMember(NamedTuple):
    """One member of a struct or union: `offset` in bits; `bit_size` is 0 unless a bit field."""

    name: str
    type_id: int
    offset: int
    bit_size: int


class BtfParam(NamedTuple):
    """One parameter of a function prototype; the name may be empty."""

    name: str
    type_id: int


class BtfType(NamedTuple):
    """The head of one type; `size` is the id it refers to where the kind has none, `body` its members."""

    name_offset: int
    kind: BtfKind
    vlen: int
    flag: bool
    size: int
    body: int


class BtfSize(NamedTuple):
    """Size and alignment in bytes, and whether the type is a signed integer."""

    size: int
    align: int
    is_signed: bool


class Btf:
    """An index over BTF data; make one with `read_btf`."""

    def __init__(self, data: bytes, base: Btf | None, long_size: int) -> None:
        self.data = data
        self.base = base
        self.long_size = long_size
        self.first_id = base.n_types if base else 1
        self._string_base = base.string_end if base else 0
        self.order, types, strings = _header(data)
        self.strings = data[strings[0] : strings[1]]
        self.head = struct.Struct(self.order + "III")
        self.offsets: list[int] = []
        self._names: dict[str, int] = {}
        self._sizes: dict[int, BtfSize | None] = {}
        self._busy: list[int] = []
        self._constants: dict[str, int] | None = None
        # Since Linux 6.0 a flag says that an enum is signed; before, no enum has the flag.
        self.has_enum_signs: bool = base.has_enum_signs if base else False
        self._scan(*types)

    @property
    def n_types(self) -> int:
        """One more than the highest type id."""
        return self.first_id + len(self.offsets)

    @property
    def string_end(self) -> int:
        """The offset after the last string, those of the base counted."""
        return self._string_base + len(self.strings)

    def _scan(self, at: int, end: int) -> None:
        unpack = self.head.unpack_from
        data, offsets, names = self.data, self.offsets, self._names
        namespace = [_NAMESPACE.get(BtfKind(k)) if k <= BtfKind.ENUM64 else None for k in range(32)]
        while at < end:
            if end - at < 12:
                raise LayoutError(f"BTF: a type is cut off at byte {at}")
            name_offset, info, _ = unpack(data, at)
            kind = info >> 24 & 0x1F
            if _FIXED[kind] < 0 or kind == 0:
                raise LayoutError(f"BTF: unknown kind {kind} at byte {at}")
            prefix = namespace[kind]
            if name_offset and prefix is not None:
                names.setdefault(prefix + self.string(name_offset), self.first_id + len(offsets))
            if info >> 31 and kind == BtfKind.ENUM:
                self.has_enum_signs = True
            offsets.append(at)
            at += 12 + _FIXED[kind] + _EACH[kind] * (info & 0xFFFF)
        if at != end:
            raise LayoutError("BTF: the last type runs past the end of the types")

    def string(self, offset: int) -> str:
        """Return the string at an offset of the string section; LayoutError when there is none."""
        if offset < self._string_base and self.base is not None:
            return self.base.string(offset)
        start = offset - self._string_base
        end = self.strings.find(b"\0", start)
        if start < 0 or end < 0:
            raise LayoutError(f"BTF: no string at offset {offset}")
        return self.strings[start:end].decode("utf-8", "replace")

    def raw(self, type_id: int) -> BtfType:
        """Return the head of a type; LayoutError for an id that does not exist."""
        if type_id == 0:
            return BtfType(0, BtfKind.VOID, 0, False, 0, 0)
        if type_id < self.first_id and self.base is not None:
            return self.base.raw(type_id)
        index = type_id - self.first_id
        if not 0 <= index < len(self.offsets):
            raise LayoutError(f"BTF: no type {type_id}")
        at = self.offsets[index]
        name, info, size = self.head.unpack_from(self.data, at)
        return BtfType(name, BtfKind(info >> 24 & 0x1F), info & 0xFFFF, bool(info >> 31), size, at + 12)

    def _owner(self, type_id: int) -> Btf:
        """The part of a split BTF that holds the type."""
        part = self
        while type_id < part.first_id and part.base is not None:
            part = part.base
        return part

    def find(self, name: str) -> int | None:
        """Return the id of a type by C name (`struct page`, `enum zone_type`, `u32`), or None."""
        found = self._names.get(name)
        if found is None:
            for canonical, spellings in _INT_SPELLINGS.items():
                if name in spellings:
                    found = self._names.get(canonical)
        if found is None and self.base is not None:
            return self.base.find(name)
        return found

    def kind(self, type_id: int) -> BtfKind:
        """Return the kind of a type."""
        return self.raw(type_id).kind

    def name(self, type_id: int) -> str:
        """Return the name of a type, without `struct` and the like; empty when it has none."""
        return self._owner(type_id).string(self.raw(type_id).name_offset) if type_id else "void"

    def strip(self, type_id: int) -> int:
        """Follow typedefs and qualifiers down to the type itself."""
        for _ in range(_MAX_DEPTH):
            raw = self.raw(type_id)
            if raw.kind not in _ALIASES:
                return type_id
            type_id = raw.size
        raise LayoutError("BTF: a chain of typedefs does not end")

    def size_of(self, type_id: int) -> BtfSize:
        """Return size, alignment and signedness of a type; LayoutError when it has none."""
        known = self._sizes.get(type_id)
        if known is None:
            if type_id in self._sizes or len(self._busy) > _MAX_DEPTH:
                raise LayoutError("BTF: a type contains itself, or types are nested too deeply")
            self._sizes[type_id] = None
            self._busy.append(type_id)
            try:
                known = self._sizes[type_id] = self._measure(type_id)
            finally:
                self._busy.pop()
                if self._sizes[type_id] is None:
                    del self._sizes[type_id]
        return known

    def _measure(self, type_id: int) -> BtfSize:
        raw = self.raw(self.strip(type_id))
        match raw.kind:
            case BtfKind.INT:
                encoding = self._u32(type_id, raw.body) >> 24 & 0xF
                return BtfSize(raw.size, self._scalar_align(raw.size), bool(encoding & 1))
            case BtfKind.PTR:
                return BtfSize(self.long_size, self.long_size, is_signed=False)
            case BtfKind.ENUM | BtfKind.ENUM64:
                return BtfSize(raw.size, self._scalar_align(raw.size), self._is_enum_signed(type_id, raw))
            case BtfKind.FLOAT:
                return BtfSize(raw.size, self._scalar_align(raw.size), is_signed=True)
            case BtfKind.ARRAY:
                element, _, count = self._array(self.strip(type_id))
                inner = self.size_of(element)
                return BtfSize(inner.size * count, inner.align, inner.is_signed)
            case BtfKind.STRUCT | BtfKind.UNION:
                return BtfSize(raw.size, self._struct_align(type_id, raw), is_signed=False)
        raise LayoutError(f"BTF: a {raw.kind.name.lower()} has no size")

    def _array(self, type_id: int) -> tuple[int, int, int]:
        """Element type, index type and number of elements of an array."""
        owner = self._owner(type_id)
        element, index, count = owner.head.unpack_from(owner.data, self.raw(type_id).body)
        return element, index, count

    def _scalar_align(self, size: int) -> int:
        return max(1, min(size, 16))

    def _u32(self, type_id: int, at: int) -> int:
        owner = self._owner(self.strip(type_id))
        return int(struct.unpack_from(self.order + "I", owner.data, at)[0])

    def _is_enum_signed(self, type_id: int, raw: BtfType) -> bool:
        # GCC makes an enum signed only when a constant is negative.
        return raw.flag or any(v < 0 for v in self.enum_values(self.strip(type_id)).values())

    def _struct_align(self, type_id: int, raw: BtfType) -> int:
        """The alignment BTF implies: that of the most aligned member, unless offsets say packed."""
        align = 1
        for member in self.members(self.strip(type_id)):
            try:
                inner = self.size_of(member.type_id).align
            except LayoutError:
                continue
            if not member.bit_size and (member.offset // 8 % inner or raw.size % inner):
                return 1
            align = max(align, inner)
        return align if raw.size % align == 0 else 1

    def members(self, type_id: int) -> list[BtfMember]:
        """Return the members of a struct or union in order."""
        raw = self.raw(type_id)
        if raw.kind not in (BtfKind.STRUCT, BtfKind.UNION):
            raise LayoutError(f"BTF: a {raw.kind.name.lower()} has no members")
        owner = self._owner(type_id)
        result = []
        for index in range(raw.vlen):
            name, inner, offset = owner.head.unpack_from(owner.data, raw.body + 12 * index)
            bits = offset >> 24 if raw.flag else 0
            offset = offset & 0xFFFFFF if raw.flag else offset
            result.append(BtfMember(owner.string(name), inner, offset, bits))
        return result

    def enum_values(self, type_id: int) -> dict[str, int]:
        """Return the constants of an enum."""
        raw = self.raw(type_id)
        owner = self._owner(type_id)
        values = {}
        for index in range(raw.vlen):
            if raw.kind is BtfKind.ENUM:
                code = "II" if not raw.flag and owner.has_enum_signs else "Ii"
                name, value = struct.unpack_from(owner.order + code, owner.data, raw.body + 8 * index)
            elif raw.kind is BtfKind.ENUM64:
                name, low, high = owner.head.unpack_from(owner.data, raw.body + 12 * index)
                value = high << 32 | low
                if raw.flag and value >> 63:
                    value -= 1 << 64
            else:
                break
            values[owner.string(name)] = value
        return values

    def constant(self, name: str) -> int | None:
        """Return the value of an enumerator of any enum, or None; also where two enums do not agree."""
        if self._constants is None:
            self._constants = {}
            unlike: set[str] = set()
            for index in range(len(self.offsets)):
                if self.raw(self.first_id + index).kind in (BtfKind.ENUM, BtfKind.ENUM64):
                    for constant, value in self.enum_values(self.first_id + index).items():
                        if self._constants.setdefault(constant, value) != value:
                            unlike.add(constant)
            for constant in unlike:
                del self._constants[constant]
        found = self._constants.get(name)
        return self.base.constant(name) if found is None and self.base is not None else found

    def spell(self, type_id: int) -> str:
        """Return a type as C spells it without a name: `const struct page *`, `char[16]`."""
        suffix, words, pointers = "", [], ""
        for _ in range(_MAX_DEPTH):
            raw = self.raw(type_id)
            match raw.kind:
                case BtfKind.PTR:
                    pointers = "*" + pointers
                case BtfKind.CONST | BtfKind.VOLATILE if (
                    not pointers or self.raw(raw.size).kind is not BtfKind.PTR
                ):
                    words.append(raw.kind.name.lower())
                case BtfKind.CONST | BtfKind.VOLATILE | BtfKind.RESTRICT | BtfKind.TYPE_TAG:
                    pass
                case BtfKind.ARRAY:
                    element, _, count = self._array(type_id)
                    suffix += f"[{count}]"
                    type_id = element
                    continue
                case BtfKind.FUNC_PROTO:
                    return f"function {pointers}".strip()
                case _:
                    prefix = _NAMESPACE.get(raw.kind, "struct " if raw.kind is BtfKind.FWD else "")
                    words.append(prefix + (self.name(type_id) or "<unnamed>"))
                    return " ".join([*words, pointers] if pointers else words) + suffix
            type_id = raw.size
        raise LayoutError("BTF: a chain of types does not end")

    def prototype(self, type_id: int) -> list[BtfParam]:
        """Return the parameters of a function prototype, or of a typedef to a pointer to one."""
        for _ in range(_MAX_DEPTH):
            type_id = self.strip(type_id)
            raw = self.raw(type_id)
            if raw.kind not in (BtfKind.PTR, BtfKind.FUNC):
                break
            type_id = raw.size
        if raw.kind is not BtfKind.FUNC_PROTO:
            raise LayoutError("BTF: not a function prototype")
        owner = self._owner(type_id)
        pairs = struct.Struct(owner.order + "II")
        found = (pairs.unpack_from(owner.data, raw.body + 8 * i) for i in range(raw.vlen))
        return [BtfParam(owner.string(name), inner) for name, inner in found]


def read_btf(data: bytes, base: Btf | None = None, *, long_size: int = 8) -> Btf:
    """Read BTF bytes; `base` is the kernel's BTF when `data` is that of a module (split BTF).

    `long_size` is the size of a pointer in bytes, which BTF does not say.  Raises LayoutError for
    anything that is not BTF.
    """
    return Btf(data, base, long_size)


def find_btf(image: bytes, *, long_size: int = 8) -> Btf | None:
    """Return the kernel's BTF in the bytes of a vmlinux (or plain BTF), None when there is none."""
    for start in _STARTS:
        at = image.find(start)
        while at >= 0:
            try:
                found = read_btf(image[at:], long_size=long_size)
            except LayoutError:
                found = None
            # Every kernel has it; what only looks like BTF has not.
            if found is not None and found.find("struct task_struct") is not None:
                return found
            at = image.find(start, at + 1)
    return None


def _header(data: bytes) -> tuple[str, tuple[int, int], tuple[int, int]]:
    """Byte order, and where types and strings begin and end."""
    if len(data) < 24:
        raise LayoutError("BTF: shorter than its header")
    order = "<" if data[:2] == b"\x9f\xeb" else ">"
    magic, version, _, header, types, types_len, strings, strings_len = struct.unpack_from(
        order + "HBBIIIII", data
    )
    if magic != _MAGIC or version != 1:
        raise LayoutError("BTF: the magic number or the version is wrong")
    ends = (header + types + types_len, header + strings + strings_len)
    if header < 24 or max(ends) > len(data) or types_len % 4:
        raise LayoutError("BTF: the header points outside the data")
    return order, (header + types, ends[0]), (header + strings, ends[1])
