"""Generated sources judged by the kernel's own checkpatch.pl and by its compiler."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from generate.samples import TICK, header_of_text, inputs_of
from oracles import installed_headers, kernel_source
from tracepoint.generate import kernel_module, probe_module, read_facts
from tracepoint.lab.build.module import build_modules
from tracepoint.tree.headers import read_header
from tracepoint.tree.kernel_files import read_kernel_files
from tracepoint.tree.tracing_macros import FACT_FILES, TreeFacts

pytestmark = pytest.mark.oracle
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# TRACE_EVENT() itself is laid out like that: TP_PROTO() below it one tab in, lists after a bracket.
OF_TRACE_EVENT = "PARENTHESIS_ALIGNMENT,OPEN_ENDED_LINE,LONG_LINE"


def check_patch(folder: Path, *names: str, ignore: str = "") -> str:
    script = kernel_source() / "scripts/checkpatch.pl"
    if shutil.which("perl") is None or not script.is_file():
        pytest.skip("checkpatch.pl or perl is missing")
    options = [
        "--no-tree",
        "--strict",
        "--terse",
        "--no-summary",
        *(["--ignore", ignore] if ignore else []),
        "-f",
    ]
    command = ["perl", script, *options, *names]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["swap", "traps", "sched_switch", "block_class", "every_field"])
@pytest.mark.parametrize("has_leaves", [False, True])
def test_modules_are_clean(name: str, has_leaves: bool, tmp_path: Path) -> None:
    header = read_header(EXAMPLES / f"{name}.h")
    inputs = inputs_of(header) if has_leaves else None
    kernel_module(header, name="m", inputs=inputs, export=True).write(tmp_path)
    assert check_patch(tmp_path, "m.c", "Kbuild", "Makefile") == ""
    assert check_patch(tmp_path, "m_trace.h", ignore=OF_TRACE_EVENT) == ""


@pytest.mark.parametrize("by_name", [False, True])
def test_probes_are_clean(by_name: bool, tmp_path: Path) -> None:
    header = read_header(EXAMPLES / "sched_switch.h")
    probe_module(header.events[0], name="a_probe_with_a_long_name", by_name=by_name).write(tmp_path)
    assert check_patch(tmp_path, "a_probe_with_a_long_name.c", "Kbuild", "Makefile") == ""


@pytest.fixture(scope="module")
def headers() -> Path:
    return installed_headers()


@pytest.fixture(scope="module")
def facts(headers: Path) -> TreeFacts:
    return read_facts(read_kernel_files(headers, FACT_FILES))


@pytest.mark.parametrize("name", ["swap", "traps", "block_class", "every_field"])
def test_input_mode_modules_build_without_warnings(name: str, headers: Path, facts: TreeFacts) -> None:
    header = read_header(EXAMPLES / f"{name}.h")
    files = kernel_module(
        header, name="m", inputs=inputs_of(header), facts=facts, includes=["<linux/blkdev.h>"], prefix="t_"
    )
    assert [path.name for path in build_modules(files, headers)] == ["m.ko"]


def test_every_kind_of_argument_builds_without_warnings(headers: Path, facts: TreeFacts) -> None:
    more = """
TRACE_EVENT(odd,
	TP_PROTO(u8 a, unsigned long long b, enum pid_type c, pid_t d, struct va_format *e, void (*f)(int),
		struct page **g, char *h, const bool *i, swp_entry_t j, gfp_t k, const unsigned long *l),
	TP_ARGS(a, b, c, d, e, f, g, h, i, j, k, l),
	TP_STRUCT__entry(__field(u8, a) __vstring(text, e->fmt, e->va)),
	TP_fast_assign(__entry->a = a; __assign_vstr(text, e->fmt, e->va);),
	TP_printk("%d %s", __entry->a, __get_str(text))
);
DECLARE_TRACE(bare, TP_PROTO(struct page *page, int n), TP_ARGS(page, n));
"""
    header = header_of_text(TICK + more)
    files = kernel_module(
        header,
        name="kinds",
        facts=facts,
        includes=["<linux/swap.h>", "<linux/mm.h>", "<linux/pid.h>"],
        arguments={"page": "pfn_to_page(1)"},
        export=True,
    )
    files = files.joined(probe_module(header["tick"], name="watch", header='"kinds_trace.h"', facts=facts))
    assert [path.name for path in build_modules(files, headers)] == ["kinds.ko", "watch.ko"]
