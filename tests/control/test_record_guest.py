"""Recordings of a real kernel at full rate: how they end, what they leave, and how much is lost."""

from __future__ import annotations

import io
import json
import re
import resource
import shutil
import statistics
import sys
import tarfile
from pathlib import Path

import pytest

from control.packing import _libraries, package_files, python_files
from guest.conftest import kernel_or_skip
from tracepoint.lab.guest import machine as lab_guest
from tracepoint.tracefile.opening import open_container

pytestmark = pytest.mark.guest

SETTINGS = "cat /sys/kernel/tracing/{set_event,tracing_on,trace_clock,buffer_size_kb}; ls /sys/kernel/tracing/instances"
# Two system calls a byte, without end, on each of two processors.
LOAD = 'for n in 1 2; do dd if=/dev/zero of=/dev/null bs=1 2>/dev/null & L="$L $!"; done\n'
# The recording has begun when its instance has the event; then it goes on for some time.
BEGUN = (
    "while ! grep -q raw_syscalls /sys/kernel/tracing/instances/*/set_event 2>/dev/null; do sleep 0.2; done\n"
    "while ! ls -d /tmp/disk/.a.dat.*/cpu0 >/dev/null 2>&1; do sleep 0.2; done\n"
)


@pytest.fixture(scope="module", params=["6.1", pytest.param("6.12", marks=pytest.mark.slow)])
def guest(request):
    kernel_or_skip(request.param)
    files = python_files()
    programs = [shutil.which(name) for name in ("trace-cmd",) if shutil.which(name)]
    for path in (*programs, *_libraries(programs), resource.__file__):
        files[path] = Path(path).read_bytes()
    files |= package_files("zstandard")
    files["/lab/spent.py"] = Path(__file__).with_name("spent.py").read_bytes()
    with lab_guest.boot(
        request.param, files=files, memory_mb=1024, append="rcupdate.rcu_expedited=1"
    ) as made:
        made.run("mkdir /tmp/disk")
        yield made


def taken(guest, tmp_path, name: str):
    """Return the records of a file of the guest, after damage was looked for."""
    saved = tmp_path / "saved.dat"
    saved.write_bytes(guest.get(name))
    with open_container(saved) as trace:
        n = sum(1 for buffer in trace.buffers for _ in buffer.records())
        assert trace.damage == ()
        assert trace.events
    return n


def test_a_full_disk_leaves_a_valid_file_and_the_settings(guest, tmp_path):
    before = guest.run(SETTINGS).text
    script = f"""
mount -t tmpfs -o size=24m none /tmp/disk
{LOAD}
tracepoint record raw_syscalls --seconds 120 -o /tmp/disk/a.dat 2>&1; echo "status $?"
kill $L; ls -A /tmp/disk
"""
    told = guest.run(script, timeout=300).text
    assert "status 3" in told
    assert "No space left on device" in told
    assert told.split()[-1] == "a.dat"
    assert guest.run(SETTINGS).text == before
    n = taken(guest, tmp_path, "/tmp/disk/a.dat")
    assert n == int(re.search(r"a.dat: (\d+) records", told)[1]) > 10_000
    guest.run("umount /tmp/disk")


@pytest.mark.parametrize("number", ["INT", "TERM", "HUP"])
def test_a_signal_saves_and_restores(guest, tmp_path, number):
    before = guest.run(SETTINGS).text
    # A shell lets its background processes ignore SIGINT; `setsid` and Python's own start do not.
    script = f"""
rm -f /tmp/disk/a.dat
python3 -c 'import os, signal, sys; signal.signal(2, signal.default_int_handler); os.execvp("tracepoint", sys.argv[1:])' \\
  tracepoint record raw_syscalls --seconds 120 -o /tmp/disk/a.dat 2>/tmp/said & P=$!
{BEGUN}
sleep 2; kill -{number} $P; wait $P; echo "status $?"; cat /tmp/said; ls -A /tmp/disk
"""
    told = guest.run(script, timeout=300).text
    assert "status 0" in told
    assert told.split()[-1] == "a.dat"
    assert guest.run(SETTINGS).text == before
    assert taken(guest, tmp_path, "/tmp/disk/a.dat") == int(re.search(r"a.dat: (\d+) records", told)[1]) > 0


def test_what_is_killed_can_be_read_and_restored(guest, tmp_path):
    before = guest.run(SETTINGS).text
    script = f"""
rm -f /tmp/disk/a.dat
{LOAD}
tracepoint record raw_syscalls --seconds 120 -o /tmp/disk/a.dat 2>/tmp/said & P=$!
{BEGUN}
sleep 3; kill -KILL $P; wait $P; kill $L
tracepoint restore 2>&1
rm /tmp/disk/.a.dat.*/reserve; tar cf /tmp/killed.tar -C /tmp/disk/.a.dat.* .; rm -r /tmp/disk/.a.dat.*
"""
    assert "1 put back" in guest.run(script, timeout=300).text
    assert guest.run(SETTINGS).text == before
    with tarfile.open(fileobj=io.BytesIO(guest.get("/tmp/killed.tar"))) as archive:
        archive.extractall(tmp_path / "killed", filter="data")
    sizes = [path.stat().st_size for path in (tmp_path / "killed").glob("cpu*")]
    assert [size % 4096 for size in sizes] == [0, 0]
    with open_container(tmp_path / "killed") as trace:
        assert sum(1 for buffer in trace.buffers for _ in buffer.records()) > 1000
        assert trace.damage == ()
        assert {"sys_enter", "sys_exit"} <= {event.name for event in trace.events.values()}


def test_the_page_about_recording_works(guest):
    """Every command of docs/howto/record.md."""
    page = (Path(__file__).resolve().parents[2] / "docs/howto/record.md").read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert blocks
    for line in "".join(blocks).splitlines():
        assert " records" in guest.run(f"cd /tmp; {line} 2>&1", timeout=120).text, line


@pytest.mark.parametrize("n_rounds", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_it_costs_no_more_than_trace_cmd(guest, n_rounds):
    """Side by side, the same events, buffers and work, alternating; printed with -s."""
    if not shutil.which("trace-cmd"):
        pytest.skip("no trace-cmd: apt-get install trace-cmd")
    told = json.loads(guest.run(f"python3 /lab/spent.py {n_rounds} 200000", timeout=120 * n_rounds).text)
    sys.stderr.write("\n" + "".join(f"{name} {run}\n" for name, runs in told.items() for run in runs))
    ours, theirs = told["tracepoint"], told["trace-cmd"]
    assert {run["status"] for run in ours} == {0}
    assert median("kept", ours) >= 1_600_000
    assert median("lost", ours) <= median("lost", theirs)
    # The texts that describe the events are as large in both; some pages are filled less.
    assert median("bytes", ours) / median("kept", ours) <= 1.02 * median("bytes", theirs) / median(
        "kept", theirs
    )
    if n_rounds > 1:
        assert median("cpu_s", ours) <= median("cpu_s", theirs)


def median(what: str, runs: list[dict[str, float]]) -> float:
    return statistics.median(run[what] for run in runs)
