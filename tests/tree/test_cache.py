"""Files and folders that several processes keep in one place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tracepoint.tree.cache import keep_folder, oldest_first


def test_files_that_go_meanwhile_are_left_out(tmp_path):
    paths = [tmp_path / name for name in "dcba"]
    for age, path in enumerate(paths):
        path.touch()
        os.utime(path, ns=(0, 10**9 - age))
    seen = iter(paths)

    def removed_meanwhile():
        for path in seen:
            if path.name == "c":
                path.unlink()
            yield path

    assert [path.name for path in oldest_first(removed_meanwhile())] == ["a", "b", "d"]


@pytest.mark.parametrize("there", [None, "half", "whole"])
@pytest.mark.parametrize("moment", range(4))
def test_two_processes_keep_one_folder(tmp_path, monkeypatch, there, moment):
    """The other one comes before any of our steps: each is complete, and neither fails."""
    folder, steps = tmp_path / "kept", []

    def make(name):
        made = tmp_path / name / "tree"
        made.mkdir(parents=True)
        for file in ("content", "done"):
            (made / file).write_text(name)
        return made

    if there:
        folder.mkdir()
        (folder / "content").write_text("before")
    if there == "whole":
        (folder / "done").write_text("before")
    ours, theirs = make("ours"), make("theirs")
    plain = {name: getattr(Path, name) for name in ("exists", "rename")}

    def interrupted(name):
        def step(*words):
            steps.append(name)
            if len(steps) == moment + 1:
                with monkeypatch.context() as undone:
                    for each, function in plain.items():
                        undone.setattr(Path, each, function)
                    keep_folder(theirs, folder, "done")
            return plain[name](*words)

        return step

    with monkeypatch.context() as changed:
        for name in plain:
            changed.setattr(Path, name, interrupted(name))
        keep_folder(ours, folder, "done")
    assert steps
    kept = {(folder / file).read_text() for file in ("content", "done")}
    assert len(kept) == 1
    assert kept <= ({"before"} if there == "whole" else {"ours", "theirs"})
    assert sorted(path.name for path in folder.iterdir()) == ["content", "done"]
