"""`tracepoint check --fix --patch`: patches that git am takes, saying what a reader saw."""

from __future__ import annotations

from pathlib import Path

import pytest

from repositories import ENV, git, needs_git
from tracepoint.cli.main import main

HEADER = """#undef TRACE_SYSTEM
#define TRACE_SYSTEM demo

#if !defined(_TRACE_DEMO) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_DEMO_H

#include <linux/tracepoint.h>

TRACE_EVENT(tick,

	TP_PROTO(const char *name, int n, int ret, u32 *list),

	TP_ARGS(name, n, ret, list),

	TP_STRUCT__entry(
		__string(	name,	name	)
		__field(	int,	n	)
		__field(	int,	ret	)
		__array(	u32,	list,	4	)
	),

	TP_fast_assign(
		memcpy(__entry->list, list,
			4);
		__entry->ret	= ret;
	),

	TP_printk("%s n=%d ret=%d list=%s\\n", __get_str(name), __entry->n, ret,
		__print_hex(__entry->list, 16))
);

#endif /* _TRACE_DEMO_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
"""
WORDS = ("check", "--fix", "--patch", "--author", "A B <a@example.org>")


@pytest.fixture
def header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A header in a git tree, in the second commit of two."""
    for name, value in ENV.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    git(Path(), "init", "-q", ".")
    git(Path(), "commit", "-q", "--allow-empty", "-m", "base")
    path = tmp_path / "drivers" / "demo" / "trace.h"
    path.parent.mkdir(parents=True)
    path.write_text(HEADER)
    git(Path(), "add", "-A")
    git(Path(), "commit", "-q", "-m", "demo: add trace events")
    return path


@needs_git
def test_patches_apply_one_after_the_other_and_fix_the_faults(header: Path, tmp_path: Path, capsys) -> None:
    assert main([*WORDS, "-o", "out", "drivers"]) == 1
    assert header.read_text() == HEADER
    patches = capsys.readouterr().out.split()
    assert len(patches) == 6
    subjects = {Path(p).read_text().partition("Subject: ")[2].partition("\n")[0] for p in patches}
    assert subjects == {
        "[PATCH] demo: fix the include guard of the trace header",
        "[PATCH] demo: assign name in trace event tick",
        "[PATCH] demo: assign n in trace event tick",
        "[PATCH] demo: copy all elements in trace event tick",
        "[PATCH] demo: remove the newline in trace event tick",
        "[PATCH] demo: print the recorded ret in trace event tick",
    }
    git(Path(), "am", "-q", *patches)
    text = header.read_text()
    assert "#if !defined(_TRACE_DEMO_H) ||" in text
    assert "\t\t__entry->ret\t= ret;\n\t\t__assign_str(name, name);\n\t\t__entry->n = n;\n" in text
    assert "sizeof(__entry->list));" in text
    assert 'list=%s", __get_str(name), __entry->n, __entry->ret,' in text
    assert main(["check", "drivers", "--select", "TP0,TP201,TP202,TP207,TP305,TP319"]) == 0


@needs_git
def test_a_patch_says_what_a_reader_saw_and_what_it_fixes(header: Path, capsys) -> None:
    commit = git(Path(), "rev-parse", "HEAD")[:12]
    assert main([*WORDS, "--select", "TP207"]) == 1
    out = capsys.readouterr().out
    assert " - tick: memcpy copies 4 bytes, list has 4 elements of 4\n" in out
    assert "keeps the bytes of an older record" in " ".join(out.split())
    trailers = f'Fixes: {commit} ("demo: add trace events")\nSigned-off-by: A B <a@example.org>\n---\n'
    assert trailers in out
    assert "to be filled in" not in out


@needs_git
@pytest.mark.parametrize("way", ["uncommitted", "first commit"])
def test_fixes_is_left_to_fill_where_there_is_no_history(header: Path, capsys, way: str) -> None:
    if way == "uncommitted":
        header.write_text(
            HEADER.replace("			4);", "			(4));").replace(
                "list,	4	)", "list,	(4)	)"
            )
        )
    else:
        git(Path(), "checkout", "-q", "--orphan", "fresh")
        git(Path(), "commit", "-q", "-m", "all")
    assert main([*WORDS, "--select", "TP207"]) == 1
    out = capsys.readouterr().out
    assert "\n---\nFixes: to be filled in" in out
    assert "Fixes: 0" not in out


@needs_git
def test_only_changed_lines_are_patched(header: Path, capsys) -> None:
    header.write_text(HEADER.replace("list=%s\\n", "list: %s\\n"))
    assert main([*WORDS, "--select", "TP3", "--diff-base", "HEAD"]) == 1
    out = capsys.readouterr().out
    assert sorted(line for line in out.splitlines() if line.startswith("Subject:")) == [
        "Subject: [PATCH] demo: print the recorded ret in trace event tick",
        "Subject: [PATCH] demo: remove the newline in trace event tick",
    ]


def test_notes_are_patched_when_asked_for(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    holes = "\t\t__field(\tu8,\ta\t)\n\t\t__field(\tu64,\tb\t)\n"
    line = "\t\t__field(\tint,\tn\t)\n"
    Path("trace.h").write_text(
        HEADER.replace(line, line + holes + holes.replace("a\t", "c\t").replace("b\t", "d\t"))
    )
    main([*WORDS, "--select", "TP204", "trace.h"])
    assert "Subject" not in capsys.readouterr().out
    main([*WORDS, "--unsafe", "--select", "TP204", "trace.h"])
    assert "Subject" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["check", "--patch", "trace.h"], "--patch needs --fix"),
        (["check", "--fix", "--patch", "trace.h"], "who sends the patch?"),
        ([*WORDS, "-o", "trace.h", "trace.h"], "trace.h"),
    ],
)
def test_what_cannot_be_written(tmp_path: Path, monkeypatch, capsys, words: list[str], message: str) -> None:
    for name, value in ENV.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    Path("trace.h").write_text(HEADER)
    assert main(words) != 0
    assert message in capsys.readouterr().err
    assert Path("trace.h").read_text() == HEADER


@needs_git
def test_patches_that_are_there_are_kept(header: Path, capsys) -> None:
    assert main([*WORDS, "--select", "TP207", "-o", "out"]) == 1
    assert main([*WORDS, "--select", "TP207", "-o", "out"]) == 2
    assert main([*WORDS, "--select", "TP207", "-o", "out", "--force"]) == 1
