"""Every trap that a program can raise is seen by trap_entry and trap_exit; the reference's table is made here."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from guest import patched as patched_kernels
from guest import traps_table
from guest.pages import ROOT, bring, check_page, series
from guest.patched import PAGE, shell_blocks
from tracepoint.errors import LabError
from tracepoint.lab.build.module import build_modules
from tracepoint.lab.guest import machine as lab_guest
from tracepoint.lab.guest.workloads import build_workload
from tracepoint.lab.kernels.headers import fetch_headers

REFERENCE = ROOT / "docs/reference/traps.md"
# Vectors that an emulated processor does not raise, or not for these reasons; a real one does.
EMULATED = {"db", "ss-address", "ac", "xf"}
CAN_BE_RAISED = {0, 1, 3, 4, 5, 6, 11, 12, 13, 14, 16, 17, 19}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The program that raises them, for this machine."""
    path = tmp_path_factory.mktemp("traps") / "traps"
    path.write_bytes(build_workload("traps"))
    path.chmod(0o755)
    return path


@pytest.fixture(scope="module")
def raised(patched):
    """All traps, raised in a guest."""
    bring(patched, "traps")
    return traps_table.raise_all(patched)


@pytest.fixture(scope="module")
def by_kernel(patched):
    """The traps that no program raises but a module does."""
    bring_module(patched, "raise_traps", (ROOT / "examples/kernel/raise_traps.c").read_text())
    return traps_table.raise_in_kernel(patched)


def bring_module(guest, name: str, source: str) -> None:
    """Build a module of one file for our kernel and put it into the guest's /tmp."""
    patched_kernels.build(series(guest))
    files = {f"{name}.c": source, "Kbuild": f"obj-m += {name}.o\n"}
    (module,) = build_modules(files, fetch_headers(guest.image), warnings_fail=False)
    guest.put(f"/tmp/{name}.ko", module.read_bytes())


@pytest.mark.guest
def test_every_trap_is_seen_under_its_vector(raised, patched):
    items, _ = raised
    hidden = set() if patched.accelerator.name == "kvm" else EMULATED
    wrong = {item.name for item in items if item.entry is None or item.entry.number != item.vector}
    assert wrong <= hidden
    seen = {item.entry.number for item in items if item.entry is not None}
    assert seen >= CAN_BE_RAISED - ({17, 19} if hidden else set())


@pytest.mark.guest
def test_handlers_that_no_program_reaches_are_seen_when_the_kernel_does(by_kernel):
    assert sorted(by_kernel) == [7, 9, 15, 19]
    assert all(entry.is_left for entry in by_kernel.values())


@pytest.mark.guest
def test_every_entry_has_its_exit(raised):
    _, entries = raised
    assert len(entries) > 500
    assert [entry for entry in entries if not entry.is_left] == []


@pytest.mark.guest
def test_every_vector_is_raised_or_has_a_reason(raised, program):
    items, _ = raised
    never = traps_table.reasons(program)
    assert {item.vector for item in items} == CAN_BE_RAISED
    assert CAN_BE_RAISED | set(never) == {*range(21), 32}
    assert not CAN_BE_RAISED & set(never)


@pytest.mark.guest
def test_the_reference_is_what_happens(raised, by_kernel, program, patched):
    if patched.accelerator.name == "kvm":
        pytest.skip("the table is made with QEMU's emulation, KVM raises more: TRACEPOINT_ACCEL=tcg")
    items, _ = raised
    natively = {name: signal for name in ("ac", "xf") if (signal := signal_here(program, name))}
    table = traps_table.write_table(items, by_kernel, traps_table.reasons(program), natively)
    head = f"## Linux {series(patched)}\n\n"
    text = REFERENCE.read_text()
    found = re.search(re.escape(head) + r"((?:\|.*\n)+)", text)
    if os.environ.get("TRACEPOINT_WRITE_DOCS"):
        REFERENCE.write_text(text.replace(found[0], head + table))
    else:
        assert found[1] == (table if len(natively) == 2 else with_signals_of(found[1], table))


def signal_here(program, name: str) -> str:
    """What this machine's own processor makes of a trap; empty when it is none either."""
    words = subprocess.run([program, name], capture_output=True, text=True, check=True).stdout.split()
    return "" if words[3] == "none" else f"{words[3]} {words[4]}"


def with_signals_of(written: str, table: str) -> str:
    """The table with the signals of a real processor that the page knows and this machine does not show."""
    known = dict(re.findall(r"^(\| \d+ \w+ \|).*(; a processor does: .*) \|$", written, re.MULTILINE))
    return re.sub(
        r"^(\| \d+ \w+ \|)(.*does not raise it) \|$",
        lambda row: f"{row[1]}{row[2]}{known.get(row[1], '')} |",
        table,
        flags=re.MULTILINE,
    )


def run_in(kernel, files, command) -> None:
    """Boot a kernel with files in it for one command."""
    with lab_guest.boot(kernel, files=files) as guest:
        guest.run(command)


@pytest.mark.guest
def test_a_double_fault_is_seen_though_the_kernel_ends_there(patched):
    text = (ROOT / "docs/explanation/traps.md").read_text()
    (source,) = re.findall(r"^```c\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (command,) = re.findall(r"--file deep\.ko:/tmp/deep\.ko '\n(.*?)'\n```$", text, re.MULTILINE | re.DOTALL)
    bring_module(patched, "deep", source)
    name = patched_kernels.build(series(patched))
    with pytest.raises(LabError, match="the guest is gone") as caught:
        run_in(name, {"/tmp/deep.ko": patched.get("/tmp/deep.ko")}, command)
    assert re.search(r" trap_entry: number=8 \(double fault\) ip=0xffffffff", caught.value.log_tail)
    assert "trap_exit: number=8" not in caught.value.log_tail


@pytest.mark.guest
def test_the_page_says_what_happens(patched):
    bring(patched, "traps")
    check_page(ROOT / "docs/explanation/traps.md", patched)


def test_both_pages_build_the_same_kernel():
    assert shell_blocks(ROOT / "docs/explanation/traps.md")[0] == shell_blocks(PAGE)[0]
