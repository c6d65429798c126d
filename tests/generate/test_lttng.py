"""LTTng probes: whole files against golden ones, then one rule after the other.

`TRACEPOINT_GOLDEN=write` writes the golden files anew; look at the difference before you commit it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import tracepoint
from pace import fewer_turns
from tracepoint.errors import GenerateError
from tracepoint.generate.lttng.probe import add_to_kbuild, lttng_probe
from tracepoint.model.read import read_header_text

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden" / "lttng"
HEADERS = {
    "swap": ROOT / "examples/swap.h",
    "traps": ROOT / "examples/traps.h",
    "every_field": ROOT / "examples/every_field.h",
    "kinds": ROOT / "tests/guest/lttng/kinds.h",
}


def declare(
    struct: str, assign: str, printk: str = '"x"', proto: str = "struct thing *p, int n", args: str = "p, n"
):
    """Return a header with one event `one` of system demo."""
    return read_header_text(
        "#undef TRACE_SYSTEM\n#define TRACE_SYSTEM demo\n"
        f"TRACE_EVENT(one, TP_PROTO({proto}), TP_ARGS({args}), TP_STRUCT__entry({struct}),"
        f"TP_fast_assign({assign}), TP_printk({printk}));"
    )


def fields_of(struct: str, assign: str, printk: str = '"x"', **kwargs: str) -> str:
    """Return what stands in TP_FIELDS, on one line."""
    inside = re.search(r"TP_FIELDS\((.*?)\n\t\)", events_of(struct, assign, printk, **kwargs), re.DOTALL)
    return " ".join(inside[1].split())


def events_of(struct: str, assign: str, printk: str = '"x"', **kwargs: str) -> str:
    """Return the instrumentation header."""
    return lttng_probe(declare(struct, assign, printk, **kwargs), name="demo")[
        "include/instrumentation/events/demo.h"
    ]


def notes_of(struct: str, assign: str, printk: str = '"x"') -> list[str]:
    """Return the notes about fields."""
    return [
        note
        for note in lttng_probe(declare(struct, assign, printk), name="demo").notes
        if note.startswith("one.")
    ]


@pytest.mark.parametrize("layout", ["2.13", "2013"])
@pytest.mark.parametrize("name", HEADERS)
def test_golden(name: str, layout: str) -> None:
    files = lttng_probe(tracepoint.read_header(HEADERS[name]), layout=layout)
    parts = [f"==> {path} <==\n{text}" for path, text in files.items() if "mainline" not in path]
    text = "\n".join([*parts, "==> notes <==", *files.notes, ""])
    path = GOLDEN / f"{name}-{layout}.txt"
    if os.environ.get("TRACEPOINT_GOLDEN") == "write":
        path.write_text(text)
    assert text == path.read_text()


def test_mainline_header_is_verbatim() -> None:
    files = lttng_probe(tracepoint.read_header(HEADERS["swap"]), layout="2013")
    assert files["instrumentation/events/mainline/swap.h"] == HEADERS["swap"].read_text()


@pytest.mark.parametrize("name", HEADERS)
def test_header_of_2013_declares_the_same_events_under_the_same_guard(name: str) -> None:
    header = tracepoint.read_header(HEADERS[name])
    text = lttng_probe(header, layout="2013")[f"instrumentation/events/lttng-module/{name}.h"]
    again = read_header_text(text)
    assert [event.name for event in again.events] == [event.name for event in header.events]
    assert [str(event.proto) for event in again.events] == [str(event.proto) for event in header.events]
    assert again.form.guard == header.form.guard
    assert ";" not in re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


@pytest.mark.parametrize(
    ("struct", "assign", "expected"),
    [
        ("__field(int, n)", "__entry->n = n;", "ctf_integer(int, n, n)"),
        ("__field(__be32, n)", "__entry->n = p->be;", "ctf_integer_network(__be32, n, p->be)"),
        ("__field(__le64, n)", "__entry->n = p->le;", "ctf_integer_bitfield(__le64, n, p->le)"),
        (
            "__field(void *, q)",
            "__entry->q = p + 1;",
            "ctf_integer_hex(unsigned long, q, (unsigned long)(p + 1))",
        ),
        (
            "__field_struct(struct in_addr, a)",
            "__entry->a = p->addr;",
            "ctf_array_hex(u8, a, &p->addr, sizeof(struct in_addr))",
        ),
        (
            "__field_struct(struct in_addr, a)",
            "memcpy(&__entry->a, p->raw, sizeof(__entry->a));",
            "ctf_array_hex(u8, a, p->raw, sizeof(struct in_addr))",
        ),
        ("__field(uuid_t, id)", "__entry->id = p->id;", "ctf_array_hex(u8, id, &p->id, sizeof(uuid_t))"),
        ("__array(char, s, LEN)", "memcpy(__entry->s, p->s, LEN);", "ctf_array_text(char, s, p->s, LEN)"),
        ("__array(u8, s, 6)", "memcpy(__entry->s, p->s, sizeof(__entry->s));", "ctf_array(u8, s, p->s, 6)"),
        ("__array(u32, s, 6)", "memcpy(__entry->s, p->s, 6 * sizeof(u32));", "ctf_array(u32, s, p->s, 6)"),
        (
            "__array(__be16, s, 3)",
            "memcpy(__entry->s, p->s, sizeof(__entry->s));",
            "ctf_array_network(__be16, s, p->s, 3)",
        ),
        ("__string(s, p->name)", "__assign_str(s, p->name);", "ctf_string(s, (const char *)p->name)"),
        ("__string(s, p->name)", "__assign_str(s);", "ctf_string(s, (const char *)p->name)"),
        (
            "__rel_string(s, p->name)",
            "if (n) __assign_rel_str(s, p->name);",
            "ctf_string(s, (const char *)p->name)",
        ),
        (
            "__dynamic_array(u16, a, n)",
            "memcpy(__get_dynamic_array(a), p->a, n * sizeof(u16));",
            "ctf_sequence(u16, a, p->a, unsigned int, n)",
        ),
        (
            "__dynamic_array(u64, a, n)",
            "memcpy(__get_dynamic_array(a), p->a, __get_dynamic_array_len(a));",
            "ctf_sequence(u64, a, p->a, unsigned int, n)",
        ),
        (
            "__dynamic_array(char, a, n)",
            "memcpy(__get_dynamic_array(a), p->a, n);",
            "ctf_sequence_text(char, a, p->a, unsigned int, n)",
        ),
        (
            "__bitmask(m, 70)",
            "__assign_bitmask(m, p->m, 70);",
            "ctf_sequence_hex(unsigned long, m, p->m, unsigned int, BITS_TO_LONGS(70))",
        ),
        (
            "__sockaddr(a, n)",
            "__assign_sockaddr(a, p->a, n);",
            "ctf_sequence_hex(u8, a, p->a, unsigned int, n)",
        ),
    ],
)
def test_direct_sources(struct: str, assign: str, expected: str) -> None:
    assert fields_of(struct, assign) == expected
    assert "_CODE" not in events_of(struct, assign)


@pytest.mark.parametrize("length", ["n * 2", "n", "sizeof(u16)", "2 * n * sizeof(u16)"])
def test_a_copy_of_another_length_is_no_sequence_of_the_whole(length: str) -> None:
    assert fields_of("__dynamic_array(u16, a, n)", f"memcpy(__get_dynamic_array(a), p->a, {length});") == ""


def test_every_sequence_has_an_unsigned_length() -> None:
    for path in HEADERS.values():
        text = "".join(lttng_probe(tracepoint.read_header(path)).values())
        for call in re.findall(r"ctf_sequence\w*\(([^;]*?)\n\t\t(?=\S)|ctf_sequence\w*\((.*)\)\n", text):
            assert ", unsigned int," in " ".join(" ".join(call).split())


def test_statements_that_compute_run_on_locals() -> None:
    text = events_of(
        "__field(int, a) __field(int, b) __field(int, c)",
        "int x = n; x += 2; __entry->a = x; if (n) __entry->b = 1; else __entry->b = p->b; __entry->c = n;",
    )
    assert "LTTNG_TRACEPOINT_EVENT_CODE_MAP(one, demo_one," in text
    assert "\t\tint a;\n\t\tint b;\n\t)," in text
    assert "tp_locvar->a = x;" in text
    assert "if (n)\n\t\t\t\ttp_locvar->b = 1;\n\t\t\telse\n\t\t\t\ttp_locvar->b = p->b;" in text
    assert "ctf_integer(int, a, tp_locvar->a)" in text
    assert "ctf_integer(int, c, n)" in text
    assert "__entry" not in text


def test_a_field_read_by_another_statement_is_a_local() -> None:
    text = events_of("__field(int, a) __field(int, b)", "__entry->a = n; __entry->b = __entry->a + 1;")
    assert "ctf_integer(int, a, tp_locvar->a)" in text
    assert "tp_locvar->b = tp_locvar->a + 1;" in text


def test_a_field_stored_twice_is_a_local() -> None:
    text = events_of("__field(int, a)", "__entry->a = 0; if (p) __entry->a = p->n;")
    assert "tp_locvar->a = 0;" in text
    assert "tp_locvar->a = p->n;" in text


def test_a_parameter_that_is_changed_is_read_behind_the_change() -> None:
    text = events_of("__field(int, a)", "n &= 7; __entry->a = n;")
    assert "n &= 7;" in text
    assert "ctf_integer(int, a, tp_locvar->a)" in text


@pytest.mark.parametrize("block", ["do { %s } while (0);", "{ %s }", "if (n) { %s }"])
def test_a_source_that_only_a_block_knows_is_no_source(block: str) -> None:
    assign = block % "struct thing *q = p->q; __assign_sockaddr(a, &q->a, n);"
    assert fields_of("__sockaddr(a, n)", assign) == ""


def test_a_local_with_the_name_of_a_field_is_kept() -> None:
    text = events_of("__field(int, a)", "int a = n + 1; __entry->a = g(a);")
    assert "int a = n + 1;" in text
    assert "tp_locvar->a = g(a);" in text


def test_comma_expressions_are_statements() -> None:
    assign = "__entry->a = n, __entry->b = n + 1, __entry->c = 2;"
    expected = "ctf_integer(int, a, n) ctf_integer(int, b, n + 1) ctf_integer(int, c, 2)"
    assert fields_of("__field(int, a) __field(int, b) __field(int, c)", assign) == expected


def test_operators_that_are_misread_get_parentheses() -> None:
    assert "(n - 1) << 2" in fields_of("__field(int, a)", "__entry->a = (n - 1) << 2;")


def test_the_length_of_an_array_is_that_of_its_declaration() -> None:
    struct = "__field(int, bytes) __dynamic_array(u16, a, n + 1)"
    assign = "__entry->bytes = __get_dynamic_array_len(a);"
    assign += "memcpy(__get_dynamic_array(a), p->a, __get_dynamic_array_len(a));"
    expected = (
        "ctf_integer(int, bytes, (n + 1) * sizeof(u16)) ctf_sequence(u16, a, p->a, unsigned int, n + 1)"
    )
    assert fields_of(struct, assign) == expected
    assert notes_of(struct, "n = 7;" + assign) != []


def test_a_source_with_a_compound_assignment_is_code() -> None:
    assert "tp_locvar->a = p->n += 2;" in events_of("__field(int, a)", "__entry->a = (p->n += 2);")


def test_marks_for_perf_are_left_out() -> None:
    text = events_of("__field(int, a)", "__entry->a = n;", args="__perf_task(p), __perf_count(n)")
    assert "TP_ARGS(p, n)" in text


def test_the_kernels_own_variables_are_unknown_to_a_probe() -> None:
    assert fields_of("__array(char, s, 4)", "memcpy(entry->s, p->s, 4);") == ""


def test_a_side_effect_happens_once() -> None:
    assert "tp_locvar->a = p->n++;" in events_of("__field(int, a)", "__entry->a = p->n++;")


def test_locals_that_nothing_needs_are_not_declared() -> None:
    text = events_of("__field(int, a)", "int unused, spare = 3; __entry->a = n;")
    assert "unused" not in text
    assert "spare" not in text
    assert "_CODE" not in text


def test_computed_bytes_of_unknown_number_are_left_out_with_all_that_hangs_on_them() -> None:
    struct = "__dynamic_array(u8, a, n) __field(int, sum) __field(int, n)"
    assign = (
        "u8 *q = __get_dynamic_array(a); int i, sum = 0; for (i = 0; i < n; i++) { q[i] = i; sum += q[i]; } "
    )
    assign += "__entry->sum = sum; __entry->n = n;"
    assert fields_of(struct, assign) == "ctf_integer(int, n, n)"
    assert [note.split(":")[0] for note in notes_of(struct, assign)] == ["one.a", "one.sum"]


def test_a_field_filled_through_a_pointer_is_lost_with_the_statement() -> None:
    struct = "__dynamic_array(u8, a, n) __array(u8, m, 4)"
    assign = "u8 *q = __get_dynamic_array(a); u8 *m = __entry->m; m[0] = 1; q[0] = m[1] = 2;"
    assert fields_of(struct, assign) == ""
    assert [note.split(":")[0] for note in notes_of(struct, assign)] == ["one.a", "one.m"]


@pytest.mark.parametrize(
    "assign",
    [
        "fill(__entry, p);",
        "if (!p) return; __entry->a = 1;",
        "goto out; out: __entry->a = 1;",
        'asm("" : "=r"(__entry->a));',
        "",
    ],
)
def test_what_cannot_run_in_a_probe_is_left_out(assign: str) -> None:
    assert "ctf_integer" not in events_of("__field(int, a)", assign)
    assert any("is left out" in note for note in notes_of("__field(int, a)", assign))


@pytest.mark.thorough
def test_an_assignment_without_end_is_refused_in_time() -> None:
    struct = " ".join(f"__field(int, f{at})" for at in range(900))
    chain = " ".join(f"__entry->f{at} = g(__entry, __entry->f{at + 1});" for at in range(899))
    with fewer_turns(400):
        assert len(notes_of(struct, chain)) == 900
        assert "more than 1000" in notes_of("__field(int, a)", "__entry->a = n;" * 1001)[0]


def test_names_of_values_become_an_enum_once() -> None:
    shown = '"%s %s", __print_symbolic(__entry->a, { 1, "a b" }, { X, "q\\"" }), '
    shown += '__print_symbolic(__entry->b, { 1, "a b" }, { X, "q\\"" })'
    text = events_of("__field(int, a) __field(u8, b)", "__entry->a = n; __entry->b = n;", shown)
    assert text.count("LTTNG_TRACEPOINT_ENUM(") == 1
    assert 'ctf_enum_value("a b", 1)' in text
    assert 'ctf_enum_value("q\\"", X)' in text
    assert "ctf_enum(demo_one_a, u8, b, n)" in text


def test_an_enum_whose_values_are_computed_is_a_number_with_a_note() -> None:
    shown = '"%s", __print_symbolic(__entry->a, { f(1), "a" })'
    assert "ctf_integer(int, a, n)" in events_of("__field(int, a)", "__entry->a = n;", shown)
    assert any("cannot be an enum" in note for note in notes_of("__field(int, a)", "__entry->a = n;", shown))


def test_flags_have_a_note() -> None:
    shown = '"%s", __print_flags(__entry->a, "|", { 1, "A" })'
    assert any("flags" in note for note in notes_of("__field(int, a)", "__entry->a = n;", shown))


def test_hexadecimal_is_taken_from_the_print_format() -> None:
    assert (
        fields_of("__field(int, a)", "__entry->a = n;", '"%*d %#x", 3, 4, __entry->a')
        == "ctf_integer_hex(int, a, n)"
    )


def test_systems_go_into_names_once() -> None:
    header = read_header_text(
        "#define TRACE_SYSTEM net\n"
        "DECLARE_EVENT_CLASS(net_x, TP_PROTO(int n), TP_ARGS(n), TP_STRUCT__entry(__field(int, n)),"
        'TP_fast_assign(__entry->n = n;), TP_printk("%d", __entry->n));'
        "DEFINE_EVENT(net_x, net_x, TP_PROTO(int n), TP_ARGS(n));"
        "DEFINE_EVENT(net_x, y, TP_PROTO(int n), TP_ARGS(n));"
    )
    text = lttng_probe(header, name="net")["include/instrumentation/events/net.h"]
    assert "LTTNG_TRACEPOINT_EVENT_CLASS(net_x_class," in text
    assert "LTTNG_TRACEPOINT_EVENT_INSTANCE(net_x_class, net_x," in text
    assert "LTTNG_TRACEPOINT_EVENT_INSTANCE_MAP(net_x_class, y, net_y," in text


def test_the_probe_forgets_where_the_kernel_header_lives() -> None:
    probe = lttng_probe(declare("__field(int, a)", "__entry->a = n;"), name="demo", include="<x/y.h>")[
        "src/probes/lttng-probe-demo.c"
    ]
    order = [
        "#include <x/y.h>",
        "#undef TRACE_INCLUDE_PATH",
        "#undef TRACE_INCLUDE_FILE",
        "#define CREATE_TRACE_POINTS",
    ]
    order += ["#define TRACE_INCLUDE_PATH instrumentation/events", "#define TRACE_INCLUDE_FILE demo"]
    assert [probe.index(line) for line in order] == sorted(probe.index(line) for line in order)


def test_helpers_of_the_kernels_own_probes_are_taken_along() -> None:
    text = """#define TRACE_SYSTEM demo
#ifdef CREATE_TRACE_POINTS
#include "private.h"
#ifdef CONFIG_A
static inline int helper(int n)
{
	return n;
}
#endif
#else
int not_this(void) { }
#endif /* CREATE_TRACE_POINTS */
#if defined(CREATE_TRACE_POINTS)
#define ONLY_A_MACRO 1
#endif
#ifndef CREATE_TRACE_POINTS
int nor_this(void) { }
#endif
TRACE_EVENT(one, TP_PROTO(int n), TP_ARGS(n), TP_STRUCT__entry(__field(int, a)),
	TP_fast_assign(__entry->a = helper(n);), TP_printk("x"));
"""
    probe = lttng_probe(read_header_text(text), name="demo")["src/probes/lttng-probe-demo.c"]
    assert "#ifdef CONFIG_A\nstatic inline int helper(int n)\n{\n\treturn n;\n}\n#endif\n" in probe
    assert probe.index("helper") < probe.index("#define CREATE_TRACE_POINTS")
    for word in ("not_this", "nor_this", "ONLY_A_MACRO", "private.h"):
        assert word not in probe


def test_chosen_events_only() -> None:
    header = tracepoint.read_header(HEADERS["swap"])
    text = lttng_probe(header, events=["kmem:mm_page_swap_out"])["include/instrumentation/events/swap.h"]
    assert "mm_page_swap_in" not in text


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"layout": "2.0"}, "no layout"),
        ({"name": "a/b"}, "not a valid name"),
        ({"name": 'x"'}, "not a valid name"),
        ({"events": ["nothing"]}, "no event"),
        ({"include": "swap.h"}, "cannot be included"),
        ({"includes": ['"a.h"\n#error']}, "cannot be included"),
    ],
)
def test_refusals(kwargs: dict[str, object], words: str) -> None:
    with pytest.raises(GenerateError, match=words):
        lttng_probe(tracepoint.read_header(HEADERS["swap"]), **kwargs)


def test_kbuild_line_goes_outside_of_conditions_and_only_once() -> None:
    text = "obj-$(CONFIG_LTTNG) += lttng-probe-irq.o\nifneq ($(A),)\n  obj-$(CONFIG_LTTNG) += lttng-probe-a.o\nendif\n"
    added = add_to_kbuild(text, "demo")
    assert added.splitlines()[1] == "obj-$(CONFIG_LTTNG) += lttng-probe-demo.o"
    assert add_to_kbuild(added, "demo") == added
    assert add_to_kbuild("", "demo") == "obj-$(CONFIG_LTTNG) += lttng-probe-demo.o\n"
