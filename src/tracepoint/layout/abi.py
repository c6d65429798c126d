"""What an architecture says about C types: sizes, alignment, byte order, signedness of `char`."""

from __future__ import annotations

import enum
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AbiFacts:
    """The facts of one architecture.

    `machine` is the ELF machine number, `long_size` the bytes of `long` and of every pointer,
    `long_long_align` the alignment of a 64-bit integer *inside a struct*, `is_char_signed` what
    the compiler does by default, `pointer_reloc` the ELF relocation that stores an address.
    """

    machine: int
    long_size: int
    is_big_endian: bool
    long_long_align: int
    is_char_signed: bool
    pointer_reloc: int


class Abi(enum.Enum):
    """An architecture the kernel runs on; its name in lower case is what `--abi` takes.

    >>> Abi.named("i386").long_long_align
    4
    """

    def __repr__(self) -> str:
        return f"<Abi.{self.name}>"

    X86_64 = AbiFacts(62, 8, False, 8, True, 1)
    # The i386 psABI aligns 64-bit integers to 4 bytes in structs; all others here to 8.
    I386 = AbiFacts(3, 4, False, 4, True, 1)
    ARM64 = AbiFacts(183, 8, False, 8, False, 257)
    ARM = AbiFacts(40, 4, False, 8, False, 2)
    RISCV64 = AbiFacts(243, 8, False, 8, False, 2)
    S390X = AbiFacts(22, 8, True, 8, False, 22)
    PPC64LE = AbiFacts(21, 8, False, 8, False, 38)

    @classmethod
    def named(cls, name: str) -> Abi:
        """Return the architecture called `name` (`x86_64`, `arm64`, ...); KeyError when unknown."""
        return cls[name.upper()]

    @property
    def long_size(self) -> int:
        """Bytes of `long` and of a pointer: 4 or 8."""
        return self.value.long_size

    @property
    def is_big_endian(self) -> bool:
        """Whether the most significant byte comes first."""
        return self.value.is_big_endian

    @property
    def long_long_align(self) -> int:
        """Alignment of a 64-bit integer inside a struct, in bytes."""
        return self.value.long_long_align

    @property
    def is_char_signed(self) -> bool:
        """Whether plain `char` is signed where the kernel does not say.

        Kernels of which the build passes `-funsigned-char` (top Makefile, from 6.2 on) differ:
        say so with `is_char_signed=False` where a function takes it.
        """
        return self.value.is_char_signed
