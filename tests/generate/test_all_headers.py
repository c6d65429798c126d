"""Modules made of a kernel's own trace headers: each compiles, or what it lacks is said before it is written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from oracles import installed_headers
from tracepoint.cli.main import main
from tracepoint.lab.build.module import build_modules
from tracepoint.lab.kernels.headers import source_folders
from tracepoint.tree.cache import cache_folder
from tracepoint.tree.headers import read_header

pytestmark = pytest.mark.oracle
EVENTS = "include/trace/events"
ROW = re.compile(r"^tp_(\w+) needs (.+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def headers() -> Path:
    return installed_headers()


def events_folder(headers: Path) -> Path:
    return next(folder for root in source_folders(headers) if (folder := root / EVENTS).is_dir())


def fetched_headers(series: str) -> Path:
    """The headers of a series that `tracepoint lab get` fetched; skips when there are none."""
    found = sorted((cache_folder() / "headers").glob(f"{series}.*/usr/src/linux-headers-*-amd64"))
    if not found:
        pytest.skip(f"no headers of {series} are fetched: tracepoint lab get {series}")
    return found[-1]


def generate(path: Path, headers: Path, out: Path, *names: str) -> int:
    words = [f"{path}:{name}" for name in names] or [str(path)]
    renamed = ["--name", "all", "--system", "tp_all", "--prefix", "tp_"]
    return main(
        ["generate", "module", *words, *renamed, "--kernel-headers", str(headers), "-o", str(out), "--force"]
    )


def test_a_function_that_is_not_exported_is_said(headers: Path, tmp_path: Path, capsys) -> None:
    """sched asks for the NUMA group, which the kernel keeps to itself: modpost would refuse the module."""
    path = events_folder(headers) / "sched.h"
    assert generate(path, headers, tmp_path) == 2
    said = capsys.readouterr().err
    assert "does not export to modules what is needed" in said
    refused = {name for name, needs in ROW.findall(said) if "task_numa_group_id()" in needs}
    assert {"sched_move_numa", "sched_numa_pair_template"} <= refused
    assert generate(path, headers, tmp_path, "sched_switch", "sched_wakeup") == 0
    files = {found.name: found.read_text() for found in tmp_path.iterdir() if found.name != "Makefile"}
    assert [found.name for found in build_modules(files, headers)] == ["all.ko"]


@pytest.mark.parametrize("name", ["i2c", "thermal", "napi", "spi"])
def test_modules_that_compile(name: str, headers: Path, tmp_path: Path) -> None:
    """spi needs a header that it does not include."""
    assert generate(events_folder(headers) / f"{name}.h", headers, tmp_path) == 0
    files = {path.name: path.read_text() for path in tmp_path.iterdir() if path.name != "Makefile"}
    assert [path.name for path in build_modules(files, headers)] == ["all.ko"]


def test_a_private_type_is_said_and_the_other_events_compile(headers: Path, tmp_path: Path, capsys) -> None:
    path = events_folder(headers) / "workqueue.h"
    assert generate(path, headers, tmp_path) == 2
    refused = dict(ROW.findall(capsys.readouterr().err))
    assert refused == {"workqueue_queue_work": "struct pool_workqueue"}
    names = [event.name for event in read_header(path).events if event.name not in refused]
    assert generate(path, headers, tmp_path, *names) == 0


def test_exported_enums_go_with_the_events_that_print_them(headers: Path, tmp_path: Path, capsys) -> None:
    """The enumerators are private to the file system, and exported at the top of its header."""
    path = events_folder(headers) / "huge_memory.h"
    assert generate(path, headers, tmp_path) == 2
    assert "the module needs SCAN_FAIL, SCAN_SUCCEED" in capsys.readouterr().err
    assert generate(path, headers, tmp_path, "mm_collapse_huge_page_swapin") == 0


@pytest.mark.slow
@pytest.mark.parametrize("series", ["installed", "6.12"])
def test_every_header_compiles_or_says_what_it_lacks(series: str, tmp_path: Path, capsys) -> None:
    """Some 3 CPU seconds a header."""
    headers = installed_headers() if series == "installed" else fetched_headers(series)
    found: dict[str, list[str]] = {"whole": [], "private": [], "not exported": [], "hooks": []}
    wrong = {}
    for path in sorted(events_folder(headers).glob("*.h")):
        if not [event for event in read_header(path).events if not event.is_syscall and not event.is_custom]:
            continue
        status = generate(path, headers, tmp_path / path.stem)
        said = capsys.readouterr().err
        kind = outcome(status, said, path.stem)
        if kind:
            found[kind].append(path.stem)
        else:
            wrong[path.stem] = said
    assert wrong == {}
    assert len(found["whole"]) > len(found["private"]) > len(found["not exported"]) > 0


def outcome(status: int, said: str, name: str) -> str:
    """Return what became of the module of a header, empty for what must not be."""
    if status == 0:
        return "whole" if "not compiled" not in said else ""
    if status == 5 and name == "syscalls" and "does not compile" in said:
        return "hooks"  # its events are declared by the kernel's own hooks
    if status != 2 or not re.search(r"^(?:tp_\w+|the module) needs .+$", said, re.MULTILINE):
        return ""
    return "not exported" if "does not export to modules what is needed" in said else "private"
