"""Control on real kernels: the state machine beside the fake, kills, filters, and the command line.

One boot a kernel.  TRACEPOINT_CONTROL_KERNELS names other kernels, parted by blanks.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from control import filter_texts, machine
from control.fake import DEFAULT_EVENTS, FakeTracefs
from control.packing import python_files
from guest.conftest import kernel_or_skip
from tracefile.making import HASHED
from tracepoint.cli.commands import COMMANDS
from tracepoint.cli.main import main
from tracepoint.control.journal import Journal
from tracepoint.control.session import TracefsSession
from tracepoint.control.settings import read_settings
from tracepoint.control.tracefs import Tracefs
from tracepoint.filter.error import FilterError
from tracepoint.filter.parse import is_clear, parse_filter
from tracepoint.filter.profile import KERNEL_6_1, KERNEL_6_1_187, KERNEL_6_12
from tracepoint.lab.guest import machine as lab_guest
from tracepoint.layout.format import read_format
from tracepoint.tracefile.text import TextWriter, facts_of
from tracepoint.tracefile.tracedat import open_tracedat

pytestmark = pytest.mark.guest

#: Each takes an emulated machine 220 s of CPU.
KERNELS = os.environ.get("TRACEPOINT_CONTROL_KERNELS", "").split() or [
    "6.1",
    pytest.param("6.12", marks=pytest.mark.slow),
]
ROOT = Path(__file__).resolve().parents[2]
ON_KERNEL = ("list", "enable", "disable", "filter", "trigger", "hist", "record", "stream", "top", "restore")
N_FILTERS = 2000
N_KILLS = 100
#: A process is killed once it has written 1 to so many times, at whatever it does then.
N_WRITES = 40
FUNCTIONS = {b"do_sys_openat2", b"schedule"}


def say(text: str) -> None:
    """Tell a measured figure; seen with -s."""
    sys.stderr.write(f"\n{text}")


class Lab:
    """A booted kernel that does jobs, and what it is known to be able to do."""

    def __init__(self, guest: lab_guest.Guest) -> None:
        self.guest = guest
        self.facts = self.job("facts")
        accepts = [
            not answer[0]
            for answer in self.job(
                "filters", filters=[["irq:softirq_entry", t] for t in ("vec == 1 &&", "CPU & CPUS{0}")]
            )
        ]
        self.profile = KERNEL_6_1_187 if accepts[0] else KERNEL_6_12 if accepts[1] else KERNEL_6_1

    def job(self, name: str, timeout: int = 400, **rest: object) -> object:
        self.guest.put("/tmp/job.json", json.dumps({"job": name, **rest}).encode())
        began = time.monotonic()
        self.guest.run("python3 -m control.in_guest /tmp/job.json /tmp/answer.json", timeout=timeout)
        say(f"{name}: {time.monotonic() - began:.1f} s")
        return json.loads(self.guest.get("/tmp/answer.json"))

    def fake(self) -> FakeTracefs:
        """Return a made-up tracefs with the events, options and sizes of this kernel."""
        listed = [name for name in self.facts["available"].split() if name in self.facts["formats"]]
        formats = {
            name: read_format(self.facts["formats"][name], name.split(":")[0]) for name in reversed(listed)
        }
        made = FakeTracefs(formats, self.profile)
        settings = self.facts["settings"]
        array = made.arrays[""]
        array.options = {p.split("/")[1]: int(v) for p, v in settings.items() if p.startswith("options/")}
        array.clock = settings["trace_clock"]
        sizes = [int(v) for p, v in settings.items() if p.startswith("per_cpu/")]
        array.pages = [-(-size * 1024 // 4080) for size in sizes]
        return made


@pytest.fixture(scope="module", params=KERNELS)
def lab(request: pytest.FixtureRequest):
    kernel_or_skip(request.param)
    began = time.monotonic()
    with lab_guest.boot(request.param, files=python_files(), append="rcupdate.rcu_expedited=1") as guest:
        made = Lab(guest)
        say(
            f"{guest.image.version}: profile {made.profile.name}, ready after {time.monotonic() - began:.1f} s"
        )
        yield made


def test_the_fake_does_what_the_kernel_does(lab):
    """The same operations in both: the same answers, and the same settings after each."""
    seeds = list(range(1, 6))
    told = lab.job("machine", seeds=seeds, n=40)
    differences = []
    assert told["left"] == {}
    for seed, (steps, left, problems) in zip(seeds, told["runs"], strict=True):
        assert (left, problems) == ({}, []), f"seed {seed}"
        files = lab.fake()
        tracing = TracefsSession(Tracefs(files, Journal(None)))
        last = read_settings(files)
        for number, (operation, answer, changed) in enumerate(steps):
            mine = machine.perform(tracing, tuple(operation))
            now = read_settings(files)
            difference = {
                p: [last.get(p, ""), now.get(p, "")]
                for p in sorted({*last, *now})
                if last.get(p, "") != now.get(p, "")
            }
            shown = {p: [a or "", b or ""] for p, (a, b) in changed.items() if (a or "") != (b or "")}
            if mine != answer or difference != shown:
                differences.append((seed, number, operation, answer, mine, shown, difference))
                break
            last = now
    assert differences == [], differences


def test_killed_at_many_moments_everything_comes_back(lab):
    told = lab.job("kills", n=N_KILLS, seed=4, writes=N_WRITES)
    say(str({k: v for k, v in told.items() if k != "wrong"}))
    assert told["wrong"] == []
    assert told["writes"] >= N_KILLS
    assert told["journals"] == N_KILLS
    assert told["settings"] > 3000
    assert told["left"] == {}


def test_histograms_that_depend_on_each_other_come_and_go(lab):
    """At the end, after SIGKILL, and set again after another session removed them."""
    told = lab.job("latency")
    assert told["left"] == [{}, {}, {}, {}]
    assert told["problems"] == []
    assert told["fired"] == "1*"
    assert told["rows"]
    assert {"pid", "lat", "hitcount"} <= set(told["rows"][0])
    assert all(row["lat"].startswith("range(") for row in told["rows"])


def test_filters_are_judged_as_the_kernel_judges(lab):
    """Verdict, errno, message and caret column of every expression, as the kernel shows and logs them."""
    asked = [("sched:sched_switch", text) for text in filter_texts.KNOWN]
    asked += filter_texts.generate(20, N_FILTERS)
    asked = [(event, text) for event, text in asked if text]
    told = lab.job("filters", filters=asked)
    layouts = {}
    for event in filter_texts.EVENTS:
        path = f"/sys/kernel/tracing/events/{event.replace(':', '/')}/format"
        layouts[event] = read_format(lab.guest.read(path), event.split(":")[0])
    n_cpus = int(lab.guest.read("/sys/devices/system/cpu/possible").strip().rpartition("-")[2]) + 1
    different = []
    refused = 0
    for (event, text), (number, shown, log) in zip(asked, told, strict=True):
        expected = _judge(text, layouts[event], lab.profile, n_cpus)
        refused += number != 0
        if expected != (number, shown, log.partition("] ")[2]):
            different.append((event, text, (number, shown, log), expected))
    say(f"{len(asked)} expressions, {refused} refused by the kernel, {len(different)} judged differently")
    assert different == []
    assert len(asked) * 0.2 < refused < len(asked) * 0.8


def _judge(text, layout, profile, n_cpus):
    if is_clear(text):
        return 0, "none\n", ""
    try:
        parsed = parse_filter(
            text,
            layout,
            profile,
            n_cpus=n_cpus,
            find_function=lambda wanted: (1, 1) if wanted in FUNCTIONS else None,
        )
    except FilterError as error:
        return error.errno, error.report, error.log_entry
    return 0, parsed.text + "\n", ""


def test_every_example_of_the_help_runs_and_leaves_what_it_says(lab):
    examples = [example for name in ON_KERNEL for example in COMMANDS[name].examples]
    told = lab.job("commands", commands=[shlex.split(example) for example in examples])
    assert set(told["left"]) <= {"instances"}
    told = told["runs"]
    for example, (status, _, errors, changed) in zip(examples, told, strict=True):
        assert status == 0, f"{example}\n{errors}"
        assert set(changed) <= {"instances"}, example
    output = {example: stdout for example, (_, stdout, _, _) in zip(examples, told, strict=True)}
    assert "sched:sched_wakeup\n" in output["tracepoint list 'sched:*wak*'"]
    assert "sched_process_exec" in output["tracepoint enable 'sched:sched_process_*' -- ls /"]
    assert "sys_read" in output["tracepoint hist raw_syscalls:sys_enter id.syscall --where 'id < 3' -- ls /"]
    assert (
        lab.guest.run("tracepoint disable --remove; ls /sys/kernel/tracing/instances").text.count("\n") == 1
    )


def test_a_recording_reads_back(lab, tmp_path):
    """Told and saved are the same number, each record has its text, and trace-cmd reads the file too."""
    if not lab.guest.image.version.startswith("6.1."):
        pytest.skip("one kernel is enough: 6.1")
    command = "tracepoint record sched:sched_switch --seconds 1 --clock mono -o /tmp/switch.dat"
    told = lab.job("commands", commands=[shlex.split(command)])
    status, _, errors, changed = told["runs"][0]
    assert (status, changed, told["left"]) == (0, {}, {}), errors
    saved = tmp_path / "switch.dat"
    saved.write_bytes(lab.guest.get("/tmp/switch.dat"))
    with open_tracedat(saved) as trace:
        records = list(trace.buffers[0].records())
        lines = list(TextWriter(trace.events, facts_of(trace)).lines(records))
        assert (trace.clock, trace.damage) == ("mono", ())
    assert int(re.search(r": (\d+) records", errors)[1]) == len(records) > 10
    assert sum(" sched_switch: prev_comm=" in line for line in lines) == len(records)
    if shutil.which("trace-cmd"):
        done = subprocess.run(
            ["trace-cmd", "report", "-i", saved], capture_output=True, text=True, check=True
        )
        assert done.stdout.count(" sched_switch: ") == len(records)


# Both of the same stopped buffer: first as the kernel's text, which leaves the records, then as pages.  No more
# names are noted meanwhile, which would take the places of others.
TGIDS = """
cd /sys/kernel/tracing
echo 1 > options/record-tgid
echo 1 > events/sched/enable
sh -c 'ls / | cat; (sleep 0.1; :) & wait' > /dev/null
echo 0 > tracing_on
echo 0 > options/record-cmd
cat trace > /tmp/trace.txt
python3 -c 'from tracepoint.control.session import open_tracefs
open_tracefs(keeps_journal=False).record("/tmp/tgid.dat", 0)'
echo 0 > events/sched/enable
echo 0 > options/record-tgid
echo 1 > options/record-cmd
echo 1 > tracing_on
"""


def test_a_recording_shows_processes_as_the_kernel_does(lab, tmp_path, capsys):
    lab.guest.run(TGIDS)
    saved = tmp_path / "tgid.dat"
    saved.write_bytes(lab.guest.get("/tmp/tgid.dat"))
    assert main(["read", str(saved)]) == 0
    ours = capsys.readouterr().out
    kernels = lab.guest.get("/tmp/trace.txt").decode()
    assert re.search(r"^ *\S+-\d+ +\( *\d+\) \[", kernels, re.MULTILINE)
    assert HASHED.sub("P", ours) == HASHED.sub("P", kernels)
    with open_tracedat(saved) as trace:
        base = facts_of(trace).variables["vmemmap_base"]
    # Documentation/x86/x86_64/mm.rst: in the upper half, placed at a multiple of 1 GB.
    assert base >> 56 == 0xFF
    assert base % (1 << 30) == 0


FOLLOWED = """
cd /sys/kernel/tracing
echo 1 > events/sched/sched_process_exec/enable
python3 -m tracepoint read --follow /sys/kernel/tracing > /tmp/followed.txt 2> /tmp/followed.err &
while ! grep -q filename=/bin/ls /tmp/followed.txt && kill -0 $!; do
    /bin/ls / > /dev/null; sleep 0.1
done
kill -INT $!
wait $!
echo status $?
echo 0 > events/sched/sched_process_exec/enable
cat /tmp/followed.err
"""


def test_a_live_tracefs_is_followed_until_an_interrupt(lab):
    said = lab.guest.run(FOLLOWED, timeout=200).text.splitlines()
    lines = lab.guest.get("/tmp/followed.txt").decode().splitlines()
    assert said == ["status 0"]
    assert any("sched_process_exec: filename=/bin/ls " in line for line in lines)
    times = [float(re.search(r" (\d+\.\d{6}): ", line)[1]) for line in lines]
    assert times == sorted(times)


def test_the_page_about_control_works(lab):
    """Every command and the Python of docs/howto/control.md."""
    page = (ROOT / "docs/howto/control.md").read_text()
    blocks = re.findall(r"^```(sh|python)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    lines = [shlex.split(line) for kind, text in blocks if kind == "sh" for line in text.splitlines()]
    lines += [["python3", "-c", text] for kind, text in blocks if kind == "python"]
    told = lab.job("commands", commands=[*lines, ["tracepoint", "disable", "--remove"]])
    for words, (status, _, errors, _) in zip(lines, told["runs"], strict=False):
        assert status == 0, f"{words}\n{errors}"
    assert told["left"] == {}


REFUSED = (
    (["filter", "sched:sched_switch", 'prev_comn == "x"'], "did you mean 'prev_comm'?"),
    (["filter", "sched:sched_swich", "prev_pid == 1"], "did you mean sched:sched_switch?"),
    (["filter", "--unchecked", "sched:sched_switch", "(prev_pid == 1"], "Too many '('"),
    (["filter", "sched", "nosuch == 1"], "Field not found"),
    (["trigger", "sched:sched_switch", "traceof"], "did you mean traceoff?"),
    (["trigger", "--unchecked", "sched:sched_switch", "hist:keys=nosuch"], "Couldn't find field"),
    (["hist", "sched:sched_switch", "prev_pidd"], "did you mean prev_pid?"),
    (["enable", "shed:*"], "no event 'shed:*'"),
    (["disable", "sched:*"], "no instance 'tracepoint'"),
)


def test_what_is_refused_says_why_and_leaves_nothing(lab):
    told = lab.job("commands", commands=[["tracepoint", *words] for words, _ in REFUSED])
    for (words, message), (status, _, errors, changed) in zip(REFUSED, told["runs"], strict=True):
        assert (status, changed) == (4, {}), (words, errors)
        assert message in errors, words
    assert told["left"] == {}


def test_the_default_events_of_the_fake_are_real(lab):
    assert set(DEFAULT_EVENTS) <= set(lab.facts["available"].split())
