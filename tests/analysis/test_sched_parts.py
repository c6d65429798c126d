"""A large recording is read in parts: the figures are those of the whole."""

from __future__ import annotations

import random

import pytest

import tracepoint as tp
from analysis.test_sched_generated import world_of
from oracles import data_file
from tracepoint.analysis import analyse_sched
from tracepoint.analysis.sched import report as report_module
from tracepoint.analysis.sched.events import SchedEvents
from tracepoint.analysis.sections import Choice
from tracepoint.analysis.text import report_facts
from tracepoint.decode import engine
from tracepoint.errors import DecodeError


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """A recording of some ten pages for each CPU, with a loss."""
    schedule = world_of(random.Random(7), 3, 6000).schedule(lambda number: number != 2000)
    path = tmp_path_factory.mktemp("parts") / "made.dat"
    path.write_bytes(schedule.data())
    return path


def facts(report):
    return report_facts(report, Choice(most=None))


def tables(report):
    return {name: table.to_dicts() for name, table in report.tables.items()}


@pytest.fixture
def small_slices(monkeypatch):
    """Let a page be worth a part."""
    monkeypatch.setattr(engine, "_SLICE_BYTES", 4096)
    monkeypatch.setattr(engine, "_MIN_SLICES", 2)


def in_parts(path, **options):
    with tp.open_trace(path) as trace:
        assert SchedEvents(trace).n_parts > 1
        return analyse_sched(trace, **options)


def test_parts_give_the_figures_of_the_whole(generated, small_slices, monkeypatch):
    found = in_parts(generated)
    monkeypatch.undo()
    with tp.open_trace(generated) as trace:
        whole = analyse_sched(trace)
        assert SchedEvents(trace).n_parts == 1
    assert facts(found) == facts(whole)
    assert list(found.notes()) == list(whole.notes())
    assert repr(found) == repr(whole)
    with pytest.raises(DecodeError, match="closed"):
        _ = found.sched["ts"]


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["small.v7.zstd.dat", "small.v6.dat.zst"])
def test_tables_and_paths_are_read_again(name, small_slices, monkeypatch):
    path = data_file(name)
    with tp.open_trace(path) as trace:
        found = analyse_sched(trace, by="waker")
        assert SchedEvents(trace).n_parts > 1
        of_parts = facts(found), tables(found), found.wake_chains(5)
    monkeypatch.undo()
    with tp.open_trace(path) as trace:
        whole = analyse_sched(trace, by="waker")
        assert of_parts == (facts(whole), tables(whole), whole.wake_chains(5))


def test_pages_that_go_back_are_read_at_once(generated, small_slices, monkeypatch):
    """Windows of time would not find their records."""
    with tp.open_trace(generated) as trace:
        assert SchedEvents(trace).n_parts > 1
        monkeypatch.setattr(type(trace), "in_order", property(lambda self: None))
        assert SchedEvents(trace).n_parts == 1
        assert isinstance(analyse_sched(trace), report_module.SchedReport)
