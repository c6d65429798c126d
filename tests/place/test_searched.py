"""Without an index, `place` makes the same patches."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tracepoint as tp
from oracles import kernel_source, kernel_sources
from place.trees import EVENT, make_tree
from tracepoint.cli.main import main
from tracepoint.cli.tree.tree_files import tree_reader
from tracepoint.errors import PlaceError
from tracepoint.place.fragment import EventText
from tracepoint.place.from_prototype import write_event
from tracepoint.place.kernel import KernelTree
from tracepoint.place.plan import Plan, make_call, make_places, split_place
from tracepoint.place.series import make_series
from tracepoint.tree.facts import read_facts
from tracepoint.tree.query.search import SearchedTree

if TYPE_CHECKING:
    from tracepoint.tree.query.tree import Tree

WHY = "Nobody can see when that happens, and why."
#: Function, an event of the tree, and its arguments.
OF_THE_TREE = (
    ("mm/memory.c:do_swap_page", "mm_page_free", "vmf->page, 0"),
    ("mm/page_alloc.c:free_unref_page", "mm_page_free", "page, order"),
    ("kernel/sched/core.c:wake_up_new_task", "sched_wakeup", "p"),
    ("kernel/sched/fair.c:task_tick_fair", "sched_waking", "curr"),
    ("kernel/exit.c:do_exit", "sched_process_free", "current"),
    ("fs/xfs/xfs_file.c:xfs_file_fsync", "sched_process_exit", "current"),
    ("net/core/dev.c:netif_rx", "netif_rx_entry", "skb"),
)
#: Function, system, name, prototype and arguments of a new event.
NEW = (
    ("mm/memory.c:do_swap_page", "kmem", "do_swap_page_seen", "struct vm_fault *vmf", "vmf"),
    ("kernel/sched/core.c:wake_up_new_task", "sched", "sched_new_task_seen", "struct task_struct *p", "p"),
    (
        "fs/ext4/file.c:ext4_file_open",
        "ext4",
        "ext4_open_seen",
        "struct inode *inode, struct file *filp",
        "inode, filp",
    ),
    ("block/blk-core.c:submit_bio", "block", "block_submit_seen", "struct bio *bio", "bio"),
    ("kernel/exit.c:do_exit", "sched", "sched_switch", "long code", "code"),
    ("kernel/exit.c:do_exit", "signal", "exit_seen", "long code", "code"),
)


def plan_of(at: str, system: str, event: str, proto: str = "", args: str = "") -> Plan:
    """A plan for one call at the start of a function."""
    path, function = split_place(at)
    fields = proto and f"unsigned long seen = (unsigned long){proto.rsplit(maxsplit=1)[-1].lstrip('*')}"
    texts = (
        [EventText(write_event(event, proto, fields), "test", system, "", "", False, "")] if fields else []
    )
    call = make_call(path, make_places(function, {"entry": True}), {"call": event, "args": args})
    return Plan(tuple(texts), (call,), "", WHY, False, "")


def outcome(tree: Tree, plan: Plan) -> object:
    """The changed files and notes, or why there are none."""
    root = Path(tree.root)
    kernel = KernelTree(tree, tree_reader(root), read_facts(root).assign_str_arity)
    try:
        series = make_series(kernel, plan)
    except PlaceError as error:
        return str(error)
    return [patch.message for patch in series.patches], series.files, series.notes


def refuse(_old: object) -> Tree:
    raise AssertionError("the whole tree is indexed")


@pytest.mark.oracle
@pytest.mark.parametrize("name", kernel_sources())
def test_places_of_a_kernel_are_those_with_its_index(name: str) -> None:
    root = str(kernel_source(name).resolve())
    plans = [plan_of(at, "", event, args=args) for at, event, args in OF_THE_TREE]
    plans += [plan_of(at, system, event, proto, args) for at, system, event, proto, args in NEW]
    indexed = tp.open_tree(root)
    tree = SearchedTree(root, refuse)
    n_made = 0
    for plan in plans:
        expected = outcome(indexed, plan)
        assert outcome(tree, plan) == expected, plan.calls
        n_made += not isinstance(expected, str)
    assert n_made >= len(plans) - 4
    n_headers = int(tree.notes[0].partition(" searched, ")[2].split()[0])
    assert n_headers < 3 * len(plans)


def test_the_patch_is_the_same_and_no_index_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    tree = make_tree(tmp_path / "tree")
    (tmp_path / "splash.h").write_text(EVENT)
    words = ["place", "--tree", str(tree), "--event", str(tmp_path / "splash.h"), "--system", "pond"]
    words += ["--at", "water/shore.c:shore_visit", "--after", "n_visits++;", "--args", "duck, n"]
    words += ["--why", WHY, "--author", "A <a@example.org>", "-v"]
    assert main(words) == 0
    without = capsys.readouterr()
    assert "files: 8 searched, 1 headers and 0 C files read" in without.err
    assert not (tmp_path / "cache/tracepoint/trees").exists()
    assert main(["index", str(tree)]) == 0
    capsys.readouterr()
    assert main(words) == 0
    assert capsys.readouterr().out == without.out != ""
