"""What a kernel exports to modules, and what only another module can define."""

from __future__ import annotations

from pathlib import Path

import pytest

from oracles import installed_headers
from tracepoint.cli.main import main
from tracepoint.lab.kernels.exports import Unexported, find_unexported, tracepoint_of

EXAMPLES = Path(__file__).parents[2] / "examples"
DECLARED = """
TRACE_EVENT(ring_push, TP_PROTO(int n), TP_ARGS(n), TP_STRUCT__entry(__field(int, n)),
	TP_fast_assign(__entry->n = n;), TP_printk("%d ring_other", __entry->n));
DECLARE_TRACE(ring_bare, TP_PROTO(int n), TP_ARGS(n));
"""


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """The parts of a kernel's headers that say what it exports and declares."""
    (tmp_path / "include/trace/events").mkdir(parents=True)
    (tmp_path / "include/trace/events/ring.h").write_text("#define TRACE_SYSTEM ring\n" + DECLARED)
    rows = ["0x00000000\tkfree\tvmlinux\tEXPORT_SYMBOL\t", "0x12345678\t__tracepoint_spi\tdrivers/spi\tx\t"]
    (tmp_path / "Module.symvers").write_text("\n".join([*rows, ""]))
    return tmp_path


@pytest.mark.parametrize(
    ("needed", "unexported"),
    [
        ([], Unexported()),
        (["kfree", "__tracepoint_spi", "__this_module"], Unexported()),
        (["kept_inside", "kfree"], Unexported(("kept_inside",))),
        (["__tracepoint_ring_push", "__SCK__tp_func_ring_bare"], None),
        (["__tracepoint_mine", "__traceiter_mine"], Unexported((), ("mine",))),
        (["__tracepoint_ring_other"], Unexported((), ("ring_other",))),
        (["__tracepoint_mine", "kept_inside"], Unexported(("kept_inside",), ("mine",))),
    ],
)
def test_what_a_kernel_keeps_to_itself(needed, unexported, kernel: Path) -> None:
    expected = Unexported(tuple(sorted(needed))) if unexported is None else unexported
    assert find_unexported(needed, kernel) == expected


def test_without_a_table_nothing_is_said(kernel: Path) -> None:
    (kernel / "Module.symvers").unlink()
    assert find_unexported(["kept_inside"], kernel) == Unexported()


@pytest.mark.parametrize(
    ("symbol", "tracepoint"),
    [("__traceiter_a", "a"), ("__SCT__tp_func_a_b", "a_b"), ("__probestub_a", "a"), ("tracepoint_a", "")],
)
def test_tracepoint_of_a_symbol(symbol: str, tracepoint: str) -> None:
    assert tracepoint_of(symbol) == tracepoint


@pytest.mark.oracle
def test_a_probe_of_another_modules_tracepoint_is_generated(tmp_path: Path, capsys) -> None:
    """No header of the kernel declares it: the module that does also exports it."""
    folder = installed_headers()
    out, header = tmp_path / "subsys", str(EXAMPLES / "legacy_subsys.h")
    assert main(["generate", "header", header, "--name", "subsys", "-o", str(out)]) == 0
    words = ["--header", '"subsys_trace.h"', "--with", "<linux/sched.h>", "--kernel-headers", str(folder)]
    assert main(["generate", "probe", header, *words, "-o", str(out)]) == 0
    said = capsys.readouterr().err
    assert "subsys_eventname is a tracepoint of another module" in said
    assert "EXPORT_TRACEPOINT_SYMBOL_GPL(subsys_eventname)" in said


@pytest.mark.oracle
def test_a_probe_of_a_tracepoint_that_the_kernel_keeps_is_refused(tmp_path: Path, capsys) -> None:
    folder = installed_headers()
    header = tmp_path / "sched_kept.h"
    header.write_text(
        "#define TRACE_SYSTEM sched\nTRACE_EVENT(sched_process_hang, TP_PROTO(struct task_struct *tsk), "
        'TP_ARGS(tsk), TP_STRUCT__entry(__field(int, n)), TP_fast_assign(__entry->n = 1;), TP_printk("%d", '
        "__entry->n));\n"
    )
    words = [str(header), "--header", "<trace/events/sched.h>", "--kernel-headers", str(folder)]
    assert main(["generate", "probe", *words]) == 2
    said = capsys.readouterr().err
    assert "the module needs the tracepoint sched_process_hang\n" in said
    assert "--by-name" in said
    assert main(["generate", "probe", *words, "--by-name"]) == 0
