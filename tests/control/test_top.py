"""`tracepoint top`: rates of events, from histograms that a made-up tracefs counts."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from control.fake import FakeTracefs
from tracepoint.cli.kernel import top
from tracepoint.cli.main import main
from tracepoint.cli.stopping import SignalEvent
from tracepoint.control import rates

CPU_ROW = "{{ common_cpu: {of:>10} }} hitcount: {n:>10}\n"
TASK_ROW = "{{ common_pid: {of} }} hitcount: {n:>10}\n"


class CountingFake(FakeTracefs):
    """Each time that a histogram is read, its event has fired 10 times more on one CPU or in one task."""

    def __init__(self) -> None:
        super().__init__()
        self.n_read: dict[str, int] = {}
        self.triggers: set[str] = set()

    def read(self, path: str) -> str:
        if not path.endswith("/hist"):
            return super().read(path)
        array, rest = self._array(path)
        name = ":".join(rest.split("/")[1:3])
        trigger = array.events[name].hists[0]
        self.triggers.add(trigger)
        number = self.n_read[name] = self.n_read.get(name, 0) + 1
        if name == "irq:softirq_exit":
            rows, hits = "", 0
        elif "execname" in trigger:
            rows = TASK_ROW.format(of=f"{'web':<16}[{7:>10}]", n=10 * number)
            rows += TASK_ROW.format(of=f"{'db':<16}[{8:>10}]", n=5)
            hits = 10 * number + 5
        else:
            rows, hits = CPU_ROW.format(of=0, n=5) + CPU_ROW.format(of=1, n=10 * number), 10 * number + 5
        return (
            f"# event histogram\n#\n# trigger info: {trigger}\n#\n\n{rows}\n"
            f"Totals:\n    Hits: {hits}\n    Entries: 2\n    Dropped: {number - 1}\n"
        )


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> CountingFake:
    made = CountingFake()
    monkeypatch.setattr("tracepoint.control.session.find_files", lambda: made)
    return made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let time pass only where it is waited for."""
    now = [100.0]

    def wait(self: SignalEvent, timeout: float) -> bool:
        now[0] += timeout
        return self.is_set()

    for module in (top, rates):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(SignalEvent, "wait", wait)


def objects(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_rates_are_of_the_last_interval_and_totals_of_all(files, capsys, clock):
    assert main(["top", "irq:softirq_entry", "--interval", "100ms", "--seconds", "0.25", "--json"]) == 0
    told = objects(capsys.readouterr().out)
    assert len(told) == 3
    assert [one["rows"][0]["total"] for one in told] == [15, 25, 35]
    assert [one["seconds"] for one in told] == [0.1, 0.1, 0.05]
    assert [one["dropped"] for one in told] == [0, 1, 2]
    for one in told[1:]:
        assert one["rows"] == [
            {"event": "irq:softirq_entry", "rate": one["rows"][0]["rate"], "total": one["rows"][0]["total"]}
        ]
        assert one["rows"][0]["rate"] == pytest.approx(10 / one["seconds"], rel=1e-3)
    assert set(files.arrays) == {""}


@pytest.mark.parametrize(("by", "key"), [("cpu", "common_cpu"), ("task", "common_pid.execname")])
def test_rows_of_cpus_and_tasks(files, capsys, by, key):
    assert main(["top", "irq:softirq_entry", "--by", by, "--once", "--interval", "50ms", "--json"]) == 0
    (told,) = objects(capsys.readouterr().out)
    own = [{name: row[name] for name in row if name not in ("event", "rate")} for row in told["rows"]]
    assert (
        own
        == {
            "cpu": [{"total": 10, "cpu": 1}, {"total": 5, "cpu": 0}],
            "task": [{"total": 10, "task": "web", "pid": 7}, {"total": 5, "task": "db", "pid": 8}],
        }[by]
    )
    assert all(f"hist:keys={key}:" in text for text in files.triggers)


def test_lines_without_a_terminal(files, capsys):
    assert main(["top", "irq", "sched:sched_switch", "--by", "task", "--once", "--interval", "50ms"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["a", "second", "in", "all", "task", "event"]
    assert [line.split()[1:] for line in lines[1:5]] == [
        ["10", "web-7", "irq:softirq_entry"],
        ["10", "web-7", "sched:sched_switch"],
        ["5", "db-8", "irq:softirq_entry"],
        ["5", "db-8", "sched:sched_switch"],
    ]
    assert lines[5].endswith("a second in all")
    assert "\x1b" not in "".join(lines)


def test_a_terminal_gets_one_screen_again_and_again(files, capsys, monkeypatch, clock):
    monkeypatch.setenv("LINES", "4")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("tracepoint.cli.kernel.top.is_terminal", lambda stream: True)
    assert main(["top", "*:*", "--interval", "50ms", "--seconds", "0.075"]) == 0
    screens = capsys.readouterr().out.split("\x1b[H")[1:]
    assert len(screens) == 2
    # The heading, what fits, and the sum of all.
    assert [screen.count("\n") for screen in screens] == [3, 3]
    assert "had no room" in screens[1]


def test_it_ends_with_the_command(files, capfd):
    assert main(["top", "irq", "--interval", "1h", "--", "sh", "-c", "exit 3"]) == 5
    assert "irq:softirq_entry" in capfd.readouterr().out
    assert main(["top", "no_such", "--once"]) == 4
    assert set(files.arrays) == {""}
