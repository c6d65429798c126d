"""The difference of two source trees is that of the format files of two booted kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

import tracepoint as tp
from oracles import kernel_source, kernel_sources
from tracepoint.lab.build.source import point_release, tree_version
from tracepoint.layout.compare import ChangeKind, Reader, compare_formats
from tracepoint.layout.format import EventFormat
from tracepoint.tree.index.build import build_index
from tracepoint.tree.query.diff import compare_classes, compare_trees, tree_formats
from tracepoint.tree.query.tree import Tree
from tree.booted import booted_formats, module_formats

#: `pageblock_order` is a macro here, another one there, and a variable with every option on.
CONFIGURED = {"kmem:mm_page_alloc_extfrag"}


def changes(old: EventFormat, new: EventFormat) -> set[tuple[str, ...]]:
    """What changed; the text of a print format and the size of a record are not part of both sides."""
    return {
        (c.kind, c.field) if c.kind is ChangeKind.PRINT_CHANGED else (c.kind, c.field, c.before, c.after)
        for c in compare_formats(old, new)
        if c.kind is not ChangeKind.SIZE_CHANGED
    }


@pytest.mark.oracle
@pytest.mark.guest
def test_diff_of_trees_is_that_of_booted_kernels() -> None:
    ours, theirs, is_same = [], [], True
    for series in ("6.1", "6.12"):
        source = kernel_source(f"linux-source-{series}")
        formats, image = booted_formats(series)
        theirs.append(formats | module_formats(image))
        ours.append(tree_formats(tp.open_tree(source))[0])
        is_same = is_same and tree_version(source) == point_release(image.version)
    common = theirs[0].keys() & theirs[1].keys()
    assert len(common) > 3000
    missing = {name for name in common if name not in ours[0] or name not in ours[1]}
    different = {
        name
        for name in common - missing
        if changes(theirs[0][name], theirs[1][name]) != changes(ours[0][name], ours[1][name])
    }
    if is_same:
        assert (missing, different) == (set(), CONFIGURED)
    else:  # a source of another point release may differ in some
        assert len(missing | different) < 0.01 * len(common)


@pytest.mark.oracle
@pytest.mark.parametrize("name", kernel_sources())
def test_a_tree_compared_with_itself_has_no_changes(name: str) -> None:
    tree = tp.open_tree(kernel_source(name))
    formats = tree_formats(tree)[0].values()
    assert any(len({field.name for field in f.event_fields}) < len(f.event_fields) for f in formats)
    assert compare_trees(tree, tree) == []


CLASS = """DECLARE_EVENT_CLASS({name}, TP_PROTO(int a), TP_ARGS(a), TP_STRUCT__entry(__field({ctype}, a)),
	TP_fast_assign(__entry->a = a;), TP_printk("%d", (int)__entry->a));
"""
EVENT = """DEFINE_EVENT({cls}, {name}, TP_PROTO(int a), TP_ARGS(a));
"""


def made(root: Path, classes: dict[str, str], events: dict[str, str]) -> Tree:
    """A tree with classes of one field, by name its type, and events, by name their class."""
    text = "#define TRACE_SYSTEM demo\n"
    text += "".join(CLASS.format(name=name, ctype=ctype) for name, ctype in classes.items())
    text += "".join(EVENT.format(name=name, cls=cls) for name, cls in events.items())
    for path, content in {"include/linux/tracepoint.h": "", "include/trace/events/demo.h": text}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)
    return Tree.of(build_index(str(root), jobs=1)[0])


def test_another_struct_breaks_programs_with_core(tmp_path: Path) -> None:
    old = made(
        tmp_path / "old",
        {"one": "int", "two": "int"},
        {"stays": "one", "moves": "one", "widens": "one", "loses": "two", "keeps": "one"},
    )
    new = made(
        tmp_path / "new",
        {"one": "int", "same": "int", "wide": "long"},
        {"stays": "one", "moves": "same", "widens": "wide", "loses": "same", "keeps": "one"},
    )
    found = {
        c.event: (c.before, c.after, c.breaks, c.sentence.rpartition("which ")[2])
        for c in compare_classes(old, new)
    }
    core = frozenset({Reader.BPF_CORE})
    assert found == {
        "demo:moves": ("one", "same", frozenset(), "has the same fields"),
        "demo:widens": ("one", "wide", core, "has other fields"),
        "demo:loses": ("two", "same", core, "is gone"),
    }
    assert {c.event for c in compare_trees(old, new) if c.kind is ChangeKind.CLASS_CHANGED} == set(found)
