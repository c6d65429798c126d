"""`tracepoint check` and `tracepoint explain`."""

from __future__ import annotations

import io
import json
import re
import sys
import weakref
from pathlib import Path

import pytest

from tracepoint.check.registry import RULES
from tracepoint.cli.main import main
from tracepoint.source.environment import Environment

# TP305 is the trailing newline, which an unsafe fix takes away; TP011 has a safe one.
FAULTY = """#undef TRACE_SYSTEM
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

	TP_printk("n=%d\\n", __entry->n)
);

#endif /* _TRACE_DEMO_H */

#include <trace/define_trace.h>
"""
CLEAN = FAULTY.replace("n=%d\\n", "n=%d")
UNGUARDED = CLEAN.replace(" || defined(TRACE_HEADER_MULTI_READ)", "")


@pytest.fixture
def header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "demo.h"
    path.write_text(FAULTY)
    return Path("demo.h")


def test_clean_header_is_status_0(header: Path, capsys) -> None:
    header.write_text(CLEAN)
    assert main(["check", "demo.h"]) == 0
    assert capsys.readouterr() == ("", "0 findings in 1 header\n")


def test_findings_are_data_and_status_1(header: Path, capsys) -> None:
    assert main(["check", "--output-format", "concise"]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("demo.h:23:")
    assert out.count("\n") == 1
    assert ": TP305 " in out
    assert err.startswith("1 finding in 1 header; --fix --unsafe 1 more")


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--select", "TP1"], 0),
        (["--select", "TP3"], 1),
        (["--ignore", "TP305"], 0),
        (["--ignore", "trailing-newline-in-printk"], 0),
        (["--select", "TP3", "--ignore", "TP301,TP302"], 1),
    ],
)
def test_select_and_ignore(header: Path, words: list[str], status: int) -> None:
    assert main(["check", *words]) == status


def test_unknown_selector(header: Path, capsys) -> None:
    assert main(["check", "--select", "TP999"]) == 2
    assert "TP999" in capsys.readouterr().err


def test_settings_file(header: Path) -> None:
    Path(".tracepoint.toml").write_text('ignore = ["TP305"]\n')
    assert main(["check"]) == 0


def test_safe_fix_is_written(header: Path, capsys) -> None:
    header.write_text(UNGUARDED)
    assert main(["check", "--fix"]) == 0
    assert header.read_text() == CLEAN
    assert "1 file changed" in capsys.readouterr().err


def test_unsafe_fix_needs_a_word(header: Path) -> None:
    assert main(["check", "--fix"]) == 1
    assert header.read_text() == FAULTY
    assert main(["check", "--fix", "--unsafe"]) == 0
    assert header.read_text() == CLEAN


def test_diff_writes_nothing(header: Path, capsys) -> None:
    header.write_text(UNGUARDED)
    assert main(["check", "--diff"]) == 1
    out, err = capsys.readouterr()
    assert header.read_text() == UNGUARDED
    assert "+#if !defined(_TRACE_DEMO_H) || defined(TRACE_HEADER_MULTI_READ)\n" in out
    assert out.startswith("--- a/demo.h\n")
    assert "1 file would change" in err


def test_baseline_hides_what_is_known(header: Path, capsys) -> None:
    assert main(["check", "--write-baseline", "known.json"]) == 0
    assert main(["check", "--baseline", "known.json"]) == 0
    assert "1 more in the baseline" in capsys.readouterr().err
    header.write_text(FAULTY.replace("__entry->n)", "__entry->n, 1)"))
    assert main(["check", "--baseline", "known.json"]) == 1


def test_damaged_baseline(header: Path, capsys) -> None:
    Path("known.json").write_text("[]")
    assert main(["check", "--baseline", "known.json"]) == 2
    assert "not a baseline file" in capsys.readouterr().err


def test_stdin(header: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FAULTY.encode())))
    assert main(["check", "-", "--output-format", "concise"]) == 1
    assert capsys.readouterr().out.startswith("<stdin>:23:")


@pytest.mark.parametrize("form", ["json", "sarif", "gitlab"])
def test_json_formats_are_json(header: Path, capsys, form: str) -> None:
    assert main(["check", "--output-format", form]) == 1
    assert json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("form", ["full", "jsonl", "github", "junit"])
def test_other_formats_name_code_and_file(header: Path, capsys, form: str) -> None:
    assert main(["check", "--output-format", form]) == 1
    out = capsys.readouterr().out
    assert "TP305" in out
    assert "demo.h" in out


def test_arity_comes_from_the_tree(tmp_path: Path, capsys) -> None:
    for name, text in {
        "include/linux/tracepoint.h": "",
        "include/trace/stages/stage6_event_callback.h": "#define __assign_str(dst) x\n",
        "include/trace/events/demo.h": CLEAN.replace(
            "__field(	int,	n	)", "__string(	n,	n	)"
        )
        .replace("__entry->n	= n;", "__assign_str(n, n);")
        .replace('"n=%d", __entry->n', '"n=%s", __get_str(n)')
        .replace("int n", "const char *n"),
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert main(["check", str(tmp_path), "--output-format", "concise"]) == 1
    assert "TP501" in capsys.readouterr().out
    assert main(["check", str(tmp_path), "--fix"]) == 0
    assert "__assign_str(n);" in path.read_text()


@pytest.mark.parametrize("word", ["TP301", "tp301", "pointer-dereference-in-printk"])
def test_explain(word: str, capsys) -> None:
    assert main(["explain", word]) == 0
    assert capsys.readouterr().out.startswith("# `pointer-dereference-in-printk` (TP301)\n")


def test_explain_list(capsys) -> None:
    assert main(["explain", "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [rule.code for rule in RULES]


@pytest.mark.parametrize(
    ("word", "hint"),
    [("pointer-deref", "did you mean pointer-dereference-in-printk?"), ("qqqqq", "--list shows all")],
)
def test_explain_unknown(word: str, hint: str, capsys) -> None:
    assert main(["explain", word]) == 2
    assert hint in capsys.readouterr().err


def test_explain_nothing(capsys) -> None:
    assert main(["explain"]) == 2
    assert "which rule?" in capsys.readouterr().err


def test_python_files(tmp_path, capsys) -> None:
    path = tmp_path / "shop.py"
    path.write_text("from shop.events import trace_sold\n\ndef sell(queue):\n    trace_sold(queue.pop())\n")
    assert main(["check", str(path), "--output-format", "concise"]) == 1
    told = capsys.readouterr()
    assert told.out == (
        f"{path}:4:16: TP401 trace_sold: the argument `queue.pop()` changes something, but not while the "
        "tracepoint is off\n"
    )
    assert told.err == "1 finding in 1 file\n"
    assert main(["check", str(path), "--ignore", "TP401"]) == 0
    path.write_text("def (")
    assert main(["check", str(path)]) == 2
    assert f"{path}:1:5: not valid Python" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["check", "fmt"])
def test_a_folder_without_trace_headers_is_told(command: str, tmp_path: Path, capsys) -> None:
    (tmp_path / "a.h").write_text("int a;\n")
    assert main([command, str(tmp_path)]) == 0
    assert f"warning: no trace headers in {tmp_path}" in capsys.readouterr().err


def test_a_baseline_that_cannot_be_written_names_its_own_file(tmp_path: Path, capsys) -> None:
    target = tmp_path / "nosuch" / "known.json"
    assert main(["check", "--write-baseline", str(target), str(tmp_path)]) == 2
    assert f"error: {target}: No such file or directory" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_named_itself(tmp_path: Path, monkeypatch, capsys) -> None:
    header = tmp_path / "a.h"
    header.write_text((Path(__file__).parents[2] / "examples/legacy_subsys.h").read_text())

    def refuse(**_words: object) -> None:
        raise PermissionError(13, "Permission denied", str(tmp_path / ".a.h.x47jx7ch"))

    monkeypatch.setattr("tracepoint.tree.writing.mkstemp", refuse)
    assert main(["check", "--fix", str(header)]) == 2
    assert f"error: {header}: Permission denied" in capsys.readouterr().err


def test_colour_marks_code_and_place(header: Path, capsys) -> None:
    assert main(["check", "demo.h", "--color", "always"]) == 1
    out = capsys.readouterr().out
    assert "\x1b[1mdemo.h:23:12\x1b[0m: \x1b[1;33mTP305\x1b[0m" in out
    assert "\x1b[31m^" in out
    assert main(["check", "demo.h", "--color", "never"]) == 1
    assert re.sub(r"\x1b\[[0-9;]*m", "", out) == capsys.readouterr().out


@pytest.mark.parametrize("words", [["check", "--fix", "--unsafe", "--diff"], ["fmt", "--diff"]])
def test_colour_of_a_diff_is_that_of_git(header: Path, capsys, words) -> None:
    header.write_text(FAULTY.replace("TP_PROTO(int n),\n\n\tTP_ARGS", "TP_PROTO(int n), TP_ARGS"))
    main([*words, "demo.h", "--color", "always"])
    out = capsys.readouterr().out
    assert "\x1b[1m--- a/demo.h\x1b[0m\n" in out
    assert "\x1b[36m@@ " in out
    assert "\n\x1b[31m-" in out
    assert "\n\x1b[32m+" in out


def test_headers_are_let_go_one_after_another(tmp_path: Path, monkeypatch) -> None:
    for number in range(60):
        (tmp_path / f"h{number}.h").write_text(CLEAN.replace("tick", f"tick{number}"))
    alive: weakref.WeakSet[Environment] = weakref.WeakSet()
    most = 0
    make = Environment.__init__

    def count(self: Environment, *words, **named) -> None:
        nonlocal most
        make(self, *words, **named)
        alive.add(self)
        most = max(most, len(alive))

    monkeypatch.setattr(Environment, "__init__", count)
    assert main(["check", "--ignore", "TP017", str(tmp_path)]) == 0
    assert 0 < most < 40


def test_what_looks_across_files_knows_headers_that_were_let_go(tmp_path: Path, capsys) -> None:
    for number in range(20):
        (tmp_path / f"h{number:02}.h").write_text(CLEAN.replace("tick", f"tick{number}"))
    (tmp_path / "again.h").write_text(CLEAN.replace("tick", "tick19"))
    assert main(["check", "--ignore", "TP017", "--output-format", "json", str(tmp_path)]) == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [(f["code"], f["event"], Path(f["path"]).name) for f in found] == [
        ("TP103", "demo:tick19", "h19.h")
    ]
