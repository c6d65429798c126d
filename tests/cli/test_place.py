"""`tracepoint place`: options, plans, output, and changing a tree all or nothing."""

from __future__ import annotations

import io
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from place.trees import EVENT, FILES, SHORE_C, make_tree
from repositories import commit_all, git, needs_git
from tracepoint.cli.main import main
from tracepoint.cli.tree import tree_files

WHY = ["--why", "To see splashes.", "--author", "A <a@example.org>"]
AT = ["--at", "water/shore.c:shore_visit", "--after", "n_visits++;", "--args", "duck, n"]
HEADER = "include/trace/events/pond.h"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "splash.h").write_text(EVENT)
    return make_tree(tmp_path / "tree")


def place(tree: Path, *words: str, event: bool = True) -> int:
    given = ["--event", "splash.h", "--system", "pond"] if event else []
    return main(["place", "--tree", str(tree), *given, *words])


def contents(tree: Path) -> dict[str, str]:
    return {
        str(p.relative_to(tree)): p.read_text()
        for p in tree.rglob("*")
        if p.is_file() and ".git" not in p.parts
    }


def refused(capsys, tree: Path, *words: str, event: bool = True) -> str:
    before = contents(tree)
    assert place(tree, *words, event=event) == 2
    assert contents(tree) == before
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_patch_on_stdout_leaves_the_tree_alone(tree: Path, capsys) -> None:
    assert place(tree, *AT, *WHY) == 0
    out = capsys.readouterr().out
    assert out.startswith("From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n")
    assert "From: A <a@example.org>\nDate: Tue, 14 Nov 2023 22:13:20 +0000\n" in out
    assert "+\ttrace_pond_splash(duck, n);\n" in out
    assert contents(tree) == FILES


def test_event_from_stdin(tree: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(EVENT.encode())))
    assert place(tree, "--event", "-", "--system", "pond", *AT, *WHY, event=False) == 0
    assert "+TRACE_EVENT(pond_splash,\n" in capsys.readouterr().out


def test_event_from_options(tree: Path, capsys) -> None:
    words = [
        "--name",
        "pond_x",
        "--proto",
        "struct duck *duck, int n",
        "--fields",
        "int w = duck->weight, int n",
    ]
    assert place(tree, *words, "--system", "pond", *AT, *WHY, event=False) == 0
    out = capsys.readouterr().out
    assert '+\tTP_printk("w=%d n=%d", __entry->w, __entry->n)\n' in out
    assert "+\t\t__entry->w = duck->weight;\n" in out
    assert "--proto and --fields need --name" in refused(capsys, tree, "--proto", "int n", *AT, *WHY)


def test_several_places(tree: Path, capsys) -> None:
    words = [
        *("--at", "water/shore.c:shore_visit", "--returns", "--call", "pond_splash(duck, n)", "--no-guard"),
        *(
            "--at",
            "water/pond.c:pond_dive",
            "--entry",
            "--call",
            "trace_pond_splash(duck, depth);",
            "--guard",
        ),
    ]
    assert place(tree, *words, *WHY) == 0
    out = capsys.readouterr().out
    assert (
        out.count("+\t\ttrace_pond_splash(duck, n);\n") + out.count("+\ttrace_pond_splash(duck, n);\n") == 2
    )
    assert "+\tif (trace_pond_splash_enabled())\n" in out.replace(" {\n", "\n")


def test_line_chooses_the_statement(tree: Path, capsys) -> None:
    line = 1 + SHORE_C[: SHORE_C.index("depth += ")].count("\n")
    words = ["--at", "water/shore.c:shore_visit", "--before", "--line", str(line), "--args", "duck, n"]
    assert place(tree, *words, *WHY) == 0
    assert (
        " \tn_visits++;\n+\ttrace_pond_splash(duck, n);\n \tdepth += duck->depth;\n"
        in capsys.readouterr().out
    )


def test_files_are_written_as_git_names_them(tree: Path, capsys) -> None:
    reed = ["--at", "garden/reed.c:reed_hide", "--entry", "--args", "duck, 0"]
    assert place(tree, *AT, *reed, *WHY, "-o", "out") == 0
    names = sorted(p.name for p in Path("out").iterdir())
    assert names == [
        "0000-cover-letter.patch",
        "0001-water-shore-add-the-trace-event-pond_splash.patch",
        "0002-garden-reed-call-the-trace-event-pond_splash.patch",
    ]
    assert capsys.readouterr().out.splitlines() == [f"out/{name}" for name in names]
    assert "exists already" in refused(capsys, tree, *AT, *reed, *WHY, "-o", "out")
    assert place(tree, *AT, *reed, *WHY, "-o", "out", "--force") == 0
    assert place(tree, *AT, *reed, *WHY, "-o", "one", "--one-patch") == 0
    assert len(list(Path("one").iterdir())) == 1


def test_apply_changes_the_files_and_keeps_modes(tree: Path, capsys) -> None:
    shore = tree / "water/shore.c"
    shore.chmod(0o640)
    assert place(tree, *AT, "--why", "To see splashes.", "--apply") == 0
    assert sorted(capsys.readouterr().out.split()) == [HEADER, "water/shore.c"]
    assert "trace_pond_splash(duck, n);" in shore.read_text()
    assert "TRACE_EVENT(pond_splash," in (tree / HEADER).read_text()
    assert stat.S_IMODE(shore.stat().st_mode) == 0o640
    changed = {path for path, text in contents(tree).items() if FILES.get(path) != text}
    assert changed == {HEADER, "water/shore.c"}
    # The tree knows the event now.
    assert place(tree, *AT[:-1], "duck, 2", "--call", "pond_splash", *WHY, event=False) == 0
    assert "TRACE_EVENT" not in capsys.readouterr().out
    assert "already declares pond:pond_splash" in refused(capsys, tree, *AT, *WHY)


def test_apply_makes_a_new_header(tree: Path) -> None:
    words = ["--event", "splash.h", "--system", "lake", "--new-header", *AT, "--why", "To see.", "--apply"]
    assert place(tree, *words, event=False) == 0
    made = tree / "include/trace/events/lake.h"
    assert "#define TRACE_SYSTEM lake\n" in made.read_text()
    assert stat.S_IMODE(made.stat().st_mode) == 0o644


@pytest.mark.parametrize("broken", [0, 1])
def test_apply_is_all_or_nothing(tree: Path, monkeypatch, capsys, broken: int) -> None:
    assert main(["index", str(tree)]) == 0  # which saves its index by the same way
    before = contents(tree)
    replace = Path.replace
    done = []

    def failing(self: Path, target: Path) -> Path:
        done.append(target)
        if len(done) == broken + 1:
            raise OSError(28, "No space left on device", str(target))
        return replace(self, target)

    monkeypatch.setattr(tree_files.Path, "replace", failing)
    assert place(tree, *AT, *WHY, "--apply") == 2
    assert "No space left" in capsys.readouterr().err
    assert contents(tree) == before


def test_apply_refuses_a_file_that_changed_meanwhile(tree: Path, monkeypatch, capsys) -> None:
    write = tree_files.write_files

    def late(root: Path, before: dict, after: dict) -> None:
        (tree / "water/shore.c").write_text(SHORE_C + "\n")
        write(root, before, after)

    monkeypatch.setattr("tracepoint.cli.tree.place.write_files", late)
    assert place(tree, *AT, *WHY, "--apply") == 2
    assert "water/shore.c: has changed in the meantime; nothing was written" in capsys.readouterr().err
    assert (tree / HEADER).read_text() == FILES[HEADER]


@needs_git
def test_apply_refuses_changes_that_are_not_committed(tree: Path, capsys) -> None:
    commit_all(tree)
    with (tree / "water/pond.c").open("a") as file:
        file.write("\n/* not mine */\n")
    with (tree / "water/shore.c").open("a") as file:
        file.write("\n/* mine */\n")
    assert "water/shore.c: has uncommitted changes" in refused(capsys, tree, *AT, *WHY, "--apply")
    git(tree, "commit", "-qm", "mine", "water/shore.c")
    assert place(tree, *AT, *WHY, "--apply") == 0  # what is not touched may be dirty


def test_apply_refuses_a_file_that_cannot_be_written(tree: Path, monkeypatch, capsys) -> None:
    # Root, who runs the tests in a container, may write everything.
    monkeypatch.setattr(tree_files.os, "access", lambda path, _: not str(path).endswith("shore.c"))
    assert "water/shore.c: Permission denied" in refused(capsys, tree, *AT, *WHY, "--apply")


def test_author_comes_from_git(tree: Path, capsys, monkeypatch) -> None:
    assert "git config has no user.name" in refused(capsys, tree, *AT, "--why", "To see.")
    config = tree.parent / "gitconfig"
    config.write_text("[user]\n\tname = Gitta\n\temail = g@example.org\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    assert place(tree, *AT, "--why", "To see.") == 0
    assert "Signed-off-by: Gitta <g@example.org>\n" in capsys.readouterr().out
    assert place(tree, *AT, "--why", "To see.", "--no-sign-off", "--date", "2020-02-03T04:05:06+00:00") == 0
    out = capsys.readouterr().out
    assert "Signed-off-by" not in out
    assert "Date: Mon, 03 Feb 2020 04:05:06 +0000" in out


def test_reason_from_a_file(tree: Path, capsys) -> None:
    Path("why.txt").write_text("Because it is\nso.\n\nAnd so.\n")
    assert place(tree, *AT, "--why", "@why.txt", "--author", "A <a@example.org>") == 0
    assert "\nBecause it is so.\n\nAnd so.\n\nDeclare" in capsys.readouterr().out


def test_plan_with_a_declaration_beside_it(tree: Path, capsys) -> None:
    folder = Path("plans")
    folder.mkdir()
    shutil.copy("splash.h", folder / "mine.h")
    (folder / "p.toml").write_text(
        'why = "To see."\nauthor = "P <p@example.org>"\n[[event]]\nfile = "mine.h"\nsystem = "pond"\n'
        '[[call]]\nat = "water/shore.c:shore_visit"\nentry = true\nargs = "duck, n"\n'
    )
    assert place(tree, "--plan", "plans/p.toml", event=False) == 0
    assert "From: P <p@example.org>\n" in capsys.readouterr().out
    assert place(tree, "--plan", "plans/p.toml", "--author", "Q <q@example.org>", event=False) == 0
    assert "From: Q <q@example.org>\n" in capsys.readouterr().out
    assert "a plan replaces --event" in refused(capsys, tree, "--plan", "plans/p.toml", *AT, event=False)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "no place is named"),
        (["--after", "x;"], "--after must come after its --at"),
        ([*AT, "--after", "x;"], "--after is given twice"),
        ([*AT, "--entry"], "only one of entry, after"),
        (["--at", "water/shore.c:shore_visit", "--args", "a"], "name a place"),
        (["--at", "shore_visit", "--entry"], "is not a FILE:FUNCTION"),
        (["--at", "water/shore.c:nobody", "--entry", "--args", "a, b"], "nobody"),
        (["--at", "water/../../splash.c:f", "--entry"], "is not a path of a file below the tree"),
        (["--at", "include/linux/pond.h:f", "--entry"], "headers must not call trace_x()"),
        ([*AT, "--guard", "--no-guard"], "contradict each other"),
        ([*AT, "--date", "soon"], "'soon' is not a valid date"),
        ([*AT, "--author", "nobody"], "git config has no"),
        ([*AT, "--why", ""], "say why"),
        ([*AT, "--subject", "two\nlines"], "is not a subject for a patch"),
        ([*AT, "--apply", "-o", "x"], "not allowed with"),
    ],
)
def test_command_lines_that_cannot_be(tree: Path, capsys, words: list[str], reason: str) -> None:
    assert reason in refused(capsys, tree, *WHY, *words)


def test_not_a_kernel_tree(tree: Path, capsys) -> None:
    assert "not a kernel source tree" in refused(capsys, tree.parent / "cache-or-not", *AT, *WHY)
    (tree / "include/linux/tracepoint.h").unlink()
    assert "not a kernel source tree" in refused(capsys, tree, *AT, *WHY)


def test_unreadable_files(tree: Path, capsys) -> None:
    assert "none.h: No such file" in refused(capsys, tree, *AT, *WHY, "--event", "none.h")
    os.mkfifo(tree / "water/pipe.c")
    words = ["--at", "water/pipe.c:f", "--entry", "--args", "duck, n"]
    assert place(tree, *words, *WHY) == 2
    assert "water/pipe.c: a FIFO, not a file" in capsys.readouterr().err
    (tree / "water/pipe.c").unlink()
    with (tree / "water/pipe.c").open("wb") as file:
        file.truncate(2 << 30)
    assert place(tree, *words, *WHY) == 2
    assert "water/pipe.c: more than 64 MiB" in capsys.readouterr().err


def test_symbolic_link_out_of_the_tree_is_refused(tree: Path, capsys) -> None:
    outside = tree.parent / "outside.c"
    outside.write_text(SHORE_C)
    (tree / "water/link.c").symlink_to(outside)
    words = ["--at", "water/link.c:shore_visit", "--entry", "--args", "duck, n"]
    assert "a symbolic link points outside the tree" in refused(capsys, tree, *words, *WHY, "--apply")
    assert outside.read_text() == SHORE_C


def test_link_to_a_folder_outside_is_refused_for_a_new_header(tree: Path, capsys) -> None:
    (tree.parent / "elsewhere").mkdir()
    (tree / "wild").symlink_to(tree.parent / "elsewhere")
    words = ["--event", "splash.h", "--system", "lake", "--header", "wild/lake.h", "--new-header"]
    error = refused(capsys, tree, *words, *AT, *WHY, "--apply", event=False)
    assert "a symbolic link points outside the tree" in error
    assert list((tree.parent / "elsewhere").iterdir()) == []


def test_damaged_source_is_refused(tree: Path, capsys) -> None:
    (tree / "water/shore.c").write_bytes(SHORE_C.replace("\n", "\r\n").encode())
    before = (tree / "water/shore.c").read_bytes()
    assert place(tree, *AT, *WHY) == 2
    assert "CRLF" in capsys.readouterr().err
    (tree / "water/shore.c").write_bytes(b"\0" * 10_000)
    assert place(tree, *AT, *WHY) == 2
    assert "not a text file" in capsys.readouterr().err
    assert before != (tree / "water/shore.c").read_bytes()


def test_bytes_that_are_not_utf8_survive(tree: Path, capsys) -> None:
    latin = SHORE_C.replace("the pond.", "the p\xf6nd.").encode("latin-1")
    (tree / "water/shore.c").write_bytes(latin)
    assert place(tree, *AT, *WHY, "--apply") == 0
    assert b"the p\xf6nd." in (tree / "water/shore.c").read_bytes()


def test_help_shows_the_places() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tracepoint", "place", "--help"], capture_output=True, text=True, check=True
    )
    for option in ("--at FILE:FUNCTION", "--entry", "--returns", "--before", "--after", "--why", "--apply"):
        assert option in done.stdout
