"""`tracepoint analyse`: its tables, JSON, the part that is shown, and what it says of losses."""

from __future__ import annotations

import json
import struct
from functools import partial
from pathlib import Path

import pytest

from analysis.making import Schedule
from analysis.test_sched import lossy, x1
from tracefile.making import GOLDEN
from tracepoint.tracefile.tracedat import read_tracedat

CUT = str(GOLDEN / "cut.v6.dat")


@pytest.fixture
def run(run_command):
    return partial(run_command, "analyse")


def test_the_text_has_cpus_tasks_and_latencies(run, made):
    status, out, _ = run("sched", made(x1()))
    lines = out.splitlines()
    assert status == 0
    assert lines[2].split() == ["0", "78.33", "%", "21.67", "%", "0.00", "%", "8"]
    assert lines[7].split() == "360.0 us 60.00 % 140.0 us 100.0 us 4 2 2 0 t10-10".split()
    waits = dict(
        line.rsplit(None, 9)[:2] for line in lines[lines.index("") :] if line.startswith(("wake", "all"))
    )
    assert waits == {"wake-up": "1", "all": "3"}


def test_the_json_has_the_same_figures(run, made):
    path = made(x1())
    status, out, _ = run("sched", path, "--format", "json", "--pid", "10", "--cpu", "0")
    facts = json.loads(out)
    assert status == 0
    assert [task["tid"] for task in facts["tasks"]] == [10]
    assert [use["cpu"] for use in facts["cpus"]] == [0]
    assert facts["latency_ns"]["all"]["n"] == [3, 3]
    assert facts["latency_ns"]["preemption"]["max"] == [50_000, 50_000]
    assert json.loads(run("sched", path, "--format", "json", "--pid", "t1*")[1])["tasks"] == facts["tasks"]


def test_a_loss_is_said_and_strict_is_a_status(run, made):
    path = made(lossy(3))
    status, out, err = run("sched", path)
    assert status == 0
    assert "3 events were lost in 1 gap on 1 CPU" in err
    assert "2..10" in out
    assert run("sched", path, "--strict")[0] == 3
    assert "some events were lost" in run("sched", made(lossy(-1)))[2]


def test_the_events_to_record_need_no_file(run):
    status, out, _ = run("sched", "--events")
    assert status == 0
    assert out.split()[:2] == ["sched:sched_switch", "sched:sched_waking"]


def test_the_file_may_come_after_options(run):
    assert run("sched", "-q", "--all", CUT) == run("sched", CUT, "-q", "--all")
    assert run("sched", "-q", CUT, CUT)[0] == 2


def test_no_file_is_an_error(run):
    status, _, err = run("sched")
    assert status == 2
    assert "no recording" in err


def test_a_recording_without_switches_says_what_to_record(run, made):
    schedule = Schedule("sched:sched_waking")
    schedule.waking(1, 0, 10)
    status, _, err = run("sched", made(schedule))
    assert status == 2
    assert "analyse sched --events" in err


def test_a_missing_event_is_named_with_what_it_gives(run, made):
    _, _, err = run("sched", made(x1("sched:sched_switch")))
    assert "sched:sched_waking (wake-up latency, the waker)" in err


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--cpu", "9"), "chosen CPUs"),
        (("--pid", "9999"), "chosen tasks"),
        (("--pid", "nobody*", "--cpu", "0"), "chosen tasks"),
        (("--from", "5"), "in this time: the recording is from 0.000000 to 0.000600 s"),
    ],
)
def test_a_choice_that_matches_nothing_ends_with_1(run, made, words, said, form):
    status, _, err = run("sched", made(x1()), *words, "--format", form)
    assert (status, said in err) == (1, True)


def damaged(tmp_path, *, at, value):
    """The recording with eight bytes of the last page of its first CPU changed."""
    data = bytearray(Path(CUT).read_bytes())
    cpu = read_tracedat(bytes(data)).buffers[0].cpus[0]
    struct.pack_into("<Q", data, cpu.offset + cpu.size - 4096 + at, value)
    path = tmp_path / "damaged.dat"
    path.write_bytes(data)
    return path


def test_a_span_that_a_damaged_time_stretches_is_said_with_the_figures(run, run_command, tmp_path):
    """A silent -q leaves what the figures are of beside them."""
    path = damaged(tmp_path, at=0, value=1 << 45)
    said = "is not known for 100.00 % of the span from 10.629676 to 35184."
    status, text, err = run("sched", "-q", path)
    assert (status, err) == (0, "")
    assert text.startswith(f"what CPUs did {said}")
    assert said not in run("sched", path)[2]
    assert said in " ".join(json.loads(run("sched", path, "--format", "json")[1])["notes"])
    assert "not known" not in run("sched", path, "--to", "11")[1]
    assert "not known" not in run("sched", CUT)[1]
    assert f"after: what CPUs did {said}" in run_command("compare", CUT, path)[1]


def test_damage_is_said_with_the_figures(run, tmp_path):
    path = damaged(tmp_path, at=8, value=5000)
    said = "1 place of the recording could not be read: shares are of the span from 10.629676 to 10.698720 s"
    status, text, err = run("sched", "-q", path)
    assert (status, err) == (0, "")
    assert text.startswith(said)
    assert said not in run("sched", path)[2]
    assert said in run("sched", path, "--format", "folded")[2]
    assert json.loads(run("sched", path, "--format", "json")[1])["notes"][0].startswith(said)


def test_a_choice_that_matches_ends_with_0(run, made):
    assert run("sched", made(x1()), "--cpu", "0", "--pid", "t10")[0] == 0


def test_an_option_of_another_analysis_is_an_error(run):
    status, _, err = run("sched", CUT, "--begin", "sched:sched_waking")
    assert (status, "sched has no --begin" in err) == (2, True)


def test_from_and_to_can_name_events_of_an_analysis_of_two(run):
    events = ("softirq_raise", "irq:softirq_entry")
    key = ("--key", "vec:common_cpu")
    _, named, _ = run("latency", CUT, "--from", events[0], "--to", events[1], *key)
    assert named
    assert named == run("latency", CUT, "--begin", events[0], "--end", events[1], *key)[1]
    # One may be a time all the same.
    part = run("latency", CUT, "--begin", events[0], "--from", "10.64", "--to", events[1], *key)[1]
    assert part not in ("", named)
    status, _, err = run("sched", CUT, "--from", "sched_waking")
    assert (status, "--from: 'sched_waking' is not a time in seconds" in err) == (2, True)
    status, _, err = run("latency", CUT, "--begin", events[0], "--from", events[0])
    assert (status, "both name an event" in err) == (2, True)


def test_an_empty_task_is_an_error(run):
    status, _, err = run("sched", CUT, "--pid", "")
    assert (status, "an empty task" in err) == (2, True)


@pytest.mark.parametrize("analysis", ["sched", "syscalls", "irq"])
def test_a_text_without_formats_says_what_it_lacks(run, analysis):
    status, _, err = run(analysis, GOLDEN / "cut.trace.txt")
    assert (status, "without the formats of its events" in err) == (2, True)


def test_a_name_that_a_terminal_would_act_on_is_shown_as_escapes(run, made):
    s = Schedule()
    s.add(0, 0, "sched:sched_switch", {"prev_pid": 0, "next_pid": 7, "next_comm": "\x1b[2J\n"}, 0)
    s.switch(5, 0, 7, "S", 0)
    status, out, _ = run("sched", made(s))
    assert status == 0
    assert "\x1b" not in out


def test_help_after_a_name_is_that_of_one_analysis(run):
    status, out, _ = run("latency", "--help")
    assert status == 0
    assert out.startswith("usage: tracepoint analyse latency ")
    assert "--order" in out
    assert "needs: the events of --begin and --end" in out
    out = run("faults", "--help")[1]
    assert "--order" not in out
    assert "needs:\n  exceptions:page_fault_user: faults of programs" in out
    assert "sched: who ran" in run("--help")[1]


def test_sections_that_a_choice_does_not_touch_say_so(run, made):
    lines = run("sched", made(x1()), "--cpu", "0")[1].splitlines()
    assert [line for line in lines if line.startswith(("CPUs", "Tasks"))] == ["CPUs", "Tasks (of all CPUs)"]
    assert "Tasks" in run("sched", made(x1()))[1].splitlines()
