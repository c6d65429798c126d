"""What is fuzzed: functions of bytes that may only end normally or with a TracepointError."""

from __future__ import annotations

import json
import lzma
import struct
from array import array
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache, partial
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tracepoint.analysis import coverage
from tracepoint.analysis.sched import build, sums, waits
from tracepoint.analysis.sched.events import SchedEvents
from tracepoint.analysis.sched.report import analyse_sched
from tracepoint.analysis.sched.sums import SchedSums
from tracepoint.check.engine import check_header, fix_text
from tracepoint.decode import engine, numbers
from tracepoint.decode.join import ColumnJoiner
from tracepoint.decode.plan import plan_columns
from tracepoint.decode.trace import Trace
from tracepoint.errors import TracepointError
from tracepoint.filter.parse import parse_filter
from tracepoint.filter.program import compile_filter
from tracepoint.lab.simulate.event import simulate_event
from tracepoint.layout.btf import read_btf
from tracepoint.layout.compressed import decompress
from tracepoint.layout.compute import compute_layout
from tracepoint.layout.format import read_format, write_format
from tracepoint.layout.objects import read_object
from tracepoint.model.fmt.text import format_text
from tracepoint.model.read import read_header_text
from tracepoint.model.schema import read_json
from tracepoint.model.write import write_header
from tracepoint.place.declare import declare
from tracepoint.place.fragment import EventText
from tracepoint.place.kernel import KernelTree, TreeFile
from tracepoint.place.patch import change_file, write_diff
from tracepoint.printk.facts import NO_FACTS, Rendered, RenderFacts
from tracepoint.printk.kallsyms import Kallsyms
from tracepoint.printk.printer import Printer
from tracepoint.printk.program import compile_print
from tracepoint.printk.render import render_record
from tracepoint.record.decode import DECODE
from tracepoint.record.layout import PageLayout, header_page_text, read_page_layout
from tracepoint.record.pages import read_pages, read_pages_slowly
from tracepoint.source.cexpr import parse_expression
from tracepoint.source.lexer import Kind, lex
from tracepoint.source.text import SourceFile, decode, encode
from tracepoint.tracefile import linewriter, sieve
from tracepoint.tracefile.buffers import TraceBuffer
from tracepoint.tracefile.content import BufferContent, CpuPages, TraceContent
from tracepoint.tracefile.cpudata import CpuData
from tracepoint.tracefile.follow import Followed
from tracepoint.tracefile.live import LiveSource
from tracepoint.tracefile.opening import open_container, read_container
from tracepoint.tracefile.text import TextWriter
from tracepoint.tracefile.textoptions import TextOptions
from tracepoint.tracefile.tracedat import read_tracedat
from tracepoint.tracefile.write import write_tracedat
from tracepoint.tree.index.store import IndexData
from tracepoint.tree.query.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from tracepoint.filter.program import FilterProgram
    from tracepoint.layout.format import EventFormat

HERE = Path(__file__).resolve().parent


def _fuzz_lexer(data: bytes) -> None:
    text = decode(data)
    tokens = lex(SourceFile("fuzz.h", text))
    assert "".join(text[token.lead : token.end] for token in tokens) == text
    assert encode(text) == data


def _fuzz_header(data: bytes) -> None:
    header = read_header_text(decode(data), "fuzz.h")
    for event in header.events:
        try:
            write_format(compute_layout(event, environment=header.environment, enums=header.exported_enums))
        except TracepointError:
            continue


def _fuzz_cexpr(data: bytes) -> None:
    parse_expression(lex(SourceFile("fuzz.h", decode(data))))


def _fuzz_fmt(data: bytes) -> None:
    text = decode(data)
    tidy = format_text(text, "fuzz.h").text
    assert _meaning(tidy) == _meaning(text)
    assert format_text(tidy, "fuzz.h").text == tidy


def _meaning(text: str) -> list[str]:
    return [token.text for token in lex(SourceFile("fuzz.h", text)) if token.kind is not Kind.END]


def _fuzz_format(data: bytes) -> None:
    event = read_format(decode(data), "fuzz")
    assert read_format(write_format(event), "fuzz") == event


def _fuzz_object(data: bytes) -> None:
    read_object(decompress(data))


def _fuzz_btf(data: bytes) -> None:
    read_btf(data)


def _fuzz_check(data: bytes) -> None:
    text = decode(data)
    check_header(read_header_text(text, "fuzz.h"), select=["ALL"])
    fix_text(text, "fuzz.h", unsafe=True)


def _fuzz_try(data: bytes) -> None:
    header = read_header_text(decode(data), "fuzz.h")
    for event in header.events[:4]:
        try:
            simulate_event(event, environment=header.environment, enums=header.exported_enums)
        except TracepointError:
            continue


def _fuzz_write(data: bytes) -> None:
    header = read_header_text(decode(data), "fuzz.h")
    if not header.diagnostics:
        read_header_text(write_header(header), "fuzz.h")


def _fuzz_printk(data: bytes) -> None:
    """The first bytes are a record, the rest, after a zero byte, is a print format; C agrees with the twin."""
    record, _, text = data.partition(b"\0\0\0\0")
    program = compile_print(replace(PRINTED, print_fmt=decode(text)))
    expected = render_record(program, bytes(8) + record)
    lines = Printer({0: program}, NO_FACTS, any_type=True).render_list([bytes(8) + record])
    assert (lines.noted.get(0) or Rendered(lines.texts[0])) == expected


def _fuzz_program(data: bytes) -> None:
    """A record of 64 bytes, then a packed print program with its slots: C refuses it or runs it."""
    if DECODE is None:
        return
    record, packed = data[:64], data[64:]
    try:
        slots = b"".join(struct.pack("=QQ", number, number % 3) for number in range(8))
        loaded = DECODE.load_prints([(7, packed, slots)], len(record) & 3, False)
    except ValueError:
        return
    places = array("Q", [0, 0]), array("I", [len(record), len(record) // 2])
    DECODE.render_prints(loaded, b"", record, *places, True)


def _fuzz_filter(data: bytes) -> None:
    parse_filter(data, PRINTED)


def _fuzz_json(data: bytes) -> None:
    read_json(decode(data))


def _fuzz_recording(data: bytes) -> None:
    """A file of any form, all its records read."""
    trace = Trace(read_container(data), threads=1)
    trace.tables()
    assert trace.n_records >= 0
    assert all(damage.reason for damage in trace.damage)


PRINTED = read_format(
    "name: a\nID: 7\nformat:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
    "\tfield:int n;\toffset:8;\tsize:4;\tsigned:1;\n"
    "\tfield:__data_loc char[] s;\toffset:12;\tsize:4;\tsigned:1;\n"
    "\tfield:void * p;\toffset:16;\tsize:8;\tsigned:0;\n"
    "\tfield:u8 b[8];\toffset:24;\tsize:8;\tsigned:0;\n"
    "\tfield:__rel_loc u16[] r;\toffset:32;\tsize:4;\tsigned:0;\n\n"
    'print fmt: "", \n',
    "fuzz",
)


def page_layout(choice: int) -> PageLayout:
    """A layout of pages, small or of the usual size, with any long and byte order."""
    long_size = 4 if choice & 1 else 8
    size = (64, 128, 512, 4096)[choice >> 2 & 3] - 8 - long_size
    return PageLayout(8 + long_size, size, 8, long_size, is_big_endian=bool(choice & 2))


def _fuzz_pages(data: bytes) -> None:
    """The first byte chooses the layout of the pages that follow; C agrees with the twin."""
    layout, pages = page_layout(data[0] if data else 0), data[1:]
    found, expected = read_pages(pages, layout), read_pages_slowly(pages, layout)
    assert found.heads == expected.heads
    assert [*found.stamps] == [*expected.stamps]
    assert [*found.offsets] == [*expected.offsets]
    assert [*found.lengths] == [*expected.lengths]


@contextmanager
def _in_python(*modules: ModuleType) -> Iterator[None]:
    with ExitStack() as stack:
        for module in modules:
            held = module.DECODE
            stack.callback(setattr, module, "DECODE", held)
            module.DECODE = None  # type: ignore[attr-defined]
        yield


def _two_cpus(pages: bytes, layout: PageLayout) -> list[CpuData]:
    half = len(pages) // 2
    return [CpuData(n, 0, len(part), layout, part) for n, part in enumerate((pages[:half], pages[half:]))]


def _fuzz_columns(data: bytes) -> None:
    """Pages as above, of two CPUs; columns and counts in C are those of the twin."""
    layout, pages = page_layout(data[0] if data else 0), data[1:]
    cpus = _two_cpus(pages, layout)
    form = replace(PRINTED, is_big_endian=layout.is_big_endian)

    def read(forms: list[EventFormat]) -> object:
        columns = engine.read_columns(cpus, forms, 1)
        return [[c.tolist() for c in event] for event in columns], engine.count_records(cpus, 1)

    found = read([form])
    with _in_python(engine):
        assert repr(read([form])) == repr(found)


def _fuzz_join(data: bytes) -> None:
    """Pages of two CPUs, each read for itself and joined, have the rows of both."""
    if DECODE is None:
        return
    layout, pages = page_layout(data[0] if data else 0), data[1:]
    form = replace(PRINTED, is_big_endian=layout.is_big_endian)
    parts = [engine.read_columns([cpu], [form], 1)[0] for cpu in _two_cpus(pages, layout)]
    for number, plan in enumerate(plan_columns(form)):
        joiner = ColumnJoiner(DECODE, plan)
        for part in parts:
            joiner.add(part[number])
        joined = joiner.column()
        assert repr(joined.tolist()) == repr([value for part in parts for value in part[number].tolist()])


_FILTERS = ("n > 5", 's ~ "a*"', "p & 0xff || n < 0", "common_pid == 1 && CPU == 0", "s == ''")


def _fuzz_sieve(data: bytes) -> None:
    """Four bytes choose layout, filter and window; C writes the pages that the twin writes."""
    choice, pages = data[:4].ljust(4, b"\0"), data[4:]
    layout, text = page_layout(choice[0]), _FILTERS[choice[1] % len(_FILTERS)]
    programs: dict[int, FilterProgram | None] | None = None
    if choice[1] & 128:
        form = replace(PRINTED, is_big_endian=layout.is_big_endian, long_size=layout.long_size)
        programs = {7: compile_filter(parse_filter(text.encode(), form)), 8: None}
    stamps = sorted(read_pages(pages, layout).stamps) or [0]
    start, stop = (sieve.signed_time(stamps[n * (len(stamps) - 1) // 255]) for n in sorted(choice[2:]))
    windows = (sieve.ALL_TIMES, sieve.Window(start, stop))

    def sift() -> object:
        found = [sieve.Sieve(layout, window, programs).sift(pages, 1) for window in windows]
        return [(bytes(part.pages), part.faults) for part in found]

    expected = sift()
    with _in_python(sieve):
        assert sift() == expected


@cache
def recorded_layouts() -> dict[str, Any]:
    """Formats and symbols of a guest whose tracers were recorded."""
    text = lzma.decompress((HERE.parent / "tracefile/golden/layouts.json.xz").read_bytes())
    found: dict[str, Any] = json.loads(text)["6.12"]
    return found


@cache
def _recorded_events() -> dict[int, EventFormat]:
    forms = (read_format(text, system) for system, text in recorded_layouts()["formats"])
    return {form.id: form for form in forms}


@cache
def _recorded_facts(*, has_symbols: bool) -> RenderFacts:
    return RenderFacts(kallsyms=Kallsyms(recorded_layouts()["symbols"]) if has_symbols else None, hz=250)


def _fuzz_text(data: bytes, options: TextOptions) -> None:
    """The first byte says whether there are symbols, the rest are pages; C writes what the twin writes."""
    cpus = _two_cpus(data[1:], read_page_layout(recorded_layouts()["header_page"]))
    events, facts = _recorded_events(), _recorded_facts(has_symbols=data[:1] > b"\x7f")
    buffer = TraceBuffer("", "local", tuple(cpus))

    def write() -> tuple[bytes, dict[str, int]]:
        writer = TextWriter(events, facts, options)
        # Only what the pages have: to compile all print formats would take a hundred times as long.
        numbers = {int.from_bytes(record.data[:2], "little") for record in buffer.records()} & set(events)
        blocks = linewriter.LineWriter(writer, numbers).blocks(buffer, has_overruns=data[:1] > b"\xbf")
        return b"".join(map(bytes, blocks)), writer.notes

    expected = write()
    with _in_python(linewriter):
        assert write() == expected


def _read_folder(names: tuple[str, str], data: bytes) -> None:
    """Read a recording of two files, which four zero bytes part."""
    first, _, second = data.partition(b"\0\0\0\0")
    with TemporaryDirectory() as folder:
        for name, content in zip(names, (first, second), strict=True):
            (Path(folder) / name).write_bytes(content)
        with open_container(folder) as container:
            Trace(container, threads=1).tables()


def _fuzz_ctf(data: bytes) -> None:
    """A stream of a trace of CTF after its metadata, with four zero bytes in between."""
    _read_folder(("metadata", "stream_0"), data)


def _fuzz_tracedat(data: bytes) -> None:
    """A whole file: what is right is read, the rest is damage or an error."""
    trace = Trace(read_tracedat(data))
    for name in ("", *trace.instances):
        part = trace.open_instance(name)
        for table in part.tables().values():
            assert table.__arrow_c_stream__()
        assert part.lost is not None
        assert part.damage is not None


def _fuzz_rings(data: bytes) -> None:
    """The formats of a process, after them a ring of it: what is damaged is reported."""
    _read_folder(("formats-1", "ring-1-1-1"), data)


@cache
def _formats_folder(layout: PageLayout) -> TemporaryDirectory[str]:
    """A folder with the formats of what is followed; it is there until the process ends."""
    made = TemporaryDirectory()
    (event := Path(made.name) / "events/fuzz/a").mkdir(parents=True)
    (event / "format").write_text(write_format(PRINTED))
    (event.parents[1] / "header_page").write_text(header_page_text(layout))
    return made


def _growing(data: bytes, piece: int, layout: PageLayout) -> LiveSource:
    """What gives the next `piece` bytes each time that it is read to its end."""
    words = [word for at in range(0, len(data), piece) for word in (data[at : at + piece], b"")][::-1]

    def read(_: int) -> bytes:
        word = words.pop() if words else b""
        source.ends = not words
        return word

    source = LiveSource(read, layout.page_size)
    source.ends = not words
    return source


def _fuzz_follow(data: bytes) -> None:
    """Two bytes choose layout and size of pieces; two CPUs that grow give the records that they have whole."""
    choice, pages = data[:2].ljust(2, b"\0"), data[2:]
    layout = page_layout(choice[0])
    at, folder = len(pages) // 2 // layout.page_size * layout.page_size, _formats_folder(layout)

    def follow(piece: int) -> object:
        sources = {n: _growing(part, piece, layout) for n, part in enumerate((pages[:at], pages[at:]))}
        found: dict[int, list[object]] = {0: [], 1: []}
        with Followed("fuzz", formats=folder.name, delay_s=0, sources=sources) as records:
            batches = records.chunks(lambda container: container.buffers[0])
            for record in (record for _, batch in batches for record in batch):
                found[record.cpu].append(record)
            return found, records.n_lost

    # The byte order is found in what is there at first: as much of it, in either.
    assert follow(layout.page_size * (1 + choice[1] % 4)) == follow(layout.page_size)
    follow(17 + choice[1])


@cache
def sched_formats() -> tuple[tuple[str, str], ...]:
    """The formats of the events of a kernel, with the system of each."""
    parts = (HERE.parent / "analysis/golden/formats-6.1.txt").read_text().split("# ")[1:]
    return tuple((system, form) for system, _, form in (part.partition("\n") for part in parts))


def _fuzz_sched(data: bytes) -> None:
    """Pages of two CPUs in a trace.dat; what C finds out about the scheduler is what the twin does."""
    layout = page_layout(12)
    pages = [data[at : at + 4096] for at in range(0, len(data) - 4095, 4096)]
    cpus = CpuPages(0, pages[: len(pages) // 2]), CpuPages(1, pages[len(pages) // 2 :])
    content = TraceContent((BufferContent(cpus),), sched_formats(), header_page_text(layout), n_cpus=2)
    write_tracedat(stream := BytesIO(), content, 7, "none")

    def analyse() -> str:
        trace = Trace(read_tracedat(stream.getvalue()), threads=1)
        report, parts = analyse_sched(trace), SchedSums()
        found = build.run_machine(SchedEvents(trace), report.coverage.gaps, report.coverage.stop, parts.add)
        parts.add(found)
        rows = [table.to_dicts() for table in report.tables.values()]
        counts = parts.cpus, parts.states, report.n_unseen_wakes, report.n_lost_switches, report.overlap_ns
        return repr((rows, report.cpus, report.tasks, counts, [*report.latency().values]))

    expected = analyse()
    with _in_python(build, coverage, numbers, sums, waits):
        assert analyse() == expected


_HEADER = "include/trace/events/fuzz.h"
_TRACE_HEADER = """#undef TRACE_SYSTEM
#define TRACE_SYSTEM fuzz
#if !defined(_TRACE_FUZZ_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_FUZZ_H
#include <linux/tracepoint.h>
#endif
#include <trace/define_trace.h>
"""


def _kernel(files: dict[str, str]) -> KernelTree:
    """A tree that is in memory only, with nothing indexed."""
    parts = ("headers", "sites", "hidden", "exports", "creators", "syscalls")
    tree = Tree.of(IndexData("/", "source", {part: {} for part in parts}, {}))
    return KernelTree(tree, lambda path: TreeFile(files[path]) if path in files else None, 1)


def _fuzz_place(data: bytes) -> None:
    """The input as what a user declares, and as the header that a declaration goes into."""
    text = decode(data)
    event = (
        "TRACE_EVENT(fuzz, TP_PROTO(int n), TP_ARGS(n), TP_STRUCT__entry(__field(int, n)),"
        'TP_fast_assign(__entry->n = n;), TP_printk("%d", __entry->n));'
    )
    for header, declared in ((_TRACE_HEADER, text), (text, event)):
        kernel = _kernel({_HEADER: header})
        try:
            made = declare(kernel, EventText(declared, system="fuzz", header=_HEADER))
        except TracepointError:
            continue
        change = change_file(_HEADER, header, made.edits)
        names = {event.name for event in read_header_text(change.new, _HEADER).events}
        assert names >= {event.name for event in made.events}
        assert write_diff([change])


TARGETS: dict[str, Callable[[bytes], None]] = {
    "btf": _fuzz_btf,
    "cexpr": _fuzz_cexpr,
    "check": _fuzz_check,
    "columns": _fuzz_columns,
    "ctf": _fuzz_ctf,
    "filter": _fuzz_filter,
    "fmt": _fuzz_fmt,
    "follow": _fuzz_follow,
    "format": _fuzz_format,
    "graph": partial(_fuzz_text, options=TextOptions(tracer="function_graph", n_cpus=12)),
    "header": _fuzz_header,
    "join": _fuzz_join,
    "json": _fuzz_json,
    "lexer": _fuzz_lexer,
    "lines": partial(_fuzz_text, options=TextOptions()),
    "object": _fuzz_object,
    "pages": _fuzz_pages,
    "place": _fuzz_place,
    "printk": _fuzz_printk,
    "program": _fuzz_program,
    "recording": _fuzz_recording,
    "rings": _fuzz_rings,
    "sched": _fuzz_sched,
    "sieve": _fuzz_sieve,
    "tracedat": _fuzz_tracedat,
    "try": _fuzz_try,
    "write": _fuzz_write,
}


def run_target(name: str, data: bytes) -> None:
    """Run one target; what it may raise on purpose is not a fault."""
    try:
        TARGETS[name](data)
    except TracepointError:
        return
