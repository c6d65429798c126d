"""Rings in files, read by another process: live, and after the writer was killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tracepoint.errors import TracepointError
from tracepoint.runtime.fire import mechanism as core
from tracepoint.runtime.rings.mapped import open_rings

SOURCE = Path(__file__).resolve().parents[2] / "src"

WRITER = """
import os, sys, threading
sys.path.insert(0, {source!r})
from tracepoint import trace_event, tracing, u64

@trace_event(system="map", printk='"%llu %s", n, name')
def step(n: u64, name: str) -> None: ...

@trace_event(system="map", printk='"other"')
def other(n: u64) -> None: ...

instance = tracing.make_instance("mapped", n_pages=8, directory={directory!r})
step.enable(instance)
for n in range(5):
    step(n, "parent")
thread = threading.Thread(target=step, args=(5, "thread"), name="second")
thread.start()
thread.join()
other.enable(instance)
other(6)
child = os.fork()
if not child:
    step(7, "child")
    os._exit(0)
os.waitpid(child, 0)
print(child, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def written(tmp_path):
    if core.IS_PURE:
        pytest.skip("rings in files need the C core: install gcc and run `make setup`")
    text = WRITER.format(source=str(SOURCE), directory=str(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        yield tmp_path, process, int(process.stdout.readline())
        process.kill()


def test_live_and_after_kill_9(written):
    directory, process, child = written
    for _ in range(2):
        found = open_rings(directory)
        records = found.records()
        assert found.damage == []
        assert [(r.event, r.text) for r in records] == [
            *(("map:step", f"{n} parent") for n in range(5)),
            ("map:step", "5 thread"),
            ("map:other", "other"),
            ("map:step", "7 child"),
        ]
        assert [r.pid for r in records] == [process.pid] * 7 + [child]
        assert len({r.raw.pid() for r in records}) == 3
        assert {r.comm for r in records if r.text == "5 thread"} == {"second"}
        assert {r.raw.cpu for r in records} <= os.sched_getaffinity(0)
        assert {ring.clock for ring in found.rings} == {"local"}
        assert sum(ring.stats["entries"] for ring in found.rings) == 8
        process.send_signal(signal.SIGKILL)
        process.wait()


def test_damage_is_told_not_raised(written):
    directory, process, _ = written
    process.kill()
    process.wait()
    found = open_rings(directory)
    n_records = len(found.records())
    (directory / "ring-1-1-1").write_bytes(b"nothing")
    (directory / "ring-1-1-2").write_bytes(b"")
    (directory / "ring-1-1-3").symlink_to("/dev/zero")
    os.mkfifo(directory / "ring-1-1-4")
    (directory / "formats-1").write_text("system: x\nname: broken\n")
    (directory / f"formats-{process.pid}").write_text("")
    found.refresh()
    assert len(found.records()) == 1
    # Four rings that are none, two tables without a format, and the records that it had formats of.
    assert len(found.damage) == 4 + 2 + n_records - 1


def test_a_ring_that_is_not_complete_is_reported_and_the_others_are_read(written):
    directory, _, _ = written
    n_records = len(open_rings(directory).records())
    (directory / "ring-1-1-1").write_bytes(b"")
    (directory / "ring-1-1-2").write_bytes(bytes(8 * 4096))
    found = open_rings(directory)
    assert len(found.records()) == n_records
    assert [name for name, _ in found.damage] == ["ring-1-1-1", "ring-1-1-2"]
    assert all(reason.startswith("not complete: its writer ended") for _, reason in found.damage)


# The kernel ends the process, as a kill -9 can, in the middle of what makes the file as large as the ring.
KILLED_WHILE_MAKING = """
import resource, signal, sys
sys.path.insert(0, {source!r})
from tracepoint import trace_event, tracing, u64

@trace_event(system="map", printk='"%llu", n')
def step(n: u64) -> None: ...

instance = tracing.make_instance("mapped", n_pages=8, directory={directory!r})
step.enable(instance)
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (16384, 16384))
step(1)
"""


def test_no_ring_is_seen_before_it_is_complete(tmp_path):
    if core.IS_PURE:
        pytest.skip("rings in files need the C core: install gcc and run `make setup`")
    text = KILLED_WHILE_MAKING.format(source=str(SOURCE), directory=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, check=False)
    assert done.returncode == -signal.SIGXFSZ, done.stderr
    assert list(tmp_path.glob("ring-*")) == []
    found = open_rings(tmp_path)
    assert (found.rings, found.damage) == ((), [])


def test_a_ring_file_of_that_name_is_not_replaced(written, tmp_path_factory):
    """As when the number of a process comes again: a fault that is reported, and the file stays."""
    directory = tmp_path_factory.mktemp("again")
    text = f"""
import os, sys
sys.path.insert(0, {str(SOURCE)!r})
from tracepoint import trace_event, tracing, u64

@trace_event(system="map", printk='"%llu", n')
def step(n: u64) -> None: ...

open(f"{directory}/ring-{{os.getpid()}}-{{os.getpid()}}-0", "w").write("old")
instance = tracing.make_instance("mapped", n_pages=8, directory={str(directory)!r})
step.enable(instance)
step(1)
assert instance.stats["dropped"] == 1, instance.stats
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, check=False)
    assert done.returncode == 0
    assert b"FaultWarning: map:step: ring: FileExistsError" in done.stderr
    assert [path.read_text() for path in directory.glob("ring-*")] == ["old"]
    assert [path for path in directory.iterdir() if path.name.startswith(".")] == []


def test_no_directory(tmp_path):
    with pytest.raises(TracepointError, match="is not a directory"):
        open_rings(tmp_path / "nothing")


REFUSED = """
import os, sys, threading
sys.path.insert(0, {source!r})
from tracepoint import trace_event, tracing, u64
from tracepoint.runtime.files.tree import process_files

@trace_event(system="map", printk='"%llu", n')
def step(n: u64) -> None: ...

instance = tracing.make_instance("mapped", n_pages=8, directory={directory!r})
step.enable(instance)
step(1)
folder = "instances/mapped"
for path, text in (
    ("snapshot", "1"),
    ("buffer_size_kb", "1000"),
    ("per_cpu/cpu0/buffer_size_kb", "1000"),
    ("events/map/step/trigger", "snapshot"),
    ("events/map/step/trigger", "hist:keys=common_pid:n0=n:onmax($n0).snapshot()"),
):
    try:
        process_files().write_text(f"{{folder}}/{{path}}", text, append=True)
    except OSError as error:
        print(error.errno, end=" ", flush=True)
step(2)
os.kill(os.getpid(), 9)
"""


def test_nothing_takes_the_records_out_of_the_files(tmp_path):
    """Neither a snapshot nor another size: what was recorded before and after is there after a kill -9."""
    if core.IS_PURE:
        pytest.skip("rings in files need the C core: install gcc and run `make setup`")
    text = REFUSED.format(source=str(SOURCE), directory=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, check=False)
    assert done.stdout == b"16 " * 5, done.stderr
    assert [record.text for record in open_rings(tmp_path).records()] == ["1", "2"]
