"""Writing trace.dat: `write_tracedat` puts a `TraceContent` into a stream, version 6 or 7.

Pages are taken block by block, so that a recording may be larger than memory.  The stream must be
able to seek: sizes and places are known only when the pages have been written.
"""

from __future__ import annotations

import os
import struct

from tracepoint.errors import TracepointError
from tracepoint.tracefile import sections
from tracepoint.tracefile.compression import compressor_named
from tracepoint.tracefile.cursor import encode
from tracepoint.tracefile.head import (
    COMPRESSED,
    FLYRECORD_TAG,
    LATENCY_TAG,
    MAGIC,
    OPTIONS_TAG,
    SECTION_HEAD,
)
from tracepoint.tracefile.options import (
    BufferOption,
    CpuPlace,
    Option,
    OptionId,
    buffer_data,
    find_options,
    text_option,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

    from tracepoint.record.page import Buffer
    from tracepoint.tracefile.compression import Compressor
    from tracepoint.tracefile.content import BufferContent, TraceContent

# Readers decompress a whole chunk to get at one page of it.
_CHUNK = 40 * 4096
_CLOCKS = ("local", "global", "counter", "uptime", "perf", "mono", "mono_raw", "boot", "tai", "x86-tsc")
# Names of other forms, whose readers would refuse the file.
_OTHERS = frozenset(
    ".arrow .bz2 .csv .ctf .gz .html .json .jsonl .parquet .perfetto-trace .pftrace .txt .xml .xz".split()
)
_PART_NAMES = {
    OptionId.DONE: "options",
    OptionId.HEADER_INFO: "headers",
    OptionId.FTRACE_EVENTS: "ftrace events",
    OptionId.EVENT_FORMATS: "events format",
    OptionId.KALLSYMS: "kallsyms",
    OptionId.PRINTK: "printk",
    OptionId.CMDLINES: "command lines",
    OptionId.STRINGS: "strings",
    OptionId.BUFFER: "buffer flyrecord ",
    OptionId.BUFFER_TEXT: "buffer latency ",
}


def check_tracedat_name(path: str | os.PathLike[str]) -> None:
    """Raise TracepointError for the name of another form than trace.dat.

    >>> check_tracedat_name("shop.dat"), check_tracedat_name("shop.2026")
    (None, None)
    """
    suffix = os.path.splitext(path)[1]  # noqa: PTH122 - a recording is made without pathlib
    if suffix.lower() in _OTHERS:
        raise TracepointError(
            f"{path}: what is written is a trace.dat, not {suffix}: end the name with .dat; tracepoint "
            "convert or read gives other forms of it"
        )


def write_tracedat(
    stream: BinaryIO,
    content: TraceContent,
    version: int = 7,
    compression: str = "none",
    packed_kallsyms: bytes = b"",
) -> None:
    """Write a recording as trace.dat.

    `version` is 6 or 7; `compression` is `none`, `zlib` or `zstd`, and `none` for version 6.
    `packed_kallsyms` is the content's `kallsyms` as `pack_kallsyms` made it before, with this compression: it
    is the largest text and takes longest.  Raises
    TracepointError for another combination, for a stream that cannot seek, where a
    library is missing, and for blocks that are not whole pages.
    """
    if version not in (6, 7):
        raise TracepointError(f"trace.dat has versions 6 and 7, not {version}")
    if version == 6 and compression != "none":
        raise TracepointError("trace.dat of version 6 is never compressed: use version 7")
    if not stream.seekable():
        raise TracepointError("trace.dat needs a file: a pipe cannot go back to where the sizes are")
    codec = compressor_named(compression)
    writer = _Writer(stream, content, codec, packed_kallsyms)
    if version == 6:
        _write_version6(writer)
    else:
        _write_version7(writer)


def pack_kallsyms(kallsyms: str, compression: str, *, is_big_endian: bool) -> bytes:
    """Return a section of a trace.dat with the text of kallsyms, without its head; empty without compression.

    Raises as `compressor_named` does.
    """
    codec, order = compressor_named(compression), ">" if is_big_endian else "<"
    if codec is None:
        return b""
    return sections.write_packed(sections.write_sized(kallsyms, order, is_wide=False), codec, order)


def clock_text(name: str) -> str:
    r"""Return the text of `trace_clock` with one clock chosen.

    >>> clock_text("mono")
    'local global counter uptime perf [mono] mono_raw boot tai x86-tsc\n'
    """
    names = _CLOCKS if name in _CLOCKS else (*_CLOCKS, name)
    return " ".join(f"[{n}]" if n == name else n for n in names) + "\n"


class _Writer:
    """The stream, and what is known of it so far."""

    def __init__(
        self, stream: BinaryIO, content: TraceContent, codec: Compressor | None, packed_kallsyms: bytes
    ) -> None:
        self.stream, self.content, self.codec = stream, content, codec
        self.packed_kallsyms = packed_kallsyms
        self.order = ">" if content.is_big_endian else "<"
        self.strings = bytearray()
        used = [cpu.cpu + 1 for buffer in content.buffers for cpu in buffer.cpus]
        self.n_cpus = max([content.n_cpus, *used])

    def put(self, data: Buffer) -> None:
        self.stream.write(data)

    def number(self, code: str, *values: int) -> bytes:
        return struct.pack(self.order + code, *values)

    def patch(self, at: int, data: bytes) -> None:
        """Overwrite what is at an offset, and come back."""
        here = self.stream.tell()
        self.stream.seek(at)
        self.stream.write(data)
        self.stream.seek(here)

    def align(self) -> int:
        """Fill up to the next page and return its offset: readers map the pages."""
        at = self.stream.tell()
        self.put(bytes(-at % max(self.content.page_size, 1)))
        return self.stream.tell()

    def head(self, version: int) -> None:
        content = self.content
        self.put(MAGIC + b"%d\0" % version + bytes((content.is_big_endian, content.long_size)))
        self.put(self.number("I", content.page_size))

    def blocks(self, blocks: Iterable[Buffer], page_size: int) -> Iterator[Buffer]:
        for block in blocks:
            if len(block) % page_size:
                raise TracepointError(f"a block of {len(block)} bytes is not made of whole pages")
            yield block


def _options(content: TraceContent) -> list[Option]:
    """Return the content's options, with a clock: trace-cmd needs it to show times."""
    given = list(content.options)
    if not find_options(given, OptionId.TRACECLOCK):
        clock = next((b.clock for b in content.buffers if not b.name), "local")
        given.insert(0, text_option(OptionId.TRACECLOCK, clock_text(clock)))
    if content.saved_tgids is not None:
        given.append(text_option(OptionId.SAVED_TGIDS, content.saved_tgids))
    return given


def _option_bytes(writer: _Writer, option: Option) -> bytes:
    return writer.number("HI", option.id, len(option.data)) + option.data


def _in_order(buffers: tuple[BufferContent, ...]) -> list[BufferContent]:
    """Put the top buffer first; a recording without one gets an empty one."""
    return sorted(buffers, key=lambda buffer: buffer.name != "")


# Version 6.


def _write_version6(writer: _Writer) -> None:
    content, order = writer.content, writer.order
    writer.head(6)
    writer.put(sections.write_header_info(content.header_page, content.header_event, order))
    writer.put(sections.write_ftrace_formats(content.formats, order))
    writer.put(sections.write_system_formats(content.formats, order))
    writer.put(sections.write_sized(content.kallsyms, order, is_wide=False))
    writer.put(sections.write_sized(content.printk_formats, order, is_wide=False))
    writer.put(sections.write_sized(content.saved_cmdlines, order, is_wide=True))
    writer.put(writer.number("I", writer.n_cpus))
    instances = [buffer for buffer in content.buffers if buffer.name]
    places = _write_options6(writer, instances)
    if content.latency_text:
        writer.put(LATENCY_TAG + encode(content.latency_text))
        return
    top = [buffer for buffer in content.buffers if not buffer.name]
    _write_table6(writer, top[0] if top else None)
    for buffer, place in zip(instances, places, strict=True):
        writer.align()
        writer.patch(place, writer.number("Q", writer.stream.tell()))
        _write_table6(writer, buffer)


def _write_options6(writer: _Writer, instances: list[BufferContent]) -> list[int]:
    """Write the options; return where the offset of each instance's table is to be written."""
    places = []
    writer.put(OPTIONS_TAG)
    for option in _options(writer.content):
        writer.put(_option_bytes(writer, option))
    for buffer in instances:
        places.append(writer.stream.tell() + 6)
        data = bytes(8) + encode(buffer.name) + b"\0"
        writer.put(_option_bytes(writer, Option(OptionId.BUFFER, data)))
    writer.put(writer.number("H", 0))
    return places


def _write_table6(writer: _Writer, buffer: BufferContent | None) -> None:
    writer.put(FLYRECORD_TAG)
    table = writer.stream.tell()
    writer.put(bytes(16 * writer.n_cpus))
    writer.align()
    page_size = writer.content.layout.page_size
    places = dict.fromkeys(range(writer.n_cpus), (writer.stream.tell(), 0))
    for cpu in buffer.cpus if buffer else ():
        start = writer.align()
        for block in writer.blocks(cpu.blocks, page_size):
            writer.put(block)
        places[cpu.cpu] = (start, writer.stream.tell() - start)
    for cpu_number, (offset, size) in places.items():
        writer.patch(table + 16 * cpu_number, writer.number("QQ", offset, size))


# Version 7.


def _write_version7(writer: _Writer) -> None:
    content, order, codec = writer.content, writer.order, writer.codec
    writer.head(7)
    name, version = (codec.name, codec.version) if codec else ("none", "")
    writer.put(encode(name) + b"\0" + encode(version) + b"\0")
    first = writer.stream.tell()
    writer.put(bytes(8))
    parts = (
        (OptionId.HEADER_INFO, sections.write_header_info(content.header_page, content.header_event, order)),
        (OptionId.FTRACE_EVENTS, sections.write_ftrace_formats(content.formats, order)),
        (OptionId.EVENT_FORMATS, sections.write_system_formats(content.formats, order)),
        (OptionId.KALLSYMS, None),
        (OptionId.PRINTK, sections.write_sized(content.printk_formats, order, is_wide=False)),
        (OptionId.CMDLINES, sections.write_sized(content.saved_cmdlines, order, is_wide=True)),
    )
    options = []
    for number, data in parts:
        at = _kallsyms(writer) if data is None else _section(writer, number, data)
        options.append(Option(number, writer.number("Q", at)))
    options.extend(_options(content))
    options.append(Option(OptionId.CPUCOUNT, writer.number("I", writer.n_cpus)))
    if content.latency_text:
        options.append(_latency_option(writer))
    else:
        options.extend(_write_buffer(writer, buffer) for buffer in _in_order(content.buffers))
    options.append(Option(OptionId.DONE, bytes(8)))
    data = b"".join(_option_bytes(writer, option) for option in options)
    at = _section(writer, OptionId.DONE, data, is_packed=False)
    writer.patch(first, writer.number("Q", at))
    _string_id(writer, OptionId.STRINGS)
    _section(writer, OptionId.STRINGS, bytes(writer.strings))


def _string_id(writer: _Writer, number: int, suffix: str = "") -> int:
    """Remember the name of a section; return its place among the names."""
    name = encode(_PART_NAMES[OptionId(number)] + suffix) + b"\0"
    if name not in bytes(writer.strings):
        writer.strings += name
    return bytes(writer.strings).index(name)


def _section(writer: _Writer, number: int, data: bytes, *, is_packed: bool = True) -> int:
    """Write a section and return its offset."""
    if writer.codec is None or not is_packed:
        return _put_section(writer, number, 0, data)
    return _put_section(writer, number, COMPRESSED, sections.write_packed(data, writer.codec, writer.order))


def _kallsyms(writer: _Writer) -> int:
    if writer.packed_kallsyms:
        return _put_section(writer, OptionId.KALLSYMS, COMPRESSED, writer.packed_kallsyms)
    text = sections.write_sized(writer.content.kallsyms, writer.order, is_wide=False)
    return _section(writer, OptionId.KALLSYMS, text)


def _put_section(writer: _Writer, number: int, flags: int, data: bytes) -> int:
    at = writer.stream.tell()
    writer.put(writer.number("HHIQ", number, flags, _string_id(writer, number), len(data)) + data)
    return at


def _latency_option(writer: _Writer) -> Option:
    at = _section(writer, OptionId.BUFFER_TEXT, encode(writer.content.latency_text))
    clock = next((b.clock for b in writer.content.buffers if not b.name), "local")
    return Option(OptionId.BUFFER_TEXT, writer.number("Q", at) + b"\0" + encode(clock) + b"\0")


def _write_buffer(writer: _Writer, buffer: BufferContent) -> Option:
    """Write the pages of one buffer; return the option that points to them."""
    at = writer.stream.tell()
    name = _string_id(writer, OptionId.BUFFER, buffer.name)
    flags = COMPRESSED if writer.codec else 0
    writer.put(writer.number("HHIQ", OptionId.BUFFER, flags, name, 0))
    page_size = writer.content.layout.page_size
    places = []
    for cpu in buffer.cpus:
        start = writer.align()
        blocks = writer.blocks(cpu.blocks, page_size)
        if writer.codec is None:
            for block in blocks:
                writer.put(block)
            size = writer.stream.tell() - start
        else:
            size = _write_chunks(writer, blocks, writer.codec, page_size)
        if size:
            places.append(CpuPlace(cpu.cpu, start, size))
    end = writer.align()
    writer.patch(at + 8, writer.number("Q", end - at - SECTION_HEAD))
    option = BufferOption(at, buffer.name, buffer.clock, page_size, tuple(places))
    return Option(OptionId.BUFFER, buffer_data(option, is_big_endian=writer.content.is_big_endian))


def _write_chunks(writer: _Writer, blocks: Iterable[Buffer], codec: Compressor, page_size: int) -> int:
    """Write compressed chunks; return their bytes, without those of their number, as trace-cmd does."""
    start = writer.stream.tell()
    writer.put(bytes(4))
    step = max(_CHUNK // page_size, 1) * page_size
    n_chunks = 0
    for piece in _regrouped(blocks, step):
        writer.put(sections.write_packed(piece, codec, writer.order))
        n_chunks += 1
    writer.patch(start, writer.number("I", n_chunks))
    return writer.stream.tell() - start - 4


def _regrouped(blocks: Iterable[Buffer], step: int) -> Iterator[Buffer]:
    """Yield the bytes of blocks in pieces of `step` bytes, copied only where blocks meet in one."""
    held = bytearray()
    for block in blocks:
        view = memoryview(block)
        if held:
            missing = step - len(held)
            held += view[:missing]
            view = view[missing:]
            if len(held) < step:
                continue
            yield bytes(held)
            held.clear()
        whole = len(view) // step * step
        for at in range(0, whole, step):
            yield view[at : at + step]
        held += view[whole:]
    if held:
        yield bytes(held)
