"""A web service in a guest: where the time of each request went, against what the service measured itself."""

from __future__ import annotations

from pathlib import Path

import pytest

import tracepoint as tp
from control import packing
from guest.conftest import kernel_or_skip
from guest.python_files import PYTHON, SOURCE, python_files
from tracepoint.analysis import analyse_service
from tracepoint.lab.guest import machine as lab_guest

pytestmark = pytest.mark.guest

N = 1000
PROGRAM = Path(__file__).parent / "programs/shop.py"
# One request, so that all that is loaded on first use is there.
IMPORTS = (
    f"import sys; sys.path[:0] = [{str(PROGRAM.parent)!r}]; import shop; shop.main(1, '/tmp/shop-once.dat')"
)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory) -> list[Path]:
    """The recordings of the kernel and of the service while it served N requests."""
    kernel_or_skip("6.1")
    program = {"/lab/shop.py": PROGRAM.read_bytes()}
    files = packing.python_files() | python_files(IMPORTS) | program
    folder = tmp_path_factory.mktemp("service")
    with lab_guest.boot("6.1", files=files, memory_mb=1024) as guest:
        guest.run(
            "tracepoint record -q sched raw_syscalls --clock mono --buffer-kb 65536 -o /tmp/kernel.dat -- "
            f"env PYTHONPATH={SOURCE} {PYTHON} /lab/shop.py {N} /tmp/program.dat",
            timeout=500,
        )
        paths = [folder / "kernel.dat", folder / "program.dat"]
        for path in paths:
            path.write_bytes(guest.get(f"/tmp/{path.name}"))
    return paths


def test_the_parts_of_requests_are_the_time_that_the_service_measured(recordings, show_figure):
    with tp.open_trace(recordings) as trace:
        report = analyse_service(trace, "shop:request_begin", "shop:request_end", "id")
        ends = trace["shop:request_end"]
        own = {row["id"]: (row["wall_ns"], row["cpu_ns"]) for row in ends}
    rows = {int(row["key"].removeprefix("id=")): row for row in report.service_request}
    assert len(rows) == len(own) == N
    kinds = ("running", "runnable", "sleeping", "uninterruptible")
    known = {number: sum(row[kind] for kind in kinds) for number, row in rows.items()}
    # The first request of a thread may begin before its first switch.
    unknown = [number for number, row in rows.items() if row["unknown"]]
    assert len(unknown) <= 4
    for row in rows.values():
        assert sum(row[kind] for kind in (*kinds, "unknown")) == row["dur"]
    assert report.fit.n_off == 0
    wall, ran = (sum(found) for found in zip(*own.values(), strict=True))
    show_figure(f"time of {N} requests (ns)", wall, sum(known.values()))
    running, hidden = (sum(row[kind] for row in rows.values()) for kind in ("running", "unknown"))
    show_figure("of it on a CPU (ns)", ran, running)
    show_figure("of it before the first switch of its thread (ns)", hidden, wall)
    assert hidden < 0.02 * wall
    assert sum(known.values()) + hidden == pytest.approx(wall, rel=0.01)
    assert 0.95 * ran <= running + hidden
    assert running <= 1.05 * ran
    # A request that sleeps for 3 ms does, but for the time that it takes to fall asleep.
    asleep = sorted(rows[number]["sleeping"] for number in range(1, N, 4))
    assert asleep[len(asleep) // 10] > 2_500_000
    assert any(row[5] == "futex" for row in report.sections()[2].rows)
