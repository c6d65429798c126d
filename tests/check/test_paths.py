"""The check takes a path as well as a header."""

from pathlib import Path

import tracepoint as tp


def test_a_path_is_read_first(root: Path) -> None:
    path = root / "examples/legacy_subsys.h"
    assert [d.code for d in tp.check_header(path)] == [d.code for d in tp.check_header(tp.read_header(path))]
    assert [d.code for d in tp.check_header(str(path))] == ["TP150"]
