"""Which of the files that are kept are old."""

from __future__ import annotations

import os

from tracepoint.tree.cache import oldest_first


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
