"""The C files that create a header's tracepoints: found without reading a whole tree."""

from pathlib import Path

import pytest

from tracepoint.tree.creators import Creators

CREATES = "#define CREATE_TRACE_POINTS\n#include {}\n"
FILES = {
    "mm/slab.c": CREATES.format("<trace/events/kmem.h>"),
    "mm/vmscan.c": "int trace_nothing;\n",
    "drivers/i2c/core.c": CREATES.format("<trace/events/i2c_slave.h>"),
    "drivers/odd/made.c": CREATES.format("<trace/events/rare.h>"),
    "drivers/other/trace.c": CREATES.format('"trace.h"'),
    "drivers/scsi/qla2xxx/qla_dbg.c": CREATES.format("<trace/events/qla.h>"),
    "drivers/gpu/made.c": CREATES.format('"trace.h"'),
    "fs/xfs/scrub/trace.c": CREATES.format('"scrub/trace.h"'),
    "arch/arm/kernel/entry.c": CREATES.format("<trace/events/kmem.h>"),
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("header", "creators", "n_read"),
    [
        ("include/trace/events/kmem.h", ["mm/slab.c"], 2),
        ("include/trace/events/i2c_slave.h", ["drivers/i2c/core.c"], 1),
        ("include/trace/events/rare.h", ["drivers/odd/made.c"], 9),
        ("include/trace/events/qla.h", ["drivers/scsi/qla2xxx/qla_dbg.c"], 4),
        ("drivers/other/trace.h", ["drivers/other/trace.c"], 1),
        ("fs/xfs/scrub/trace.h", ["fs/xfs/scrub/trace.c"], 1),
        ("drivers/vfio/trace.h", [], 9),
    ],
)
def test_likely_folders_come_first(
    tree: Path, monkeypatch: pytest.MonkeyPatch, header: str, creators: list[str], n_read: int
) -> None:
    read: list[str] = []
    original = Creators._creates
    monkeypatch.setattr(Creators, "_creates", lambda self, file: read.append(file) or original(self, file))
    assert Creators(tree).of(tree / header) == [tree / name for name in creators]
    assert len(set(read)) == n_read
    # The files that are known already give the same answer.
    known = Creators(tree, [tree / name for name, text in FILES.items() if "CREATE" in text])
    assert known.of(tree / header) == [tree / name for name in creators]
