"""Files as values: what they are, and that writing is all or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracepoint.errors import GenerateError
from tracepoint.generate import FileSet


def test_it_is_a_mapping_in_order() -> None:
    files = FileSet({"b/x.c": "1", "a.h": "2"}, notes=["n"])
    assert (list(files), files["a.h"], len(files), files.notes) == (["b/x.c", "a.h"], "2", 2, ("n",))
    assert repr(files) == "FileSet(b/x.c, a.h)"


@pytest.mark.parametrize("path", ["/etc/x", "../x", "a/../../x", ""])
def test_paths_stay_inside(path: str) -> None:
    with pytest.raises(GenerateError, match="not a path inside a folder"):
        FileSet({path: ""})


def test_write_makes_folders_and_returns_the_paths(tmp_path: Path) -> None:
    written = FileSet({"a/b.c": "x\n", "c.h": "y"}).write(tmp_path / "new")
    assert written == [tmp_path / "new/a/b.c", tmp_path / "new/c.h"]
    assert [p.read_text() for p in written] == ["x\n", "y"]
    assert sorted(p.name for p in (tmp_path / "new").rglob("*") if p.is_file()) == ["b.c", "c.h"]


def test_nothing_is_written_when_one_file_exists(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("mine")
    with pytest.raises(GenerateError, match="b: exists already"):
        FileSet({"a": "1", "b": "2"}).write(tmp_path)
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("b", "mine")]
    FileSet({"a": "1", "b": "2"}).write(tmp_path, overwrite=True)
    assert (tmp_path / "b").read_text() == "2"


def test_a_dangling_link_counts_as_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "nowhere")
    with pytest.raises(GenerateError, match="exists already"):
        FileSet({"a": "1"}).write(tmp_path)
    assert not (tmp_path / "nowhere").exists()


def test_a_failure_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/file").write_text("in the way")
    with pytest.raises(OSError):
        FileSet({"new/a": "1", "file/b": "2"}).write(tmp_path / "out", overwrite=True)
    assert [p.name for p in (tmp_path / "out").rglob("*")] == ["file"]


def test_joined_sets_share_their_kbuild() -> None:
    one, two = (
        FileSet({"Kbuild": "# x\nobj-m += a.o\n", "M": "m"}),
        FileSet({"Kbuild": "# x\nobj-m += b.o\n", "M": "m"}),
    )
    assert one.joined(two)["Kbuild"] == "# x\nobj-m += a.o\nobj-m += b.o\n"
    with pytest.raises(GenerateError, match="two different texts are meant for M"):
        one.joined(FileSet({"M": "other"}))


def test_a_file_is_no_folder_to_write_in(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="not a folder"):
        FileSet({"a.c": ""}).write(tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
