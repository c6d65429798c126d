"""Indexing a tree: what is found, what is read again after a change, what a damaged index does."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tracepoint as tp
from effort import examples
from oracles import builtin_formats, data_file, kernel_source
from tracepoint.layout.btf import read_btf
from tracepoint.layout.format import read_format, write_format
from tracepoint.tree.callsites.calls import SiteKind
from tracepoint.tree.index.build import build_index
from tracepoint.tree.index.other import index_of
from tracepoint.tree.index.scan import fingerprint, list_files
from tracepoint.tree.index.store import (
    FORMAT,
    IndexData,
    OtherVersionError,
    StoredIndex,
    StoreError,
    cache_path,
    save_index,
)
from tracepoint.tree.query.diff import compare_prototypes, compare_trees, tree_formats
from tracepoint.tree.query.tree import Tree

SMALL = Path(__file__).parent / "small"
SWAP_H = "include/trace/events/swap.h"


@functools.lru_cache
def built() -> IndexData:
    return build_index(str(SMALL))[0]


def small_data() -> IndexData:
    return replace(built())


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    os.utime(path, ns=(1, path.stat().st_mtime_ns + 1))


def rebuilt(root: Path) -> tuple[Tree, str]:
    """The tree as its saved index, brought up to date, says; it must equal one rebuilt."""
    opened = tp.open_tree(root)
    anew = build_index(str(root))[0]
    assert StoredIndex(cache_path(str(root))).whole() == anew
    return opened, next((note for note in opened.notes if "files:" in note), "")


def test_systems_events_and_places(tree: Path) -> None:
    small = tp.open_tree(tree)
    assert small.systems() == ["swap", "syscalls"]
    assert [e.full_name for e in small.events("swap:*")] == [
        "swap:swap_enter",
        "swap:swap_in",
        "swap:swap_leave",
        "swap:swap_never",
    ]
    event = small.events("swap_in")[0]
    assert (str(event.span), event.proto) == (f"{SWAP_H}:11:1", "unsigned long address, int major")
    assert [(f.ctype, f.name) for f in event.fields] == [("unsigned long", "address"), ("int", "major")]
    assert event.doc == "A page comes back from the swap device."
    assert event.format is not None
    assert event.format.size_bytes == 24
    entered = small.events("swap_enter")[0]
    assert (entered.via, entered.class_name) == (("DEFINE_PATH_EVENT",), "swap_path")
    assert small.creators(SWAP_H) == ["mm/swap.c"]
    assert small.exports("swap:swap_in") == [("mm/swap.c", 6, True)]


def test_callers_and_unused(tree: Path) -> None:
    small = tp.open_tree(tree)
    assert [str(s) for s in small.call_sites("swap:swap_in")] == [
        "mm/swap.c:13:2 read_back: trace_swap_in(address, 1)"
    ]
    hidden = small.call_sites("swap_leave")
    assert [(s.function, s.via) for s in hidden] == [("sys_swap_back", "TRACE_SWAP_PATH")]
    assert [s.kind for s in small.call_sites("swap_in", SiteKind)] == [SiteKind.REGISTER, SiteKind.CALL]
    assert [e.name for e in small.unused_events()] == ["swap_never"]


def test_system_calls(tree: Path) -> None:
    enter, leave = tp.open_tree(tree).events("syscalls:")
    assert (enter.name, leave.name) == ("sys_enter_swap_back", "sys_exit_swap_back")
    assert enter.format is not None
    assert [(f.name, f.offset) for f in enter.format.event_fields] == [("__syscall_nr", 8), ("address", 16)]


def test_duplicates_and_misnamed_headers(tree: Path) -> None:
    shutil.copy(tree / SWAP_H, tree / "mm/other.h")
    (tree / "arch/arm64/kvm").mkdir(parents=True)
    small = tp.open_tree(tree)
    assert set(small.duplicates()) == {"swap_in", "swap_enter", "swap_leave", "swap_never"}
    assert small.misnamed_headers() == [("mm/other.h", "swap")]
    # Each has the callers nearest to it.
    near = {e.header: len(small.call_sites(e)) for e in small.events("swap_in")}
    assert near == {"mm/other.h": 1, SWAP_H: 0}


def test_second_opening_reads_no_file(tree: Path) -> None:
    tp.open_tree(tree)
    again = tp.open_tree(tree)
    assert again.notes == []
    assert again.events("swap_in")[0].format is not None


def test_changed_source_is_read_alone(tree: Path) -> None:
    tp.open_tree(tree)
    change(tree / "mm/swap.c", "trace_swap_in(address, 1);", "")
    small, note = rebuilt(tree)
    assert "1 searched, 0 headers and 1 C files" in note or "1 searched, 1 headers and 1 C files" in note
    assert small.call_sites("swap_in") == []


def test_new_source_without_trace_before(tree: Path) -> None:
    tp.open_tree(tree)
    (tree / "mm/new.c").write_text('void f(void)\n{\n\ttrace_swap_never("x");\n}\n')
    small, note = rebuilt(tree)
    assert "1 searched" in note
    assert small.unused_events() == []


def test_new_event_finds_old_callers(tree: Path) -> None:
    (tree / "mm/old.c").write_text("void f(void)\n{\n\ttrace_swap_late(1);\n}\n")
    tp.open_tree(tree)
    change(tree / SWAP_H, "DEFINE_PATH_EVENT(never);", "DEFINE_PATH_EVENT(never);\nDEFINE_PATH_EVENT(late);")
    small, _ = rebuilt(tree)
    assert [s.function for s in small.call_sites("swap_late")] == ["f"]


def test_changed_macro_is_looked_through_again(tree: Path) -> None:
    tp.open_tree(tree)
    change(tree / "include/linux/swap_path.h", "trace_swap_##type(__VA_ARGS__);", "trace_swap_never(#type);")
    small, _ = rebuilt(tree)
    assert {e.name for e in small.unused_events()} == {"swap_enter", "swap_leave"}


def test_changed_include_reads_the_header_again(tree: Path) -> None:
    (tree / "include/linux/swap_path.h").write_text("#define SWAP_WORDS 4\n")
    change(tree / SWAP_H, "__field(	int,		major		)", "__array(int, major, SWAP_WORDS)")
    first = tp.open_tree(tree).events("swap_in")[0].format
    change(tree / "include/linux/swap_path.h", "4", "6")
    small, note = rebuilt(tree)
    second = small.events("swap_in")[0].format
    assert first is not None
    assert second is not None
    assert (first["major"].size, second["major"].size) == (16, 24)
    assert "1 headers" in note


def test_removed_files_are_forgotten(tree: Path) -> None:
    tp.open_tree(tree)
    (tree / "mm/swap.c").unlink()
    small, _ = rebuilt(tree)
    assert len(small.unused_events()) == 4
    assert small.events("syscalls:") == []


def test_two_processes_say_the_same_as_one(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracepoint.tree.index.build._WORTH_PROCESSES", 1)
    steps: list[str] = []
    many = build_index(str(tree), jobs=2, on_progress=lambda stage, _done, _total: steps.append(stage))[0]
    assert many == build_index(str(tree), jobs=1)[0]
    assert set(steps) == {"searching", "reading headers", "finding call sites", "looking through macros"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything: run the tests as another user")
def test_unreadable_file_is_told(tree: Path) -> None:
    (tree / "kernel/probe.c").chmod(0)
    assert "kernel/probe.c: cannot be read, left out" in tp.open_tree(tree).notes


def test_unreadable_file_is_left_out(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = open

    def refuse(path: str, *rest: str, **options: int):
        if str(path).endswith("probe.c"):
            raise PermissionError(13, "Permission denied", path)
        return real(path, *rest, **options)

    monkeypatch.setattr("builtins.open", refuse)
    assert "kernel/probe.c: cannot be read, left out" in tp.open_tree(tree).notes


def test_what_is_no_tree(tmp_path: Path) -> None:
    with pytest.raises(tp.errors.TreeError, match="no such file"):
        tp.open_tree(tmp_path / "nothing")
    with pytest.raises(tp.errors.TreeError, match=r"include/linux/tracepoint\.h is missing"):
        tp.open_tree(tmp_path)
    (tmp_path / "x").write_bytes(b"text")
    with pytest.raises(tp.errors.TreeError, match="no kernel tree"):
        tp.open_tree(tmp_path / "x")
    with pytest.raises(tp.errors.TreeError, match="not a kernel source tree"):
        build_index(str(tmp_path))


def damage(path: Path, data: bytes) -> None:
    path.write_bytes(data)


@pytest.mark.parametrize("keep", [0, 10, 40, 200, -1, -100])
def test_cut_index_is_built_anew_with_a_note(tree: Path, keep: int) -> None:
    tp.open_tree(tree)
    saved = cache_path(str(tree))
    saved.write_bytes(saved.read_bytes()[:keep])
    change(tree / "mm/swap.c", "address, 1", "address, 2")
    small = tp.open_tree(tree)
    assert any("rebuilt" in note for note in small.notes)
    assert len(small.events("swap:")) == 4
    assert tp.open_tree(tree).notes == []


@pytest.mark.parametrize("other", ["tracepoint tree index 0\n", "tracepoint tree index 97\n"])
def test_index_of_another_version_is_built_anew_like_none(tree: Path, other: str) -> None:
    first = tp.open_tree(tree).notes
    saved = cache_path(str(tree))
    saved.write_bytes(saved.read_bytes().replace(FORMAT.encode(), other.encode(), 1))
    with pytest.raises(OtherVersionError):
        StoredIndex(saved)
    assert tp.open_tree(tree).notes == first
    assert tp.open_tree(tree).notes == []


def test_file_that_is_no_index_is_told(tree: Path) -> None:
    tp.open_tree(tree)
    saved = cache_path(str(tree))
    saved.write_bytes(b"something else\n" + saved.read_bytes())
    assert any(note.endswith(": no index; the index was rebuilt") for note in tp.open_tree(tree).notes)


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 3000), byte=st.integers(0, 255))
def test_no_byte_of_an_index_can_do_harm(tmp_path: Path, at: int, byte: int) -> None:
    path = tmp_path / "x.index"
    data = small_data()
    save_index(data, path)
    raw = bytearray(path.read_bytes())
    raw[at % len(raw)] = byte
    path.write_bytes(raw)
    try:
        whole = StoredIndex(path).whole()
    except StoreError:
        return
    assert whole.head == data.head
    assert whole.more == data.more


@pytest.mark.parametrize(
    ("section", "value"),
    [
        ("head", {}),
        ("head", []),
        ("head", {"headers": {"a.h": {"events": [["s", "e", 99, 1, 1, "m", [], 0]]}}}),
        ("more", {"a.h": {"classes": [[1]], "events": [], "layouts": []}}),
        ("more", {"a.h": 5}),
        ("state", {"files": {"a.c": ["x"]}}),
        ("state", {"files": 5}),
    ],
)
def test_sections_of_a_wrong_shape_are_refused(tmp_path: Path, section: str, value: object) -> None:
    data = small_data()
    setattr(data, section, value)
    save_index(data, tmp_path / "x.index")
    with pytest.raises(StoreError):
        StoredIndex(tmp_path / "x.index").section(section)


def test_bomb_and_nesting_are_refused(tmp_path: Path) -> None:
    data = small_data()
    path = tmp_path / "x.index"
    save_index(data, path)
    raw = path.read_bytes()
    head, _, rest = raw.partition(b"\n")
    header = json.loads(rest.partition(b"\n")[0])
    blob = zlib.compress(b"[" * 5_000_000)
    header["sections"]["head"] = [len(blob), hashlib.blake2b(blob, digest_size=16).hexdigest()]
    path.write_bytes(head + b"\n" + json.dumps(header).encode() + b"\n" + blob)
    with pytest.raises(StoreError):
        StoredIndex(path).section("head")


def test_full_disk_is_a_note(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tracepoint.tree.query.opening.save_index", full)
    assert any("could not be saved" in note for note in tp.open_tree(tree).notes)


def test_fingerprint_sees_every_change(tree: Path) -> None:
    marks = [fingerprint(list_files(str(tree)))]
    change(tree / "mm/swap.c", "address, 1", "address, 2")
    marks.append(fingerprint(list_files(str(tree))))
    (tree / "mm/swap.c").rename(tree / "mm/swap2.c")
    marks.append(fingerprint(list_files(str(tree))))
    assert len(set(marks)) == 3


# Without sources.


def test_folder_of_formats(tree: Path, tmp_path: Path) -> None:
    small = tp.open_tree(tree)
    formats, problems = tree_formats(small)
    assert problems == {}
    for name, layout in formats.items():
        folder = tmp_path / "events" / name.replace(":", "/")
        folder.mkdir(parents=True)
        (folder / "format").write_text(write_format(layout))
    (tmp_path / "events/swap/swap_in/format").write_text("damaged")
    read = tp.open_tree(tmp_path / "events")
    assert read.kind == "formats"
    assert [e.full_name for e in read.events()] == [n for n in sorted(formats) if n != "swap:swap_in"]
    assert read.events("swap_enter")[0].format.print_fmt == formats["swap:swap_enter"].print_fmt
    with pytest.raises(tp.errors.TreeError, match="only a source tree"):
        read.unused_events()


def test_btf_of_nothing_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"\x9f\xeb" + b"\0" * 10)
    with pytest.raises(tp.errors.TreeError):
        tp.open_tree(tmp_path / "b")
    with pytest.raises(tp.errors.LayoutError):
        read_btf(b"")


# Differences.


def test_prototypes_are_compared_by_type(tree: Path) -> None:
    old = Tree.of(build_index(str(tree))[0])
    change(
        tree / SWAP_H,
        "TP_PROTO(unsigned long address, int major)",
        "TP_PROTO(unsigned long where, long major)",
    )
    new = Tree.of(build_index(str(tree))[0])
    changes = compare_prototypes(old, new)
    assert [(c.event, sorted(c.breaks)) for c in changes] == [
        ("swap:swap_in", ["probes and raw tracepoints"])
    ]
    assert compare_prototypes(old, old) == []


def test_an_event_without_a_layout_is_neither_added_nor_removed(tree: Path) -> None:
    old = Tree.of(build_index(str(tree))[0])
    change(
        tree / SWAP_H,
        "__field(	int,		major		)",
        "__array(	int,	major,	UNKNOWN_LENGTH	)",
    )
    new = Tree.of(build_index(str(tree))[0])
    assert next(e for e in new.events() if e.full_name == "swap:swap_in").format is None
    assert [str(c) for c in compare_trees(old, new)] == []
    assert [str(c) for c in compare_trees(new, old)] == []
    change(tree / SWAP_H, "swap_in,", "swap_came,")
    renamed = Tree.of(build_index(str(tree))[0])
    kinds = {(c.kind.value, c.event) for c in compare_trees(new, renamed)}
    assert kinds == {("event added", "swap:swap_came"), ("event removed", "swap:swap_in")}


# The whole kernel.


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return Tree.of(build_index(str(kernel_source()))[0])


@pytest.mark.oracle
def test_every_event_of_a_booted_kernel_is_found(kernel: Tree) -> None:
    booted = set(data_file("available_events").read_text().split())
    assert booted - {e.full_name for e in kernel.events()} == set()


@pytest.mark.oracle
def test_records_of_a_booted_kernel(kernel: Tree) -> None:
    formats, _ = tree_formats(kernel)
    different = []
    for name, text in builtin_formats().items():
        booted = read_format(text, name.partition("/")[0])
        computed = formats.get(name.replace("/", ":"))
        if computed is not None and not computed.same_record(booted):
            different.append(name)
    assert different == []


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("event", "function", "via"),
    [
        ("sched:sched_switch", "__schedule", ""),
        ("cgroup:cgroup_mkdir", "cgroup_mkdir", "TRACE_CGROUP_PATH"),
        ("cgroup:cgroup_attach_task", "cgroup_attach_task", "TRACE_CGROUP_PATH"),
        ("ice:ice_clean_tx_irq", "ice_clean_tx_irq", "ice_trace"),
        ("iocost:iocost_iocg_activate", "iocg_activate", "TRACE_IOCG_PATH"),
        ("raw_syscalls:sys_enter", "syscall_trace_enter", ""),
        ("rv:event_wip", "da_event_wip", "DECLARE_DA_MON_PER_CPU"),
        ("xdp:xdp_redirect", "xdp_do_generic_redirect", "_trace_xdp_redirect"),
    ],
)
def test_known_callers(kernel: Tree, event: str, function: str, via: str) -> None:
    assert (function, via) in {(s.function, s.via) for s in kernel.call_sites(event)}


@pytest.mark.oracle
def test_each_kvm_has_its_own_callers(kernel: Tree) -> None:
    found = {
        e.header: {s.span.path.split("/")[1] for s in kernel.call_sites(e)}
        for e in kernel.events("kvm:kvm_entry")
    }
    assert found == {"arch/arm64/kvm/trace_arm.h": {"arm64"}, "arch/x86/kvm/trace.h": {"x86"}}


def test_index_of_formats_by_hand() -> None:
    layout = read_format(
        'name: a_b\nID: 1\nformat:\n\tfield:int x;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: "x"\n', "s"
    )
    made = Tree.of(index_of("here", "formats", [("s/a_b/format", [layout])]))
    assert [e.full_name for e in made.events("s:a_*")] == ["s:a_b"]


SLOW = """
import os, sys, time
from pathlib import Path
from tracepoint.tree.index import build as index

def work(root, paths):
    (Path(root) / f"{os.getpid()}.pid").touch()
    time.sleep(600)

index.look_at = work
index.build_index(sys.argv[1], jobs=3)
"""


def test_the_processes_end_when_the_one_that_started_them_is_killed(tmp_path: Path) -> None:
    for path in ("include/linux/tracepoint.h", *(f"mm/{n}.c" for n in range(300))):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    with subprocess.Popen([sys.executable, "-c", SLOW, str(tmp_path)]) as builder:
        try:
            while len(pids := [int(path.stem) for path in tmp_path.glob("*.pid")]) < 3:
                assert builder.poll() is None
                time.sleep(0.01)
            workers = [os.pidfd_open(pid) for pid in pids]
        finally:
            builder.kill()
    left = [worker for worker in workers if not select.select([worker], [], [], 60)[0]]
    for worker in workers:
        if worker in left:
            signal.pidfd_send_signal(worker, signal.SIGKILL)
        os.close(worker)
    assert left == []
