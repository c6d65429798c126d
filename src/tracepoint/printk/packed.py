"""Print programs as instructions for a stack machine, and as the bytes that `csrc/decode/print.c` runs.

`csrc/decode/print.h` says what each code does.  Numbers and places are on the stack, texts go straight to
the line.  Jumps lead forward only.  What only the twin can do is `LEAVE`: a record that comes there is left
to it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracepoint.printk import ops

MAGIC = 0x32505054
NO_SLOT = 0xFFFFFFFF
_U64 = (1 << 64) - 1
_HEAD, _CODE, _TABLE, _ENTRY = (struct.Struct(f"={code}") for code in ("10I", "BBHI", "II", "QIIII"))


class OpCode(IntEnum):
    """What an instruction does: the same numbers as `enum tp_print_code`."""

    END = 0
    TEXT = 1
    CONST = 2
    LOAD = 3
    LOAD_AT = 4
    FACT = 5
    CONVERT = 6
    NEGATE = 7
    INVERT = 8
    ABSOLUTE = 9
    SWAP = 10
    ADD = 11
    SUBTRACT = 12
    MULTIPLY = 13
    DIVIDE = 14
    REMAINDER = 15
    AND = 16
    OR = 17
    XOR = 18
    SHIFT_LEFT = 19
    SHIFT_RIGHT = 20
    EQUAL = 21
    UNEQUAL = 22
    LESS = 23
    GREATER = 24
    AT_MOST = 25
    AT_LEAST = 26
    MIN = 27
    MAX = 28
    NOT = 29
    IS_SET = 30
    COUNT_BITS = 31
    LOG2 = 32
    JIFFIES_TO = 33
    DISTANCE = 34
    HASHED = 35
    WIDTH = 36
    JUMP = 37
    JUMP_IF = 38
    JUMP_UNLESS = 39
    AT = 40
    BYTES = 41
    MOVED = 42
    LOCATED = 43
    KERNEL = 44
    STRING = 45
    FLAGS = 46
    SYMBOLIC = 47
    NAMED = 48
    HEX = 49
    NUMBERS = 50
    BITMAP = 51
    SYMBOL = 52
    KERNEL_STRING = 53
    CHARACTER = 54
    NUMBER = 55
    MARK = 56
    PAD = 57
    CHOMP = 58
    IP4 = 59
    IP6 = 60
    MAC = 61
    UUID = 62
    LEAVE = 63
    STACK = 64
    USER_STACK = 65
    DUMP = 66


@dataclass(frozen=True, slots=True)
class PrintInstruction:
    """One step: a code with its three operands, and in words what they are."""

    code: OpCode
    a: int = 0
    b: int = 0
    c: int = 0
    words: str = ""

    def __str__(self) -> str:
        return f"{self.code.name.lower():13} {self.words}".rstrip()


@dataclass(slots=True)
class Flat:
    """A program as instructions, with what they name by number.

    `slots` are numbers that the facts alone give: they are computed once for many records.  Where one that
    is met is not known, the line is made by the instructions from `fields_at` on; 0 without them.
    """

    machine: ops.RecordMachine
    code: list[PrintInstruction] = field(default_factory=list)
    pool: list[int] = field(default_factory=list)
    tables: list[list[tuple[int, bytes, int]]] = field(default_factory=list)
    slots: list[ops.NumberOp] = field(default_factory=list)
    data: bytearray = field(default_factory=bytearray)
    fields_at: int = 0

    def __str__(self) -> str:
        width = len(str(len(self.code) - 1))
        return "\n".join(f"{at:{width}}  {step}" for at, step in enumerate(self.code))

    @property
    def leaves(self) -> tuple[str, ...]:
        """What is left to the twin, in words."""
        return tuple(dict.fromkeys(step.words for step in self.code if step.code is OpCode.LEAVE))

    def pack(self) -> bytes:
        """Return the bytes, in this machine's byte order."""
        data = bytearray(self.data)
        directory, entries = bytearray(), bytearray()
        for table in self.tables:
            directory += _TABLE.pack(len(entries) // _ENTRY.size, len(table))
            for number, name, slot in table:
                entries += _ENTRY.pack(number & _U64, len(data), len(name), slot, 0)
                data += name
        flags = int(self.machine.is_big_endian) | (self.machine.long_size == 4) << 1
        n_entries = len(entries) // _ENTRY.size
        head = _HEAD.pack(MAGIC, flags, len(self.code), len(self.pool), len(self.tables), n_entries,
                          len(self.slots), len(data), self.fields_at, 0)  # fmt: skip
        code = b"".join(_CODE.pack(s.code, s.a, s.b, s.c & NO_SLOT) for s in self.code)
        pool = struct.pack(f"={len(self.pool)}Q", *(value & _U64 for value in self.pool))
        return head + code + pool + bytes(directory + entries + data)
