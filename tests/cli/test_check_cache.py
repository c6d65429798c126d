"""What `tracepoint check` keeps between runs never makes a result another, and saves reading what is unchanged."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import tracepoint
from tracepoint.check.checked import Checked
from tracepoint.check.engine import Checker
from tracepoint.check.registry import RULES
from tracepoint.check.saved import from_row, to_row
from tracepoint.cli.declare import check_cache
from tracepoint.cli.main import main
from tracepoint.model.read import read_header_text
from tracepoint.tree import disk
from tracepoint.tree.headers import HeaderReader
from tracepoint.tree.query.opening import open_tree

#: `LENGTH` comes from an included file; a record longer than 1 KiB is a finding.
HEADER = """#undef TRACE_SYSTEM
#define TRACE_SYSTEM NAME
#if !defined(_TRACE_NAME_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_NAME_H
#include <linux/tracepoint.h>
#include <linux/length.h>
TRACE_EVENT(NAME_done,
	TP_PROTO(int n),
	TP_ARGS(n),
	TP_STRUCT__entry(__field(int, n) __array(char, text, LENGTH)),
	TP_fast_assign(__entry->n = n; memset(__entry->text, 0, LENGTH);),
	TP_printk("n=%d text=%s", __entry->n, __entry->text)
);
#endif
#include <trace/define_trace.h>
"""
DEFINE_TRACE = """#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH ../../drivers/d
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>"""
SHORT, LONG = "#define LENGTH 16\n", "#define LENGTH 99999\n"


def header(name: str) -> str:
    return HEADER.replace("NAME", name)


@pytest.fixture(params=["recent", "settled"])
def tree(request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small kernel tree, whose files count as just changed, or as unchanged for long."""
    if request.param == "settled":
        monkeypatch.setattr(disk, "_RECENT_NS", -(10**12))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "linux"
    write(root / "include/linux/tracepoint.h", "")
    write(root / "include/linux/length.h", SHORT)
    for name in ("one", "two"):
        write(root / f"include/trace/events/{name}.h", header(name))
        write(root / f"kernel/{name}.c", f"#define CREATE_TRACE_POINTS\n#include <trace/events/{name}.h>\n")
    monkeypatch.chdir(root)
    return root


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the headers that were read since the last `clear`."""
    names: list[str] = []
    original = HeaderReader.read

    def noted(self: HeaderReader, path: Path) -> object:
        names.append(Path(path).name)
        return original(self, path)

    monkeypatch.setattr(HeaderReader, "read", noted)
    return names


class Run:
    """Runs the command with the cache and without, which must say the same."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str) -> list[str]:
        told = self.once(*words)
        assert told == self.once("--no-cache", *words)
        return [f"{f['code']} {Path(f['path']).name}" for f in json.loads(told[1])["findings"]]

    def once(self, *words: str) -> tuple[int, str, str]:
        status = main(["check", "--output-format", "json", *words])
        said = self._capsys.readouterr()
        return status, said.out, said.err


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(capsys)


def kept_files(tree: Path) -> list[Path]:
    return sorted((tree.parent / "cache/tracepoint/checks").glob("*.json"))


def test_unchanged_headers_are_not_read_again(tree: Path, run: Run, read: list[str]) -> None:
    write(tree / "include/linux/length.h", LONG)
    first = run.once("include")
    assert sorted(read) == ["one.h", "two.h"]
    read.clear()
    assert run.once("include") == first
    assert run.once("include") == first
    assert read == []
    assert "TP205" in first[1]


def test_only_the_header_that_changed_is_read_again(tree: Path, run: Run, read: list[str]) -> None:
    run.once()
    read.clear()
    path = tree / "include/trace/events/two.h"
    path.write_text(path.read_text().replace("n=%d", "n=%d\\n"))
    assert "TP306" in run.once()[1]
    assert read == ["two.h"]
    assert run() == ["TP306 two.h"]


def test_a_change_that_leaves_size_and_time_is_seen(tree: Path, run: Run) -> None:
    path = tree / "include/trace/events/two.h"
    run()
    state = path.stat()
    path.write_text(path.read_text().replace("TP_ARGS(n)", "TP_ARGS(m)"))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert run() == ["TP101 two.h"]


def test_a_file_that_was_only_touched_is_not_read_as_a_header_again(
    tree: Path, run: Run, read: list[str]
) -> None:
    run.once()
    read.clear()
    for path in tree.rglob("*.[ch]"):
        path.touch()
    run.once()
    assert read == []


def test_an_included_file_that_changes_is_seen(tree: Path, run: Run) -> None:
    assert run() == []
    write(tree / "include/linux/length.h", LONG)
    assert sorted(run()) == ["TP205 one.h", "TP205 two.h"]
    (tree / "include/linux/length.h").unlink()
    assert run() == []
    write(tree / "include/linux/length.h", LONG)
    assert len(run()) == 2


@pytest.mark.parametrize("place", ["arch/x86/include/linux/length.h", "first/linux/length.h"])
def test_an_included_file_that_appears_earlier_in_the_path_is_seen(tree: Path, run: Run, place: str) -> None:
    (tree / "first").mkdir()
    (tree / "arch/x86/include").mkdir(parents=True)
    words = ("-I", "first", "include/trace/events/one.h")
    assert run(*words) == []
    write(tree / place, LONG)
    assert run(*words) == ["TP205 one.h"]


def test_what_the_creating_file_includes_is_seen(tree: Path, run: Run) -> None:
    path = tree / "include/trace/events/one.h"
    path.write_text(header("one").replace("LENGTH", "WIDTH"))
    write(tree / "include/linux/width.h", LONG.replace("LENGTH", "WIDTH"))
    creator = tree / "kernel/one.c"
    assert run(str(path)) == []
    write(creator, "#include <linux/width.h>\n" + creator.read_text())
    assert run(str(path)) == ["TP205 one.h"]
    text = creator.read_text()
    creator.unlink()
    assert run(str(path)) == []
    write(tree / "mm/new.c", text)
    assert run(str(path)) == ["TP205 one.h"]


def test_a_folder_of_a_makefile_is_seen(tree: Path, run: Run) -> None:
    write(
        tree / "drivers/d/trace.h",
        header("d")
        .replace("<linux/length.h>", '"own_length.h"')
        .replace("#include <trace/define_trace.h>", DEFINE_TRACE),
    )
    write(tree / "drivers/d/own/own_length.h", LONG)
    assert run("drivers") == []
    write(tree / "drivers/d/Makefile", "ccflags-y += -I$(src)/own\n")
    assert run("drivers") == ["TP205 trace.h"]


def test_the_configuration_of_the_tree_is_seen(tree: Path, run: Run) -> None:
    write(tree / "include/linux/length.h", "#ifdef CONFIG_LONG\n" + LONG + "#else\n" + SHORT + "#endif\n")
    write(tree / ".config", "# CONFIG_LONG is not set\nCONFIG_A=y\n")
    assert run() == []
    write(tree / ".config", "CONFIG_LONG=y\nCONFIG_A=y\n")
    assert len(run()) == 2


def test_how_strings_are_assigned_in_the_tree_is_seen(tree: Path, run: Run) -> None:
    path = tree / "include/trace/events/one.h"
    text = path.read_text().replace("__field(int, n)", "__field(int, n) __string(s, name)")
    text = text.replace("int n),", "int n, const char *name),").replace("TP_ARGS(n)", "TP_ARGS(n, name)")
    text = text.replace("__entry->n = n;", "__entry->n = n; __assign_str(s, name);")
    path.write_text(text.replace("n=%d", "s=%s n=%d").replace('", __entry->n', '", __get_str(s), __entry->n'))
    stage = tree / "include/trace/stages/stage6_event_callback.h"
    write(stage, "#define __assign_str(dst, src) x\n")
    assert run() == []
    write(stage, "#define __assign_str(dst) x\n")
    assert [word[:5] for word in run()] == ["TP501"]


def test_headers_that_come_and_go_are_seen(tree: Path, run: Run) -> None:
    assert run() == []
    three = tree / "include/trace/events/three.h"
    write(three, header("three").replace("n=%d", "n=%d\\n"))
    assert run() == ["TP306 three.h"]
    three.unlink()
    assert run() == []
    write(tree / "include/linux/length.h", SHORT + header("four").replace("n=%d", "n=%d\\n"))
    assert "TP306 length.h" in run()


def test_findings_across_headers_come_out_the_same(tree: Path, run: Run, read: list[str]) -> None:
    assert run() == []
    two = tree / "include/trace/events/two.h"
    two.write_text(header("two").replace("two_done", "one_done"))
    read.clear()
    assert "TP103" in run.once()[1]
    assert read == ["two.h"]
    assert run() == ["TP103 two.h"]
    (tree / "include/trace/events/one.h").write_text(header("one").replace("one_done", "one_other"))
    assert run() == []


def test_other_settings_are_seen(tree: Path, run: Run) -> None:
    write(tree / "include/linux/length.h", LONG)
    assert len(run()) == 2
    assert run("--ignore", "TP205") == []
    assert run("--select", "TP1") == []
    assert run("--exclude", "*/two.h") == ["TP205 one.h"]
    write(tree / ".tracepoint.toml", 'ignore = ["TP2"]\n')
    assert run() == []
    write(tree / ".tracepoint.toml", 'define = ["LENGTH=16"]\n')
    assert len(run()) == len(run("--no-cache"))


@pytest.mark.parametrize("name", ["version", "code", "python"])
def test_an_upgrade_is_seen(
    tree: Path, run: Run, read: list[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    run.once()
    read.clear()
    changes = {
        "version": (tracepoint, "__version__", "99"),
        "code": (check_cache, "_code_stamp", lambda: "other"),
        "python": (check_cache.sys, "version", "4.0"),
    }
    monkeypatch.setattr(*changes[name])
    run.once()
    assert sorted(read) == ["one.h", "two.h"]


def test_changed_code_has_another_stamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "__init__.py", "")
    write(tmp_path / "check/rules/new.py", "a = 1\n")
    monkeypatch.setattr(tracepoint, "__file__", str(tmp_path / "__init__.py"))
    before = check_cache._code_stamp()
    write(tmp_path / "check/rules/new.py", "a = 10\n")
    assert check_cache._code_stamp() != before


def test_what_the_index_knows_of_callers_is_seen(tree: Path, run: Run) -> None:
    one = tree / "include/trace/events/one.h"
    one.write_text(
        header("one")
        .replace("int n", "const char *n")
        .replace("__field(int, n)", "__field(const char *, n)")
        .replace("%d", "%s")
    )
    for name in ("Makefile", "Kconfig", "kernel/Makefile"):
        write(tree / name, "")
    creator = tree / "kernel/one.c"
    text = creator.read_text()
    write(creator, text + 'void f(void)\n{\n\ttrace_one_done("a");\n}\n')
    assert run() == []
    open_tree(tree, jobs=1)
    assert run() == ["TP326 one.h"]
    assert run() == ["TP326 one.h"]
    write(creator, text + 'void f(void)\n{\n\ttrace_one_done(tracepoint_string("a"));\n}\n')
    assert run() == []
    open_tree(tree, jobs=1)
    assert run() == []


def test_a_link_that_leads_to_another_tree_is_seen(tree: Path, run: Run) -> None:
    other = tree.parent / "other"
    write(other / "include/linux/tracepoint.h", "")
    write(other / "include/linux/length.h", LONG)
    write(other / "include/trace/events/one.h", header("one"))
    link = tree.parent / "link"
    link.symlink_to(tree)
    assert run(str(link / "include/trace/events/one.h")) == []
    link.unlink()
    link.symlink_to(other)
    assert run(str(link / "include/trace/events/one.h")) == ["TP205 one.h"]


def test_nothing_is_used_or_kept_without_cache(tree: Path, run: Run, read: list[str]) -> None:
    run.once("--no-cache")
    assert kept_files(tree) == []
    run.once()
    before = [path.read_bytes() for path in kept_files(tree)]
    read.clear()
    run.once("--no-cache")
    assert sorted(read) == ["one.h", "two.h"]
    assert [path.read_bytes() for path in kept_files(tree)] == before


def test_stdin_and_patches_are_not_kept(tree: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    patch = f"--- a/include/linux/length.h\n+++ b/include/linux/length.h\n@@ -1 +1 @@\n-{SHORT}+{LONG}"
    write(tree / "a.patch", patch)
    run.once("a.patch")
    assert kept_files(tree) == []


def _cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _turned(data: bytes) -> bytes:
    return data.replace(b"TP205", b"TP206")


def _of_another_format(data: bytes) -> bytes:
    return data.replace(b"cache 1", b"cache 2", 1)


def _of_another_shape(data: bytes) -> bytes:
    return _with_checksums([b'{"key": []}', b"[]", b"[]"])


def _with_other_rows(data: bytes) -> bytes:
    head, *rest = data.splitlines()[1:]
    broken = json.loads(head)
    broken["rows"] = {"a/": {"names": "b", "stamps": ["c"], "answers": {"unknown": {"b": 1}}}}
    return _with_checksums([json.dumps(broken).encode(), *rest])


def _with_other_findings(data: bytes) -> bytes:
    head, _, _ = data.splitlines()[1:]
    return _with_checksums([head, b'{"headers": {}, "findings": [["TP205", 1]]}', b'{"files": 1}'])


def _with_nesting(data: bytes) -> bytes:
    return _with_checksums([b"[" * 100_000, b"", b""])


def _with_checksums(lines: list[bytes]) -> bytes:
    return b"\n".join((check_cache._first_line(lines), *lines))


@pytest.mark.parametrize(
    "damage",
    [
        _cut,
        _turned,
        _of_another_format,
        _of_another_shape,
        _with_other_rows,
        _with_other_findings,
        _with_nesting,
        lambda _: b"",
        lambda _: b"\0\n\xff",
    ],
)
def test_a_damaged_file_is_ignored_and_written_anew(tree: Path, run: Run, read: list[str], damage) -> None:
    write(tree / "include/linux/length.h", LONG)
    first = run.once()
    (file,) = kept_files(tree)
    file.write_bytes(damage(file.read_bytes()))
    read.clear()
    assert run.once() == first
    assert sorted(read) == ["one.h", "two.h"]
    read.clear()
    assert run.once() == first
    assert read == []


def test_a_file_that_others_may_write_is_ignored(tree: Path, run: Run, read: list[str]) -> None:
    run.once()
    kept_files(tree)[0].chmod(0o666)
    read.clear()
    run.once()
    assert sorted(read) == ["one.h", "two.h"]
    assert kept_files(tree)[0].stat().st_mode & 0o777 == 0o600


def test_a_file_of_another_user_is_ignored(
    tree: Path, run: Run, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run.once()
    read.clear()
    monkeypatch.setattr(check_cache.os, "geteuid", lambda: os.getuid() + 1)
    run.once()
    assert sorted(read) == ["one.h", "two.h"]


def test_where_nothing_can_be_kept_the_result_is_the_same(
    tree: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tree / "file", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tree / "file"))
    assert run() == []
    assert run() == []


def test_the_oldest_files_go(tree: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_cache, "_MAX_FILES", 2)
    for word in ("TP1", "TP2", "TP3"):
        run.once("--select", word)
    assert len(kept_files(tree)) == 2


def test_fixes_are_made_from_what_was_kept(tree: Path, run: Run) -> None:
    path = tree / "include/trace/events/one.h"
    path.write_text(header("one").replace(" || defined(TRACE_HEADER_MULTI_READ)", ""))
    assert run("include/trace/events/one.h") == ["TP011 one.h"]
    assert run.once("--fix", "include/trace/events/one.h")[0] == 0
    assert path.read_text() == header("one")
    assert run("include/trace/events/one.h") == []


def test_a_python_file_beside_headers_is_checked_each_time(tree: Path, run: Run) -> None:
    script = tree / "shop.py"
    write(script, "from events import trace_sold\ntrace_sold(3)\n")
    assert run("shop.py", "include") == []
    write(script, "from events import trace_sold\ntrace_sold(queue.pop())\n")
    assert run("shop.py", "include") == ["TP401 shop.py"]


def test_every_rule_that_looks_across_files_keeps_its_candidates() -> None:
    text = (
        header("one")
        .replace("<linux/length.h>", "<linux/length.h>\nenum fruit { APPLE };")
        .replace('", __entry->n', ' %zu %d", sizeof(struct a), APPLE, __entry->n')
        + "DECLARE_EVENT_CLASS(unused, TP_PROTO(int n), TP_ARGS(n), TP_STRUCT__entry(__field(int, n)),\n"
        'TP_fast_assign(__entry->n = n;), TP_printk("n=%d", __entry->n));\n'
    )
    first, second = Checker(select=["ALL"]), Checker(select=["ALL"])
    checked = first.add(read_header_text(text, "one.h"))
    assert set(checked.candidates) == {rule.code for rule in RULES if rule.candidates is not None}
    again = from_row(Checked, json.loads(json.dumps(to_row(checked))))
    assert again == checked
    second.add_checked(again)
    assert second.findings() == first.findings()


@pytest.mark.parametrize(
    "row", [None, [], ["a.h"], {"a": 1}, ["a.h", [["TP1"]], {}, [], []], ["a.h", [], {"TP001": [[]]}, [], []]]
)
def test_rows_of_another_shape_are_refused(row: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_row(Checked, row)
