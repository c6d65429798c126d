"""Recordings of a real kernel at full rate: how they end, what they leave, and how much is lost."""

from __future__ import annotations

import io
import json
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import tracepoint as tp
from control.packing import imported_files, libraries, package_files, python_files
from control.test_flight import FAILING
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
def booted(request):
    kernel_or_skip(request.param)
    files = python_files()
    programs = [shutil.which(name) for name in ("trace-cmd",) if shutil.which(name)]
    for path in (*programs, *libraries(programs), resource.__file__):
        files[path] = Path(path).read_bytes()
    files |= package_files("zstandard")
    for name in ("spent.py", "killed.py"):
        files[f"/lab/{name}"] = Path(__file__).with_name(name).read_bytes()
    with lab_guest.boot(
        request.param, files=files, memory_mb=1024, append="rcupdate.rcu_expedited=1"
    ) as made:
        yield made


@pytest.fixture
def guest(booted):
    """The guest that all tests share, in any order, with an empty folder for what is recorded."""
    booted.run("rm -rf /tmp/disk && mkdir /tmp/disk")
    return booted


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
    try:
        told = guest.run(script, timeout=300).text
        assert "status 3" in told
        assert "No space left on device" in told
        assert told.split()[-1] == "a.dat"
        assert guest.run(SETTINGS).text == before
        n = taken(guest, tmp_path, "/tmp/disk/a.dat")
        assert n == int(re.search(r"a.dat: (\d+) records", told)[1]) > 10_000
    finally:
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


def killed(guest, kind, n_kills):
    """Kill as often; return what was found."""
    told = json.loads(guest.run(f"python3 /lab/killed.py {kind} {n_kills}", timeout=60 + 12 * n_kills).text)
    sys.stderr.write(f"\n{kind}: {told}\n")
    assert told["wrong"] == []
    assert sum(told["left"].values()) == n_kills
    return told


MANY = pytest.param(50, marks=pytest.mark.slow)


@pytest.mark.parametrize("n_kills", [4, MANY])
def test_a_kill_at_any_moment_leaves_what_can_be_read(guest, n_kills):
    told = killed(guest, "one", n_kills)
    if n_kills > 4:
        assert told["left"]["folder"] >= n_kills / 5


@pytest.mark.parametrize("n_kills", [2, MANY])
def test_a_kill_leaves_each_of_several_files(guest, n_kills):
    told = killed(guest, "rotated", n_kills)
    if n_kills > 2:
        assert told["left"][".dat+folder"] >= n_kills / 10


@pytest.mark.parametrize("n_kills", [2, MANY])
def test_a_kill_leaves_the_saves_of_a_flight(guest, n_kills):
    told = killed(guest, "flight", n_kills)
    if n_kills > 2:
        assert told["left"][".dat"] >= n_kills / 5
        # What was not saved yet is there until the instance is removed.
        assert told["most_in_ring"] > 1000


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["6.1", "6.12"])
def test_a_kill_leaves_a_whole_dataset_or_the_recording(kernel):
    kernel_or_skip(kernel)
    files = {"/lab/killed.py": Path(__file__).with_name("killed.py").read_bytes()}
    files |= python_files() | package_files("zstandard")
    arrow = imported_files("pyarrow.parquet")
    if not arrow:
        pytest.skip("no pyarrow: pip install 'tracepoint[arrow]'")
    with lab_guest.boot(
        kernel, files=files | arrow, memory_mb=2048, append="rcupdate.rcu_expedited=1"
    ) as guest:
        guest.run("mkdir /tmp/disk")
        told = killed(guest, "parquet", 50)
    assert {"folder", ".dat", ".parquet"} <= told["left"].keys()


# Numbered system calls without end of the file: lseek is 8 on x86-64.
SEEKS = """
import os, sys
cpu, n = map(int, sys.argv[1:])
os.sched_setaffinity(0, {cpu})
file, seek = os.open("/dev/zero", os.O_RDONLY), os.lseek
for number in range((cpu + 1) << 32, ((cpu + 1) << 32) + n):
    seek(file, number, 0)
"""
ROTATED = """
rm -rf /tmp/disk; mkdir /tmp/disk
tracepoint record raw_syscalls:sys_enter --filter raw_syscalls:sys_enter 'id == 8' --buffer-kb 8192 {options} \\
  --rotate 0 -o /tmp/disk/r.dat -- sh -c 'python3 /lab/seeks.py 0 {n} & python3 /lab/seeks.py 1 {n}; wait' 2>&1
echo "status $?"; ls -A /tmp/disk
"""


@pytest.mark.parametrize(
    ("options", "n"), [("--max-size 7M", 100_000), ("--rotate-time 150ms --compression zstd", 60_000)]
)
def test_each_record_is_in_one_of_several_files(guest, tmp_path, options, n):
    guest.put("/lab/seeks.py", SEEKS.encode())
    told = guest.run(ROTATED.format(options=options, n=n), timeout=300).text
    assert "status 0" in told
    assert "overwritten" not in told
    names = told[told.index("status 0") :].split()[2:]
    assert len(names) >= 3
    assert names == [f"r.{number:03}.dat" for number in range(1, len(names) + 1)]
    found: list[int] = []
    for name in names:
        saved = tmp_path / name
        saved.write_bytes(guest.get(f"/tmp/disk/{name}"))
        if "--max-size" in options:
            assert saved.stat().st_size <= 7 << 20
        with tp.open_trace(saved) as trace:
            assert trace.damage == ()
            numbers = [args[1] for args in trace["sys_enter"]["args"].tolist()]
        if shutil.which("trace-cmd"):
            done = subprocess.run(
                ["trace-cmd", "report", "-i", saved], capture_output=True, text=True, check=True
            )
            assert done.stdout.count(" sys_enter: ") == len(numbers)
        found += numbers
    for first in (1 << 32, 2 << 32):
        # In order, each once; the interpreter seeks too, in its own files.
        assert [number for number in found if number >> 32 == first >> 32] == list(range(first, first + n))
    guest.run("rm /tmp/disk/r.*")


FLIGHT = """
{load}
tracepoint record raw_syscalls --flight 1s {options} -o /tmp/disk/f.dat 2>/tmp/said & P=$!
while ! grep -q raw_syscalls /sys/kernel/tracing/instances/*/set_event 2>/dev/null; do sleep 0.2; done
while ! grep -q 1 /sys/kernel/tracing/instances/*/tracing_on 2>/dev/null; do sleep 0.2; done
sleep 2; {act}; wait $P; echo "status $?"; kill $L; cat /tmp/said; ls /tmp/disk
"""


def test_a_flight_recorder_saves_what_came_last(guest, tmp_path):
    guest.run("rm -rf /tmp/disk/* /tmp/disk/.a.dat*")
    before = guest.run(SETTINGS).text
    wait = "while ! ls /tmp/disk/f.001.dat 2>/dev/null; do sleep 0.2; done"
    act = f"kill -USR1 $P; {wait}; sleep 2; kill -TERM $P"
    told = guest.run(FLIGHT.format(load=LOAD, options="", act=act), timeout=300).text
    assert "status 0" in told
    assert told.split()[-2:] == ["f.001.dat", "f.002.dat"]
    assert guest.run(SETTINGS).text == before
    spans = []
    for name in ("f.001.dat", "f.002.dat"):
        assert taken(guest, tmp_path, f"/tmp/disk/{name}") > 1000
        with open_container(tmp_path / "saved.dat") as trace:
            times = [record.timestamp for buffer in trace.buffers for record in buffer.records()]
            spans.append((min(times), max(times)))
    assert spans[0][1] < spans[1][0]
    guest.run("rm /tmp/disk/f.*")


def test_a_flight_ends_where_an_event_fires(guest, tmp_path):
    guest.run("rm -f /tmp/disk/f.*")
    # A shell that is busybox runs its own programs as /proc/self/exe unless they are named by a path.
    act = (
        "ln -s /bin/busybox /tmp/chroot; /tmp/chroot / true;"
        " for n in $(seq 400); do [ -e /tmp/disk/f.001.dat ] && break; sleep 0.5; done;"
        " [ -e /tmp/disk/f.001.dat ] || { echo missed; kill -TERM $P; }"
    )
    options = "--until 'sched:sched_process_exec if filename ~ \"*chroot\"'"
    told = guest.run(FLIGHT.format(load="", options=options, act=act), timeout=300).text
    assert "missed" not in told
    assert "status 0" in told
    assert told.split()[-1] == "f.001.dat"
    assert taken(guest, tmp_path, "/tmp/disk/f.001.dat") > 10
    guest.run("rm /tmp/disk/f.*")


# What led to it is these calls; the rest is as in docs/howto/record.md.
SEEKS_AND_FAILS = FAILING.replace(
    "1 / 0",
    """file = os.open("/dev/zero", os.O_RDONLY)
for number in range(1 << 32, (1 << 32) + 5000):
    os.lseek(file, number, 0)
1 / 0""",
)


def test_a_python_program_that_fails_saves_what_led_to_it(guest, tmp_path):
    guest.run("rm -f /tmp/disk/f.*")
    guest.put("/lab/fails.py", SEEKS_AND_FAILS.encode())
    before = guest.run(SETTINGS).text
    words = "tracepoint record raw_syscalls:sys_enter --flight 1m -o /tmp/disk/f.dat -- python3 /lab/fails.py"
    told = guest.run(f"{words} /tmp/disk/f.001.dat 2>&1; echo status $?", timeout=300).text
    assert "ZeroDivisionError" in told
    assert "status 5" in told
    assert guest.run(SETTINGS).text == before
    taken(guest, tmp_path, "/tmp/disk/f.001.dat")
    with tp.open_trace(tmp_path / "saved.dat") as trace:
        rows = trace["sys_enter"].to_dicts()
    calls = [
        (row["common_pid"], row["args"][1]) for row in rows if row["id"] == 8 and row["args"][1] >> 32 == 1
    ]
    assert [number for _, number in calls] == list(range(1 << 32, (1 << 32) + 5000))
    # kill(2), which asks for the save, comes after them in the same program.
    own = [(row["id"], row["args"][1]) for row in rows if row["common_pid"] == calls[0][0]]
    assert own.index((62, signal.SIGUSR1)) > own.index((8, calls[-1][1]))
    guest.run("rm /tmp/disk/f.*")


def test_the_page_about_recording_works(guest):
    """Every command of docs/howto/record.md."""
    page = (Path(__file__).resolve().parents[2] / "docs/howto/record.md").read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert blocks
    guest.run("[ -e /bin/true ] || ln -s /bin/busybox /bin/true")
    for line in "".join(blocks).splitlines():
        assert " records" in guest.run(f"cd /tmp; {line} 2>&1", timeout=120).text, line


@pytest.mark.parametrize(
    ("n_rounds", "n_bytes"),
    [(1, 200_000), *(pytest.param(5, n, marks=pytest.mark.slow) for n in (200_000, 600_000))],
)
def test_it_costs_no_more_than_trace_cmd(guest, n_rounds, n_bytes):
    """Side by side, the same events, buffers and work, alternating; printed with -s."""
    if not shutil.which("trace-cmd"):
        pytest.skip("no trace-cmd: apt-get install trace-cmd")
    told = json.loads(
        guest.run(f"python3 /lab/spent.py {n_rounds} {n_bytes}", timeout=n_rounds * n_bytes // 1600).text
    )
    sys.stderr.write("\n" + "".join(f"{name} {run}\n" for name, runs in told.items() for run in runs))
    ours, theirs = told["tracepoint"], told["trace-cmd"]
    assert {run["status"] for run in ours} == {0}
    assert median("kept", ours) >= 8 * n_bytes
    assert median("lost", ours) <= median("lost", theirs)
    # The texts that describe the events are as large in both; some pages are filled less.
    assert median("bytes", ours) / median("kept", ours) <= 1.02 * median("bytes", theirs) / median(
        "kept", theirs
    )
    if n_rounds > 1:
        assert median("cpu_s", ours) <= median("cpu_s", theirs)


def median(what: str, runs: list[dict[str, float]]) -> float:
    return statistics.median(run[what] for run in runs)
