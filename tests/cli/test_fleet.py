"""`tracepoint fleet`: what it prints of many recordings, and what it says of those that it could not read."""

from __future__ import annotations

import json
from functools import partial

import pytest

from fleet.making import make_fleet
from tracepoint.fleet import FleetResult, open_fleet


@pytest.fixture
def run(run_command):
    return partial(run_command, "fleet")


@pytest.fixture
def folder(tmp_path):
    return make_fleet(tmp_path / "hosts", 3, 60)


def test_groups_are_rows_and_those_that_ran_most_come_first(run, folder):
    status, out, err = run("run", "sched", folder, "--by", "host")
    groups = open_fleet(folder).run("sched", ["host"]).groups
    order = sorted(groups, key=lambda key: -groups[key]["run_ns"].low)
    title, heads, *rows = out.splitlines()
    assert (status, title) == (0, "3 recordings by host")
    assert heads.split() == "host recordings running runnable runs lost waits p50 p99 max".split()
    assert [row.split()[0] for row in rows] == [key[0] for key in order]
    assert "events were lost" in err


def test_without_groups_the_top_lists_are_shown(run, folder):
    status, out, _ = run("run", "events", folder)
    assert status == 0
    assert "Records by event" in out
    assert out.count("web") >= 3


def test_json_is_the_result_and_results_are_put_together(run, folder, tmp_path):
    parts = []
    for number in range(3):
        status, out, _ = run("run", "sched", folder / f"{number:05d}.dat", "--by", "comm", "--format", "json")
        assert status == 0
        parts.append(tmp_path / f"{number}.json")
        parts[-1].write_text(out)
    _, merged, _ = run("merge", *parts, "--format", "json")
    assert FleetResult.from_facts(json.loads(merged)) == open_fleet(folder).run("sched", ["comm"])
    assert run("merge", *parts)[1] == run("run", "sched", folder, "--by", "comm")[1]


def test_unread_recordings_are_named_and_the_status_says_so(run, folder):
    (folder / "bad.dat").write_text("x")
    (folder / "notes.txt").write_text("x")
    status, _, err = run("run", "sched", folder)
    assert status == 3
    assert "1 file not read, a folder stands for *.dat: name others" in err
    assert "notes.txt" in err
    assert "1 recording could not be read" in err
    assert "bad.dat" in err
    assert run("run", "-q", "sched", folder)[2] == ""
    assert run("run", "sched", folder / "bad.dat")[0] == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "sched", "/tmp", "--by", "hots"), "did you mean 'host'"),
        (("run", "sched", "/nowhere/*.dat"), "no recordings match"),
        (("run", "sched", "x.dat", "--engine", "spark", "--scheduler", "tcp://a:1"), "--scheduler"),
        (("merge", "/nowhere"), "No such file"),
        (("merge", __file__), "no JSON"),
    ],
)
def test_what_cannot_be_done_is_said(run, words, message):
    status, _, err = run(*words)
    assert status == 2
    assert message in err


def test_results_of_different_runs_are_refused(run, folder, tmp_path):
    files = []
    for name, by in (("a", "host"), ("b", "comm")):
        files.append(tmp_path / name)
        files[-1].write_text(run("run", "sched", folder, "--by", by, "--format", "json")[1])
    status, _, err = run("merge", *files)
    assert status == 2
    assert "add up" in err
