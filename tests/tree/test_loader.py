"""Reading headers from disk with what they include."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracepoint.tree.loader import FolderLoader, find_tree, read_header

HEADER = """
#undef TRACE_SYSTEM
#define TRACE_SYSTEM foo
#include <trace/events/names.h>
#include "near.h"
TRACE_EVENT(foo, TP_PROTO(int a), TP_ARGS(a), FIELDS, TP_fast_assign(__entry->a = a;),
	TP_printk("%s", NEAR));
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {
        "include/linux/tracepoint.h": "",
        "include/trace/events/names.h": "#define FIELDS TP_STRUCT__entry(__field(int, a))\n",
        "include/trace/events/foo.h": HEADER,
        "include/trace/events/near.h": '#define NEAR "near"\n',
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_includes_of_the_tree_are_found(tree: Path) -> None:
    header = read_header(tree / "include/trace/events/foo.h")
    assert header.diagnostics == ()
    assert [f.name for f in header["foo"].fields] == ["a"]
    assert header["foo"].printk.text == '"%s", "near"'


def test_include_folders_outside_a_tree(tree: Path) -> None:
    (tree / "include/linux/tracepoint.h").unlink()
    path = tree / "include/trace/events/foo.h"
    assert [f.name for f in read_header(path, include=[tree / "include"])["foo"].fields] == ["a"]


def test_macros_are_given(tmp_path: Path) -> None:
    path = tmp_path / "a.h"
    path.write_text(HEADER)
    header = read_header(path, define={"FIELDS": "TP_STRUCT__entry(__field(u8, b))"})
    assert [f.name for f in header["foo"].fields] == ["b"]


def test_find_tree(tree: Path) -> None:
    assert find_tree(tree / "include/trace/events/foo.h") == tree
    assert find_tree(Path("/")) is None


def test_loader_reads_each_file_once(tree: Path) -> None:
    loader = FolderLoader([tree / "include"])
    one = loader.load("trace/events/names.h", is_quoted=False, includer="x.h")
    assert one is not None
    assert loader.load("trace/events/names.h", is_quoted=True, includer="y/z.h") is one
    assert loader.load("no/such.h", is_quoted=False, includer="x.h") is None
    assert loader.load("linux", is_quoted=False, includer="x.h") is None


def test_missing_header(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_header(tmp_path / "nosuch.h")
