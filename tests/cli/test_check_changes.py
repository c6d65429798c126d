"""`tracepoint check --diff-base`, and patches: only what was changed is reported."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from repositories import ENV, commit_all, git, needs_git
from tracepoint.cli.main import main

CLEAN = """#undef TRACE_SYSTEM
#define TRACE_SYSTEM demo

#if !defined(_TRACE_DEMO_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_DEMO_H

#include <linux/tracepoint.h>

TRACE_EVENT(tick,

	TP_PROTO(int n),

	TP_ARGS(n),

	TP_STRUCT__entry(
		__field(	int,	n	)
	),

	TP_fast_assign(
		__entry->n	= n;
	),

	TP_printk("n=%d", __entry->n)
);

TRACE_EVENT(tock,

	TP_PROTO(int n),

	TP_ARGS(n),

	TP_STRUCT__entry(
		__field(	int,	n	)
	),

	TP_fast_assign(
		__entry->n	= n;
	),

	TP_printk("m=%d", __entry->n)
);

#endif /* _TRACE_DEMO_H */

#include <trace/define_trace.h>
"""
OLD_FAULT = CLEAN.replace("n=%d", "n=%d\\n")
BOTH = OLD_FAULT.replace("m=%d", "m=%d\\n")
CONCISE = ("--output-format", "concise")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git tree whose header had a fault from the beginning."""
    for name, value in ENV.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    header = tmp_path / "include" / "demo tree.h"
    header.parent.mkdir()
    header.write_text(OLD_FAULT)
    (tmp_path / "main.c").write_text("int a;\n")
    commit_all(tmp_path)
    return header


@needs_git
def test_nothing_changed_is_nothing_found(tree: Path, capsys) -> None:
    assert main(["check", *CONCISE]) == 1
    assert main(["check", "--diff-base", "HEAD"]) == 0
    assert "nothing changed since HEAD" in capsys.readouterr().err


@needs_git
@pytest.mark.parametrize("step", ["working tree", "index", "commit"])
def test_only_changed_lines_are_reported(tree: Path, capsys, step: str) -> None:
    tree.write_text(BOTH)
    if step != "working tree":
        git(Path(), "add", "-A")
    if step == "commit":
        git(Path(), "commit", "-q", "-m", "more")
    base = "HEAD~1" if step == "commit" else "HEAD"
    assert main(["check", "--diff-base", base, *CONCISE]) == 1
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert out.startswith("include/demo tree.h:40:")
    assert "TP305" in out


@needs_git
def test_changes_are_found_from_a_folder_below_and_limited_to_paths(tree: Path, capsys, monkeypatch) -> None:
    tree.write_text(BOTH)
    monkeypatch.chdir(tree.parent)
    assert main(["check", "--diff-base", "HEAD", *CONCISE]) == 1
    assert capsys.readouterr().out.startswith("demo tree.h:40:")
    assert main(["check", "--diff-base", "HEAD", "../main.c"]) == 0
    assert main(["check", "--diff-base", "HEAD", "--exclude", "demo*", *CONCISE]) == 0
    assert main(["check", "--diff-base", "HEAD", "demo tree.h", *CONCISE]) == 1


@needs_git
def test_a_new_file_is_all_changed(tree: Path, capsys) -> None:
    (tree.parent / "other.h").write_text(BOTH)
    assert main(["check", "--diff-base", "HEAD", *CONCISE]) == 1
    lines = [line.partition(": TP")[0] for line in capsys.readouterr().out.splitlines() if "TP305" in line]
    assert lines == ["include/other.h:23:12", "include/other.h:40:12"]


@needs_git
def test_a_fault_on_an_old_line_about_a_changed_one_is_reported(tree: Path, capsys) -> None:
    tree.write_text(CLEAN)
    git(Path(), "commit", "-q", "-a", "-m", "clean")
    tree.write_text(CLEAN.replace("EVENT(tick", "EVENT(tock"))
    assert main(["check", "--diff-base", "HEAD", *CONCISE]) == 1
    assert capsys.readouterr().out.startswith("include/demo tree.h:26:")


@needs_git
def test_fix_leaves_old_lines_alone(tree: Path) -> None:
    tree.write_text(BOTH)
    assert main(["check", "--diff-base", "HEAD", "--fix", "--unsafe"]) == 0
    assert tree.read_text() == OLD_FAULT


@needs_git
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--diff-base", "no-such"], "no revision 'no-such'"),
        (["--diff-base", "--output=x"], "no revision '--output=x'"),
        (["--diff-base", "HEAD", "-"], "stdin has no revisions"),
        (["--diff-base", "HEAD", "nothing.h"], "no such file or folder"),
    ],
)
def test_what_git_does_not_know(tree: Path, capsys, monkeypatch, words: list[str], message: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    words = [f"--diff-base={words[1]}", *words[2:]]
    assert main(["check", *words]) == 2
    assert message in capsys.readouterr().err


@needs_git
def test_outside_of_a_git_tree(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert main(["check", "--diff-base", "HEAD"]) == 2
    assert "not a git repository" in capsys.readouterr().err


@pytest.fixture
def patch(tree: Path) -> Path:
    """A patch, with mail around it, that brings a second fault."""
    tree.write_text(BOTH)
    git(Path(), "commit", "-q", "-a", "-m", "demo: tell what tock says")
    path = tree.parent.parent / "0001-demo.patch"
    path.write_text(git(Path(), "format-patch", "--stdout", "-1"))
    git(Path(), "reset", "-q", "--hard", "HEAD~1")
    return path


@needs_git
@pytest.mark.parametrize("way", ["file", "stdin", "from below"])
def test_a_patch_is_checked_onto_its_tree(patch: Path, tree: Path, capsys, monkeypatch, way: str) -> None:
    number = patch.read_text().split("\n").index('+	TP_printk("m=%d\\n", __entry->n)') + 1
    name = "0001-demo.patch"
    if way == "stdin":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(patch.read_bytes())))
        name = "-"
    if way == "from below":
        monkeypatch.chdir(tree.parent)
        name = "../0001-demo.patch"
    assert main(["check", name, *CONCISE]) == 1
    out = capsys.readouterr().out
    shown = "<stdin>" if name == "-" else name
    assert out.startswith("demo tree.h:40:" if way == "from below" else "include/demo tree.h:40:")
    assert out.endswith(f" ({shown}:{number})\n")
    assert out.count("\n") == 1
    assert tree.read_text() == OLD_FAULT


@needs_git
def test_patches_that_the_branch_has_already_are_checked_as_it_is(patch: Path, tree: Path, capsys) -> None:
    number = patch.read_text().split("\n").index('+	TP_printk("m=%d\\n", __entry->n)') + 1
    git(Path(), "am", "-q", "0001-demo.patch")
    assert main(["check", "0001-demo.patch", *CONCISE]) == 1
    out = capsys.readouterr().out
    assert out.startswith("include/demo tree.h:40:")
    assert out.endswith(f" (0001-demo.patch:{number})\n")
    assert out.count("\n") == 1


@needs_git
def test_a_series_on_its_own_branch(tree: Path, capsys) -> None:
    def commit(name: str) -> None:
        git(Path(), "add", "-A")
        git(Path(), "commit", "-q", "-m", name)

    (tree.parent / "gone.h").write_text("int a;\n")
    commit("base")
    (tree.parent / "made.h").write_text(BOTH)
    commit("a new header")
    (tree.parent / "gone.h").unlink()
    (tree.parent / "made.h").write_text(BOTH.replace("m=%d", "mm=%d"))
    tree.write_text(BOTH)
    commit("change it, and more")
    Path("series.patch").write_text(git(Path(), "format-patch", "--stdout", "--no-renames", "-2"))
    assert main(["check", "series.patch", *CONCISE]) == 1
    on_branch = capsys.readouterr().out
    assert on_branch.count("TP305") == 3
    git(Path(), "reset", "-q", "--hard", "HEAD~2")
    assert main(["check", "series.patch", *CONCISE]) == 1
    assert capsys.readouterr().out == on_branch


@needs_git
def test_a_branch_that_has_changed_the_lines_again_is_refused(patch: Path, tree: Path, capsys) -> None:
    git(Path(), "am", "-q", "0001-demo.patch")
    tree.write_text(tree.read_text().replace("m=%d", "mm=%d"))
    assert main(["check", "0001-demo.patch", *CONCISE]) == 2
    assert "hunk 1 does not apply to include/demo tree.h" in capsys.readouterr().err


@needs_git
def test_a_clean_patch_and_one_without_trace_headers(patch: Path, tree: Path, capsys) -> None:
    Path("c.patch").write_text("--- a/main.c\n+++ b/main.c\n@@ -1 +1 @@\n-int a;\n+int b;\n")
    assert main(["check", "c.patch"]) == 0
    assert "no trace headers in c.patch" in capsys.readouterr().err
    assert main(["check", "0001-demo.patch", "c.patch", "--output-format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)


@needs_git
def test_a_patch_of_new_files_needs_no_tree(patch: Path, tree: Path, capsys, monkeypatch, tmp_path) -> None:
    lines = BOTH.splitlines()
    body = "".join(f"+{line}\n" for line in lines)
    made = f"--- /dev/null\n+++ b/include/new.h\n@@ -0,0 +1,{len(lines)} @@\n{body}"
    (tmp_path / "alone").mkdir()
    monkeypatch.chdir(tmp_path / "alone")
    Path("new.patch").write_text(made)
    assert main(["check", "new.patch", *CONCISE]) == 1
    out = capsys.readouterr().out
    assert "include/new.h:23:" in out
    assert "(new.patch:26)" in out


@needs_git
def test_what_a_header_includes_is_read_as_the_patch_leaves_it(tree: Path, capsys) -> None:
    shown = tree.parent / "shown.h"
    shown.write_text("#define SHOWN __entry->n\n")
    text = CLEAN.replace("TRACE_EVENT(tick", '#include "shown.h"\n\nTRACE_EVENT(tick')
    tree.write_text(text.replace('"n=%d", __entry->n', '"n=%d", SHOWN'))
    git(Path(), "add", "-A")
    git(Path(), "commit", "-q", "-m", "shown")
    shown.write_text("#define SHOWN __entry->gone\n")
    tree.write_text(tree.read_text().replace('"n=%d"', '"N=%d"'))
    Path("s.patch").write_text(git(Path(), "diff"))
    git(Path(), "checkout", "-q", ".")
    assert main(["check", "s.patch", *CONCISE]) == 1
    assert "the record has no field gone" in capsys.readouterr().out


@needs_git
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("m=%d", "k=%d"), "hunk 1 does not apply to include/demo tree.h"),
        (lambda text: text.replace("demo tree.h", "gone.h"), "upwards has include/gone.h"),
        (lambda text: "words\n", "no patch"),
        (lambda text: text[: text.index("+	TP_printk")], "ends early"),
    ],
)
def test_a_patch_that_does_not_apply(patch: Path, tree: Path, capsys, change, message: str) -> None:
    patch.write_text(change(patch.read_text()))
    assert main(["check", "0001-demo.patch"]) == 2
    assert message in capsys.readouterr().err


@needs_git
@pytest.mark.parametrize("words", [["--fix"], ["--diff-base", "HEAD"], ["main.c"]])
def test_what_does_not_go_with_a_patch(patch: Path, tree: Path, words: list[str]) -> None:
    assert main(["check", "0001-demo.patch", *words]) == 2
    assert tree.read_text() == OLD_FAULT
