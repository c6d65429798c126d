"""A `.ko` or `.o` to the formats of its events: what tracefs would show, without loading it.

The macros of include/trace leave tables in the object: `_ftrace_events` points at one
`trace_event_call` an event, which points at its class, its tracepoint and its print format; the
class points at the system's name and an array of fields.  How these structs are laid out
differs between kernels and configurations and is not written in the object, so it is found by
elimination: a pointer to a text that begins with a quote can only be the print format, and so
on; all events of the object vote.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

from tracepoint.errors import LayoutError
from tracepoint.layout.elf import Address, Elf
from tracepoint.layout.evals import EvalMap
from tracepoint.layout.format import COMMON_FIELDS, EventFormat, FieldFormat
from tracepoint.named import NamedTuple
from tracepoint.source.text import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_NAME = re.compile(rb"[A-Za-z_][A-Za-z0-9_.-]{0,127}")
# Systems and events, unlike fields, may begin with a digit: 9p, 802154_rdev_...
_SYSTEM = re.compile(rb"[A-Za-z0-9_.-]{1,128}")
_TYPE = re.compile(rb"[A-Za-z_][\x20-\x7e]{0,511}")
_MAX_STRUCT = 320
_MAX_NAME = 1024
# Enough to vote on; and more text than the events of any kernel have.
_MAX_VOTERS = 500
_MAX_TEXT = 1 << 27
_FIELD_COST = 64
_MAX_FIELDS = 2048
_NO_EVALS = EvalMap({})


class _Offsets(NamedTuple):
    """The offsets of the members, in bytes: of the call, of the class, and the size of a field entry."""

    event_class: int
    tracepoint: int
    print_fmt: int
    system: int
    fields: int
    field_entry: int


class _Entry(NamedTuple):
    """One element of a `trace_event_fields_*` array; `length` is None when the kernel keeps none."""

    ctype: str
    name: str
    size: int
    align: int
    is_signed: bool
    length: int | None


def read_object(data: bytes, *, common: tuple[FieldFormat, ...] = COMMON_FIELDS) -> list[EventFormat]:
    """Read the formats of all events of a kernel object, in the order of the object.

    `data` are the bytes of a relocatable `.o` or `.ko`, not compressed (see `compressed.decompress`);
    `common` are the kernel's common fields, which real-time kernels extend.  The IDs are 0: the
    kernel hands them out.  Names of TRACE_DEFINE_ENUM are replaced as the kernel does when it
    loads the object.  System calls are left out: their records are made at run time.  An object
    without events gives an empty list; LayoutError is raised for bytes that are not a kernel object
    and for kernels that describe fields by code (before 5.5).
    """
    return _ObjectReader(Elf(data), common).read()


class _ObjectReader:
    def __init__(self, elf: Elf, common: tuple[FieldFormat, ...]) -> None:
        self.elf = elf
        self.common = common
        tracepoints = elf.section("__tracepoints")
        self.tracepoint_section = tracepoints.number if tracepoints else -2
        self.n_text = 0
        self.classes: dict[Address, tuple[str, Address | None, list[_Entry]] | None] = {}

    def read(self) -> list[EventFormat]:
        calls = [a for a in self._table("_ftrace_events") if a.section >= 0]
        if not calls:
            return []
        offsets = self._find_offsets(calls)
        if offsets is None:
            return []
        evals = self._evals()
        found = (self._event(call, offsets, evals) for call in calls)
        return [event for event in found if event is not None]

    def _table(self, name: str) -> list[Address]:
        section = self.elf.section(name)
        if section is None:
            return []
        return [target for _, target in sorted(self.elf.pointers(section.number).items())]

    # Recognising what a pointer points at.

    def _text(self, at: Address | None, pattern: re.Pattern[bytes]) -> bytes | None:
        """The string at an address when it matches as a whole, else None."""
        if at is None or at.section < 0:
            return None
        try:
            text = self.elf.string(at, _MAX_NAME)
        except LayoutError:
            return None
        return text if pattern.fullmatch(text) else None

    def _is_fields(self, at: Address) -> bool:
        """Return whether an array of fields begins here: pointers to a type and to a name, then numbers."""
        step = self.elf.long_size
        if self._text(self._follow(at), _TYPE) is None or self._text(self._follow(at, step), _NAME) is None:
            return False
        try:
            size, align, is_signed = self.elf.ints(_plus(at, 2 * step), 3)
        except LayoutError:
            return False
        return size >= 0 and 0 < align <= 4096 and align & (align - 1) == 0 and is_signed in (0, 1)

    def _is_class(self, at: Address) -> bool:
        return any(self._is_fields(target) for _, target in self._members(at))

    def _is_tracepoint(self, at: Address) -> bool:
        return at.section == self.tracepoint_section or at.symbol.startswith("__tracepoint_")

    def _is_print_fmt(self, at: Address) -> bool:
        try:
            return at.section >= 0 and self.elf.read(at, 1) == b'"'
        except LayoutError:
            return False

    def _follow(self, at: Address, offset: int = 0) -> Address | None:
        return self.elf.pointer(_plus(at, offset))

    def _members(self, at: Address) -> Iterable[tuple[int, Address]]:
        """The pointers that a struct at an address may hold, with their offsets."""
        if at.section < 0:
            return
        pointers = self.elf.pointers(at.section)
        for offset in range(0, _MAX_STRUCT, self.elf.long_size):
            target = pointers.get(at.offset + offset)
            if target is not None:
                yield offset, target

    # The offsets of the members.

    def _vote(self, structs: Iterable[Address], test: Callable[[Address], bool]) -> int | None:
        """The offset at which most structs hold a pointer that passes; the lowest of equals."""
        votes: Counter[int] = Counter()
        for at in islice(structs, _MAX_VOTERS):
            votes.update(offset for offset, target in self._members(at) if test(target))
        return min(votes, key=lambda offset: (-votes[offset], offset), default=None)

    def _find_offsets(self, calls: list[Address]) -> _Offsets | None:
        """Find the layout of the structs; None when no event here has a class of its own."""
        class_at = self._vote(calls, self._is_class)
        if class_at is None:
            self._expect_syscalls(calls)
            return None
        classes = self._targets(calls, class_at)
        fields_at = self._vote(classes, self._is_fields)
        system_at = self._vote(classes, lambda a: self._text(a, _SYSTEM) is not None)
        print_fmt_at = self._vote(calls, self._is_print_fmt)
        tracepoint_at = self._vote(calls, self._is_tracepoint)
        if tracepoint_at is None:  # only custom events: a name is in its place, after the class
            tracepoint_at = class_at + self.elf.long_size
        if fields_at is None or system_at is None or print_fmt_at is None:
            raise LayoutError("the event tables of this object cannot be understood")
        arrays = self._targets(classes, fields_at)
        return _Offsets(class_at, tracepoint_at, print_fmt_at, system_at, fields_at, self._entry_size(arrays))

    def _targets(self, structs: Iterable[Address], offset: int) -> list[Address]:
        """What a member of the structs points at in this object, each once."""
        found = (self._follow(at, offset) for at in structs)
        return list(dict.fromkeys(at for at in found if at is not None and at.section >= 0))

    def _expect_syscalls(self, calls: list[Address]) -> None:
        """Raise when events could not be understood, unless they use classes of system calls."""
        if any(target.symbol.startswith("event_class_") for a in calls for _, target in self._members(a)):
            return
        raise LayoutError(
            "no event of this object has a table of fields: kernels before 5.5 describe fields by code"
        )

    def _entry_size(self, arrays: Iterable[Address]) -> int:
        """The size of a field entry, from arrays that hold two; 0 when there is none."""
        step = self.elf.long_size
        least = 2 * step + 16
        votes = Counter(
            size
            for at in islice(arrays, _MAX_VOTERS)
            for size in range(least, least + 40, step)
            if self._is_fields(at) and self._is_fields(_plus(at, size))
        )
        return votes.most_common(1)[0][0] if votes else 0

    # Reading, once the layout is known.

    def _evals(self) -> dict[Address, EvalMap]:
        """The exported enums, by the address of the system's name: the kernel compares addresses."""
        values: dict[Address, dict[str, int]] = {}
        step = self.elf.long_size
        for at in self._table("_ftrace_eval_map"):
            system, name = self._follow(at), self._follow(at, step)
            if system is None or name is None:
                continue
            text = decode(self.elf.string(name))
            values.setdefault(system, {}).setdefault(text, self.elf.long(_plus(at, 2 * step)))
        return {system: EvalMap(names) for system, names in values.items()}

    def _event(self, call: Address, offsets: _Offsets, evals: dict[Address, EvalMap]) -> EventFormat | None:
        class_at = self._follow(call, offsets.event_class)
        if class_at is None or class_at.section < 0:
            return None
        if class_at not in self.classes:
            self.classes[class_at] = self._class(class_at, offsets)
        event_class = self.classes[class_at]
        print_at = self._follow(call, offsets.print_fmt)
        name = self._name(call, offsets)
        if event_class is None or print_at is None or not name:
            return None
        system, system_at, entries = event_class
        names = evals.get(system_at, _NO_EVALS) if system_at else _NO_EVALS
        print_fmt = names.in_print_fmt(decode(self.elf.string(print_at)))
        self._count(len(print_fmt))
        return self._format(system, name, entries, print_fmt, names)

    def _count(self, n: int) -> None:
        """Count what is read: a small damaged object can claim any number of events."""
        self.n_text += n
        if self.n_text > _MAX_TEXT:
            raise LayoutError("the events of this object are impossibly many or long")

    def _name(self, call: Address, offsets: _Offsets) -> str:
        at = self._follow(call, offsets.tracepoint)
        if at is None:
            return ""
        if not self._is_tracepoint(at):
            return (self._text(at, _SYSTEM) or b"").decode()
        if at.section < 0:
            return at.symbol.removeprefix("__tracepoint_")
        for _, target in self._members(at):
            text = self._text(target, _SYSTEM)
            if text is not None:
                return text.decode()
        return ""

    def _class(self, at: Address, offsets: _Offsets) -> tuple[str, Address | None, list[_Entry]] | None:
        system_at = self._follow(at, offsets.system)
        fields_at = self._follow(at, offsets.fields)
        system = self._text(system_at, _SYSTEM)
        if system is None or fields_at is None:
            return None
        return system.decode(), system_at, self._entries(fields_at, offsets.field_entry)

    def _entries(self, at: Address, size: int) -> list[_Entry]:
        step = self.elf.long_size
        entries: list[_Entry] = []
        while (type_at := self._follow(at)) is not None and len(entries) < _MAX_FIELDS:
            name_at = self._follow(at, step)
            if name_at is None:
                raise LayoutError("a field of this object has no name")
            ctype = decode(self.elf.string(type_at, _MAX_NAME))
            name = decode(self.elf.string(name_at, _MAX_NAME))
            self._count(_FIELD_COST)
            n_bytes, align, is_signed = self.elf.ints(_plus(at, 2 * step), 3)
            if n_bytes < 0 or align <= 0:
                raise LayoutError("the size or alignment of a field is impossible", name)
            entries.append(_Entry(ctype, name, n_bytes, align, bool(is_signed), self._length(at, size)))
            if not size:
                break
            at = _plus(at, size)
        return entries

    def _length(self, at: Address, size: int) -> int | None:
        """The `len` member of a field entry, which kernels have since they show it in formats."""
        place = 2 * self.elf.long_size + 16
        if size:
            return self.elf.ints(_plus(at, place), 1)[0] if size >= place + 4 else None
        # One entry only: where `len` would be, a kernel without it has the zeros that end the array.
        try:
            return self.elf.ints(_plus(at, place), 1)[0] or None
        except LayoutError:
            return None

    def _format(
        self, system: str, name: str, entries: list[_Entry], print_fmt: str, names: EvalMap
    ) -> EventFormat:
        fields = list(self.common)
        end = max((f.offset + f.size for f in fields), default=0)
        end += -end % 4
        most = 4
        for entry in entries:
            end += -end % entry.align
            most = max(most, entry.align)
            ctype = names.in_type(entry.ctype)
            bracket = ctype.find("[")
            if entry.length is not None and bracket >= 0 and not ctype.startswith("__data_loc"):
                ctype = f"{ctype[:bracket]}[{entry.length or ''}]"
            fields.append(FieldFormat(entry.name, ctype, end, entry.size, entry.is_signed))
            end += entry.size
        return EventFormat(
            system,
            name,
            tuple(fields),
            print_fmt,
            n_common=len(self.common),
            size_bytes=end + -end % most,
            is_big_endian=self.elf.is_big_endian,
            long_size=self.elf.long_size,
        )


def _plus(at: Address, offset: int) -> Address:
    return Address(at.section, at.offset + offset) if offset else at
