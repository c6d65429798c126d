"""Declarations go where they belong, in the form that the tree has; what cannot be is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from place.trees import EVENT, POND, header_of, make_tree, open_kernel
from tracepoint.errors import PlaceError
from tracepoint.model.read import read_header_text
from tracepoint.place.declare import Declaration, declare
from tracepoint.place.fragment import EventText, read_fragment
from tracepoint.source.text import apply_edits

HEADER = "include/trace/events/pond.h"


def declared(root: Path, text: str, **options) -> tuple[Declaration, str]:
    """Declare in the tree and return what was decided and the header as it will be."""
    kernel = open_kernel(root)
    made = declare(kernel, EventText(text, **{"system": "pond", **options}))
    if made.new_text:
        return made, made.new_text
    return made, apply_edits(kernel.source(made.header).text, made.edits)


def refused(root: Path, text: str, **options) -> str:
    with pytest.raises(PlaceError) as caught:
        declared(root, text, **options)
    return str(caught.value)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return make_tree(tmp_path)


def test_event_goes_before_the_guard_and_outside_of_the_last_if(tree: Path) -> None:
    made, text = declared(tree, EVENT)
    assert made.header == HEADER
    assert [e.full_name for e in made.events] == ["pond:pond_splash"]
    before, new, after = text.partition("#endif\n\nTRACE_EVENT(pond_splash,")
    assert new
    assert before.endswith('TP_printk("n=%d", __entry->n)\n);\n')
    assert after.endswith(
        ");\n\n#endif /* _TRACE_POND_H */\n\n/* This part must be outside protection */\n"
        "#include <trace/define_trace.h>\n"
    )
    # Nothing else has changed.
    assert (
        text.replace("TRACE_EVENT(pond_splash," + after.partition("#endif /*")[0], "").replace(
            "#endif\n\n#endif", "#endif\n#endif"
        )
        == POND
    )


def test_event_is_set_in_kernel_style(tree: Path) -> None:
    _, text = declared(tree, EVENT.replace("\t", " ").replace("\n", ""))
    found = re.search(r"^TRACE_EVENT\(pond_splash[\s\S]*?^\);", text, re.MULTILINE)
    assert found
    assert found[0] == (
        "TRACE_EVENT(pond_splash,\n\n\tTP_PROTO(struct duck *duck, int n),\n\n\tTP_ARGS(duck, n),\n\n"
        "\tTP_STRUCT__entry(\n\t\t__field(int, n)\n\t),\n\n\tTP_fast_assign(\n\t\t__entry->n = n;\n\t),\n\n"
        '\tTP_printk("n=%d", __entry->n)\n);'
    )


def test_event_goes_before_the_directives_that_say_where_the_header_is(tmp_path: Path) -> None:
    where = "#undef TRACE_INCLUDE_PATH\n#define TRACE_INCLUDE_PATH .\n"
    root = make_tree(tmp_path, {HEADER: POND.replace("#endif /* _TRACE_POND_H */", f"{where}#endif /* X */")})
    _, text = declared(root, EVENT)
    assert f");\n\n{where}#endif /* X */" in text[text.index("pond_splash") :]


def test_whole_header_gives_what_is_inside_its_guard(tree: Path) -> None:
    whole = header_of("#define show_n(n) (n)", EVENT, guard="_MINE_H").replace(
        "#include <linux/tracepoint.h>\n", "#include <linux/tracepoint.h>\n#include <linux/swap.h>\n"
    )
    _, text = declared(tree, "/* SPDX-License-Identifier: MIT */\n" + whole, system="")
    assert text.count("TRACE_SYSTEM") == POND.count("TRACE_SYSTEM")
    assert not re.search("_MINE_H|MIT", text)
    assert text.count("#include <linux/tracepoint.h>") == 1
    assert "#include <linux/tracepoint.h>\n#include <linux/swap.h>\n\nstruct duck;" in text
    assert "#define show_n(n) (n)\nTRACE_EVENT(pond_splash" in text.replace("\n\n", "\n")


def test_structs_that_the_header_does_not_know_are_declared(tree: Path) -> None:
    _, text = declared(tree, EVENT.replace("struct duck", "struct goose"))
    assert "struct duck;\nstruct goose;\n\nDECLARE_EVENT_CLASS" in text
    _, text = declared(tree, EVENT)
    assert text.count("struct duck;") == 1


def test_structs_of_included_headers_are_not_declared(tmp_path: Path) -> None:
    root = make_tree(tmp_path, {"include/linux/tracepoint.h": "struct goose {\n\tint a;\n};\n"})
    _, text = declared(root, EVENT.replace("struct duck", "struct goose"))
    assert "struct goose;" not in text


def test_class_of_equal_record_is_used(tree: Path) -> None:
    same = """/* It jumps. */
TRACE_EVENT(pond_jump, TP_PROTO(struct duck *bird, int height), TP_ARGS(bird, height),
        TP_STRUCT__entry(__field(int, weight) __field(int, depth)),
        TP_fast_assign(__entry->weight = bird->weight; __entry->depth = height;),
        TP_printk("weight=%d depth=%d", __entry->weight, __entry->depth));
    """
    made, text = declared(tree, same)
    assert made.notes == ("pond_jump has the same record as pond_duck and uses its class",)
    assert (
        "/* It jumps. */\nDEFINE_EVENT(pond_duck, pond_jump,\n\n"
        "\tTP_PROTO(struct duck *bird, int height),\n\n\tTP_ARGS(bird, height)\n);\n" in text
    )
    other_print = same.replace("weight=%d depth", "w=%d d")
    _, text = declared(tree, other_print)
    assert "DEFINE_EVENT_PRINT(pond_duck, pond_jump," in text
    assert 'TP_printk("w=%d d=%d", __entry->weight, __entry->depth)\n);' in text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("__entry->depth = height", "__entry->depth = -height"),
        ("__field(int, depth)", "__field(long, depth)"),
        ("int height", "long height"),
        ("__field(int, weight) __field(int, depth)", "__field(int, depth) __field(int, weight)"),
    ],
)
def test_class_of_another_record_is_not_used(tree: Path, old: str, new: str) -> None:
    same = """TRACE_EVENT(pond_jump, TP_PROTO(struct duck *bird, int height), TP_ARGS(bird, height),
        TP_STRUCT__entry(__field(int, weight) __field(int, depth)),
        TP_fast_assign(__entry->weight = bird->weight; __entry->depth = height;),
        TP_printk("weight=%d depth=%d", __entry->weight, __entry->depth));"""
    assert old in same
    _, text = declared(tree, same.replace(old, new))
    assert "TRACE_EVENT(pond_jump" in text


def test_class_under_a_condition_is_not_used(tree: Path) -> None:
    same = EVENT.replace("struct duck *duck, int n", "int n").replace("duck, n", "n")
    _, text = declared(tree, same)
    assert "TRACE_EVENT(pond_splash" in text  # pond_frog is there only with CONFIG_POND_FROGS


def test_two_events_of_one_record_share_a_class(tree: Path) -> None:
    two = "/* In. */\n" + EVENT + "/* Out. */\n" + EVENT.replace("pond_splash", "pond_splish")
    made, text = declared(tree, two)
    assert made.notes == ("pond_splash, pond_splish have the same record and use the new class pond_class",)
    assert text.count("DECLARE_EVENT_CLASS(pond_class,") == 1
    assert "/* In. */\nDEFINE_EVENT(pond_class, pond_splash,\n" in text
    assert ");\n\n/* Out. */\nDEFINE_EVENT(pond_class, pond_splish,\n" in text
    header = read_header_text(text)
    assert header["pond_splash"].fields == header["pond_splish"].fields
    assert not [d for d in header.diagnostics if d.severity == "error"]


def test_events_that_print_differently_share_a_class_when_asked(tree: Path) -> None:
    two = EVENT + EVENT.replace("pond_splash", "pond_splish").replace('"n=%d"', '"N=%d"')
    _, text = declared(tree, two)
    assert text.count("TRACE_EVENT(") == POND.count("TRACE_EVENT(") + 2
    _, text = declared(tree, two, class_name="pond_noise")
    assert "DECLARE_EVENT_CLASS(pond_noise," in text
    assert "DEFINE_EVENT(pond_noise, pond_splash," in text
    assert "DEFINE_EVENT_PRINT(pond_noise, pond_splish," in text
    assert "0 sets of events" in refused(tree, EVENT, class_name="pond_noise")
    assert "in use" in refused(tree, EVENT + EVENT.replace("splash", "drip"), class_name="pond_duck")


def test_instance_of_a_class_of_the_tree(tree: Path) -> None:
    text = "DEFINE_EVENT(pond_duck, pond_swim, TP_PROTO(struct duck *duck, int depth), TP_ARGS(duck, depth));"
    made, new = declared(tree, text)
    assert [f.name for f in made.events[0].fields] == ["weight", "depth"]
    assert "DEFINE_EVENT(pond_duck, pond_swim,\n" in new
    wrong = refused(tree, text.replace("(pond_duck", "(pond_bird"))
    assert "no class pond_bird" in wrong


def test_assign_str_is_spelt_as_in_the_tree(tree: Path, tmp_path: Path) -> None:
    text = """TRACE_EVENT(pond_name, TP_PROTO(const char *name), TP_ARGS(name),
        TP_STRUCT__entry(__string(what, name)), TP_fast_assign(__assign_str(what, name);),
        TP_printk("%s", __get_str(what)));"""
    _, new = declared(tree, text)
    assert "__assign_str(what);" in new
    old = make_tree(
        tmp_path / "old",
        {"include/trace/stages/stage6_event_callback.h": "#define __assign_str(dst, src) x\n"},
    )
    _, new = declared(old, text.replace("what, name);)", "what);)"))
    assert "__assign_str(what, name);" in new


def test_new_header(tree: Path) -> None:
    text = EVENT.replace("pond_splash", "lake_wave").replace("__field(int, n)", "__field(u32, n)")
    assert "no header of the tree declares events of lake" in refused(tree, text, system="lake")
    made, new = declared(tree, text, system="lake", is_new=True)
    assert made.header == "include/trace/events/lake.h"
    assert new.startswith(
        "/* SPDX-License-Identifier: GPL-2.0 */\n#undef TRACE_SYSTEM\n#define TRACE_SYSTEM lake\n\n"
        "#if !defined(_TRACE_LAKE_H) || defined(TRACE_HEADER_MULTI_READ)\n#define _TRACE_LAKE_H\n\n"
        "#include <linux/types.h>\n#include <linux/tracepoint.h>\n\nstruct duck;\n\nTRACE_EVENT(lake_wave,\n"
    )
    assert new.endswith(
        ");\n\n#endif /* _TRACE_LAKE_H */\n\n/* This part must be outside protection */\n"
        "#include <trace/define_trace.h>\n"
    )


def test_new_header_in_another_place_says_where_it_is(tree: Path) -> None:
    text = EVENT.replace("pond_splash", "lake_wave")
    _, new = declared(tree, text, system="lake", header="water/lake_trace.h", is_new=True)
    assert (
        "#undef TRACE_INCLUDE_PATH\n#define TRACE_INCLUDE_PATH ../../water\n"
        "#undef TRACE_INCLUDE_FILE\n#define TRACE_INCLUDE_FILE lake_trace\n" in new
    )


def test_header_with_two_systems(tree: Path, tmp_path: Path) -> None:
    two = POND.replace(
        "#ifdef CONFIG_POND_FROGS",
        "#undef TRACE_SYSTEM\n#define TRACE_SYSTEM frogs\n\n"
        + EVENT.replace("pond_splash", "frog_splash")
        + "#ifdef CONFIG_POND_FROGS",
    )
    root = make_tree(tmp_path / "two", {HEADER: two})
    _, text = declared(root, EVENT)
    assert read_header_text(text)["pond_splash"].system == "pond"
    _, text = declared(root, EVENT, system="frogs", header=HEADER)
    assert read_header_text(text)["pond_splash"].system == "frogs"


@pytest.mark.parametrize(
    ("change", "options", "reason"),
    [
        (("pond_splash", "pond_dive"), {}, "pond.h:31 already declares pond:pond_dive"),
        (("pond_splash", "pond_duck"), {}, "the name pond_duck is already used"),
        (("pond_splash", "_TRACE_POND_H"), {}, "is already used"),
        (("", ""), {"system": ""}, "name the system"),
        (("", ""), {"system": "po nd"}, "is not a TRACE_SYSTEM"),
        (("", ""), {"system": "pont"}, "did you mean pond?"),
        (("", ""), {"header": "include/trace/events/none.h"}, "no such file"),
        (("", ""), {"header": "../pond.h"}, "is not a path of a file below the tree"),
        (("", ""), {"header": "/etc/passwd"}, "is not a path of a file below the tree"),
        (("", ""), {"header": "include/linux/pond.h"}, "no complete include guard"),
        (("TP_ARGS(duck, n),", ""), {}, "takes 6 arguments"),
        (('printk("n=%d", __entry->n)\n);', 'printk("n=%d", __entry->n)'), {}, "never closes"),
        (("TRACE_EVENT(", "TRACE_EVENT_NOP("), {}, "has no trace_pond_splash() to call"),
        (("TRACE_EVENT", "#if 1\nTRACE_EVENT"), {}, "an #if without #endif"),
        (("__field(int, n)", "\0"), {}, "character '\\x00'"),
        (("TRACE_EVENT", "EVENT"), {}, "declares no event"),
    ],
)
def test_refused(tree: Path, change: tuple[str, str], options: dict[str, str], reason: str) -> None:
    assert reason in refused(tree, EVENT.replace(*change) if change[0] else EVENT, **options)


def test_tracepoint_without_event_is_refused(tree: Path) -> None:
    assert "without a trace event" in refused(tree, "DECLARE_TRACE(pond_x, TP_PROTO(int n), TP_ARGS(n));")


def test_event_declared_twice_is_refused(tree: Path) -> None:
    assert "pond_splash is declared twice" in refused(tree, EVENT + EVENT)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("#include <trace/define_trace.h>\n", "", "does not include <trace/define_trace.h>"),
        (" || defined(TRACE_HEADER_MULTI_READ)", "", "TRACE_HEADER_MULTI_READ"),
        ("#endif /* _TRACE_POND_H */\n", "", "no complete include guard"),
        ("\n", "\r\n", "CRLF"),
        ("struct duck;", "struct duck;\0", "not a text file"),
        ("\tTP_ARGS(duck, depth)\n);", "\tTP_ARGS(duck, depth)\n", "cannot be read"),
    ],
)
def test_damaged_headers_are_refused(tmp_path: Path, old: str, new: str, reason: str) -> None:
    assert old in POND
    root = make_tree(tmp_path, {HEADER: POND.replace(old, new)})
    assert reason in refused(root, EVENT, header=HEADER)


def test_event_text_with_crlf_is_taken(tree: Path) -> None:
    assert declared(tree, EVENT.replace("\n", "\r\n"))[1] == declared(tree, EVENT)[1]


def test_ten_megabytes_are_refused_quickly(tree: Path) -> None:
    assert "too many" in refused(tree, EVENT + "/* " + "x" * 10_000_000 + " */")


def test_types_that_the_header_does_not_know_are_told(tmp_path: Path) -> None:
    root = make_tree(
        tmp_path,
        {
            "include/linux/tracepoint.h": "#include <linux/water.h>\n#define TRACE_EVENT(name, ...)\n",
            "include/linux/water.h": "typedef struct { int a; } drop_t;\nenum wave { LOW };\ntypedef long tide_t;\n",
            "include/linux/foam.h": "typedef struct foam { int a; } foam_t;\n",
        },
    )
    text = EVENT.replace("int n)", "drop_t d, enum wave w, tide_t t, u32 n, foam_t f, enum wind g)")
    text = text.replace("duck, n)", "duck, d, w, t, n, f, g)")
    made, _ = declared(root, text)
    assert [note.partition(" ")[0] for note in made.notes] == ["foam_t", "wind"]
    made, _ = declared(root, "#include <linux/foam.h>\n" + text)
    assert [note.partition(" ")[0] for note in made.notes] == ["wind"]


def test_including_other_events_is_refused(tree: Path) -> None:
    reason = refused(tree, "#include <trace/events/pond.h>\n" + EVENT, system="lake", is_new=True)
    assert "<trace/events/pond.h> declares events of its own" in reason


@given(st.data())
def test_damage_is_refused_or_harmless(tmp_path_factory, data) -> None:
    whole = header_of(EVENT, guard="_MINE_H")
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, min(len(whole), start + 40)))
    put = data.draw(
        st.sampled_from(["", "(", ")", "#if 1\n", "#endif\n", "/*", '"', "\\", ";", "\x00", "é", "@"])
    )
    text = whole[:start] + put + whole[end:]
    root = _shared(tmp_path_factory)
    kernel = open_kernel(root) if not _KERNELS else _KERNELS[0]
    _KERNELS[:] = [kernel]
    try:
        made = declare(kernel, EventText(text, system="pond"))
    except PlaceError:
        return
    new = apply_edits(kernel.source(made.header).text, made.edits)
    names = [e.name for e in read_header_text(new).events]
    assert {"pond_dive", "pond_frog", *(e.name for e in made.events)} <= set(names)


_ROOTS: list[Path] = []
_KERNELS: list = []


def _shared(tmp_path_factory) -> Path:
    if not _ROOTS:
        _ROOTS.append(make_tree(tmp_path_factory.mktemp("tree")))
    return _ROOTS[0]


def test_fragment_keeps_conditions_inside() -> None:
    fragment = read_fragment(EventText("#ifdef CONFIG_X\n" + EVENT + "#endif\n", system="pond"))
    assert fragment.body == "#ifdef CONFIG_X\n" + EVENT + "#endif\n"
