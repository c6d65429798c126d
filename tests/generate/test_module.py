"""Modules: a golden folder, what the words of a line are, names, and what is refused."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from generate.samples import TICK, header_of_text, inputs_of, one_event
from tracepoint.errors import GenerateError
from tracepoint.generate import kernel_module, module_header
from tracepoint.model.read import read_header_text
from tracepoint.source.text import decode
from tracepoint.tree.tracing_macros import TreeFacts

GOLDEN = Path(__file__).parent / "golden"
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def compare(name: str, files) -> None:
    """Compare with a golden folder; TRACEPOINT_UPDATE_GOLDEN=1 writes it, to be reviewed as a diff."""
    folder = GOLDEN / name
    if os.environ.get("TRACEPOINT_UPDATE_GOLDEN"):
        files.write(folder, overwrite=True)
    assert {p.name: p.read_text() for p in folder.iterdir()} == dict(files)


@pytest.mark.parametrize("mode", ["module", "inputs"])
def test_golden(mode: str) -> None:
    header = header_of_text(TICK)
    inputs = inputs_of(header) if mode == "inputs" else None
    compare(mode, kernel_module(header, name="demo", inputs=inputs, facts=TreeFacts(2), export=True))


def test_a_private_include_is_left_out_and_told() -> None:
    files = kernel_module(header_of_text(TICK), name="demo")
    assert files.notes == ('"private.h" is not included: it is not part of the module',)
    assert "private.h" not in files["demo_trace.h"]


def test_the_header_reads_back_as_the_same_events() -> None:
    for path in EXAMPLES.glob("*.h"):
        header = read_header_text(decode(path.read_bytes()), str(path))
        text = module_header(header, name="m")["m_trace.h"]
        again = read_header_text(text)
        assert [(e.full_name, e.fields, e.printk) for e in again.events] == [
            (e.full_name, e.fields, e.printk) for e in header.events
        ]
        assert (again.form.include_path, again.form.include_file) == (".", "m_trace")


def test_own_enums_come_along_once() -> None:
    text = kernel_module(header_of_text(TICK), name="m")["m_trace.h"]
    before = text.partition("#undef TRACE_SYSTEM")[0]
    assert "enum demo_kind {\n\tDEMO_COLD = 0,\n\tDEMO_HOT = 4,\n};" in before
    assert "struct page;" in before
    assert "TRACE_DEFINE_ENUM(DEMO_HOT);" in text


def test_system_and_prefix_rename() -> None:
    header = read_header_text(decode((EXAMPLES / "block_class.h").read_bytes()))
    files = kernel_module(header, name="m", system="mine", prefix="my_", inputs=inputs_of(header))
    again = read_header_text(files["m_trace.h"])
    assert {e.system for e in again.events} == {"mine"}
    assert all(e.name.startswith("my_") and e.event_class.name.startswith("my_") for e in again.events)
    assert '{ "my_request_queued", fire_trace_my_request_queued },' in files["m.c"]
    assert "trace_my_request_queued(" in files["m.c"]


@pytest.mark.parametrize(
    ("param", "expected"),
    [
        ("int n", ["int n;", "error = fire_number(&line, n) ?:", "trace_one(n);"]),
        ("bool b", ["bool b;", "fire_number(&line, b)", "trace_one(b);"]),
        ("char *s", ["const char *s;", "fire_text(&line, &s)", "trace_one((char *)s);"]),
        (
            "const u16 *l",
            ["static u16 l[64];", "fire_list(&line, l)", "mutex_lock(&fire_lock)", "trace_one(l);"],
        ),
        ("struct page *p", ["static u8 fire_zeros[16384]", "trace_one((void *)fire_zeros);"]),
        ("struct foo **p", ["unsigned long p;", "trace_one((void *)p);"]),
        ("void (*fn)(int)", ["unsigned long fn;", "trace_one((void *)fn);"]),
        ("struct timespec64 t", ["struct timespec64 t = { };", "trace_one(t);"]),
        ("swp_entry_t e", ["swp_entry_t e = { };", "trace_one(e);"]),
        ("struct va_format *v", ["fire_format(&line, &v_text, &v)", "trace_one(&v);"]),
    ],
)
def test_arguments(param: str, expected: list[str]) -> None:
    name = param.replace(")(int)", "").split(" ")[-1].split("*")[-1].strip("()")
    header = one_event("__field(int, a)", "__entry->a = 1;", proto=param, args=name)
    text = kernel_module(header, name="m")["m.c"]
    assert [piece for piece in expected if piece not in text] == []


def test_bytes_are_given_where_memory_is_copied() -> None:
    proto, fields = "const void *data, size_t len, const void *at", "__dynamic_array(u8, data, len)"
    assign = "memcpy(__get_dynamic_array(data), data, len); __entry->at = at;"
    header = one_event(f"{fields} __field(const void *, at)", assign, proto=proto, args="data, len, at")
    text = kernel_module(header, name="m")["m.c"]
    assert " *   one: data: bytes in hexadecimal, len: a number, at: an address" in text
    assert "static u8 data[2048];" in text
    assert "trace_one(data, len, (void *)at);" in text


def test_a_module_holds_no_more_parsing_than_its_events_need() -> None:
    header = one_event("__field(int, a)", "__entry->a = n;", proto="int n", args="n")
    text = kernel_module(header, name="m")["m.c"]
    assert not re.search(r"fire_(?:text|list|bytes|format|zeros|lock)", text)
    helpers = text[text.index("/* Takes the next word") : text.index("static int fire_trace_one")]
    assert len(helpers.splitlines()) < 40
    assert len(text.splitlines()) < 125
    none = kernel_module(one_event("__field(int, a)", "", proto="void", args=""), name="m")["m.c"]
    assert "fire_number" not in none


def test_an_expression_stands_for_an_argument() -> None:
    header = header_of_text(TICK)
    text = kernel_module(header, name="m", arguments={"page": "pfn_to_page(0x1234)"})["m.c"]
    assert "trace_tick(n, is_hot, name, list, pfn_to_page(0x1234), (void *)where);" in " ".join(text.split())
    with pytest.raises(GenerateError, match="no event has a parameter pge; there are: is_hot, list"):
        kernel_module(header, name="m", arguments={"pge": "0"})


def test_hooks_of_event_fn_do_nothing() -> None:
    header = header_of_text(
        "#define TRACE_SYSTEM demo\nTRACE_EVENT_FN(one, TP_PROTO(int n), TP_ARGS(n), TP_STRUCT__entry(__field(int, n)),"
        ' TP_fast_assign(__entry->n = n;), TP_printk("%d", __entry->n), one_on, one_off);'
    )
    files = kernel_module(header, name="m")
    assert "int one_on(void);\nvoid one_off(void);" in files["m_trace.h"]
    assert "int one_on(void)\n{\n\treturn 0;\n}" in files["m.c"]


def test_tracepoints_fire_under_the_name_that_the_kernel_gives_them() -> None:
    header = header_of_text("#define TRACE_SYSTEM demo\nDECLARE_TRACE(bare, TP_PROTO(int n), TP_ARGS(n));")
    assert "trace_bare(n);" in kernel_module(header, name="m")["m.c"]
    # The header is written anew, in words that mean the same there.
    suffixed = kernel_module(header, name="m", facts=TreeFacts(1, has_tp_suffix=True))
    assert "trace_bare(n);" in suffixed["m.c"]
    assert "DECLARE_TRACE_EVENT(bare," in suffixed["m_trace.h"]


@pytest.mark.parametrize("name", ["", "9a", "a-b", "a b", "x" * 41, "a;b", "ä"])
def test_names_are_checked(name: str) -> None:
    with pytest.raises(GenerateError, match="not a valid name for a module"):
        kernel_module(header_of_text(TICK), name=name)


def test_what_no_module_can_declare() -> None:
    with pytest.raises(GenerateError, match="no events to declare"):
        kernel_module(header_of_text("#define TRACE_SYSTEM x\n"), name="m")
    with pytest.raises(GenerateError, match="has the same name"):
        kernel_module(header_of_text(TICK + TICK.replace("SYSTEM demo", "SYSTEM other")), name="m")
    with pytest.raises(GenerateError, match="a parameter of type int has no name"):
        kernel_module(one_event("__field(int, a)", "", proto="int", args=""), name="m")
