"""Which files a command means."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tracepoint.errors import TreeError
from tracepoint.tree import scan
from tracepoint.tree.creators import Creators
from tracepoint.tree.headers import read_header
from tracepoint.tree.index.other import read_other
from tracepoint.tree.scan import find_headers, is_trace_header

EVENT = "TRACE_EVENT(foo, TP_PROTO(int a));\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {
        "include/trace/events/foo.h": "#define TRACE_SYSTEM foo\n",
        "include/trace/stages/stage1.h": "#define TRACE_SYSTEM x\n",
        "include/linux/tracepoint.h": EVENT,
        "include/trace/trace_events.h": "#define TRACE_SYSTEM x\n",
        "drivers/a/trace.h": EVENT,
        "drivers/a/plain.h": "int a;\n",
        "drivers/a/trace.c": EVENT,
        ".git/trace.h": EVENT,
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def names(tree: Path, found: list[Path]) -> list[str]:
    return [path.relative_to(tree).as_posix() for path in found]


def test_only_headers_with_a_word_of_declarations_are_matched(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Pattern:
        n_searched = 0

        def search(self, data: bytes) -> re.Match[bytes] | None:
            self.n_searched += 1
            return original.search(data)

    original, pattern = scan._DECLARES, Pattern()
    monkeypatch.setattr(scan, "_DECLARES", pattern)
    (tree / "drivers/a/registers.h").write_text("#define REG_EVENT 1\n" * 1000)
    assert len(find_headers([str(tree)])) == 2
    assert pattern.n_searched == 1


def test_folders_are_walked_for_trace_headers(tree: Path) -> None:
    assert names(tree, find_headers([str(tree)])) == ["drivers/a/trace.h", "include/trace/events/foo.h"]


def test_named_files_are_taken_as_they_are_and_once(tree: Path) -> None:
    plain = str(tree / "drivers/a/plain.h")
    assert names(tree, find_headers([plain, str(tree / "drivers"), plain])) == [
        "drivers/a/plain.h",
        "drivers/a/trace.h",
    ]


def test_exclude(tree: Path) -> None:
    assert names(tree, find_headers([str(tree)], ["*/drivers/*"])) == ["include/trace/events/foo.h"]


def test_missing_path(tree: Path) -> None:
    with pytest.raises(FileNotFoundError):
        find_headers([str(tree / "nosuch")])


@pytest.mark.parametrize(
    ("data", "is_one"),
    [
        (b"DEFINE_EVENT_PRINT(a, b,", True),
        (b"  DECLARE_TRACE(a,", True),
        (b"#undef TRACE_SYSTEM\n# define TRACE_SYSTEM a\n", True),
        (b"DECLARE_TRACEPOINT(rdpmc);", False),
        (b"#define TRACE_EVENT(name, ...)", False),
        (b"#undef TRACE_SYSTEM\n", False),
        (b"\x00\xff", False),
    ],
)
def test_byte_search(data: bytes, is_one: bool) -> None:
    assert is_trace_header(data) is is_one


def test_files_found_in_folders_are_no_fifos_or_devices(tmp_path: Path) -> None:
    """What nobody named is passed over: a C file, a header beside, an included file, a module, a Makefile."""
    kinds = ("Makefile", "pipe.c", "pipe.h", "sub/pipe.h", "mod.ko", "x/format")
    for name in kinds:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        os.mkfifo(tmp_path / name)
    (tmp_path / "include/linux").mkdir(parents=True)
    (tmp_path / "include/linux/tracepoint.h").touch()
    (tmp_path / "events.h").write_text(
        '#define TRACE_SYSTEM pipes\n#include "pipe.h"\nDEFINE_EVENT(unknown, a, TP_PROTO(int n), TP_ARGS(n));\n'
    )
    assert read_header(tmp_path / "events.h").events
    assert Creators(tmp_path).of(tmp_path / "events.h") == []
    (tmp_path / "include/linux/tracepoint.h").unlink()
    with pytest.raises(TreeError, match="a FIFO, not a file"):
        read_other(str(tmp_path))
