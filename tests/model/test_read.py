"""Every macro of the vocabulary becomes the model it stands for."""

import pytest

from tracepoint.layout.compute import compute_layout
from tracepoint.model.event import Event, TraceHeader
from tracepoint.model.read import read_header_text
from tracepoint.source.config import Config
from tracepoint.source.text import SourceFile

PARTS = (
    "TP_PROTO(int n, struct page *page), TP_ARGS(n, page), TP_STRUCT__entry(__field(int, n)), "
    'TP_fast_assign(__entry->n = n;), TP_printk("n=%d", __entry->n)'
)
COND = PARTS.replace("TP_STRUCT__entry", "TP_CONDITION(n > 0), TP_STRUCT__entry")
SHORT = "TP_PROTO(int n, struct page *page), TP_ARGS(n, page)"


def read(body: str, **options: object) -> TraceHeader:
    return read_header_text(f"#define TRACE_SYSTEM demo\n{body}\n", "demo.h", **options)  # type: ignore[arg-type]


def only(body: str) -> Event:
    header = read(body)
    assert header.diagnostics == ()
    assert len(header.events) == 1
    return header.events[0]


@pytest.mark.parametrize("macro", ["TRACE_EVENT", "TRACE_EVENT_NOP", "TRACE_CUSTOM_EVENT"])
def test_events_with_five_parts(macro: str) -> None:
    event = only(f"{macro}(tick, {PARTS});")
    assert event.full_name == "demo:tick"
    assert event.macro == macro
    assert [(p.ctype, p.name) for p in event.proto.params] == [("int", "n"), ("struct page *", "page")]
    assert event.args == ("n", "page")
    assert [(f.kind, f.ctype, f.name) for f in event.fields] == [("field", "int", "n")]
    assert event.assign.text == "__entry->n = n;"
    assert event.printk.text == '"n=%d", __entry->n'
    assert event.is_nop == (macro == "TRACE_EVENT_NOP")
    assert event.is_custom == (macro == "TRACE_CUSTOM_EVENT")


def test_conditions_and_functions() -> None:
    event = only(f"TRACE_EVENT_FN_COND(tick, {COND}, start_it, stop_it);")
    assert (event.condition and event.condition.text, event.reg, event.unreg) == (
        "n > 0",
        "start_it",
        "stop_it",
    )
    event = only(f"TRACE_EVENT_CONDITION(tick, {COND});")
    assert event.condition is not None
    event = only(f"TRACE_EVENT_FN(tick, {PARTS}, start_it, stop_it);")
    assert event.reg == "start_it"
    event = only(f"TRACE_EVENT_SYSCALL(tick, {PARTS}, start_it, stop_it);")
    assert event.is_syscall


INSTANCES = {
    "DEFINE_EVENT": "",
    "DEFINE_EVENT_FN": ", start_it, stop_it",
    "DEFINE_EVENT_PRINT": ', TP_printk("own %d", __entry->n)',
    "DEFINE_EVENT_CONDITION": ", TP_CONDITION(n)",
    "DEFINE_EVENT_WRITABLE": ", sizeof(int)",
    "DEFINE_EVENT_NOP": "",
}


@pytest.mark.parametrize("macro", INSTANCES)
def test_instances_share_their_class(macro: str) -> None:
    event = only(f"DECLARE_EVENT_CLASS(ticks, {PARTS});\n{macro}(ticks, tock, {SHORT}{INSTANCES[macro]});")
    assert event.name == "tock"
    assert event.event_class.name == "ticks"
    assert event.is_instance
    assert event.printk.text.startswith('"own' if macro == "DEFINE_EVENT_PRINT" else '"n=')
    assert bool(event.condition) == (macro == "DEFINE_EVENT_CONDITION")
    assert event.writable_size == ("sizeof(int)" if macro == "DEFINE_EVENT_WRITABLE" else "")


TRACEPOINTS = {
    "DECLARE_TRACE": "",
    "DECLARE_TRACE_CONDITION": ", TP_CONDITION(n)",
    "DECLARE_TRACE_WRITABLE": ", 8",
    "DECLARE_TRACE_SYSCALL": "",
    "DECLARE_TRACE_EVENT": "",
    "DECLARE_EVENT_NOP": "",
}


@pytest.mark.parametrize("macro", TRACEPOINTS)
def test_tracepoints_without_record(macro: str) -> None:
    header = read(f"{macro}(hook, {SHORT}{TRACEPOINTS[macro]});")
    assert header.diagnostics == ()
    assert [(t.name, t.macro, t.args) for t in header.tracepoints] == [("hook", macro, ("n", "page"))]


FIELDS = [
    ("__field(unsigned  int, a)", ("field", "unsigned int", "a")),
    ("__field_ext(u64, a, FILTER_OTHER)", ("field_ext", "u64", "a")),
    ("__field_struct(struct in6_addr, a)", ("field_struct", "struct in6_addr", "a")),
    ("__field_struct_ext(struct x, a, FILTER_OTHER)", ("field_struct_ext", "struct x", "a")),
    ("__array(char, a, TASK_COMM_LEN + 1)", ("array", "char", "a")),
    ("__dynamic_array(u8, a, min(n, 4))", ("dynamic_array", "u8", "a")),
    ("__rel_dynamic_array(u8, a, n)", ("rel_dynamic_array", "u8", "a")),
    ('__string(a, page ? page->name : "none")', ("string", "char", "a")),
    ("__rel_string(a, name)", ("rel_string", "char", "a")),
    ("__string_len(a, name, len)", ("string_len", "char", "a")),
    ("__rel_string_len(a, name, len)", ("rel_string_len", "char", "a")),
    ("__vstring(a, vaf->fmt, vaf->va)", ("vstring", "char", "a")),
    ("__bitmask(a, nr_cpu_ids)", ("bitmask", "unsigned long", "a")),
    ("__rel_bitmask(a, nr_cpu_ids)", ("rel_bitmask", "unsigned long", "a")),
    ("__cpumask(a)", ("cpumask", "unsigned long", "a")),
    ("__rel_cpumask(a)", ("rel_cpumask", "unsigned long", "a")),
    ("__sockaddr(a, len)", ("sockaddr", "u8", "a")),
    ("__rel_sockaddr(a, len)", ("rel_sockaddr", "u8", "a")),
]


@pytest.mark.parametrize(("text", "expected"), FIELDS)
def test_field_kinds(text: str, expected: tuple[str, str, str]) -> None:
    event = only(f"TRACE_EVENT(tick, {PARTS.replace('__field(int, n)', text)});")
    (field,) = event.fields
    assert (field.kind, field.ctype, field.name) == expected
    assert field.is_relative == text.startswith("__rel_")


def test_wrapper_macros_declare_events_at_the_line_of_their_use() -> None:
    header = read(
        f"DECLARE_EVENT_CLASS(ticks, {PARTS});\n"
        f"#define DEFINE_TICK(name) \\\nDEFINE_EVENT(ticks, name, {SHORT})\n"
        "#define BOTH(name) DEFINE_TICK(name##_in); DEFINE_TICK(name##_out)\n"
        "DEFINE_TICK(one);\n  BOTH(two);\n"
    )
    assert [e.name for e in header.events] == ["one", "two_in", "two_out"]
    assert [str(e.origin) for e in header.events] == [
        "demo.h:6:1 via DEFINE_TICK",
        "demo.h:7:3 via BOTH via DEFINE_TICK",
        "demo.h:7:3 via BOTH via DEFINE_TICK",
    ]


def test_macros_stand_for_fields_assignments_and_formats() -> None:
    event = only(
        '#define DEV_ENTRY __array(char, dev, 16) __field(u8, kind)\n#define DEV_FMT "%s/%u"\n'
        "#define DEV_ARG __entry->dev, __entry->kind\n"
        "TRACE_EVENT(tick, TP_PROTO(void), TP_ARGS(), TP_STRUCT__entry(DEV_ENTRY __field(int, n)),"
        'TP_fast_assign(), TP_printk(DEV_FMT " n=%d", DEV_ARG, __entry->n));'
    )
    assert event.proto.params == ()
    assert event.args == ()
    assert [f.name for f in event.fields] == ["dev", "kind", "n"]
    assert event.printk.text == '"%s/%u" " n=%d", __entry->dev, __entry->kind, __entry->n'


def test_conditionals_inside_a_declaration() -> None:
    body = (
        "TRACE_EVENT(tick, TP_PROTO(int n), TP_ARGS(n), TP_STRUCT__entry(\n#ifdef CONFIG_WIDE\n__field(u64, n)\n"
        '#else\n__field(u32, n)\n#endif\n), TP_fast_assign(__entry->n = n;), TP_printk("%d", (int)__entry->n));'
    )
    assert read(body)["tick"].fields[0].ctype == "u64"
    assert read(body, config=Config({"CONFIG_WIDE": "n"}))["tick"].fields[0].ctype == "u32"


def test_prototypes_keep_function_pointers_and_arrays() -> None:
    event = only(
        "TRACE_EVENT(tick, TP_PROTO(void (*fn)(struct rcu_head *head), const char *const *argv, u8 mac[6], unsigned long x), "
        'TP_ARGS(fn, argv, mac, x), TP_STRUCT__entry(__field(int, n)), TP_fast_assign(), TP_printk("%d", __entry->n));'
    )
    assert [(p.ctype, p.name) for p in event.proto.params] == [
        ("void (*)(struct rcu_head *head)", "fn"),
        ("const char *const *", "argv"),
        ("u8[6]", "mac"),
        ("unsigned long", "x"),
    ]


def test_enums_flags_and_two_systems() -> None:
    header = read(
        "TRACE_DEFINE_ENUM(RED);\nTRACE_DEFINE_SIZEOF(struct x);\n"
        f"TRACE_EVENT_FLAGS(tick, TRACE_EVENT_FL_CAP_ANY)\nTRACE_EVENT(tick, {PARTS});\n"
        f"TRACE_EVENT_PERF_PERM(tick, perf(p, 1), 0);\n"
        f"#undef TRACE_SYSTEM\n#define TRACE_SYSTEM other\nTRACE_EVENT(tock, {PARTS});"
    )
    assert [(e.name, e.is_sizeof) for e in header.enums] == [("RED", False), ("struct x", True)]
    assert [e.full_name for e in header.events] == ["demo:tick", "other:tock"]
    assert header["tick"].flags == "TRACE_EVENT_FL_CAP_ANY"
    assert header["tick"].perf_perm == "perf(p, 1), 0"


def test_form_of_a_header() -> None:
    header = read_header_text(
        "#undef TRACE_SYSTEM\n#define TRACE_SYSTEM demo\n#if !defined(_DEMO_H) || defined(TRACE_HEADER_MULTI_READ)\n"
        "#define _DEMO_H\n#include <linux/tracepoint.h>\n#endif\n#undef TRACE_INCLUDE_PATH\n"
        "#define TRACE_INCLUDE_PATH .\n#define TRACE_INCLUDE_FILE demo\n#include <trace/define_trace.h>\n"
    )
    form = header.form
    assert (form.guard, form.has_multi_read, form.include_path, form.include_file) == (
        "_DEMO_H",
        True,
        ".",
        "demo",
    )
    assert form.define_trace is not None
    assert form.define_trace.span.line == 10
    assert not form.is_define_trace_guarded
    assert form.includes == ("<linux/tracepoint.h>", "<trace/define_trace.h>")


@pytest.mark.parametrize(
    ("body", "code", "line"),
    [
        ("TRACE_EVENT(tick, TP_PROTO(int n)", "TP001", 2),
        ("\nTRACE_EVENT(tick, TP_PROTO(int n));", "TP002", 3),
        (f"DEFINE_EVENT(nowhere, tick, {SHORT});", "TP007", 2),
        (f"TRACE_EVENT(tick, {PARTS.replace('__field(int, n)', 'UNKNOWN(x)')});", "TP009", 2),
        (f"TRACE_EVENT(tick, {PARTS.replace('__field(int, n)', '__field(int)')});", "TP009", 2),
        (f"TRACE_EVENT(tick, {PARTS.replace('__field(int, n)', '42')});", "TP008", 2),
        (f"TRACE_EVENT(tick, {PARTS.replace('TP_PROTO', 'TP_ARGS')});", "TP006", 2),
    ],
)
def test_what_is_wrong_has_a_code_and_a_line(body: str, code: str, line: int) -> None:
    found = read(body).diagnostics
    assert (code, line) in [(d.code, d.span.line) for d in found]


def test_the_old_documentation_form_is_read_and_explained() -> None:
    header = read(
        "DEFINE_TRACE(subsys_eventname, TPPTOTO(int firstarg, struct task_struct *p), TPARGS(firstarg, p));"
    )
    (tracepoint,) = header.tracepoints
    assert tracepoint.args == ("firstarg", "p")
    assert [p.name for p in tracepoint.proto.params] == ["firstarg", "p"]
    assert "DECLARE_TRACE(subsys_eventname" in header.diagnostics[0].message


class Files:
    """Included files by name, and the C file that creates the events."""

    def __init__(self, **texts: str) -> None:
        self.texts = {name.replace("_c", ".c").replace("_h", ".h"): text for name, text in texts.items()}

    def load(self, name: str, *, is_quoted: bool, includer: str) -> SourceFile | None:
        return SourceFile(name, self.texts[name]) if name in self.texts else None


BEHIND = f"#ifdef DEMO_HAS\nTRACE_EVENT(tick, {PARTS});\nTRACE_EVENT(tock, {PARTS});\n#endif"
CREATOR = [("drv.c", True, "."), ("inner.h", True, "drv.c")]
CONFIGURED = Config({"CONFIG_A": "y"}, is_on_by_default=False)


@pytest.mark.parametrize(
    ("files", "names"),
    [
        ({"drv_c": '#define DEMO_HAS\n#include "inner.h"\n', "inner_h": ""}, ["tick", "tock"]),
        ({"drv_c": '#include "inner.h"\n', "inner_h": "#define DEMO_HAS 1\n"}, ["tick", "tock"]),
        ({"drv_c": '#include "inner.h"\n', "inner_h": "#ifdef CONFIG_B\n#define DEMO_HAS 1\n#endif\n"}, []),
        ({"drv_c": '#include "inner.h"\n', "inner_h": ""}, []),
    ],
)
def test_the_c_file_decides_what_a_header_asks_for(files: dict[str, str], names: list[str]) -> None:
    header = read(BEHIND, config=CONFIGURED, loader=Files(**files), extra_includes=CREATOR)
    assert [event.name for event in header.events] == names
    assert header.diagnostics == ()


@pytest.mark.parametrize("loader", [None, Files()])
def test_events_behind_what_nothing_can_decide_are_reported(loader: Files | None) -> None:
    header = read(BEHIND, config=CONFIGURED, loader=loader)
    assert header.events == ()
    assert [(d.code, d.span.line) for d in header.diagnostics] == [("TP019", 2)]
    assert "defines DEMO_HAS" in header.diagnostics[0].message
    assert "2 declarations" in header.diagnostics[0].message


@pytest.mark.parametrize(
    "body",
    [
        "#ifdef DEMO_HAS\nint n;\n#endif",
        f"#ifndef DEMO_HAS\nTRACE_EVENT(tick, {PARTS});\n#endif",
        f"#define DEMO_HAS\n#undef DEMO_HAS\n{BEHIND}",
        BEHIND.replace("DEMO_HAS", "CONFIG_B"),
        BEHIND.replace("DEMO_HAS", "TRACE_HEADER_MULTI_READ"),
    ],
)
def test_what_is_decided_or_hides_no_event_is_not_reported(body: str) -> None:
    assert read(body, config=CONFIGURED).diagnostics == ()


def test_a_macro_of_another_trace_header_that_asks_for_one_is_found() -> None:
    other = '#define TRACE_SYSTEM other\n#ifdef DEMO_HAS\n#define other_modes {0, "a"}\n#endif\n'
    files = Files(drv_c='#include "inner.h"\n', inner_h="#define DEMO_HAS\n", other_h=other)
    creator = [*CREATOR, ("other.h", False, "drv.c")]
    environment = read("", config=CONFIGURED, loader=files, extra_includes=creator).environment
    assert environment is not None
    macro = environment.macro("other_modes")
    assert macro is not None
    assert macro.text == '{0, "a"}'


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"CONFIG_ARCH_USE_BUILTIN_BSWAP": "y"}, "__builtin_bswap16(REC->n)"),
        ({"CONFIG_A": "y"}, "swap_by_hand(REC->n)"),
    ],
)
def test_byte_swaps_are_those_that_the_build_chooses(options: dict[str, str], text: str) -> None:
    swab = (
        "#ifdef __HAVE_BUILTIN_BSWAP16__\n#define swap16(x) __builtin_bswap16(x)\n#else\n"
        "#define swap16(x) swap_by_hand(x)\n#endif\n#define __builtin_bswap16(x) of_another_compiler(x)\n"
    )
    parts = PARTS.replace('d", __entry->n', 'd", swap16(__entry->n)')
    header = read(
        f"#include <swab.h>\nTRACE_EVENT(tick, {parts});",
        config=Config(options, is_on_by_default=False),
        loader=Files(swab_h=swab),
    )
    found = compute_layout(header["tick"], environment=header.environment)
    assert found.print_fmt == f'"n=%d", {text}'
