"""Events of CTF as records: their formats, and the functions that make a record's bytes out of a packet.

Fields that lie in whole bytes, one after the other and in the byte order of the records, are copied together.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

from tracepoint.errors import DecodeError
from tracepoint.layout.format import COMMON_FIELDS, EventFormat, FieldFormat
from tracepoint.named import NamedTuple
from tracepoint.record.field import pack_location
from tracepoint.tracefile.ctf.bits import float_reader, integer_reader, order_of
from tracepoint.tracefile.ctf.printing import print_format
from tracepoint.tracefile.ctf.scopes import ELEMENT, EVENT_CONTEXT, FIELDS, STREAM_CONTEXT
from tracepoint.tracefile.ctf.types import (
    CtfArray,
    CtfEnum,
    CtfFloat,
    CtfInteger,
    CtfString,
    CtfStruct,
    shown_name,
)
from tracepoint.tracefile.ctf.values import ValueReaders
from tracepoint.wording import json_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.tracefile.ctf.bits import PacketBits
    from tracepoint.tracefile.ctf.scopes import CtfScope
    from tracepoint.tracefile.ctf.tasks import TaskFields
    from tracepoint.tracefile.ctf.types import CtfType

    Path = tuple[str, ...]
    Step = Callable[[PacketBits, bytearray, bytearray], None]

_COMMON_SIZE = 8
_WHOLE = (8, 16, 32, 64)
# Offsets and lengths of a `__data_loc` have 16 bits.
_MAX_RECORD = 0xFFFF
_NOT_WORDS = re.compile(r"\W", re.ASCII)


class ShownField(NamedTuple):
    """A field of a format with the type it came from; `path` is empty for texts made of other values."""

    field: FieldFormat
    kind: CtfType | None


class EventRecords:
    """How the records of one event are made: its fields, and the steps that read them.

    `tasks` says which fields are those of the task and no columns; `is_big_endian` is the byte order of the
    records, and `is_trace_big_endian` that of the trace.  Raises DecodeError for an event that no record
    can hold.
    """

    def __init__(
        self, scope: CtfScope, tasks: TaskFields, *, is_big_endian: bool, is_trace_big_endian: bool
    ) -> None:
        self._scope = scope
        self._tasks = tasks
        self._is_big_endian = is_big_endian
        self._is_trace_big_endian = is_trace_big_endian
        self._values = ValueReaders(scope, is_big_endian=is_trace_big_endian)
        self._order = order_of(is_big_endian=is_big_endian)
        self._word = struct.Struct(">I" if is_big_endian else "<I").pack
        self._head = struct.Struct((">" if is_big_endian else "<") + "HBBi").pack_into
        self._steps: list[Step] = []
        self._fields: list[ShownField] = []
        self._names = {"common_timestamp", "common_cpu", *(field.name for field in COMMON_FIELDS)}
        self._size = _COMMON_SIZE
        self._run_align = 0
        self._run_size = 0
        # The lengths of sequences as LTTng names them are no columns: the lists have them.
        self._hidden = tasks.hidden | {
            target
            for path, target in scope.targets.items()
            if target == (*path[:-1], f"_{path[-1]}_length") and ELEMENT not in path
        }

    def build(self, contexts: tuple[CtfType, CtfType], fields: CtfType) -> None:
        """Plan an event: the contexts of its stream and its own, and its fields."""
        self._add(STREAM_CONTEXT, contexts[0], "context")
        self._add(EVENT_CONTEXT, contexts[1], "context")
        self._add(FIELDS, fields, "")
        self._flush()

    def format(self, system: str, name: str) -> EventFormat:
        """Return the format of the records, with the number 0."""
        fields = tuple(shown.field for shown in self._fields)
        text = print_format(self._fields)
        return EventFormat(system, name, (*COMMON_FIELDS, *fields), text)

    def reader(self, number: int) -> Callable[[PacketBits], bytes]:
        """Return the function that reads the fields of an event and gives a record with a number."""
        steps, head, tasks = tuple(self._steps), self._head, self._tasks
        if tasks.is_empty:
            return self._plain_reader(number)

        def read(bits: PacketBits) -> bytes:
            made, tail = bytearray(_COMMON_SIZE), bytearray()
            for step in steps:
                step(bits, made, tail)
            head(made, 0, number, *tasks.common(bits))
            return bytes(made + tail)

        return read

    def _plain_reader(self, number: int) -> Callable[[PacketBits], bytes]:
        """Return the function that reads the fields of an event that says nothing of its task."""
        head, steps = bytearray(_COMMON_SIZE), tuple(self._steps)
        self._head(head, 0, number, 0, 0, 0)

        def read(bits: PacketBits) -> bytes:
            made, tail = head[:], bytearray()
            for step in steps:
                step(bits, made, tail)
            return bytes(made + tail) if tail else bytes(made)

        return read

    # Runs of bytes that are copied as they are.

    def _copy(self, align: int, n_bytes: int) -> int:
        """Copy bytes of the packet into the record; return where they are in it."""
        if align > self._run_align:
            self._flush()
            self._run_align = align
        self._run_size += -self._run_size % (align >> 3)
        self._run_size += n_bytes
        self._check(self._size + self._run_size)
        return self._size + self._run_size - n_bytes

    def _flush(self) -> None:
        align, n_bytes = self._run_align, self._run_size
        self._run_align = self._run_size = 0
        if not align:
            return

        def copy(bits: PacketBits, made: bytearray, _: bytearray) -> None:
            made += bits.take(align, n_bytes)

        self._steps.append(copy)
        self._size += n_bytes

    def _check(self, size: int) -> None:
        if size > _MAX_RECORD:
            raise DecodeError(f"a record of at least {size} bytes")

    def _step(self, step: Step, size: int = 0) -> int:
        """Add a step that makes `size` bytes; return where they are in the record."""
        self._flush()
        self._steps.append(step)
        self._size += size
        self._check(self._size)
        return self._size - size

    # Fields.

    def _show(self, name: str, ctype: str, at: int, size: int, kind: CtfType | None) -> None:
        """Add a field; its name is made of words, and no other has it."""
        name = _NOT_WORDS.sub("_", name)
        name = f"_{name}" if not name or name[0].isdigit() else name
        unique, n_same = name, 1
        while unique in self._names:
            n_same += 1
            unique = f"{name}_{n_same}"
        self._names.add(unique)
        is_signed = ctype.startswith("s") or not ctype.startswith("u")
        self._fields.append(ShownField(FieldFormat(unique, ctype, at, size, is_signed), kind))

    def _add(self, path: Path, kind: CtfType, name: str) -> None:
        if isinstance(kind, CtfStruct):
            self._skip_to(kind.align)
            for word, member in kind.fields:
                shown = shown_name(word)
                # Readers of such traces know `common_` fields by their own name.
                is_common = shown.startswith("common_") and name == "context"
                self._add((*path, word), member, f"{name}_{shown}" if name and not is_common else shown)
        elif (read_comm := self._tasks.comm_reader(path, kind)) is not None:
            self._step(_comm_step(read_comm))
        elif isinstance(kind, CtfInteger | CtfEnum):
            self._add_integer(path, kind, name)
        elif isinstance(kind, CtfFloat):
            self._add_float(kind, name)
        elif isinstance(kind, CtfString):
            at = self._step(lambda bits, made, tail: self._put(made, tail, bits.string() + b"\0"), 4)
            self._show(name, "__data_loc char[]", at, 4, kind)
        elif isinstance(kind, CtfArray) and isinstance(kind.element, CtfInteger | CtfEnum):
            self._add_array(path, kind, kind.element, name)
        else:
            self._add_text(path, kind, name)

    def _skip_to(self, align: int) -> None:
        if align >= 8:
            self._copy(align, 0)
        elif align > 1:
            self._step(_align_step(align))

    def _is_whole(self, kind: CtfInteger | CtfFloat) -> bool:
        """Say whether the bytes of a number are those that the record has."""
        is_big = self._is_trace_big_endian if kind.is_big_endian is None else kind.is_big_endian
        is_same = kind.size == 8 or is_big == self._is_big_endian
        return is_same and kind.align >= 8 and kind.size in _WHOLE

    def _is_dense(self, kind: CtfInteger) -> bool:
        """Say whether the bytes of an array are those of its elements: larger alignments leave gaps."""
        return self._is_whole(kind) and kind.align <= kind.size

    def _add_integer(self, path: Path, kind: CtfInteger | CtfEnum, name: str) -> None:
        integer = kind.container if isinstance(kind, CtfEnum) else kind
        size, order, is_signed = _bytes_of(integer), self._order, integer.is_signed
        is_hidden = path in self._hidden
        if self._is_whole(integer) and path not in self._scope.needed and not is_hidden:
            at = self._copy(integer.align, size)
        else:
            read = self._values.integer(integer, path)

            def put(bits: PacketBits, made: bytearray, _: bytearray) -> None:
                number = read(bits)
                if not is_hidden:
                    made += number.to_bytes(size, order, signed=is_signed)

            at = self._step(put, 0 if is_hidden else size)
        if not is_hidden:
            self._show(name, _ctype(integer), at, size, kind)

    def _add_float(self, kind: CtfFloat, name: str) -> None:
        size = kind.size // 8
        if self._is_whole(kind):
            at = self._copy(kind.align, size)
        else:
            read = float_reader(kind, is_big_endian=self._is_trace_big_endian)
            letter = "f" if size == 4 else "d"
            pack = struct.Struct((">" if self._is_big_endian else "<") + letter).pack

            def put(bits: PacketBits, made: bytearray, _: bytearray) -> None:
                made += pack(read(bits))

            at = self._step(put, size)
        self._show(name, "float" if size == 4 else "double", at, size, kind)

    def _add_array(self, path: Path, kind: CtfArray, element: CtfInteger | CtfEnum, name: str) -> None:
        integer = element.container if isinstance(element, CtfEnum) else element
        size = _bytes_of(integer)
        is_text = integer.is_text and integer.size == 8
        ctype = "char" if is_text else _ctype(integer)
        if isinstance(kind.length, int) and kind.length:
            n_bytes = kind.length * size
            if self._is_dense(integer):
                at = self._copy(integer.align, n_bytes)
            else:
                at = self._step(self._fixed_step(integer, kind.length), n_bytes)
            self._show(name, f"{ctype}[{kind.length}]", at, n_bytes, kind)
            return
        at = self._step(self._sequence_step(path, kind, integer, is_text=is_text), 4)
        self._show(name, f"__data_loc {ctype}[]", at, 4, kind)

    def _fixed_step(self, integer: CtfInteger, length: int) -> Step:
        self._check(self._size + length)
        read = integer_reader(integer, is_big_endian=self._is_trace_big_endian)
        size, order, is_signed = _bytes_of(integer), self._order, integer.is_signed

        def put(bits: PacketBits, made: bytearray, _tail: bytearray) -> None:
            for _ in range(length):
                made += read(bits).to_bytes(size, order, signed=is_signed)

        return put

    def _sequence_step(self, path: Path, kind: CtfArray, integer: CtfInteger, *, is_text: bool) -> Step:
        length, align, size = self._values.length(kind, path), integer.align, _bytes_of(integer)
        read = integer_reader(integer, is_big_endian=self._is_trace_big_endian)
        order, is_signed = self._order, integer.is_signed
        end = b"\0" if is_text else b""

        def take(bits: PacketBits, made: bytearray, tail: bytearray) -> None:
            self._put(made, tail, bits.take(align, length(bits) * size) + end)

        def collect(bits: PacketBits, made: bytearray, tail: bytearray) -> None:
            bits.skip(align, 0)
            found = bytearray()
            for _ in range(length(bits)):
                bits.element()
                found += read(bits).to_bytes(size, order, signed=is_signed)
            self._put(made, tail, found + end)

        return take if self._is_dense(integer) else collect

    def _add_text(self, path: Path, kind: CtfType, name: str) -> None:
        """Add what no column holds as the text of its value in JSON."""
        read = self._values.reader(kind, path)

        def put(bits: PacketBits, made: bytearray, tail: bytearray) -> None:
            self._put(made, tail, json_line(read(bits), (", ", ": ")).encode() + b"\0")

        self._show(name, "__data_loc char[]", self._step(put, 4), 4, None)

    def _put(self, made: bytearray, tail: bytearray, data: bytes | bytearray) -> None:
        """Add data after the fixed part, and its place to the record."""
        at = self._size + len(tail)
        if at + len(data) > _MAX_RECORD:
            # No page holds this record, so it is left out as a whole.
            at, data = _MAX_RECORD, bytes(max(_MAX_RECORD - len(tail), 0))
        made += self._word(pack_location(at, len(data)))
        tail += data


def _align_step(align: int) -> Step:
    def step(bits: PacketBits, _made: bytearray, _tail: bytearray) -> None:
        bits.skip(align, 0)

    return step


def _comm_step(read: Callable[[PacketBits], bytes]) -> Step:
    def step(bits: PacketBits, _made: bytearray, _tail: bytearray) -> None:
        bits.comm = read(bits)

    return step


def _bytes_of(kind: CtfInteger) -> int:
    """Return the bytes of an integer in a record: the next power of two."""
    return next(whole // 8 for whole in _WHOLE if kind.size <= whole)


def _ctype(kind: CtfInteger) -> str:
    return f"{'s' if kind.is_signed else 'u'}{8 * _bytes_of(kind)}"
