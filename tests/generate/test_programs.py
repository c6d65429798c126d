"""eBPF programs, bpftrace scripts, command lines and pages."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from generate.samples import TICK, header_of_text
from tracepoint.errors import GenerateError
from tracepoint.filter.error import FilterError
from tracepoint.generate import bpf_counter, bpftrace_script, command_lines, libbpf_program, markdown_page
from tracepoint.layout.compute import compute_layout
from tracepoint.layout.format import EventFormat, FieldFormat

HEADER = header_of_text(TICK)
EVENT = HEADER["tick"]
LAYOUT = compute_layout(EVENT, environment=HEADER.environment)
STUB = """
#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, type) type *name
void *bpf_map_lookup_elem(void *map, const void *key);
long bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags);
__u64 bpf_get_current_pid_tgid(void);
"""


def compile_c(folder: Path, name: str, *options: str) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    command = ["gcc", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", *options, name]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if "fatal error: linux/" in done.stderr:
        pytest.skip("the kernel's user headers are not installed (Debian package linux-libc-dev)")
    assert done.returncode == 0, done.stderr


def test_record_struct_has_the_offsets_of_the_layout(tmp_path: Path) -> None:
    libbpf_program(EVENT, LAYOUT, name="count").write(tmp_path)
    (tmp_path / "bpf").mkdir()
    (tmp_path / "bpf/bpf_helpers.h").write_text(STUB)
    # The program's own _Static_asserts compare every offset.
    compile_c(tmp_path, "count.bpf.c", "-fsyntax-only", "-I.")
    text = (tmp_path / "count.bpf.c").read_text()
    assert 'SEC("tracepoint/demo/tick")' in text
    assert 'SEC("raw_tracepoint/tick")' in text
    assert "__s32 n;" in text
    assert "__u64 where;" in text
    assert "__u16 list[4];" in text
    assert "call->args[4] is struct page *page" in text


@pytest.mark.oracle
def test_a_program_builds_with_the_clang_and_libbpf_of_the_machine(tmp_path: Path) -> None:
    """With their own headers, as its Makefile finds them: a stand-in for bpf_helpers.h hid asm/types.h."""
    found = sorted(Path("/usr/bin").glob("clang-[0-9][0-9]"))
    clang = shutil.which("clang") or (str(found[-1]) if found else None)
    if clang is None:
        pytest.skip("clang is not installed (Debian package clang)")
    if not Path("/usr/include/bpf/bpf_helpers.h").is_file():
        pytest.skip("libbpf's headers are not installed (Debian package libbpf-dev)")
    libbpf_program(EVENT, LAYOUT, name="count").write(tmp_path)
    done = subprocess.run(
        ["make", f"CLANG={clang}"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert {"count", "count.bpf.o"} <= {path.name for path in tmp_path.iterdir()}


def test_counter_compiles(tmp_path: Path) -> None:
    bpf_counter(EVENT, name="counter").write(tmp_path)
    compile_c(tmp_path, "counter.c", "-o", "counter", "-Wno-missing-field-initializers")
    done = subprocess.run([tmp_path / "counter"], capture_output=True, text=True, check=False)
    assert "usage:" in done.stderr or "no map can be made" in done.stderr


@pytest.mark.parametrize(
    ("by", "measure", "line"),
    [
        ("comm", "count", "@[comm] = count();"),
        ("", "count", "@ = count();"),
        ("name, cpu", "hist:n", "@[str(args->name), cpu] = hist(args->n);"),
        ("kind", "sum:n", "@[args->kind] = sum(args->n);"),
    ],
)
def test_bpftrace(by: str, measure: str, line: str) -> None:
    text = bpftrace_script(LAYOUT, by=by, measure=measure)["tick.bt"]
    assert "tracepoint:demo:tick" in text
    assert line in text


@pytest.mark.parametrize(
    ("by", "measure", "message"),
    [
        ("com", "count", "no field 'com'; did you mean comm"),
        ("comm", "median:n", "no measure 'median:n'; there are count, sum:FIELD"),
        ("comm", "hist:nn", "no field 'nn'; did you mean n"),
        ("comm", "hist:name", "name is not a number"),
    ],
)
def test_bpftrace_refuses(by: str, measure: str, message: str) -> None:
    with pytest.raises(GenerateError, match=message):
        bpftrace_script(LAYOUT, by=by, measure=measure)


def test_only_dynamic_text_is_read_with_str() -> None:
    """To bpftrace a fixed array of char is text already; `str()` of it is an error."""
    fields = (FieldFormat("by", "char[8]", 8, 8, True), FieldFormat("city", "__data_loc char[]", 16, 4, True))
    text = bpftrace_script(EventFormat("s", "e", fields, "", n_common=0), by="by,city")["e.bt"]
    assert "@[args->by, str(args->city)] = count();" in text


def test_enums_of_modules_are_a_note() -> None:
    layout = EventFormat("s", "e", (FieldFormat("k", "enum kind", 8, 4, False),), "", n_common=0)
    assert "bpftrace before" in bpftrace_script(layout).notes[0]


def test_command_lines(tmp_path: Path) -> None:
    files = command_lines([LAYOUT], filter_text='name == "it\'s"', seconds=3)
    text = files["commands.sh"]
    assert "trace-cmd record -e demo:tick -f 'name == \"it'\"'\"'s\"' -o trace.dat sleep 3" in text
    assert "perf record -a -e demo:tick --filter 'name" in text
    assert "\techo 1 > events/demo/tick/enable\n" in text
    (path,) = files.write(tmp_path)
    assert subprocess.run(["sh", "-n", path], check=False).returncode == 0
    assert subprocess.run(["sh", path], capture_output=True, check=False).returncode == 2


def test_page() -> None:
    text = markdown_page([(EVENT, LAYOUT)], name="page")["page.md"]
    assert "# Trace events of demo" in text
    assert "| 8 | 4 | yes | `int` | `n` |" in text
    assert "__print_symbolic" in text
    assert (
        "trace_tick(int n, bool is_hot, const char *name, const u16 *list, struct page *page, void *where);"
        in text
    )


@pytest.mark.parametrize("name", ["a b", "a;reboot", "$(x)", "a\nb", ""])
def test_odd_names_never_reach_a_shell_or_c(name: str) -> None:
    layout = EventFormat("s", name, (), "")
    for make in (lambda: command_lines([layout]), lambda: bpftrace_script(layout, name="x")):
        with pytest.raises(GenerateError, match="system and event are names"):
            make()


def test_nothing_to_describe() -> None:
    with pytest.raises(GenerateError, match="no events"):
        markdown_page([])
    with pytest.raises(GenerateError, match="no events"):
        command_lines([])


def test_a_filter_is_tried_first() -> None:
    with pytest.raises(FilterError, match="Field not found"):
        command_lines([LAYOUT], filter_text="m == 1")
