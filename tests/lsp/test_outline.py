"""What is declared where in a header, and what is said about it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracepoint.errors import TracepointError
from tracepoint.layout.abi import Abi
from tracepoint.lsp.coloring import colored
from tracepoint.lsp.complete import closed_text, completions_at
from tracepoint.lsp.hover import hover_at, offset_hints
from tracepoint.lsp.outline import declared, field_at, folds
from tracepoint.lsp.positions import Positions
from tracepoint.lsp.python_events import python_event, python_outline
from tracepoint.lsp.ranges import format_range
from tracepoint.model.fmt.text import format_text
from tracepoint.model.read import read_header_text
from tracepoint.printk.conversion import Conversion, parse_format
from tracepoint.printk.extensions import POINTER_EXTENSIONS

TEXT = """#undef TRACE_SYSTEM
#define TRACE_SYSTEM demo
TRACE_EVENT(tick,
	TP_PROTO(int len, u64 at),
	TP_ARGS(len, at),
	TP_STRUCT__entry(
		__field(int, len)
		__field(u64, at)
		__string(name, "x")
	),
	TP_fast_assign(__entry->len = len; __entry->at = at; __assign_str(name, "x");),
	TP_printk("len=%d at=%llu %s", __entry->len, __entry->at, __get_str(name))
);
DECLARE_EVENT_CLASS(pair, TP_PROTO(int a), TP_ARGS(a), TP_STRUCT__entry(__field(nowhere_t, a)),
	TP_fast_assign(__entry->a = a;), TP_printk("%d", __entry->a));
DEFINE_EVENT(pair, one, TP_PROTO(int a), TP_ARGS(a));
DECLARE_TRACE(bare, TP_PROTO(int a), TP_ARGS(a));
#define MADE(name) DEFINE_EVENT(pair, name, TP_PROTO(int a), TP_ARGS(a))
MADE(two);
"""
HEADER = read_header_text(TEXT, "t.h")


def hover(text: str, shift: int = 0) -> str:
    return hover_at(HEADER, TEXT.index(text) + shift, Abi.X86_64)


def test_outline_is_in_the_order_of_the_text() -> None:
    assert [thing.name for thing in declared(HEADER)] == ["tick", "pair", "one", "bare", "two"]


def test_hover_of_an_event_has_prototype_line_and_record() -> None:
    text = hover("tick,")
    assert "void trace_tick(int len, u64 at)" in text
    common = (
        "\n     0     8  common_type, common_flags, common_preempt_count, common_pid\n     8     4  int len\n"
    )
    assert common in text
    assert "\n    12     4  (hole)\n    16     8  u64 at\n" in text
    assert "    28     4  (padding)\n    32        end" in text
    # Editors show some ten lines without scrolling.
    assert text.index("trace_tick(") < text.index("\nworker-") < text.index("tick: len=") < text.index(common)
    assert hover("TRACE_EVENT(") == text


def test_hover_of_a_field_has_its_place_wherever_it_is_named() -> None:
    text = hover("__field(u64, at", len("__field(u64, a"))
    assert "offset 16, size 8, unsigned; record of 32 bytes" in text
    assert "after a hole of 4 bytes" in text
    assert hover("__entry->at", len("__entry->")) == text
    assert "__data_loc char[] name" in hover("__get_str(name", len("__get_str("))


@pytest.mark.parametrize("word", ["len, u64", "demo", "\n"])
def test_parameters_and_other_words_have_no_hover(word: str) -> None:
    assert hover(word) == ""


def test_hover_says_why_there_is_no_record() -> None:
    assert "no record: event demo:one, field a:" in hover("one, TP_PROTO")
    assert hover("bare,") == "```c\nvoid trace_bare(int a)\n```"
    assert hover("__string(") == "`__string(name, source)`"


def test_event_made_by_a_macro_is_found_at_its_call() -> None:
    assert "void trace_two(int a)" in hover("MADE(two")
    assert field_at(HEADER, TEXT.index("MADE(two")) is None


def test_hints_are_offsets_of_the_fields_in_the_range() -> None:
    at = TEXT.index("\n", TEXT.index("__field(u64"))
    assert list(offset_hints(HEADER, 0, len(TEXT), Abi.X86_64)) == [
        (TEXT.index("\n", TEXT.index("__field(int, len")), "at 8, size 4"),
        (at, "at 16, size 8, after a hole of 4"),
        (TEXT.index("\n", TEXT.index("__string(name")), "at 24, size 4"),
    ]
    assert [text for _, text in offset_hints(HEADER, at - 1, at, Abi.I386)] == ["at 12, size 8"]


def test_folds_are_declarations_and_their_parts() -> None:
    assert list(folds(HEADER)) == [(3, 13), (6, 10), (14, 15)]


@given(st.text(st.sampled_from("a\U0001f600é\u2028\f\r\n")), st.sampled_from(["utf-8", "utf-16", "utf-32"]))
def test_positions_lead_back(text: str, encoding: str) -> None:
    positions = Positions(text, encoding)
    for offset in range(len(text) + 1):
        if text[offset - 1 : offset + 1] == "\r\n":
            continue  # between the two characters that end a line
        assert positions.offset(positions.at(offset)) == offset or "\r" in text


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 4), ("utf-16", 2), ("utf-32", 1)])
def test_columns_are_counted_in_units_of_the_encoding(encoding: str, column: int) -> None:
    assert Positions("\U0001f600a", encoding).at(1).character == column


def test_completion_offers_fields_after_entry_and_macros_after_underscores() -> None:
    at = TEXT.index("__entry->at")
    fields = [("len", "int"), ("at", "u64"), ("name", "char")]
    assert completions_at(HEADER, at + len("__entry->")) == fields
    assert completions_at(HEADER, at + len("__entry->a")) == fields
    offered = dict(completions_at(HEADER, TEXT.index("__field(int") + 2))
    assert offered["__array"] == "(type, name, length)"
    assert {"__print_symbolic", "__assign_str", "__get_str"} <= offered.keys()
    assert completions_at(HEADER, TEXT.index("int len") + 5) == []
    assert completions_at(HEADER, 3) == []


@pytest.mark.parametrize(
    ("written", "offered"),
    [
        ('TP_printk("p=%p', {"S": "symbol and offset of an address of code"}),
        (
            "TP_printk(__field_ext(void *, p, ",
            {"FILTER_PTR_STRING": "text that a pointer leads to"},
        ),
        ("TP_printk(__get_str(", {"name": "char"}),
        ("TP_printk(__print_symbolic(__entry->len, {ST", {"STATE_ON": "exported by TRACE_DEFINE_ENUM"}),
        ("TP_", {"TP_printk": "print", "TP_fast_assign": "assign"}),
    ],
)
def test_completion_knows_what_an_argument_can_be(written: str, offered: dict[str, str]) -> None:
    text = TEXT.replace(
        'TP_printk("len=%d at=%llu %s", __entry->len, __entry->at, __get_str(name))\n', f"{written}\n)\n"
    )
    text = text.replace("TRACE_EVENT(tick", "TRACE_DEFINE_ENUM(STATE_ON);\nTRACE_EVENT(tick", 1)
    at = text.index(written) + len(written)
    found = dict(completions_at(read_header_text(closed_text(text, at), "t.h"), at))
    assert offered.items() <= found.items()


def test_completion_between_declarations_offers_macros_classes_and_flags() -> None:
    text = TEXT + "TRACE_E\nDEFINE_EVENT(p, x, TP_PROTO(int a), TP_ARGS(a));\nTRACE_EVENT_FLAGS(tick, T)\n"
    header = read_header_text(text, "t.h")
    at = text.index("TRACE_E\n") + len("TRACE_E")
    assert dict(completions_at(header, at))["DEFINE_EVENT"] == "(template, name, proto, args)"
    at = text.index("DEFINE_EVENT(p, x") + len("DEFINE_EVENT(")
    assert ("pair", "(int a)") in completions_at(header, at)
    at = text.index("(tick, T)") + len("(tick, T")
    assert "TRACE_EVENT_FL_CAP_ANY" in dict(completions_at(header, at))


@pytest.mark.parametrize("letters", sorted(POINTER_EXTENSIONS))
def test_each_extension_is_one_of_the_kernel(letters: str) -> None:
    (found,) = parse_format(f"%p{letters}")
    assert isinstance(found, Conversion)
    assert found.letters == letters


def test_words_have_kinds() -> None:
    kinds = {(word.text, kind) for word, kind in colored(TEXT)}
    assert {
        ("TRACE_EVENT", "macro"),
        ("tick", "event"),
        ("pair", "class"),
        ("one", "event"),
        ("len", "parameter"),
        ("len", "property"),
        ("name", "property"),
        ("__get_str", "function"),
        ("__entry", "variable"),
        ("__string", "macro"),
    } <= kinds
    assert all(TEXT[word.start : word.end] == word.text for word, _ in colored(TEXT))


def test_only_the_declarations_of_a_range_are_formatted() -> None:
    text = "TRACE_EVENT(a,TP_PROTO(int x),TP_ARGS(x));\nTRACE_EVENT(b,TP_PROTO(int x),TP_ARGS(x));\n"
    whole = format_text(text).text
    (first,), (second,) = list(format_range(text, "", 3, 3)), list(format_range(text, "", 50, 50))
    made = text[: first[0]] + first[2] + text[first[1] : second[0]] + second[2] + text[second[1] :]
    assert made == whole
    assert list(format_range(whole, "", 0, len(whole))) == []
    assert list(format_range("TRACE_EVENT(a,(", "", 0, 9)) == []


PYTHON = """import tracepoint as tp
@tp.trace_event(system="shop", printk='"order=%llu by %s", order, name')
def order_seen(order: tp.u64, name: "str", code: tp.char_array[8]) -> None: ...
@tp.trace_event(system=SYSTEM, printk='"x"')
def lost() -> None: ...
"""


def test_a_python_event_is_read_and_not_run() -> None:
    for word in ("order_seen", "trace_order_seen"):
        event = python_event(PYTHON, "shop.py", word)
        assert event is not None
        assert event.full_name == "shop:order_seen"
        assert [(f.macro, f.name) for f in event.fields] == [
            ("__field", "order"),
            ("__string", "name"),
            ("__array", "code"),
        ]
    assert python_event(PYTHON, "shop.py", "other") is None
    assert python_event("def", "shop.py", "other") is None
    assert python_outline(PYTHON, "shop.py") == [("order_seen", 3, 3), ("lost", 5, 5)]
    with pytest.raises(TracepointError, match="lost: system is not a text"):
        python_event(PYTHON, "shop.py", "lost")
    with pytest.raises(TracepointError, match="type of 'order'"):
        python_event(PYTHON.replace("tp.u64", "list"), "shop.py", "order_seen")
