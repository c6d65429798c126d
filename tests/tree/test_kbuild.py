"""How C files are built, as Makefiles and Kconfig tell, and which of them are never in one kernel."""

import pytest

from tracepoint.cli.main import main
from tracepoint.tree.kbuild import Built, Kbuild


def test_how_files_are_built():
    files = {
        "kernel/Makefile": "obj-$(CONFIG_FUNCTION_TRACER) += trace/\nobj-$(CONFIG_TRACEPOINTS) += trace/\n"
        "obj-$(CONFIG_PM) += power/\nobj-$(CONFIG_SUSPEND) += power/\n",
        "kernel/trace/Makefile": "obj-$(CONFIG_TRACE_CLOCK) += clock.o\nobj-$(CONFIG_STACK) += both.o\n"
        "obj-$(CONFIG_HIST) += both.o\n",
        "kernel/power/Makefile": "obj-y += main.o\n",
        "fs/Makefile": "obj-y := open.o\nobj-$(CONFIG_XYZ) += xyz/\n",
        "fs/Kconfig": 'config XYZ\n\ttristate "XYZ"\nconfig XYZ_ACL\n\tbool "ACL"\n',
        "fs/xyz/Makefile": "obj-$(CONFIG_XYZ) += xyz.o\nxyz-y += a.o $(addprefix low/, b.o c.o)\n"
        "xyz-$(CONFIG_XYZ_ACL) += acl.o\nifdef CONFIG_XYZ_DEBUG\nxyz-objs += debug.o\nendif\n"
        "obj-m += always.o\n",
        "mm/Makefile": "mmu-$(CONFIG_MMU) := memory.o\nobj-y := slab.o \\\n  $(mmu-y)\n",
    }
    kbuild = Kbuild(files.get)
    # A folder is entered, and a file built, for any of the lines that name it.
    assert kbuild.built("kernel/trace/clock.c") == Built(frozenset(["TRACE_CLOCK"]))
    assert kbuild.built("kernel/trace/both.c") == Built(frozenset(["HIST|STACK"]))
    assert kbuild.built("kernel/power/main.c") == Built(frozenset(["PM|SUSPEND"]))
    assert not kbuild.missing("kernel/power/main.c", frozenset(["SUSPEND"]), frozenset(["PM|SUSPEND"]))
    assert kbuild.missing("kernel/power/main.c", frozenset(["X"]), frozenset(["PM|SUSPEND"]))
    assert kbuild.built("mm/slab.c") == Built()
    assert kbuild.built("mm/memory.c") == Built(frozenset(["MMU"]))
    assert kbuild.built("fs/open.c").is_always
    xyz = "fs/xyz/xyz.o"
    assert kbuild.built("fs/xyz/a.c") == Built(frozenset(["XYZ"]), xyz)
    assert kbuild.built("fs/xyz/low/c.c") == Built(frozenset(["XYZ"]), xyz)
    assert kbuild.built("fs/xyz/acl.c") == Built(frozenset(["XYZ", "XYZ_ACL"]), xyz)
    assert kbuild.built("fs/xyz/debug.c") == Built(frozenset(["XYZ", "XYZ_DEBUG"]), xyz)
    assert kbuild.built("fs/xyz/always.c").module == "fs/xyz/always.o"
    assert not kbuild.built("fs/xyz/unknown.c").is_known


def test_branches_of_a_makefile():
    makefile = (
        "ifdef CONFIG_A\nobj-y += a.o both.o\nelse\nobj-y += b.o both.o\nendif\n"
        "ifneq ($(CONFIG_C),)\nobj-y += c.o\nelse ifeq ($(CONFIG_D), y)\nobj-y += d.o\nendif\n"
        "ifeq ($(V),1)\nobj-y += e.o\nendif\nelse\nendif\nobj-y += f.o\n"
    )
    kbuild = Kbuild({"x/Makefile": makefile}.get)
    built = {name: kbuild.built(f"x/{name}.c").options for name in ("a", "b", "both", "c", "d", "e", "f")}
    assert built == {
        "a": {"A"},
        "b": {"!A"},
        "both": frozenset(),
        "c": {"C"},
        "d": {"!C", "D"},
        "e": {"?"},
        "f": frozenset(),
    }
    assert kbuild.exclude_each_other("x/a.c", "x/b.c")
    assert kbuild.exclude_each_other("x/d.c", "x/c.c")
    assert not kbuild.exclude_each_other("x/a.c", "x/both.c")
    assert not kbuild.exclude_each_other("x/e.c", "x/e.c")


@pytest.mark.parametrize(
    ("kconfig", "is_excluded"),
    [
        ("config A\n\tbool\nconfig B\n\tbool\n\tdepends on RUST && !A\n", True),
        ("config A\n\tbool\n\tdepends on \\\n\t\t(MMU && (B=n)) # not both\nconfig B\n\tbool\n", True),
        (
            "config A\n\tbool\nconfig B\n\tbool\n\tdepends on OTHER\nconfig OTHER\n\tbool\n\tdepends on !A\n",
            True,
        ),
        ('choice\n\tprompt "one"\nconfig A\n\tbool\nconfig B\n\tbool\nendchoice\n', True),
        ("choice\nconfig A\n\tbool\nendchoice\nchoice\nconfig B\n\tbool\nendchoice\n", False),
        ("config A\n\tbool\nconfig B\n\tbool\n\tdepends on RUST || !A\n", False),
        ("config A\n\tbool\nconfig B\n\tbool\n\tdepends on !A if RUST\n", False),
        ("config A\n\tbool\nconfig B\n\tbool\n\thelp\n\t  It does\n\t  depends on !A\n", False),
        ("config A\n\tbool\nconfig B\n\tbool\n\tdepends on A\n", False),
        # Declared twice, it needs one of two things.
        ("config A\n\tbool\nconfig B\n\tbool\n\tdepends on !A\nconfig B\n\tbool\n\tdepends on C\n", False),
        ("config A\n\tbool\nconfig B\n\tbool\n\tdepends on " + "(" * 5000 + "!A" + ")" * 5000 + "\n", False),
    ],
)
def test_kconfig_makes_alternatives(kconfig, is_excluded):
    files = {
        "d/Makefile": "obj-$(CONFIG_A) += a.o\nobj-$(CONFIG_B) += sub/\n",
        "d/sub/Makefile": "obj-y += b.o\n",
    }
    kbuild = Kbuild({**files, "d/Kconfig": kconfig}.get)
    assert kbuild.exclude_each_other("d/a.c", "d/sub/b.c") == is_excluded
    assert kbuild.exclude_each_other("d/sub/b.c", "d/a.c") == is_excluded


def test_what_two_options_build_is_excluded_by_neither():
    files = {
        "d/Makefile": "obj-$(CONFIG_A) += a.o\nobj-$(CONFIG_B) += b.o\nobj-$(CONFIG_C) += b.o\n",
        "d/Kconfig": "config B\n\tbool\n\tdepends on !A\n",
    }
    assert not Kbuild(files.get).exclude_each_other("d/a.c", "d/b.c")


EVENT = """#undef TRACE_SYSTEM
#define TRACE_SYSTEM {0}
#if !defined(_{0}_H) || defined(TRACE_HEADER_MULTI_READ)
#define _{0}_H
#include <linux/tracepoint.h>
TRACE_EVENT(ferry,
	TP_PROTO(int n),
	TP_ARGS(n),
	TP_STRUCT__entry(
		__field(int, n)
	),
	TP_fast_assign(
		__entry->n = n;
	),
	TP_printk("n=%d", __entry->n)
);
#endif
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE {0}
#include <trace/define_trace.h>
"""


@pytest.mark.parametrize(("needed", "n_found"), [("RUST && !FERRY", 0), ("RUST", 1)])
def test_names_of_alternatives_are_not_declared_twice(needed, n_found, tmp_path, capsys):
    files = {
        "include/linux/tracepoint.h": "",
        "include/trace/define_trace.h": "",
        "d/Makefile": "obj-$(CONFIG_FERRY) += old.o\nobj-$(CONFIG_FERRY_RUST) += new.o\n",
        "d/Kconfig": f"config FERRY\n\ttristate\n\nconfig FERRY_RUST\n\tbool\n\tdepends on {needed}\n",
        "d/old.c": '#define CREATE_TRACE_POINTS\n#include "old_trace.h"\n',
        "d/new.c": '#define CREATE_TRACE_POINTS\n#include "new_trace.h"\n',
        "d/old_trace.h": EVENT.format("old_trace"),
        "d/new_trace.h": EVENT.format("new_trace"),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    main(["check", str(tmp_path), "--select", "TP103", "--output-format", "concise"])
    assert capsys.readouterr().out.count("TP103") == n_found


def test_headers_beside_a_tree_are_no_alternatives_of_it(tmp_path, capsys):
    files = {
        "tree/include/linux/tracepoint.h": "",
        "tree/include/trace/define_trace.h": "",
        "own/a.c": '#define CREATE_TRACE_POINTS\n#include "a.h"\n#include "b.h"\n',
        "own/a.h": EVENT.format("a"),
        "own/b.h": EVENT.format("b"),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    main(
        [
            "check",
            str(tmp_path / "own"),
            "-I",
            str(tmp_path / "tree"),
            "--select",
            "TP103",
            "--output-format",
            "concise",
        ]
    )
    assert capsys.readouterr().out.count("TP103") == 1
