"""Events and rates of a real kernel as they come: lines beside the kernel's own, and what is left after."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from control.packing import python_files
from guest.conftest import kernel_or_skip
from tracepoint.lab.guest import machine as lab_guest

pytestmark = pytest.mark.guest

SETTINGS = "cat /sys/kernel/tracing/{set_event,tracing_on,trace_clock,buffer_size_kb,set_event_notrace_pid}; ls /sys/kernel/tracing/instances"
# Runs a command at a terminal, and prints what it shows there.
AT_TERMINAL = """
import os, subprocess, sys
ours, theirs = os.openpty()
with subprocess.Popen(sys.argv[1:], stdin=theirs, stdout=theirs, env=os.environ | {"TERM": "xterm"}) as child:
    os.close(theirs)
    # The end of a terminal is an error.
    try:
        while data := os.read(ours, 1 << 16):
            sys.stdout.buffer.write(data)
    except OSError:
        sys.stdout.flush()
sys.exit(child.returncode)
"""
# The task, what follows it up to the time, and the event.
PAINTED = re.compile(
    r"\x1b\[36m( *\S+-\d+ +)\x1b\[0m\x1b\[2m(\[\d+\] \S+ +[\d.]+: )\x1b\[0m\x1b\[32m(\w+)\x1b\[0m(: .*)"
)
# What the kernel calls a task whose name it has not noted: trace_find_cmdline() in kernel/trace/trace.c.
UNNAMED = " " * 11 + "<...>"
TASK = re.compile(r"( *\S+)(-\d+ )")
# A few system calls, all the time, with a write(2) each round.
LOAD = "(while :; do head -c 4 /proc/uptime >/dev/null; done) & L=$!\n"


@pytest.fixture(scope="module", params=["6.1", pytest.param("6.12", marks=pytest.mark.slow)])
def guest(request):
    kernel_or_skip(request.param)
    with lab_guest.boot(
        request.param, files=python_files(), memory_mb=1024, append="rcupdate.rcu_expedited=1"
    ) as made:
        yield made


def test_the_page_about_watching_works(guest):
    """Every command of docs/howto/watch.md prints something, and leaves everything as it was."""
    page = (Path(__file__).resolve().parents[2] / "docs/howto/watch.md").read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    lines = "".join(blocks).splitlines()
    assert len(lines) == 6
    before = guest.run(SETTINGS).text
    for line in lines:
        script = f"{LOAD}cd /; timeout {guest.limit(60)} {line} >/tmp/out 2>/tmp/err; echo status $?; kill $L; cat /tmp/err; wc -l </tmp/out"
        told = guest.run(script, timeout=100).text
        assert "status 0" in told, line + told
        assert int(told.split()[-1]) > 1, line + told
        assert "too late" not in told
        assert guest.run(SETTINGS).text == before


@pytest.mark.parametrize(
    "place", ["", "python3 /lab/at_terminal.py", "NO_COLOR=1 python3 /lab/at_terminal.py"]
)
def test_lines_are_those_of_the_kernel(guest, place):
    """The kernel's own text of the same records, which a second instance has; in colour at a terminal."""
    guest.put("/lab/at_terminal.py", AT_TERMINAL.encode())
    script = f"""
mkdir -p /dev/pts; [ -e /dev/pts/ptmx ] || mount -t devpts none /dev/pts
I=/sys/kernel/tracing/instances/twin; mkdir $I; echo 0 > $I/tracing_on
echo 1 > $I/events/sched/sched_process_exec/enable; echo 1 > $I/events/sched/sched_process_exit/enable
cat > /tmp/both <<'END'
echo 1 > /sys/kernel/tracing/instances/twin/tracing_on
for n in 1 2 3 4 5 6 7 8; do /bin/busybox true; done
echo 0 > /sys/kernel/tracing/instances/twin/tracing_on
END
{place} timeout {guest.limit(60)} tracepoint stream sched:sched_process_exec sched:sched_process_exit -- sh /tmp/both >/tmp/ours 2>/tmp/err
echo status $?; cat /tmp/err
grep -v '^#' $I/trace | grep busybox > /tmp/theirs; rmdir $I
"""
    assert "status 0" in (told := guest.run(script, timeout=100).text), told
    ours, theirs = (guest.get(f"/tmp/{name}").decode().splitlines() for name in ("ours", "theirs"))
    assert len(theirs) >= 8
    if place.startswith("python3"):
        painted = [PAINTED.fullmatch(line) for line in ours]
        assert None not in painted
        ours = ["".join(found.groups()) for found in painted]
    # Each instance makes its own record of an event: all but the time, and whether the task is to be
    # rescheduled, which a tick between the two records changes.
    own = re.compile(r"(\[\d+\] \S)\S(\S+) +\d+\.\d{6}: ")
    wanted = [own.sub(r"\1?\2 ", line) for line in theirs]
    # A task that has run on since it was made has no name yet, as in trace_pipe; their text was read later.
    names = {found[2]: found[1] for line in wanted if (found := TASK.match(line))}
    assert any(TASK.match(line)[1] != UNNAMED for line in ours)
    ours = [
        TASK.sub(lambda found: names.get(found[2], UNNAMED) + found[2], line, count=1)
        if line.startswith(UNNAMED)
        else line
        for line in ours
    ]
    found = [own.sub(r"\1?\2 ", line) for line in ours]
    assert all("?" in line for line in (*wanted, *found))
    assert [line for line in found if line in wanted] == wanted


# Programs that are executed: busybox would run `true` itself.
PROGRAMS = "(while :; do /bin/busybox true; done) & L=$!\n"
# The signal comes when it has printed something, and is the end that it expects.
KILLED = """>/tmp/out & T=$!
while [ $(wc -l </tmp/out) -lt 2 ]; do sleep 0.2; done
kill -TERM $T; wait $T"""


@pytest.mark.parametrize("end", ["| head -n 2 >/tmp/out", KILLED], ids=["closed", "killed"])
def test_whatever_ends_it_restores(guest, end):
    before = guest.run(SETTINGS).text
    for command in ("stream sched:sched_process_exec", "top raw_syscalls --interval 200ms"):
        # If it were `timeout` that ends it, this would be late.
        script = (
            f": >/tmp/out\n{PROGRAMS}timeout 600 tracepoint {command} {end}\nstatus=$?; kill $L; exit $status"
        )
        guest.run(script, timeout=100)
        assert guest.run(SETTINGS).text == before
        assert len(guest.get("/tmp/out").splitlines()) >= 2


def test_rates_are_those_of_what_runs(guest):
    script = f"""
timeout {guest.limit(60)} tracepoint top raw_syscalls:sys_enter --by task --json -- dd if=/dev/zero of=/dev/null bs=1 count=5000 2>/dev/null
"""
    tables = [json.loads(line) for line in guest.run(script, timeout=100).text.splitlines()]
    # A read and a write for each byte, and what starts and ends it.
    assert max(row["total"] for row in tables[-1]["rows"]) in range(10_000, 10_300)
