"""The tracefs `format` text: read, written back byte for byte, and refused when it is something else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout.layout_texts import COMMON, format_text
from oracles import builtin_formats
from tracepoint.errors import LayoutError
from tracepoint.layout.format import COMMON_FIELDS, EventFormat, FieldFormat, read_format, write_format


def test_fields_of_every_shape_are_read() -> None:
    text = format_text(
        "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:1;\n"
        "\tfield:__data_loc char[] name;\toffset:24;\tsize:4;\tsigned:1;\n"
        "\tfield:__rel_loc u8 blob[];\toffset:28;\tsize:4;\tsigned:0;\n"
        "\tfield:const char * * list;\toffset:32;\tsize:8;\tsigned:0;\n"
        "\tfield:__data_loc cpumask_t cpus;\toffset:40;\tsize:4;\tsigned:0;\n"
        "\tfield:u8 sum[(6 + 2)];\toffset:44;\tsize:8;\tsigned:0;\n"
    )
    event = read_format(text, "demo")
    assert [(f.name, f.ctype) for f in event.event_fields] == [
        ("comm", "char[16]"),
        ("name", "__data_loc char[]"),
        ("blob", "__rel_loc u8[]"),
        ("list", "const char * *"),
        ("cpus", "__data_loc cpumask_t"),
        ("sum", "u8[(6 + 2)]"),
    ]
    assert (event.id, event.n_common, event.system) == (7, 4, "demo")
    assert event["blob"].is_rel_loc
    assert event["name"].element_ctype == "char"
    assert write_format(event) == text
    assert event.text == text


def test_print_format_may_hold_newlines_and_a_false_header() -> None:
    text = format_text("", '"a\nname: b\n\tfield:int x;\n\n", REC->x')
    event = read_format(text)
    assert event.print_fmt == '"a\nname: b\n\tfield:int x;\n\n", REC->x'
    assert write_format(event) == text


def test_event_without_own_fields() -> None:
    event = read_format(format_text(""))
    assert event.event_fields == ()
    assert write_format(event) == format_text("")


def test_common_fields_without_blank_line_are_known_by_name() -> None:
    text = f"name: a\nID: 1\nformat:\n{COMMON}\tfield:int x;\toffset:8;\tsize:4;\tsigned:1;\n"
    assert read_format(text + "\nprint fmt: \n").n_common == 4
    assert read_format(text + "print fmt: \n").n_common == 4


def test_two_fields_of_one_name() -> None:
    """amdgpu_vm_grab_id has a string `ring` and an integer `ring`; the kernel's filters take the last."""
    text = format_text(
        "\tfield:__data_loc char[] ring;\toffset:8;\tsize:4;\tsigned:1;\n"
        "\tfield:u32 ring;\toffset:12;\tsize:4;\tsigned:0;\n"
    )
    event = read_format(text)
    assert event["ring"].ctype == "u32"
    assert write_format(event) == text


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "line 1"),
        ("name: a\n", "line 2"),
        ("nme: a\nID: 1\nformat:\n\nprint fmt: x\n", "line 1"),
        ("name: a\nID: x\nformat:\n\nprint fmt: x\n", "line 2"),
        ("name: a\nID: ²\nformat:\n\nprint fmt: x\n", "line 2"),
        ("name: a\nID: 1\n\nprint fmt: x\n", "line 3"),
        (format_text("\tfield:int x;\toffset:8;\tsize:4;\n"), "line 9"),
        (format_text("\tfield:int x;\toffset:-8;\tsize:4;\tsigned:1;\n"), "line 9"),
        (format_text("\tfield:x;\toffset:8;\tsize:4;\tsigned:1;\n"), "line 9"),
        (format_text("\tfield:int x;\toffset:8;\tsize:99999999999;\tsigned:1;\n"), "line 9"),
    ],
)
def test_damage_is_an_error_with_its_line(text: str, line: str) -> None:
    with pytest.raises(LayoutError, match=line):
        read_format(text)


def test_holes_and_tail_padding() -> None:
    event = EventFormat(
        "s",
        "e",
        (
            *COMMON_FIELDS,
            FieldFormat("a", "u8", 8, 1, is_signed=False),
            FieldFormat("b", "u64", 16, 8, is_signed=False),
            FieldFormat("c", "u8", 24, 1, is_signed=False),
        ),
        "",
        size_bytes=32,
    )
    assert event.holes == ((9, 7),)
    assert event.tail_padding == 7
    assert event.end == 32
    assert replace(event, size_bytes=0).tail_padding == 0


def test_same_record_sees_bytes_only() -> None:
    event = read_format(format_text("\tfield:int x;\toffset:8;\tsize:4;\tsigned:1;\n"))
    assert event.same_record(replace(event, id=9, system="other", name="b", print_fmt="z"))
    assert not event.same_record(replace(event, is_big_endian=True))
    moved = (*event.fields[:-1], replace(event.fields[-1], offset=12))
    assert not event.same_record(replace(event, fields=moved))


_NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)
_CTYPES = st.one_of(
    st.sampled_from(["int", "unsigned long", "void *", "__data_loc char[]", "__rel_loc u16[]", "struct a *"]),
    st.builds("{}[{}]".format, st.sampled_from(["char", "u8", "struct x"]), st.integers(0, 99)),
)
_FIELDS = st.builds(
    FieldFormat, _NAMES, _CTYPES, st.integers(0, 9999), st.integers(0, 9999), is_signed=st.booleans()
)


@pytest.mark.thorough
@given(
    st.lists(_FIELDS, unique_by=lambda f: f.name, max_size=6).filter(
        lambda fields: not any(f.name in {c.name for c in COMMON_FIELDS} for f in fields)
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    st.integers(0, 70000),
)
def test_whatever_is_written_reads_back(fields: list[FieldFormat], print_fmt: str, number: int) -> None:
    event = EventFormat("s", "e", (*COMMON_FIELDS, *fields), print_fmt, id=number)
    again = read_format(write_format(event), "s")
    assert again == event


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read_format(text)
    except LayoutError:
        return
    assert "print fmt: " in text


def test_a_changed_copy_leaves_the_original_alone() -> None:
    event = EventFormat("s", "e", COMMON_FIELDS, "")
    more = replace(event, fields=(*event.fields, FieldFormat("n", "int", 8, 4, True)))
    fewer = replace(more, fields=event.fields)
    assert ("n" in event, "n" in more, "n" in fewer) == (False, True, False)


@pytest.mark.oracle
def test_every_format_of_a_booted_kernel_comes_back_byte_for_byte() -> None:
    texts = builtin_formats()
    assert len(texts) > 1000
    different = [name for name, text in texts.items() if write_format(read_format(text)) != text]
    assert different == []
