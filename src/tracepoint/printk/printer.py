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
from tracepoint.printk.render import render_held
from tracepoint.printk.symbols import NO_SYMBOLS_NOTE
from tracepoint.printk.texts import KERNEL_STRING, AddressTexts, symbol_style
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
# A few records first: what is looked up for them is known to the next.
_FIRST_STEP, _MOST_STEP = 512, 1 << 16
_NOTED = re.compile(rb"[^\0]")


class Lines(NamedTuple):
    """The texts of records, and by their index those that have notes or are not the kernel's text."""

    texts: list[str]
    noted: dict[int, Rendered]


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

    With `any_type` the only program is for records of any type; `is_big_endian` is the byte order of records
    of types that are added later.
    """

    def __init__(
        self,
        programs: Mapping[int, PrintProgram],
        facts: RenderFacts = NO_FACTS,
        *,
        any_type: bool = False,
        is_big_endian: bool = False,
    ) -> None:
        self._programs = dict(programs)
        self._facts = facts
        self._only = next(iter(programs.values())) if any_type else None
        self._is_big_endian = is_big_endian or any(p.machine.is_big_endian for p in programs.values())
        self._texts = AddressTexts()
        for address, text in facts.printk_formats.items():
            self._texts.add(KERNEL_STRING, address, text)
        self._texts.pack()
        self._loaded: object = None

    def __repr__(self) -> str:
        return f"<Printer of {len(self._programs)} programs>"

    def add(self, number: int, program: PrintProgram) -> None:
        """Add the program for records of a type."""
        self._programs[number] = program
        self._loaded = None

    def loaded(self) -> tuple[object, bytes]:
        """Return the programs as C takes them, and the texts of addresses that are known by now."""
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded, self._texts.packed

    def _load(self) -> object:
        facts, any_type = self._facts, self._only is not None
        packed = []
        for number, program in self._programs.items():
            slots = pack_slots(program.ops, facts)
            packed.append((_ANY_ID if any_type else number, program.packed, slots))
        known = facts.hash_pointers * _HASHES | (facts.kallsyms is not None) * _HAS_SYMBOLS
        return DECODE.load_prints(packed, known, self._is_big_endian) if DECODE is not None else None

    def render(self, data: Buffer, offsets: Buffer, lengths: Buffer) -> Lines:
        """Return the lines of records in a buffer.

        `offsets` (uint64) and `lengths` (uint32) say where each begins and ends, as `record.pages` gives
        them.  A record without a program reads `Unknown type 7`.
        """
        if DECODE is None:
            return self.render_slowly(data, offsets, lengths)
        loaded, _ = self.loaded()
        lines = Lines([], {})
        places, sizes = memoryview(offsets).cast("B"), memoryview(lengths).cast("B")
        n_records = len(places) // 8
        if n_records != len(sizes) // 4:
            raise ValueError("other offsets than lengths")
        start, step = 0, _FIRST_STEP
        while start < n_records:
            end = start + step
            part = places[8 * start : 8 * end], sizes[4 * start : 4 * end]
            found = DECODE.render_prints(loaded, self._texts.packed, data, *part, True)
            self._add(lines, found, data, *part)
            start, step = end, min(4 * step, _MOST_STEP)
        return lines

    def _add(
        self,
        lines: Lines,
        found: tuple[list[str], bytes],
        data: Buffer,
        offsets: memoryview,
        lengths: memoryview,
    ) -> None:
        """Add the lines of some records, those that were left too; what these looked up is known then."""
        start = len(lines.texts)
        texts, states = found
        for match in _NOTED.finditer(states):
            index = match.start()
            state = states[index]
            if state & (_LEFT | _UNKNOWN):
                at = struct.unpack_from("=Q", offsets, 8 * index)[0]
                size = struct.unpack_from("=I", lengths, 4 * index)[0]
                rendered = self._one(bytes(data[at : at + size]))
                texts[index] = rendered.text
                if rendered.is_exact and not rendered.notes:
                    continue
            else:
                rendered = Rendered(texts[index], state_notes(state))
            lines.noted[start + index] = rendered
        lines.texts.extend(texts)
        if self._facts.kallsyms is not None:
            self._texts.lowest = self._facts.kallsyms.lowest
        self._texts.pack()

    def render_slowly(self, data: Buffer, offsets: Buffer, lengths: Buffer) -> Lines:
        """Return the lines of records in a buffer, by the twin: what the C reader must give."""
        places = zip(
            memoryview(offsets).cast("B").cast("Q"), memoryview(lengths).cast("B").cast("I"), strict=True
        )
        rendered = [self._one(bytes(data[at : at + size])) for at, size in places]
        noted = {index: one for index, one in enumerate(rendered) if one.notes or not one.is_exact}
        return Lines([one.text for one in rendered], noted)

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
        held = Record(record, self._facts)
        rendered = render_held(program, held)
        for (letters, address), text in held.symbols.items():
            self._texts.add(symbol_style(letters), address, text)
        return rendered


def state_notes(state: int) -> tuple[str, ...]:
    """Return the notes on a line that C made, by its state."""
    notes = [HASHED_NOTE] if state & _NOTE_HASHED else []
    if state & _NOTE_SYMBOLS:
        notes.insert(0 if state & _SYMBOLS_FIRST else len(notes), NO_SYMBOLS_NOTE)
    return tuple(notes)
