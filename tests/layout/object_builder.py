"""Builds kernel objects for tests: the tables that the trace macros leave, for any architecture.

The structs get odd paddings on request, since where their members stand must not matter.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from tracepoint.layout.abi import Abi

_REL_ABIS = (Abi.I386, Abi.ARM)


@dataclass
class FieldSpec:
    ctype: str
    name: str
    size: int
    align: int
    signed: int
    length: int = 0


@dataclass
class EventSpec:
    system: str
    name: str
    fields: list[FieldSpec]
    print_fmt: str
    is_custom: bool = False


@dataclass
class ObjectBuilder:
    abi: Abi = Abi.X86_64
    has_length: bool = True
    call_padding: int = 0
    class_padding: int = 0
    sections: dict[str, bytearray] = field(default_factory=dict)
    relocations: dict[str, list[tuple[int, str, int]]] = field(default_factory=dict)
    undefined: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.step = self.abi.long_size
        self.order = ">" if self.abi.is_big_endian else "<"
        self.word = struct.Struct(self.order + ("q" if self.step == 8 else "i"))

    def add(self, section: str, data: bytes, align: int = 8) -> int:
        content = self.sections.setdefault(section, bytearray())
        content.extend(b"\0" * (-len(content) % align))
        content.extend(data)
        return len(content) - len(data)

    def text(self, text: str | bytes) -> int:
        data = text.encode() if isinstance(text, str) else text
        return self.add(".rodata.str", data + b"\0", 1)

    def point(self, section: str, at: int, target: str, offset: int) -> None:
        self.relocations.setdefault(section, []).append((at, target, offset))

    def system(self, name: str) -> int:
        return self.add(".rodata", name.encode() + b"\0")

    def event(self, spec: EventSpec, system_at: int) -> None:
        step = self.step
        entry_size = 2 * step + 16 + (4 + -(2 * step + 20) % step if self.has_length else 0)
        fields_at = self.add(".data", b"\0" * entry_size * (len(spec.fields) + 1), 32)
        for index, item in enumerate(spec.fields):
            at = fields_at + index * entry_size
            self.point(".data", at, ".rodata.str", self.text(item.ctype))
            self.point(".data", at + step, ".rodata.str", self.text(item.name))
            numbers = [item.size, item.align, item.signed, 0] + ([item.length] if self.has_length else [])
            struct.pack_into(f"{self.order}{len(numbers)}i", self.sections[".data"], at + 2 * step, *numbers)
        class_at = self.add(".ref.data", b"\0" * (12 * step + self.class_padding), 32)
        self.point(".ref.data", class_at, ".rodata", system_at)
        self.point(".ref.data", class_at + step, ".text", 0)
        self.point(".ref.data", class_at + self.class_padding + 4 * step, ".data", fields_at)
        print_at = self.add(".data", spec.print_fmt.encode() + b"\0", 32)
        call_at = self.add(".data", b"\0" * (20 * step + self.call_padding), 32)
        self.point(".data", call_at + 2 * step, ".ref.data", class_at)
        if spec.is_custom:
            self.point(".data", call_at + 3 * step, ".rodata.str", self.text(spec.name))
        else:
            tracepoint_at = self.add("__tracepoints", b"\0" * 10 * step, 32)
            self.point(
                "__tracepoints", tracepoint_at, "__tracepoints_strings", self.tracepoint_name(spec.name)
            )
            self.point("__tracepoints", tracepoint_at + 3 * step, ".text", 0)
            self.point(".data", call_at + 3 * step, "__tracepoints", tracepoint_at)
        self.point(".data", call_at + self.call_padding + 10 * step, ".data", print_at)
        self.pointer("_ftrace_events", ".data", call_at)

    def tracepoint_name(self, name: str) -> int:
        return self.add("__tracepoints_strings", name.encode() + b"\0", 1)

    def pointer(self, section: str, target: str, offset: int) -> None:
        self.point(section, self.add(section, b"\0" * self.step, self.step), target, offset)

    def eval(self, system_at: int, name: str, value: int) -> None:
        at = self.add(".init.data", b"\0" * 2 * self.step + self.word.pack(value))
        self.point(".init.data", at, ".rodata", system_at)
        self.point(".init.data", at + self.step, ".rodata.str", self.text(name))
        self.pointer("_ftrace_eval_map", ".init.data", at)

    def build(self) -> bytes:
        self.add(".text", b"\xc3\0\0\0")
        names = list(self.sections)
        headers: list[tuple[str, int, bytes, int, int]] = []  # name, type, content, link, info
        headers.extend((name, 1, bytes(self.sections[name]), 0, 0) for name in names)
        is_rel = self.abi in _REL_ABIS
        symtab = 1 + len(names) + len(self.relocations)
        for name, items in self.relocations.items():
            table = b"".join(self._relocation(names, name, *item) for item in items)
            target = names.index(name) + 1
            content = bytes(self.sections[name])
            headers[target - 1] = (name, 1, content, 0, 0)
            headers.append(
                (".rel" + ("" if is_rel else "a") + name, 9 if is_rel else 4, table, symtab, target)
            )
        symbols = b"".join(self._symbol(0, number) for number in range(len(names) + 1))
        strings = bytearray(b"\0")
        for name in self.undefined:
            symbols += self._symbol(len(strings), 0)
            strings += name.encode() + b"\0"
        headers.append((".symtab", 2, symbols, symtab + 1, 0))
        headers.append((".strtab", 3, bytes(strings), 0, 0))
        return self._file(headers)

    def _relocation(self, names: list[str], section: str, at: int, target: str, offset: int) -> bytes:
        symbol = [*names, *self.undefined].index(target) + 1
        kind = self.abi.value.pointer_reloc
        if self.abi in _REL_ABIS:
            struct.pack_into(self.order + "I", self.sections[section], at, offset)
            return struct.pack(self.order + "II", at, symbol << 8 | kind)
        return struct.pack(self.order + "QQq", at, symbol << 32 | kind, offset)

    def _symbol(self, name: int, section: int) -> bytes:
        if self.step == 8:
            return struct.pack(self.order + "IBBHQQ", name, 3, 0, section, 0, 0)
        return struct.pack(self.order + "IIIBBH", name, 0, 0, 3, 0, section)

    def _file(self, headers: list[tuple[str, int, bytes, int, int]]) -> bytes:
        is_64 = self.step == 8
        strings = bytearray(b"\0")
        name_at = [strings.extend(n.encode() + b"\0") or len(strings) - len(n) - 1 for n, *_ in headers]
        own_name = len(strings)
        strings.extend(b".shstrtab\0")
        body = bytearray(b"\0" * (64 if is_64 else 52))
        code = self.order + ("IIQQQQIIQQ" if is_64 else "IIIIIIIIII")
        table = bytearray(b"\0" * struct.calcsize(code))
        entries = zip(headers, name_at, strict=True)
        for (_, kind, content, link, info), name in [
            *entries,
            ((".shstrtab", 3, bytes(strings), 0, 0), own_name),
        ]:
            body.extend(b"\0" * (-len(body) % 8))
            table += struct.pack(code, name, kind, 2, 0, len(body), len(content), link, info, 8, 0)
            body.extend(content)
        body.extend(b"\0" * (-len(body) % 8))
        head = b"\x7fELF" + bytes([2 if is_64 else 1, 2 if self.abi.is_big_endian else 1, 1]) + b"\0" * 9
        head += struct.pack(self.order + "HHI", 1, self.abi.value.machine, 1)
        head += struct.pack(self.order + ("QQQI" if is_64 else "IIII"), 0, 0, len(body), 0)
        sizes = (64, 0, 0, 64) if is_64 else (52, 0, 0, 40)
        head += struct.pack(self.order + "HHHHHH", *sizes, len(headers) + 2, len(headers) + 1)
        body[: len(head)] = head
        return bytes(body + table)


SAMPLE = EventSpec(
    "demo",
    "tick",
    [
        FieldSpec("u8", "kind", 1, 1, 0),
        FieldSpec("unsigned long", "where", 8, 8, 0),
        FieldSpec("char[TASK_COMM_LEN]", "comm", 16, 1, 1, 16),
        FieldSpec("__data_loc char[]", "name", 4, 4, 1),
    ],
    '"kind=%s %s", __print_symbolic(REC->kind, { RED, "RED" }), __get_str(name)',
)


def sample_object(abi: Abi = Abi.X86_64, **options: int) -> bytes:
    """One object with two events of one system and one exported enum."""
    builder = ObjectBuilder(abi, **options)
    system = builder.system("demo")
    builder.event(SAMPLE, system)
    builder.event(EventSpec("demo", "9p_empty", [], '"empty", '), system)
    builder.eval(system, "RED", 3)
    builder.eval(system, "TASK_COMM_LEN", 16)
    return builder.build()
