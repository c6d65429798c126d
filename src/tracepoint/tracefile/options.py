"""The options of trace.dat: their numbers, and what their data means."""

from __future__ import annotations

import struct
from enum import IntEnum

from tracepoint.errors import DecodeError
from tracepoint.named import NamedTuple
from tracepoint.tracefile.cursor import Cursor, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class OptionId(IntEnum):
    """What an option, and in version 7 a section, holds."""

    DONE = 0
    DATE = 1
    CPUSTAT = 2
    BUFFER = 3
    TRACECLOCK = 4
    UNAME = 5
    HOOK = 6
    OFFSET = 7
    CPUCOUNT = 8
    VERSION = 9
    PROCMAPS = 10
    TRACEID = 11
    TIME_SHIFT = 12
    GUEST = 13
    TSC2NSEC = 14
    STRINGS = 15
    HEADER_INFO = 16
    FTRACE_EVENTS = 17
    EVENT_FORMATS = 18
    KALLSYMS = 19
    PRINTK = 20
    CMDLINES = 21
    BUFFER_TEXT = 22
    BTF_FILE = 23
    LAST_BOOT_INFO = 24
    MODULES_FILE = 25
    # Not one of trace-cmd's, which has none for this: it reports an unknown option and reads on.
    SAVED_TGIDS = 0x7470


class Option(NamedTuple):
    """One option as the file has it; `id` is an OptionId or a number of a later version."""

    id: int
    data: bytes

    @property
    def text(self) -> str:
        """The data as text, up to its NUL; for the options that are text."""
        return self.data.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")


def text_option(number: OptionId, text: str) -> Option:
    """Make an option that is text: `text_option(OptionId.UNAME, "Linux host 6.1")`."""
    return Option(int(number), encode(text) + b"\0")


class CpuPlace(NamedTuple):
    """Where the data of one CPU is in the file, in bytes."""

    cpu: int
    offset: int
    size: int


class BufferOption(NamedTuple):
    """A BUFFER option of version 7; `section` is the offset of its section."""

    section: int
    name: str
    clock: str
    page_size: int
    cpus: tuple[CpuPlace, ...]


class TscScale(NamedTuple):
    """Cycles to ns: (cycles * `mult` >> `shift`) + `offset_ns`."""

    mult: int
    shift: int
    offset_ns: int


#: Those that say how stamps become times.
TIME_OPTIONS = frozenset({OptionId.DATE, OptionId.OFFSET, OptionId.TIME_SHIFT, OptionId.TSC2NSEC})


class ClockSample(NamedTuple):
    """At host time `time` a guest's clock was `offset` off and ran `scaling` / 2**`fraction` as fast."""

    time: int
    offset: int
    scaling: int
    fraction: int = 0


class TimeShift(NamedTuple):
    """The clock of a guest against that of its host, per CPU; bit 0 of `flags` asks to interpolate."""

    peer_id: int
    flags: int
    cpus: tuple[tuple[ClockSample, ...], ...]


def read_buffer(cursor: Cursor) -> BufferOption:
    """Read the data of a BUFFER option of version 7."""
    section, name, clock = cursor.u64(), cursor.c_string("an instance"), cursor.c_string("a clock")
    page_size, n_cpus = cursor.u32(), cursor.u32()
    if n_cpus > cursor.left // 20:
        raise cursor.error(f"a buffer of {n_cpus} CPUs in {cursor.left} bytes")
    places = tuple(CpuPlace(cursor.u32(), cursor.u64(), cursor.u64()) for _ in range(n_cpus))
    return BufferOption(section, name, clock, page_size, places)


def buffer_data(buffer: BufferOption, *, is_big_endian: bool) -> bytes:
    """Write the data of a BUFFER option of version 7."""
    order = ">" if is_big_endian else "<"
    names = encode(buffer.name) + b"\0" + encode(buffer.clock) + b"\0"
    head = struct.pack(order + "Q", buffer.section) + names
    head += struct.pack(order + "II", buffer.page_size, len(buffer.cpus))
    return head + b"".join(struct.pack(order + "IQQ", p.cpu, p.offset, p.size) for p in buffer.cpus)


def read_tsc_scale(cursor: Cursor) -> TscScale:
    """Read the data of a TSC2NSEC option."""
    scale = TscScale(cursor.u32(), cursor.u32(), cursor.u64())
    if scale.shift > 63:
        raise cursor.error(f"a shift of {scale.shift} bits")
    return scale


def read_time_shift(cursor: Cursor) -> TimeShift:
    """Read the data of a TIME_SHIFT option; the fractions at its end may be absent."""
    peer_id, flags, n_cpus = cursor.u64(), cursor.u32(), cursor.u32()
    if n_cpus > cursor.left // 4:
        raise cursor.error(f"{n_cpus} CPUs in {cursor.left} bytes")
    columns = []
    for _ in range(n_cpus):
        count = cursor.u32()
        if count > cursor.left // 24:
            raise cursor.error(f"{count} clock samples in {cursor.left} bytes")
        columns.append([[cursor.u64() for _ in range(count)] for _ in range(3)])
    has_fractions = cursor.left > 0
    cpus = []
    for times, offsets, scalings in columns:
        fractions = [cursor.u64() if has_fractions else 0 for _ in times]
        rows = zip(times, offsets, scalings, fractions, strict=True)
        samples = {t: ClockSample(t, o - (o >> 63 << 64), s, f & 63) for t, o, s, f in rows}
        cpus.append(tuple(samples[t] for t in sorted(samples)))
    return TimeShift(peer_id, flags, tuple(cpus))


def read_offset(text: str) -> int:
    """Read a number as strtoll() with base 0 does: decimal, 0x or a leading 0 for octal; 0 if none."""
    words = text.split()
    word = words[0].lower() if words else ""
    sign = -1 if word.startswith("-") else 1
    digits = word.lstrip("+-")
    base = 16 if digits.startswith("0x") else 8 if digits.startswith("0") else 10
    try:
        value = int(digits, base) if base == 16 or digits.isdigit() else 0
    except ValueError:
        return 0
    return sign * value if value < 1 << 63 else 0


def find_options(options: Iterable[Option], number: OptionId) -> list[Option]:
    """Return the options of one kind in their order."""
    return [option for option in options if option.id == number]


def uname_of(options: Iterable[Option]) -> list[str]:
    """Return the words of uname: system, machine name, release, the rest; none where no option has them."""
    return " ".join(option.text for option in find_options(options, OptionId.UNAME)).split()


def machine_name(options: Iterable[Option]) -> str:
    """Return the name of the machine, the second word of uname; empty where no option has it.

    >>> machine_name([text_option(OptionId.UNAME, "Linux web1 6.1.0-37-amd64 x86_64")])
    'web1'
    """
    words = uname_of(options)
    return words[1] if len(words) > 1 else ""


def read_u32(option: Option, *, is_big_endian: bool) -> int:
    """Read an option that is one number of 4 bytes; raises DecodeError."""
    if len(option.data) < 4:
        raise DecodeError(f"option {option.id} has {len(option.data)} bytes, not 4")
    return int.from_bytes(option.data[:4], "big" if is_big_endian else "little")
