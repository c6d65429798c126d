"""The lines of many records at once: by the C reader where it was built, else by its twin.

A record that its print program leaves, such as one that is cut off, is always rendered by the twin, which
says why.
"""

from __future__ import annotations

import re
import struct
from array import array
from typing import TYPE_CHECKING

from tracepoint.named import NamedTuple
from tracepoint.printk.facts import HASHED_NOTE, NO_FACTS, Rendered, RenderFacts, UnknownPartError
from tracepoint.printk.memory import RecordMemory
from tracepoint.printk.ops import Fact, NumberOp, RecordMachine
from tracepoint.printk.render import fields_note, render_held
from tracepoint.printk.symbols import NO_SYMBOLS_NOTE
from tracepoint.printk.texts import KERNEL_STRING, AddressTexts, symbol_style
from tracepoint.printk.twin.run import number_function
from tracepoint.record.decode import DECODE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.printk.packed import Flat
    from tracepoint.printk.program import PrintProgram

    Buffer = bytes | bytearray | memoryview

# Of csrc/decode/print.h: enum tp_print_state, enum tp_print_slot_state, enum tp_print_facts.
_NOTE_HASHED, _NOTE_SYMBOLS, _SYMBOLS_FIRST, _FIELDS, _UNKNOWN, _LEFT = 1, 2, 4, 8, 64, 128
_SLOT_LEFT, _SLOT_KNOWN, _SLOT_UNKNOWN = range(3)
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


class Slots(NamedTuple):
    """The numbers that facts give for a program's slots, as C takes them, and why others are not known."""

    packed: bytes
    reasons: tuple[str, ...]


def _slot_value(op: NumberOp, machine: RecordMachine, facts: RenderFacts) -> tuple[int, int, str]:
    """Return a number that the facts alone give, the state of its slot, and why it is not known."""
    try:
        value = number_function(op, machine)(RecordMemory(b"", facts))
    except UnknownPartError as error:
        return 0, _SLOT_UNKNOWN, error.reason
    # The twin shows also what does not fit its type.
    is_odd = isinstance(op, Fact) and op.kind.wrap(value) != value
    return value & _U64, _SLOT_LEFT if is_odd else _SLOT_KNOWN, ""


def fill_slots(flat: Flat, facts: RenderFacts) -> Slots:
    """Return what facts give for the slots of a program."""
    found = [_slot_value(op, flat.machine, facts) for op in flat.slots]
    return Slots(b"".join(_SLOT.pack(*one[:2]) for one in found), tuple(reason for *_, reason in found))


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
        self._reasons: dict[int, tuple[str, ...]] = {}

    def __repr__(self) -> str:
        return f"<Printer of {len(self._programs)} programs>"

    def add(self, number: int, program: PrintProgram) -> None:
        """Add the program for records of a type."""
        self._programs[number] = program
        self._loaded = None

    def know(self, letters: str, address: int, text: str) -> None:
        """Let C know what `%p` with letters shows for an address; `settle` makes it known."""
        if text.isascii():
            self._texts.add(symbol_style(letters), address, text)

    def settle(self) -> None:
        """Pack what is known of addresses by now, when it is much more than was packed."""
        if self._facts.kallsyms is not None:
            self._texts.lowest = self._facts.kallsyms.lowest
        self._texts.pack()

    def loaded(self) -> tuple[object, bytes]:
        """Return the programs as C takes them, and the texts of addresses that are known by now."""
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded, self._texts.packed

    def _load(self) -> object:
        facts, any_type = self._facts, self._only is not None
        packed = []
        for number, program in self._programs.items():
            slots, self._reasons[number] = fill_slots(program.ops, facts)
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
        found: tuple[list[str], bytes, bytes],
        data: Buffer,
        offsets: memoryview,
        lengths: memoryview,
    ) -> None:
        """Add the lines of some records, those that were left too; what these looked up is known then."""
        start = len(lines.texts)
        texts, states, whys = found
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
                number = self._number(data, struct.unpack_from("=Q", offsets, 8 * index)[0])
                why = struct.unpack_from("=H", whys, 2 * index)[0]
                is_exact = not state & _FIELDS
                rendered = Rendered(texts[index], self.notes(number, state, why), is_exact=is_exact)
            lines.noted[start + index] = rendered
        lines.texts.extend(texts)
        self.settle()

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

    def notes(self, number: int, state: int, why: int) -> tuple[str, ...]:
        """Return the notes on a line that C made of a record of a type; `why` is the slot not known."""
        notes = [HASHED_NOTE] if state & _NOTE_HASHED else []
        if state & _NOTE_SYMBOLS:
            notes.insert(0 if state & _SYMBOLS_FIRST else len(notes), NO_SYMBOLS_NOTE)
        if state & _FIELDS:
            reasons = next(iter(self._reasons.values())) if self._only else self._reasons[number]
            notes.insert(0, fields_note(reasons[why]))
        return tuple(notes)

    def _number(self, data: Buffer, at: int = 0) -> int:
        return int.from_bytes(data[at : at + 2], "big" if self._is_big_endian else "little")

    def _one(self, record: bytes) -> Rendered:
        number = self._number(record)
        program = self._only or self._programs.get(number)
        if program is None or (self._only is None and len(record) < 2):
            return Rendered(f"Unknown type {number}", ("no format of this type is known",), is_exact=False)
        held = RecordMemory(record, self._facts)
        rendered = render_held(program, held)
        for (letters, address), text in held.symbols.items():
            self._texts.add(symbol_style(letters), address, text)
        return rendered
