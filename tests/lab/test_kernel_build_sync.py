"""A copy of a tree made of hard links: it follows, and the original never changes."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.mini_kernel import FILES, contents, make_tree
from tracepoint.errors import LabError
from tracepoint.lab.build.module import disk_errors
from tracepoint.lab.build.sync import check_tree, clone_tree, refresh_tree, replace_file, sync_files

LONG_AGO = 1_000_000_000


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = make_tree(tmp_path / "tree")
    (tree / "scripts/link").symlink_to("../mm/swap.c")
    for path in tree.rglob("*"):
        os.utime(path, (LONG_AGO, LONG_AGO), follow_symlinks=False)
    return tree


def test_a_copy_shares_the_files(tree: Path, tmp_path: Path):
    scratch = tmp_path / "scratch"
    clone_tree(tree, scratch)
    assert contents(scratch) == contents(tree)
    assert (scratch / "mm/swap.c").samefile(tree / "mm/swap.c")
    assert (scratch / "scripts/link").readlink() == Path("../mm/swap.c")


def test_what_a_build_left_in_a_tree_is_not_copied(tree: Path, tmp_path: Path):
    for name in (".config", "mm/swap.o", "mm/.swap.o.cmd", "include/generated/autoconf.h", ".git/config"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("x")
    (tree / "arch/x86/include/generated").mkdir(parents=True)
    clone_tree(tree, tmp_path / "scratch")
    copied = contents(tmp_path / "scratch").keys()
    assert copied == {"Makefile", "scripts/link", *FILES}
    assert not (tmp_path / "scratch/arch/x86/include/generated").exists()


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EPERM, errno.EMLINK])
def test_files_are_copied_where_links_are_impossible(tree, tmp_path, monkeypatch, number):
    def refuse(*_: object) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr(os, "link", refuse)
    clone_tree(tree, tmp_path / "scratch")
    assert contents(tmp_path / "scratch") == contents(tree)
    assert not (tmp_path / "scratch/mm/swap.c").samefile(tree / "mm/swap.c")
    # As old as the original, or everything would be built again.
    assert (tmp_path / "scratch/mm/swap.c").stat().st_mtime == LONG_AGO
    assert refresh_tree(tree, tmp_path / "scratch") == []


def test_a_disk_that_is_full_is_told_with_the_file_that_had_no_room(tree, tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.EXDEV, "no")

    def fill(source: Path, _target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(source))

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(shutil, "copy2", fill)
    with pytest.raises(LabError, match=r"no space left for .*scratch.partial/Kconfig"), disk_errors(tmp_path):
        clone_tree(tree, tmp_path / "scratch")
    assert not (tmp_path / "scratch.partial").exists()


def test_an_interrupted_copy_is_begun_again(tree: Path, tmp_path: Path):
    (tmp_path / "scratch.partial/mm").mkdir(parents=True)
    (tmp_path / "scratch.partial/mm/half").write_text("x")
    clone_tree(tree, tmp_path / "scratch")
    assert contents(tmp_path / "scratch") == contents(tree)
    assert not (tmp_path / "scratch.partial").exists()


def test_patched_files_come_and_go_and_the_rest_keeps_its_time(tree: Path, tmp_path: Path):
    scratch = tmp_path / "scratch"
    clone_tree(tree, scratch)
    before = contents(tree)
    wanted = {"mm/swap.c": b"int x;\n", "mm/new.c": b"int y;\n", "kernel/fork.c": None}
    assert sync_files(tree, scratch, wanted) == ["kernel/fork.c", "mm/new.c", "mm/swap.c"]
    assert contents(scratch) == {
        **{name: data for name, data in before.items() if name != "kernel/fork.c"},
        "scripts/link": b"int x;\n",
        "mm/swap.c": b"int x;\n",
        "mm/new.c": b"int y;\n",
    }
    assert contents(tree) == before
    first = (scratch / "mm/swap.c").stat()
    assert first.st_mtime > LONG_AGO
    assert (scratch / "init/Kconfig").stat().st_mtime == LONG_AGO

    assert sync_files(tree, scratch, {"mm/swap.c": b"int x;\n"}, wanted) == ["kernel/fork.c", "mm/new.c"]
    assert (scratch / "mm/swap.c").stat().st_mtime_ns == first.st_mtime_ns
    assert sync_files(tree, scratch, {}, ["mm/swap.c"]) == ["mm/swap.c"]
    assert contents(scratch) == contents(tree) == before
    # Younger than what was made of the patched file, though the original is old.
    assert (scratch / "mm/swap.c").stat().st_mtime > LONG_AGO
    assert (tree / "mm/swap.c").stat().st_mtime == LONG_AGO


PATHS = st.sampled_from(["mm/swap.c", "kernel/fork.c", "mm/new.c", "deep/er/new.h"])
WANTED = st.dictionaries(PATHS, st.none() | st.binary(max_size=5), max_size=4)


@given(st.lists(WANTED, max_size=5))
def test_any_row_of_patches_ends_where_the_last_one_says(
    tmp_path_factory, steps: list[dict[str, bytes | None]]
):
    folder = tmp_path_factory.mktemp("row")
    tree = make_tree(folder / "tree")
    original = contents(tree)
    clone_tree(tree, folder / "scratch")
    before: list[str] = []
    for wanted in [*steps, {}]:
        sync_files(tree, folder / "scratch", wanted, before)
        before = sorted(wanted)
        expected = original | wanted
        assert contents(folder / "scratch") == {n: data for n, data in expected.items() if data is not None}
        assert contents(tree) == original


def test_a_tree_that_changed_is_followed(tree: Path, tmp_path: Path):
    scratch = tmp_path / "scratch"
    clone_tree(tree, scratch)
    sync_files(tree, scratch, {"mm/swap.c": b"patched\n"})
    replace_file(tree / "kernel/fork.c", b"int changed;\n")
    os.utime(tree / "kernel/fork.c", (LONG_AGO, LONG_AGO))
    (tree / "kernel/new").mkdir()
    (tree / "kernel/new/x.c").write_text("int x;\n")
    (tree / "init/Kconfig").unlink()
    assert refresh_tree(tree, scratch, ["mm/swap.c"]) == ["kernel/fork.c", "kernel/new/x.c", "init/Kconfig"]
    assert contents(scratch) == contents(tree) | {"mm/swap.c": b"patched\n", "scripts/link": b"patched\n"}
    # A file that came with an old date was changed all the same, and has to be built again.
    assert (scratch / "kernel/fork.c").stat().st_mtime > LONG_AGO
    assert refresh_tree(tree, scratch, ["mm/swap.c"]) == []


def test_a_path_through_a_link_does_not_lead_out(tree: Path, tmp_path: Path):
    (tmp_path / "outside").mkdir()
    (tree / "out").symlink_to(tmp_path / "outside")
    clone_tree(tree, tmp_path / "scratch")
    with pytest.raises(LabError, match="out/x leads out of the kernel tree"):
        sync_files(tree, tmp_path / "scratch", {"out/x": b"x"})
    assert list((tmp_path / "outside").iterdir()) == []


@contextlib.contextmanager
def nobody() -> Iterator[None]:
    """Be a user who may not read everything; root becomes one for a while."""
    if os.getuid() != 0:
        yield
        return
    os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


@pytest.mark.parametrize("name", ["mm/swap.c", "mm"])
def test_what_cannot_be_read_is_named(name: str):
    with TemporaryDirectory() as folder:
        tree = make_tree(Path(folder) / "tree")
        Path(folder).chmod(0o777)
        (tree / name).chmod(0)
        with nobody(), pytest.raises(LabError, match=f"{name} cannot be read: Permission denied"):
            clone_tree(tree, Path(folder) / "scratch")
        (tree / name).chmod(0o700)
        assert not (Path(folder) / "scratch").exists()


def test_no_kernel_tree(tree: Path, tmp_path: Path):
    check_tree(tree)
    with pytest.raises(LabError, match="there is no such folder"):
        check_tree(tmp_path / "nosuch")
    with pytest.raises(LabError, match=r"not a kernel tree: it has no Makefile, Kconfig, scripts/kconfig"):
        check_tree(tmp_path)
    (tree / "Kconfig").unlink()
    with pytest.raises(LabError, match=r"not a kernel tree: it has no Kconfig$"):
        check_tree(tree)
