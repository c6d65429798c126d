"""Plans become patches: calls, includes, the creator, exports, messages, an order that builds."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from place.trees import EVENT, FILES, POND_C, SHORE_C, header_of, make_tree, open_kernel
from tracepoint.errors import PlaceError, TracepointError
from tracepoint.place.fragment import EventText
from tracepoint.place.insert import InsertionPoint, Where
from tracepoint.place.kernel import KernelTree
from tracepoint.place.message import Author, write_cover, write_mail
from tracepoint.place.plan import CallAt, Plan
from tracepoint.place.series import Series, make_series

HEADER = "include/trace/events/pond.h"
WHY = "Splashes cannot be seen today, so nobody knows who scares the fish."
SHORE = CallAt(
    "water/shore.c", (InsertionPoint("shore_visit", Where.AFTER, "n_visits++;"),), "", ("duck", "n")
)
REED = CallAt("garden/reed.c", (InsertionPoint("reed_hide", Where.ENTRY),), "", ("duck", "0"))
LAKE = EventText(EVENT.replace("pond_splash", "lake_splash"), system="lake", is_new=True)
AUTHOR = Author("A. U. Thor", "author@example.org", "Sat, 21 Nov 2026 03:00:00 +0000")


def made(root: Path, *calls: CallAt, event: EventText | None = None, **options) -> Series:
    events = (event or EventText(EVENT, system="pond"),)
    return make_series(open_kernel(root), Plan(events, calls, why=WHY, **options))


def refused(root: Path, *calls: CallAt, **options) -> str:
    with pytest.raises(TracepointError) as caught:
        made(root, *calls, **options)
    return str(caught.value)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return make_tree(tmp_path)


def test_one_call_in_one_patch(tree: Path) -> None:
    series = made(tree, SHORE)
    (patch,) = series.patches
    assert sorted(series.files) == [HEADER, "water/shore.c"]
    shore = series.files["water/shore.c"]
    assert "\tn_visits++;\n\ttrace_pond_splash(duck, n);\n\tdepth += duck->depth;\n" in shore
    assert '#include <linux/pond.h>\n#include <trace/events/pond.h>\n#include "shore.h"\n' in shore
    assert patch.message.subject == "water: shore: add the trace event pond_splash"
    assert patch.message.body == (
        "Splashes cannot be seen today, so nobody knows who scares the fish.\n\n"
        "Declare the trace event in include/trace/events/pond.h. What is recorded:\n\n"
        "  pond:pond_splash\n    int n\n\nWhere it fires:\n\n"
        "  water/shore.c\n    shore_visit(): pond_splash after n_visits++;\n\n"
        "While an event is off, each of its calls is a patched-out branch (a static\nkey).\n"
    )


def test_two_places_of_a_function_are_listed(tree: Path) -> None:
    before = replace(SHORE, places=(InsertionPoint("shore_visit", Where.BEFORE, "n_visits++;"),))
    body = " ".join(made(tree, before, SHORE).patches[0].message.body.split())
    assert "shore_visit(): pond_splash before n_visits++, pond_splash after n_visits++; While" in body


def test_event_of_the_tree_is_only_called(tree: Path) -> None:
    call = replace(SHORE, event="pond_dive")
    series = make_series(open_kernel(tree), Plan((), (call,), why=WHY))
    assert list(series.files) == ["water/shore.c"]
    assert series.patches[0].message.subject == "water: shore: call the trace event pond_dive"
    assert "trace_pond_dive(duck, n);" in series.files["water/shore.c"]


def test_file_that_creates_the_header_needs_no_include(tree: Path) -> None:
    call = CallAt("water/pond.c", (InsertionPoint("pond_dive", Where.ENTRY),), "", ("duck", "depth"))
    text = made(tree, call).files["water/pond.c"]
    assert text.count("pond.h>") == POND_C.count("pond.h>")
    assert text.count("CREATE_TRACE_POINTS") == 1


def test_second_call_in_a_file_adds_no_second_include(tree: Path) -> None:
    again = replace(SHORE, places=(InsertionPoint("shore_visit", Where.RETURNS),))
    text = made(tree, SHORE, again).files["water/shore.c"]
    assert text.count("#include <trace/events/pond.h>") == 1
    assert text.count("trace_pond_splash(") == 3


def test_include_inside_of_an_if_does_not_count(tmp_path: Path) -> None:
    shore = SHORE_C.replace(
        '#include "shore.h"', '#ifdef CONFIG_POND\n#include <trace/events/pond.h>\n#endif\n#include "shore.h"'
    )
    text = made(make_tree(tmp_path, {"water/shore.c": shore}), SHORE).files["water/shore.c"]
    assert text.count("#include <trace/events/pond.h>") == 2
    assert text.index("#include <trace/events/pond.h>") < text.index("#ifdef")


def test_include_in_the_branch_of_all_calls_counts(tmp_path: Path) -> None:
    """mm/compaction.c includes its trace header under CONFIG_COMPACTION, with all that calls it."""
    head, brace, rest = SHORE_C.partition("static int n_visits;")
    shore = f"{head}#ifdef CONFIG_A\n#include <trace/events/pond.h>\n{brace}{rest}#endif\n"
    text = made(make_tree(tmp_path, {"water/shore.c": shore}), SHORE).files["water/shore.c"]
    assert text.count("#include <trace/events/pond.h>") == 1
    outside = shore + "\nvoid shore_leave(struct duck *duck)\n{\n\tn_visits--;\n}\n"
    leave = CallAt("water/shore.c", (InsertionPoint("shore_leave", Where.ENTRY),), "", ("duck", "1"))
    text = made(make_tree(tmp_path, {"water/shore.c": outside}), SHORE, leave).files["water/shore.c"]
    assert text.count("#include <trace/events/pond.h>") == 2


def test_include_goes_before_create_trace_points(tmp_path: Path) -> None:
    shore = SHORE_C.replace(
        '#include "shore.h"\n',
        '#include "shore.h"\n#define CREATE_TRACE_POINTS\n#include <trace/events/shore.h>\n',
    )
    text = made(make_tree(tmp_path, {"water/shore.c": shore}), SHORE).files["water/shore.c"]
    assert text.index("<trace/events/pond.h>") < text.index("#define CREATE_TRACE_POINTS")


def test_new_header_is_created_once_behind_all_includes(tree: Path) -> None:
    series = made(tree, SHORE, REED, event=LAKE, exports=False)
    created = [path for path, text in series.files.items() if "#define CREATE_TRACE_POINTS" in text]
    assert created == ["water/shore.c"]  # every kernel has it; reed.c may be a module
    assert (
        '#include "shore.h"\n\n#define CREATE_TRACE_POINTS\n#include <trace/events/lake.h>\n\n'
        "EXPORT_TRACEPOINT_SYMBOL_GPL(lake_splash);\n\nstatic int n_visits;" in series.files["water/shore.c"]
    )
    assert (
        "#include <linux/pond.h>\n#include <trace/events/lake.h>\n\nint reed" in series.files["garden/reed.c"]
    )
    assert "lake_splash is exported, since garden/reed.c may be built as a module" in series.notes


def test_later_includes_do_not_create_the_events_again(tmp_path: Path) -> None:
    shore = SHORE_C + "\n#include <linux/late.h>\n"
    text = made(make_tree(tmp_path, {"water/shore.c": shore}), SHORE, event=LAKE).files["water/shore.c"]
    assert "#include <trace/events/lake.h>\n#undef CREATE_TRACE_POINTS\n" in text


def test_an_include_within_braces_is_no_place(tmp_path: Path) -> None:
    """kernel/bpf/syscall.c includes the items of a table."""
    table = "static const int table[] = {\n#define ITEM(x) x,\n#include <linux/items.h>\n#undef ITEM\n};\n\n"
    root = make_tree(
        tmp_path, {"water/shore.c": SHORE_C.replace("static int n_visits;", f"{table}static int n_visits;")}
    )
    text = made(root, SHORE, event=LAKE).files["water/shore.c"]
    create = "#define CREATE_TRACE_POINTS\n#include <trace/events/lake.h>\n#undef CREATE_TRACE_POINTS\n"
    assert f'#include "shore.h"\n\n{create}\nstatic const int table[]' in text


def test_a_file_without_includes_has_those_of_the_file_around_it(tmp_path: Path) -> None:
    """kernel/sched/rt.c is included by build_policy.c."""
    shore = "\n".join(line for line in SHORE_C.split("\n") if not line.startswith("#include"))
    outer = '#include <linux/pond.h>\n{}#include "shore.c"\n'
    files = {"water/shore.c": shore, "water/Makefile": "obj-y := pond.o all.o\n"}
    files["water/all.c"] = outer.format("#include <trace/events/pond.h>\n")
    text = made(make_tree(tmp_path / "one", files), SHORE).files["water/shore.c"]
    assert "#include" not in text
    assert "trace_pond_splash(duck, n);" in text
    files["water/all.c"] = outer.format("")
    reason = refused(make_tree(tmp_path / "two", files), SHORE)
    assert "water/all.c, which includes it, does not include <trace/events/pond.h>" in reason


def test_create_trace_points_that_is_there_is_used(tree: Path) -> None:
    call = CallAt("water/pond.c", (InsertionPoint("pond_dive", Where.ENTRY),), "", ("duck", "depth"))
    text = made(tree, call, event=LAKE).files["water/pond.c"]
    assert (
        "#define CREATE_TRACE_POINTS\n#include <trace/events/lake.h>\n#include <trace/events/pond.h>\n"
        in text
    )


def test_create_stands_behind_a_conditional_that_holds_the_last_include(tmp_path: Path) -> None:
    shore = SHORE_C.replace('#include "shore.h"\n', "#ifdef CONFIG_A\n#include <linux/a.h>\n#else\n#endif\n")
    text = made(make_tree(tmp_path, {"water/shore.c": shore}), SHORE, event=LAKE).files["water/shore.c"]
    assert "#else\n#endif\n\n#define CREATE_TRACE_POINTS\n#include <trace/events/lake.h>\n\nstatic" in text


def test_module_needs_an_export(tree: Path) -> None:
    series = made(tree, REED)
    assert series.files["water/pond.c"].count("EXPORT_TRACEPOINT_SYMBOL_GPL(pond_splash);") == 1
    assert "#include <trace/events/pond.h>\n\nEXPORT_TRACE" in series.files["water/pond.c"]
    existing = make_series(open_kernel(tree), Plan((), (replace(REED, event="pond_dive"),), why=WHY))
    assert "EXPORT_TRACEPOINT_SYMBOL_GPL(pond_dive);" in existing.files["water/pond.c"]


def test_export_stands_beside_others(tmp_path: Path) -> None:
    pond = POND_C.replace("\nint pond", "\nEXPORT_TRACEPOINT_SYMBOL(pond_dive);\n\nint pond")
    root = make_tree(tmp_path, {"water/pond.c": pond})
    text = made(root, SHORE, exports=True).files["water/pond.c"]
    assert "EXPORT_TRACEPOINT_SYMBOL(pond_dive);\nEXPORT_TRACEPOINT_SYMBOL_GPL(pond_splash);\n" in text
    series = make_series(open_kernel(root), Plan((), (replace(REED, event="pond_dive"),), why=WHY))
    assert "water/pond.c" not in series.files


def test_series_has_a_patch_for_each_subsystem_and_the_creator_first(tree: Path) -> None:
    series = made(tree, REED, SHORE, event=LAKE)
    assert [p.message.subject for p in series.patches] == [
        "water: shore: add the trace event lake_splash",
        "garden: reed: call the trace event lake_splash",
    ]
    assert [sorted(c.path for c in p.changes) for p in series.patches] == [
        ["include/trace/events/lake.h", "water/shore.c"],
        ["garden/reed.c"],
    ]
    single = make_series(open_kernel(tree), Plan((LAKE,), (REED, SHORE), why=WHY), is_split=False)
    assert len(single.patches) == 1
    assert single.files == series.files


def test_texts_of_one_system_are_one(tree: Path) -> None:
    texts = (
        replace(LAKE, text="#include <linux/pond.h>\n" + LAKE.text),
        replace(
            LAKE,
            text="#include <linux/pond.h>\n" + LAKE.text.replace("lake_splash", "lake_wave"),
            is_new=False,
        ),
    )
    calls = (replace(SHORE, event="lake_splash"), replace(REED, event="lake_wave"))
    series = make_series(open_kernel(tree), Plan(texts, calls, why=WHY))
    text = series.files["include/trace/events/lake.h"]
    assert text.count("#include <linux/pond.h>") == text.count("struct duck;") == 1
    assert text.count("DEFINE_EVENT(lake_class, ") == 2
    two = (replace(texts[0], creator="water/shore.c"), replace(texts[1], creator="garden/reed.c"))
    with pytest.raises(PlaceError, match="two different values of creator"):
        make_series(open_kernel(tree), Plan(two, calls, why=WHY))


def test_header_that_needs_other_includes_is_told(tmp_path: Path) -> None:
    pond = (
        FILES[HEADER]
        .replace("struct duck;\n", "")
        .replace("int n)", "union depth n, duck_fn f, tide_t t)", 1)
    )
    pond = pond.replace("TP_ARGS(n)", "TP_ARGS(n, f, t)", 1)
    types = (
        "struct duck;\nunion depth { int a; };\ntypedef struct { int a; } tide_t;\n"
        "typedef void (*duck_fn)(int);\n"
    )
    changed = {HEADER: pond, "include/linux/kernel.h": types}
    series = made(make_tree(tmp_path / "one", changed), SHORE)
    assert not [n for n in series.notes if "needs" in n]
    assert '#include "shore.h"\n#include <trace/events/pond.h>\n' in series.files["water/shore.c"]
    changed["include/linux/kernel.h"] = ""
    changed["include/linux/pond.h"] = ""
    notes = made(make_tree(tmp_path / "two", changed), SHORE).notes
    needs = [
        note.split()[3].rstrip(",")
        for note in notes
        if note.startswith("water/shore.c: ") and "needs" in note
    ]
    assert needs == ["duck", "depth", "duck_fn", "tide_t"]


def test_place_of_other_headers_is_forgotten(tmp_path: Path) -> None:
    """What a local trace header leaves set would make define_trace.h include it again."""
    local = header_of(EVENT.replace("pond_splash", "shore_x"), system="shore", guard="_SHORE_H").replace(
        "#include <trace/def",
        "#undef TRACE_INCLUDE_PATH\n#define TRACE_INCLUDE_PATH ../../water\n#include <trace/def",
    )
    shore = SHORE_C.replace('"shore.h"', '"shore_trace.h"')
    creator = '#include <linux/kernel.h>\n#define CREATE_TRACE_POINTS\n#include "shore_trace.h"\n'
    changed = {"water/shore_trace.h": local, "water/shore.c": shore, "water/create.c": creator}
    root = make_tree(tmp_path, changed)
    text = made(root, SHORE, event=LAKE).files["water/shore.c"]
    assert (
        '"shore_trace.h"\n\n#undef TRACE_INCLUDE_PATH\n#undef TRACE_INCLUDE_FILE\n#define CREATE_TRACE_POINTS\n'
        "#include <trace/events/lake.h>\n" in text
    )
    into = CallAt("water/pond.c", (InsertionPoint("pond_dive", Where.ENTRY),), "shore_x", ("duck", "1"))
    assert "would leave its TRACE_INCLUDE_PATH" in refused(root, SHORE, into)


def test_maintainers_join_folders(tmp_path: Path) -> None:
    text = "Maintainers List\n\nDUCKS\nM:\tA <a@b.c>\nF:\twater/*\nF:\tgarden/\n{}\nTHE REST\nF:\t*\nF:\t*/\n"
    root = make_tree(tmp_path / "one", {"MAINTAINERS": text.format("")})
    assert len(made(root, REED, SHORE, event=LAKE).patches) == 1
    root = make_tree(tmp_path / "two", {"MAINTAINERS": text.format("X:\tgarden/reed.c\n")})
    assert len(made(root, REED, SHORE, event=LAKE).patches) == 2


def test_later_patch_changes_what_an_earlier_one_has_changed(tree: Path) -> None:
    """The header belongs to the first patch; the second exports an event in the creator's file."""
    other = replace(REED, event="pond_dive", args=("duck", "1"))
    first = CallAt(
        "water/pond.c", (InsertionPoint("pond_dive", Where.ENTRY),), "pond_splash", ("duck", "depth")
    )
    series = made(tree, first, other)
    one, two = series.patches
    assert {c.path for c in one.changes} & {c.path for c in two.changes} == {"water/pond.c"}
    before, after = (next(c for c in p.changes if c.path == "water/pond.c") for p in (one, two))
    assert after.old == before.new
    assert series.files["water/pond.c"] == after.new
    assert "EXPORT_TRACEPOINT_SYMBOL_GPL(pond_dive);" in after.new
    assert "trace_pond_splash(duck, depth);" in after.new


def test_first_place_that_the_tree_has_is_taken(tree: Path) -> None:
    both = (
        InsertionPoint("shore_visit", Where.AFTER, "gone();"),
        InsertionPoint("shore_visit", Where.AFTER, "n_visits++;"),
    )
    assert "trace_pond_splash" in made(tree, replace(SHORE, places=both)).files["water/shore.c"]
    assert refused(tree, replace(SHORE, places=both[:1] * 2)).count("gone();") == 2


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"path": "water/none.c"}, "no such file"),
        ({"path": "../shore.c"}, "is not a path of a file below the tree"),
        ({"event": "pond_div"}, "declared neither in the tree nor in the plan; did you mean pond_dive?"),
        ({"args": ("duck",)}, "2"),
        ({"args": ("duck", "nonsense")}, "nonsense"),
    ],
)
def test_refused(tree: Path, change: dict, reason: str) -> None:
    assert reason in refused(
        tree, replace(SHORE, event="pond_splash"), replace(SHORE, **{"event": "pond_splash", **change})
    )


def test_event_that_nothing_calls_is_refused(tree: Path) -> None:
    assert "nothing calls pond_splash" in refused(tree, replace(SHORE, event="pond_dive"))


@pytest.mark.parametrize("why", ["", " \n", "why", "TODO: tell", "...", "<reason>", "- x -"])
def test_reason_is_required(tree: Path, why: str) -> None:
    with pytest.raises(PlaceError, match="say why"):
        make_series(open_kernel(tree), Plan((EventText(EVENT, system="pond"),), (SHORE,), why=why))


def test_creator_that_is_not_always_there(tmp_path: Path) -> None:
    makefile = "obj-y := pond.o\nobj-$(CONFIG_SHORE) += shore.o\n"
    root = make_tree(
        tmp_path, {"water/Makefile": makefile, "water/Kconfig": 'config SHORE\n\tbool "Shore"\n'}
    )
    reason = refused(root, SHORE, REED, event=LAKE)
    assert "no file that calls the events" in reason
    assert "water/shore.c with CONFIG_SHORE" in reason
    assert "garden/reed.c with CONFIG_REED, into the module green" in reason
    series = made(root, SHORE, REED, event=replace(LAKE, creator="water/shore.c"))
    assert any("a kernel without that does not link" in note for note in series.notes)
    module = refused(root, SHORE, REED, event=replace(LAKE, creator="garden/reed.c"))
    assert "built-in code cannot call a module" in module


@pytest.mark.parametrize(
    ("makefile", "entry"),
    [
        ("obj-$(CONFIG_TRACEPOINTS) += shore.o\n", ""),  # without them no call does anything
        ("obj-$(CONFIG_SHORE) += shore.o\n", "\tselect SHORE\n"),
        ("obj-$(CONFIG_SHORE) += shore.o\n", "\tdepends on WATER && SHORE\n"),
        ("obj-$(CONFIG_SHORE) += shore.o\n", "config SHORE\n\tdef_bool y\n"),
    ],
)
def test_creator_that_comes_with_its_callers(tmp_path: Path, makefile: str, entry: str) -> None:
    files = {"water/Makefile": makefile, "garden/Kconfig": f'config REED\n\ttristate "Reed"\n{entry}'}
    root = make_tree(tmp_path, files)
    series = made(root, REED, event=replace(LAKE, creator="water/shore.c"))
    assert not any("does not link" in note for note in series.notes)


def test_header_of_the_same_name_beside_a_file_is_another_one(tmp_path: Path) -> None:
    """kernel/futex/futex.h is not include/trace/events/futex.h."""
    shore = SHORE_C.replace('"shore.h"', '"pond.h"')
    text = made(make_tree(tmp_path, {"water/shore.c": shore, "water/pond.h": ""}), SHORE).files[
        "water/shore.c"
    ]
    assert "#include <trace/events/pond.h>\n" in text


# Messages and mails.


def test_mail_is_wrapped_and_safe_for_git(tree: Path) -> None:
    why = (
        "From: somebody else\n\n"
        + "long words " * 40
        + "\n\n---\ndiff --git a/x b/x\n\nFrom here on\n\n-- >8 --"
    )
    series = make_series(
        open_kernel(tree), Plan((EventText(EVENT, system="pond"),), (SHORE,), "pond: tell of splashes", why)
    )
    mail = write_mail(series.patches[0].message, AUTHOR, series.patches[0].changes)
    head, _, body = mail.partition("\n\n")
    assert head.splitlines() == [
        "From " + "0" * 40 + " Mon Sep 17 00:00:00 2001",
        'From: "A. U. Thor" <author@example.org>',
        "Date: Sat, 21 Nov 2026 03:00:00 +0000",
        "Subject: [PATCH] pond: tell of splashes",
    ]
    message = body.partition("\n---\n")[0]
    assert message.endswith("\n\nSigned-off-by: A. U. Thor <author@example.org>")
    assert max(map(len, message.splitlines())) <= 75
    assert not re.search(r"^(?:---|diff |From |From:|-- $)", message, re.MULTILINE)
    assert not re.search(r"[ \t]+$", message, re.MULTILINE)


def test_names_beyond_ascii(tree: Path) -> None:
    author = Author("Jürgen Groß", "j@example.org", "Sat, 21 Nov 2026 03:00:00 +0000", is_signed=False)
    series = make_series(
        open_kernel(tree),
        Plan((EventText(EVENT, system="pond"),), (SHORE,), "pond: größer", WHY + " Später."),
    )
    mail = write_mail(series.patches[0].message, author, series.patches[0].changes)
    head = mail.partition("\n\n")[0]
    assert head.isascii()
    assert "Content-Transfer-Encoding: 8bit" in head
    assert "Signed-off-by" not in mail


@pytest.mark.parametrize(
    ("name", "mail", "date"),
    [
        ("", "a@b.c", "today"),
        ("A <x>", "a@b.c", "today"),
        ("A", "a b@c", "d"),
        ("A", "nobody", "d"),
        ("A", "a@b.c", ""),
    ],
)
def test_authors_that_are_none(name: str, mail: str, date: str) -> None:
    with pytest.raises(PlaceError):
        Author(name, mail, date)


def test_cover_letter(tree: Path) -> None:
    series = made(tree, SHORE, REED, event=LAKE)
    messages = [p.message for p in series.patches]
    cover = write_cover(series.cover, AUTHOR, messages, series.changes)
    assert "Subject: [PATCH 0/2] tracing: add the trace event lake_splash\n" in cover
    assert "A. U. Thor (2):\n  water: shore: add the trace event lake_splash\n  garden: reed:" in cover
    assert " 3 files changed, " in cover
    assert "diff --git" not in cover


def test_a_custom_event_of_the_same_name_is_not_a_second_declaration(tree: Path) -> None:
    """samples/trace_events/trace_custom_sched.h records sched_waking a second time, and declares no tracepoint."""
    custom = tree / "samples/custom.h"
    custom.parent.mkdir()
    custom.write_text(
        "#define TRACE_SYSTEM custom\nTRACE_CUSTOM_EVENT(pond_dive,\n"
        "\tTP_PROTO(struct duck *duck, int depth),\n\tTP_ARGS(duck, depth),\n"
        "\tTP_STRUCT__entry(\n\t\t__field(int, depth)\n\t),\n\tTP_fast_assign(\n\t\t__entry->depth = depth;\n\t),\n"
        '\tTP_printk("%d", __entry->depth)\n);\n'
    )
    call = CallAt("garden/reed.c", (InsertionPoint("reed_hide", Where.RETURNS),), "pond_dive", ("duck", "1"))
    series = make_series(open_kernel(tree), Plan((), (call,), why=WHY))
    assert "trace_pond_dive(duck, 1);" in series.files["garden/reed.c"]


def test_a_file_that_is_not_there_is_refused_before_the_tree_is_searched() -> None:
    class Unsearched:
        def __getattr__(self, name: str) -> object:
            raise AssertionError(f"the tree was asked for {name}")

    kernel = KernelTree(Unsearched(), lambda _: None)  # type: ignore[arg-type]
    call = CallAt("mm/nosuch.c", (InsertionPoint("f", Where.ENTRY),), "pond_dive", ("duck", "1"))
    with pytest.raises(PlaceError, match=r"mm/nosuch\.c: no such file in the tree"):
        make_series(kernel, Plan((), (call,), why=WHY))
