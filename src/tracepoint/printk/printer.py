"""The lines of many records at once: by the C reader where it was built, else by its twin.

A record that its print program leaves, such as one that is cut off, is always rendered by the twin, which
says why.
"""

from __future__ import annotations

import re
import struct
from array import array
from typing import TYPE_CHECKING, NamedTuple

from tracepoint.printk.facts import HASHED_NOTE, NO_FACTS, Rendered, RenderFacts, UnknownPartError
from tracepoint.printk.memory import Record
from tracepoint.printk.ops import Fact, Machine, NumberOp
from tracepoint.printk.render import render_record
from tracepoint.printk.symbols import NO_SYMBOLS_NOTE
from tracepoint.printk.twin.run import number_function
from tracepoint.record.decode import DECODE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.printk.packed import Flat
    from tracepoint.printk.program import PrintProgram

    Buffer = bytes | bytearray | memoryview

# Of csrc/decode/print.h: enum tp_print_state, enum tp_print_facts.
_NOTE_HASHED, _NOTE_SYMBOLS, _SYMBOLS_FIRST, _UNKNOWN, _LEFT = 1, 2, 4, 64, 128
_HASHES, _HAS_SYMBOLS = 1, 2
_ANY_ID = 0xFFFFFFFF
_SLOT = struct.Struct("=QQ")
_U64 = (1 << 64) - 1
_ODD = re.compile(rb"[^\0]")


class Lines(NamedTuple):
    """The texts of records, and by their index those that have notes or are not the kernel's text."""

    texts: list[str]
    odd: dict[int, Rendered]


def _slot_value(op: NumberOp, machine: Machine, facts: RenderFacts) -> int | None:
    """Return a number that the facts alone give, None when they do not or when it does not fit its type."""
    try:
        value = number_function(op, machine)(Record(b"", facts))
    except UnknownPartError:
        return None
    return None if isinstance(op, Fact) and op.kind.wrap(value) != value else value


def pack_slots(flat: Flat, facts: RenderFacts) -> bytes:
    """Return the numbers that facts give for a program's slots, as `csrc/decode/print.h` wants them."""
    values = [_slot_value(op, flat.machine, facts) for op in flat.slots]
    return b"".join(_SLOT.pack((value or 0) & _U64, value is not None) for value in values)


class Printer:
    """Renders records of events, whose programs are given by the number of their type.

    With `any_type` the only program is for records of any type.
    """

    def __init__(
        self, programs: Mapping[int, PrintProgram], facts: RenderFacts = NO_FACTS, *, any_type: bool = False
    ) -> None:
        self._programs = programs
        self._facts = facts
        self._only = next(iter(programs.values())) if any_type else None
        self._is_big_endian = any(program.machine.is_big_endian for program in programs.values())
        self._loaded = None if DECODE is None else self._load(any_type=any_type)

    def __repr__(self) -> str:
        return f"<Printer of {len(self._programs)} programs>"

    def _load(self, *, any_type: bool) -> object:
        facts = self._facts
        packed = []
        for number, program in self._programs.items():
            flat = program.ops
            packed.append((_ANY_ID if any_type else number, flat.pack(), pack_slots(flat, facts)))
        known = facts.hash_pointers * _HASHES | (facts.kallsyms is not None) * _HAS_SYMBOLS
        return DECODE.load_prints(packed, known, self._is_big_endian) if DECODE is not None else None

    def render(self, data: Buffer, offsets: Buffer, lengths: Buffer) -> Lines:
        """Return the lines of records in a buffer.

        `offsets` (uint64) and `lengths` (uint32) say where each begins and ends, as `record.pages` gives
        them.  A record without a program reads `Unknown type 7`.
        """
        if DECODE is None:
            return self.render_slowly(data, offsets, lengths)
        texts, states = DECODE.render_prints(self._loaded, data, offsets, lengths, True)
        odd = {}
        for found in _ODD.finditer(states):
            index = found.start()
            state = states[index]
            if state & (_LEFT | _UNKNOWN):
                at = struct.unpack_from("=Q", offsets, 8 * index)[0]
                size = struct.unpack_from("=I", lengths, 4 * index)[0]
                rendered = self._one(bytes(data[at : at + size]))
                texts[index] = rendered.text
                if rendered.is_exact and not rendered.notes:
                    continue
            else:
                rendered = Rendered(texts[index], _notes(state))
            odd[index] = rendered
        return Lines(texts, odd)

    def render_slowly(self, data: Buffer, offsets: Buffer, lengths: Buffer) -> Lines:
        """Return the lines of records in a buffer, by the twin: what the C reader must give."""
        places = zip(
            memoryview(offsets).cast("B").cast("Q"), memoryview(lengths).cast("B").cast("I"), strict=True
        )
        rendered = [self._one(bytes(data[at : at + size])) for at, size in places]
        odd = {index: one for index, one in enumerate(rendered) if one.notes or not one.is_exact}
        return Lines([one.text for one in rendered], odd)

    def render_list(self, records: Sequence[bytes]) -> Lines:
        """Return the lines of records."""
        lengths = array("I", map(len, records))
        offsets, at = array("Q"), 0
        for length in lengths:
            offsets.append(at)
            at += length
        return self.render(b"".join(records), memoryview(offsets), memoryview(lengths))

    def _one(self, record: bytes) -> Rendered:
        number = int.from_bytes(record[:2], "big" if self._is_big_endian else "little")
        program = self._only or self._programs.get(number)
        if program is None or (self._only is None and len(record) < 2):
            return Rendered(f"Unknown type {number}", ("no format of this type is known",), is_exact=False)
        return render_record(program, record, self._facts)


def _notes(state: int) -> tuple[str, ...]:
    notes = [HASHED_NOTE] if state & _NOTE_HASHED else []
    if state & _NOTE_SYMBOLS:
        notes.insert(0 if state & _SYMBOLS_FIRST else len(notes), NO_SYMBOLS_NOTE)
    return tuple(notes)


def render_records(
    program: PrintProgram, records: Sequence[bytes], facts: RenderFacts = NO_FACTS
) -> list[Rendered]:
    """Return what `render_record` returns for each of many records of one event.

    >>> from tracepoint.layout.format import EventFormat, FieldFormat
    >>> from tracepoint.printk.program import compile_print
    >>> field = FieldFormat("a", "u32", 8, 4, is_signed=False)
    >>> program = compile_print(EventFormat("demo", "one", (field,), '"a=%#x", REC->a', n_common=0))
    >>> [str(line) for line in render_records(program, [bytes(12), bytes(8) + b"abc"])]
    ['a=0x0', 'a=<cut>']
    """
    lines = Printer({0: program}, facts, any_type=True).render_list(records)
    return [lines.odd.get(index) or Rendered(text) for index, text in enumerate(lines.texts)]
