"""The commands on a running kernel, run on a made-up one."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest

from control.fake import FakeTracefs
from tracepoint.cli.child import ChildProcess
from tracepoint.cli.commands import COMMANDS
from tracepoint.cli.kernel.tracing import run_command
from tracepoint.cli.main import main
from tracepoint.cli.output import Output
from tracepoint.control.journal import journal_folder
from tracepoint.control.session import open_tracefs
from tracepoint.control.settings import read_settings

ECHO = [sys.executable, "-c", "print('ran')"]


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> FakeTracefs:
    made = FakeTracefs()
    monkeypatch.setattr("tracepoint.control.session.find_files", lambda: made)
    monkeypatch.setattr("tracepoint.cli.kernel.restore.find_files", lambda: made)
    return made


@pytest.fixture
def run(files, capfd):
    def act(*words: str) -> tuple[int, str, str]:
        status = main([*words])
        said = capfd.readouterr()
        return status, said.out, said.err

    return act


WORDS = {
    "list": [],
    "enable": ["sched"],
    "disable": ["sched"],
    "filter": ["sched:sched_switch", "0"],
    "trigger": ["sched:sched_switch", "stacktrace"],
    "hist": ["sched:sched_switch", "prev_pid", "--seconds", "0"],
}


@pytest.mark.parametrize("name", WORDS)
def test_without_tracefs_the_status_is_4(name, capsys):
    assert main([name, *WORDS[name]]) == 4
    error = capsys.readouterr().err
    assert error.startswith("tracepoint: error: no tracefs is mounted")
    assert "mount -t tracefs nodev /sys/kernel/tracing" in error
    assert COMMANDS[name].is_live


def test_list(run):
    assert run("list", "irq") == (0, "irq:softirq_entry\nirq:softirq_exit\n", "")
    assert run("list", "*:*")[1].count("\n") == 5
    status, out, err = run("list", "softirq_enty")
    assert (status, out) == (1, "")
    assert "did you mean irq:softirq_entry" in err


def test_enable_stays_and_disable_ends_it(run, files):
    status, out, err = run("enable", "irq:*", "sched:sched_sw*")
    assert (status, out) == (0, "")
    assert err == "enabled 3 events in /fake/tracing/instances/tracepoint\n"
    assert run("list", "--state", "irq")[1] == "1  irq:softirq_entry\n1  irq:softirq_exit\n"
    assert run("disable", "irq:softirq_exit")[0] == 0
    assert files.read("instances/tracepoint/set_event").split() == ["sched:sched_switch", "irq:softirq_entry"]
    assert files.read("set_event") == ""
    assert run("disable", "--remove")[0] == 0
    assert files.names("instances") == []
    assert not list(Path(journal_folder()).glob("*"))


def test_with_a_command_everything_comes_back(run, files):
    before = read_settings(files)
    files.before_write = lambda number: [setattr(a, "trace", "a trace\n") for a in files.arrays.values()]
    status, out, _ = run("enable", "sched", "--", *ECHO)
    assert (status, out) == (0, "ran\na trace\n")
    status, out, _ = run("enable", "--top", "sched", "--", *ECHO)
    assert (status, out) == (0, "ran\n")
    assert read_settings(files) == before
    assert run("enable", "sched", "--", sys.executable, "-c", "exit(3)")[0] == 5
    assert run("enable", "sched", "--", "/no/such/program")[0] == 2
    assert read_settings(files) == before


def test_filter(run, files):
    assert run("filter", "sched:sched_switch", "prev_pid == 1")[0] == 0
    assert run("filter", "sched")[1] == "sched:sched_switch prev_pid == 1\n"
    status, _, err = run("filter", "sched:sched_switch", "prev_pidd == 1")
    assert status == 4
    assert "did you mean 'prev_pid'?" in err
    status, _, err = run("filter", "sched", "pid == 1")
    assert (status, err.count("no filter was set")) == (0, 2)
    assert run("filter", "--instance", "nosuch", "sched")[0] == 4


def test_trigger(run):
    assert run("trigger", "irq:softirq_entry", "traceoff:2 if vec == 1")[0] == 0
    assert run("trigger", "irq:softirq_entry") == (0, "traceoff:2 if vec == 1\n", "")
    assert run("trigger", "irq:softirq_entry", "traceon")[0] == 4
    assert run("trigger", "irq:softirq_entry", "--clear")[0] == 0
    assert run("trigger", "irq:softirq_entry") == (0, "", "")


def test_hist(run, files):
    before = read_settings(files)
    status, out, _ = run("hist", "irq:softirq_entry", "vec", "--seconds", "0", "--json")
    assert status == 0
    assert json.loads(out) == {
        "schema": "tracepoint.hist/1",
        "trigger": "hist:keys=vec:vals=hitcount:sort=hitcount:size=2048 [active]",
        "rows": [],
        "hits": 0,
        "entries": 0,
        "dropped": 0,
    }
    assert read_settings(files) == before
    assert run("hist", "irq:softirq_entry", "vec", "--seconds", "-1")[0] == 2


def test_restore(run, files, monkeypatch):
    assert run("restore")[0] == 0
    before = read_settings(files)
    tracing = open_tracefs(files)
    tracing.enable("sched")
    tracing.tracefs.journal.leave()
    assert "still runs" in run("restore")[2]
    monkeypatch.setattr("tracepoint.control.journal.JournalHead.is_running", False)
    status, _, err = run("restore", "-v")
    assert status == 0
    assert "3 settings kept, 3 put back" in err
    assert read_settings(files) == before
    again = open_tracefs(files)
    again.enable("sched")
    again.tracefs.journal.leave()
    assert "dropped 1 journals" in run("restore", "--forget")[2]


def test_a_command_does_not_outlive_the_change_made_for_it(monkeypatch):
    started = []

    class Interrupted(ChildProcess):
        def __init__(self, *words):
            super().__init__(*words)
            started.append(self)

        def wait(self, seconds=None):
            if len(started) == 1 and self.poll() is None and not hasattr(self, "is_hit"):
                self.is_hit = True
                raise SystemExit(143)
            return super().wait(seconds)

    monkeypatch.setattr("tracepoint.cli.child.ChildProcess", Interrupted)
    with pytest.raises(SystemExit):
        run_command(["sleep", "60"], Output())
    assert started[0].returncode == -signal.SIGKILL


def test_a_recording_without_a_name_is_refused_before_it_begins(run, files):
    status, _, err = run("record", "irq", "-o", "", "--seconds", "0")
    assert status != 0
    assert "is a folder" in err
