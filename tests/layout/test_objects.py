"""Objects built by the tests, of every architecture, and Debian's own modules."""

from __future__ import annotations

import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.object_builder import SAMPLE, EventSpec, FieldSpec, ObjectBuilder, sample_object
from oracles import modules_of
from tracepoint.errors import LayoutError
from tracepoint.layout.abi import Abi
from tracepoint.layout.corefile import core_offset
from tracepoint.layout.elf import Elf
from tracepoint.layout.format import read_format, write_format
from tracepoint.layout.objects import read_object


@pytest.mark.parametrize("abi", list(Abi))
@pytest.mark.parametrize("has_length", [True, False])
def test_every_architecture(abi: Abi, has_length: bool) -> None:
    events = read_object(sample_object(abi, has_length=has_length))
    assert [e.name for e in events] == ["tick", "9p_empty"]
    tick, empty = events
    assert [(f.name, f.ctype, f.offset, f.size, f.is_signed) for f in tick.event_fields] == [
        ("kind", "u8", 8, 1, False),
        ("where", "unsigned long", 16, 8, False),
        ("comm", "char[16]", 24, 16, True),
        ("name", "__data_loc char[]", 40, 4, True),
    ]
    assert tick.print_fmt == '"kind=%s %s", __print_symbolic(REC->kind, { 3, "RED" }), __get_str(name)'
    assert (tick.system, tick.size_bytes, tick.long_size) == ("demo", 48, abi.long_size)
    assert tick.is_big_endian == abi.is_big_endian
    assert empty.event_fields == ()
    assert empty.size_bytes == 8
    assert read_format(
        write_format(tick), "demo", is_big_endian=abi.is_big_endian, long_size=abi.long_size
    ).same_record(tick)


@pytest.mark.parametrize(("call_padding", "class_padding"), [(0, 8), (16, 0), (40, 24)])
def test_members_are_found_wherever_they_stand(call_padding: int, class_padding: int) -> None:
    plain = read_object(sample_object())
    assert read_object(sample_object(call_padding=call_padding, class_padding=class_padding)) == plain


@pytest.mark.parametrize("has_length", [True, False])
def test_an_object_with_one_field_in_all(has_length: bool) -> None:
    builder = ObjectBuilder(has_length=has_length)
    spec = EventSpec("a", "b", [FieldSpec("char[4]", "x", 4, 1, 1, 4)], '"x", ')
    builder.event(spec, builder.system("a"))
    (event,) = read_object(builder.build())
    assert event["x"].ctype == "char[4]"


def test_flexible_array_of_a_kernel_with_lengths_shows_none() -> None:
    builder = ObjectBuilder()
    fields = [FieldSpec("char[0]", "x", 0, 1, 1), FieldSpec("int", "y", 4, 4, 1)]
    builder.event(EventSpec("a", "b", fields, '"x", '), builder.system("a"))
    (event,) = read_object(builder.build())
    assert event["x"].ctype == "char[]"


def test_custom_events_have_their_name_in_place_of_the_tracepoint() -> None:
    builder = ObjectBuilder()
    system = builder.system("demo")
    builder.event(SAMPLE, system)
    builder.event(EventSpec("demo", "sched_custom", SAMPLE.fields, '"x", ', is_custom=True), system)
    assert [e.name for e in read_object(builder.build())] == ["tick", "sched_custom"]


def test_enums_of_another_unit_with_the_same_system_name_do_not_count() -> None:
    builder = ObjectBuilder()
    builder.event(SAMPLE, builder.system("demo"))
    builder.eval(builder.system("demo"), "RED", 3)
    (event,) = read_object(builder.build())
    assert "{ RED," in event.print_fmt


def test_system_calls_are_left_out() -> None:
    builder = ObjectBuilder()
    builder.event(SAMPLE, builder.system("demo"))
    builder.undefined.append("event_class_syscall_enter")
    call = builder.add(".data", b"\0" * 160, 32)
    builder.point(".data", call + 16, "event_class_syscall_enter", 0)
    builder.pointer("_ftrace_events", ".data", call)
    assert [e.name for e in read_object(builder.build())] == ["tick"]


def test_object_without_events_is_empty() -> None:
    assert read_object(ObjectBuilder().build()) == []


def test_fields_described_by_code_are_an_error() -> None:
    builder = ObjectBuilder()
    call = builder.add(".data", b"\0" * 160, 32)
    builder.point(".data", call + 80, ".data", builder.add(".data", b'"x", \0', 32))
    builder.pointer("_ftrace_events", ".data", call)
    with pytest.raises(LayoutError, match=r"before 5\.5"):
        read_object(builder.build())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not an ELF"),
        (b"\x7fELF" + b"\0" * 60, "neither 32- nor 64-bit"),
        (b"MZ" + b"\0" * 100, "not an ELF"),
        (sample_object()[:60], "cut off"),
        (sample_object()[:100], "section table"),
        (sample_object().replace(b"\x01\x00\x3e\x00", b"\x02\x00\x3e\x00", 1), "not a relocatable"),
        (sample_object().replace(b"\x01\x00\x3e\x00", b"\x01\x00\xff\x00", 1), "machine 255"),
    ],
)
def test_what_is_no_object_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(LayoutError, match=reason):
        read_object(data)


@given(st.data())
def test_damaged_objects_are_read_or_refused(data: st.DataObject) -> None:
    original = sample_object(data.draw(st.sampled_from([Abi.X86_64, Abi.I386, Abi.S390X])))
    damaged = bytearray(original)
    for _ in range(data.draw(st.integers(1, 8))):
        damaged[data.draw(st.integers(0, len(original) - 1))] = data.draw(st.integers(0, 255))
    try:
        events = read_object(bytes(damaged[: data.draw(st.integers(0, len(original)))]))
    except LayoutError:
        return
    assert all(isinstance(write_format(event), str) for event in events)


@pytest.mark.oracle
def test_all_modules_of_a_debian_kernel() -> None:
    """How many events there are, and their names, agree with the symbols that pyelftools reads."""
    elffile = pytest.importorskip("elftools.elf.elffile", reason="pyelftools, a second opinion, is missing")
    n_events = 0
    for data in modules_of("linux-image-6.1*"):
        if b"_ftrace_events" not in data:
            continue
        events = read_object(data)
        elf = elffile.ELFFile(io.BytesIO(data))
        assert len(events) == elf.get_section_by_name("_ftrace_events")["sh_size"] // 8
        symbols = {symbol.name for symbol in elf.get_section_by_name(".symtab").iter_symbols()}
        assert {f"event_{e.name}" for e in events} <= symbols
        # One event of 6.1 has no TP_printk() around its format.
        assert {e.name for e in events if not e.print_fmt.startswith('"')} <= {"applespi_irq_received"}
        for event in events:
            assert read_format(write_format(event), event.system).same_record(event)
        n_events += len(events)
    assert n_events > 3000


def test_elf_addresses_outside_of_sections_are_errors() -> None:
    elf = Elf(sample_object())
    (table,) = [s for s in elf.sections if s.name == "_ftrace_events"]
    call = elf.pointers(table.number)[0]
    assert elf.section(".nothing") is None
    with pytest.raises(LayoutError, match="outside section"):
        elf.read(call._replace(offset=1 << 40), 4)
    with pytest.raises(LayoutError, match="not defined"):
        elf.read(call._replace(section=-1, symbol="x"), 4)


def test_memory_in_a_core_file() -> None:
    """As /proc/kcore has it: notes first, then the parts of memory."""
    head = bytearray(64 + 3 * 56)
    head[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<Q", head, 32, 64)
    struct.pack_into("<HH", head, 54, 56, 3)
    places = (
        (4, 0x100, 0, 0x1000),
        (1, 0x3000, 0xFFFF888000000000, 0x1000),
        (1, 0x5000, 0xFFFFFFFF81000000, 0x2000),
    )
    for index, (kind, offset, start, size) in enumerate(places):
        struct.pack_into("<I4xQQ8xQ", head, 64 + index * 56, kind, offset, start, size)
    core = bytes(head)
    assert core_offset(core, 0xFFFFFFFF81000010) == 0x5010
    assert core_offset(core, 0xFFFF888000000FFF) == 0x3FFF
    for address in (0x10, 0xFFFF888000001000, 0xFFFFFFFF81002000):
        assert core_offset(core, address) is None
    for damaged in (b"", core[:80], b"\x7fELF\x01" + core[5:]):
        assert core_offset(damaged, 0xFFFFFFFF81000010) is None
