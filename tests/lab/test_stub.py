"""Stubs: which include lines, which .c, and one header compiled against installed kernel headers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from compiled import compile_header
from oracles import builtin_formats, installed_headers
from tracepoint.errors import LabError
from tracepoint.lab.build.stub import (
    find_create_trace_points,
    include_lines_of,
    module_compiler,
)
from tracepoint.layout.format import read_format

HEADER = """
#undef TRACE_SYSTEM
#define TRACE_SYSTEM stubdemo
#if !defined(_TRACE_STUBDEMO_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_STUBDEMO_H
#include <linux/tracepoint.h>
TRACE_DEFINE_ENUM(PIDTYPE_TGID);
TRACE_EVENT(stub_tick,
	TP_PROTO(struct hidden *p, int n),
	TP_ARGS(p, n),
	TP_STRUCT__entry(
		__field(u8, kind)
		__field(unsigned long, where)
		__array(char, comm, TASK_COMM_LEN)
		__string(name, p->name)
	),
	TP_fast_assign(
		__entry->kind = p->kind;
		__assign_str(name, p->name);
	),
	TP_printk("kind=%s %s", __print_symbolic(__entry->kind, { PIDTYPE_TGID, "TGID" }), __get_str(name))
);
#endif
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH ../../drivers/stubdemo
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE stub_header
#include <trace/define_trace.h>
"""


# As much of Kbuild as compiles one file.
MAKEFILE = """
unexport LC_ALL
CC = {calls}
include $(M)/Kbuild
FLAGS := $(filter-out $(ccflags-remove-y),{unknown} -O2) $(ccflags-y)
stub.o:
	cd $(M) && $(CC) $(FLAGS) -c -o $@ stub.c
	echo 'savedcmd_stub.o := $(CC) $(FLAGS) -c -o $@ stub.c' >$(M)/.stub.o.cmd
"""


@pytest.fixture
def headers() -> Path:
    folder = installed_headers()
    try:
        module_compiler(folder)
    except LabError as error:
        pytest.skip(f"no module can be compiled here: {error.args[0].splitlines()[0]}")
    return folder


def test_include_lines_keep_conditionals_and_stop_at_the_header() -> None:
    text = (
        "#include <linux/a.h>\n#ifdef CONFIG_X \\\n && Y\n# include <linux/b.h>\nint c;\n"
        "#define CREATE_TRACE_POINTS\n#include <trace/events/one.h>\n#endif\n"
        '#include "sub/two.h"\n#include <linux/late.h>\n'
    )
    before = ["#include <linux/a.h>", "#ifdef CONFIG_X \\", " && Y", "# include <linux/b.h>"]
    assert include_lines_of(text, "one.h") == [*before, "#endif"]
    assert include_lines_of(text, "two.h") == [*before, "#include <trace/events/one.h>", "#endif"]


def test_the_creating_source_is_found_directly_or_through_a_header_beside_it(tmp_path: Path) -> None:
    files = {
        "include/trace/events/near.h": "",
        "include/trace/events/far.h": "",
        "drivers/x/near.h": "",
        "kernel/a.c": "#define CREATE_TRACE_POINTS\n#include <trace/events/near.h>\n",
        "drivers/x/b.c": '#define CREATE_TRACE_POINTS\n#include "near.h"\n',
        "fs/far/main.c": '#define CREATE_TRACE_POINTS\n#include "internal.h"\n',
        "fs/far/internal.h": "#include <trace/events/far.h>\n",
        "fs/other.c": "#include <trace/events/far.h>\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    def found(name: str) -> str | None:
        path = find_create_trace_points(tmp_path / name, tmp_path)
        return str(path.relative_to(tmp_path)) if path else None

    assert found("include/trace/events/near.h") == "kernel/a.c"
    assert found("drivers/x/near.h") == "drivers/x/b.c"
    assert found("include/trace/events/far.h") == "fs/far/main.c"
    assert found("include/trace/events/none.h") is None


def test_a_header_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no such header"):
        compile_header(tmp_path / "none.h", kernel_headers=tmp_path)


def test_a_folder_that_is_no_kernel(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text("")
    with pytest.raises(LabError, match="Kbuild"):
        compile_header(tmp_path / "a.h", kernel_headers=tmp_path)


@pytest.mark.parametrize(
    ("calls", "instead_of", "options"),
    [
        ("gcc", "", ["-O2"]),
        ("x86_64-linux-gnu-gcc-99", "x86_64-linux-gnu-gcc-99", ["-O2", "-Wno-attributes"]),
    ],
)
def test_the_compiler_of_the_machine_stands_in_for_one_that_is_not_installed(
    calls: str, instead_of: str, options: list[str], tmp_path: Path
) -> None:
    """It need not know all options of the other."""
    if shutil.which("gcc") is None or shutil.which("make") is None:
        pytest.skip("gcc and make are not installed")
    unknown = "-fnever-heard-of=16 --param-nor-this" if instead_of else ""
    (tmp_path / "Makefile").write_text(MAKEFILE.format(calls=calls, unknown=unknown))
    compiler = module_compiler(tmp_path)
    assert compiler.instead_of == instead_of
    assert compiler.words[: 1 + len(options)] == ("gcc", *options)


@pytest.mark.oracle
def test_own_header_with_private_structs(headers: Path, tmp_path: Path) -> None:
    path = tmp_path / "stub_header.h"
    path.write_text(HEADER)
    (event,) = compile_header(path, kernel_headers=headers)
    assert (event.system, event.name) == ("stubdemo", "stub_tick")
    assert [(f.name, f.offset, f.size) for f in event.event_fields] == [
        ("kind", 8, 1),
        ("where", 16, 8),
        ("comm", 24, 16),
        ("name", 40, 4),
    ]
    assert event.print_fmt == '"kind=%s %s", __print_symbolic(REC->kind, { 1, "TGID" }), __get_str(name)'


@pytest.mark.oracle
def test_errors_of_the_compiler_are_told(headers: Path, tmp_path: Path) -> None:
    path = tmp_path / "stub_header.h"
    path.write_text(HEADER.replace("u8, kind", "secret_t, kind"))
    with pytest.raises(LabError, match="unknown type name 'secret_t'") as caught:
        compile_header(path, kernel_headers=headers)
    assert caught.value.status
    assert "gcc" in caught.value.command


@pytest.mark.oracle
def test_a_kernel_header_gives_what_a_kernel_of_its_series_showed() -> None:
    """A point release changes no event of the scheduler, so any headers of 6.1 do."""
    folders = sorted(Path("/usr/src").glob("linux-headers-6.1.0-*-amd64"))
    if not folders:
        pytest.skip("no linux-headers-6.1.0-*-amd64 are installed: `make test` as root installs them")
    folder = folders[-1]
    common = folder.with_name(folder.name.removesuffix("-amd64").removesuffix("-cloud") + "-common")
    header = common / "include/trace/events/sched.h"
    recorded = builtin_formats()
    events = compile_header(header, kernel_headers=folder)
    assert len(events) > 20
    for event in events:
        shown = read_format(recorded[f"sched/{event.name}"], "sched")
        assert event.same_record(shown)
        assert event.print_fmt == shown.print_fmt
