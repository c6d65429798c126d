"""The state machine against the fake: whatever was done, everything is as before afterwards."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from control import machine
from control.fake import FakeTracefs
from effort import examples
from tracepoint.control.journal import Journal, read_journal
from tracepoint.control.restore import restore_journals, restore_settings
from tracepoint.control.session import TracefsSession, open_tracefs
from tracepoint.control.settings import read_settings
from tracepoint.control.tracefs import Tracefs
from tracepoint.errors import TracefsError

OPERATION = st.sampled_from(machine.OPERATIONS)


class Killed(BaseException):
    """The process is gone: no `finally` of the code under test may help."""


def open_fake(files: FakeTracefs) -> TracefsSession:
    return TracefsSession(Tracefs(files, Journal(None, files.root)))


MADE, LEFT = ("instance", "make"), ("instance", "leave")


def read_everything(files: FakeTracefs) -> dict[str, str]:
    """The settings of the top level and of every instance."""
    found = read_settings(files)
    for name in files.names("instances"):
        found |= read_settings(files, f"instances/{name}/")
    return found


@settings(max_examples=examples(300))
@example([MADE], [LEFT])
@example([MADE], [LEFT, MADE])
@example([MADE], [MADE, LEFT, MADE, LEFT])
@example(
    [("trigger", "sched:sched_switch", "snapshot if prev_prio == -7"), ("snapshot", "free")],
    [("trigger", "sched:sched_switch", "traceoff if prev_prio == -7")],
)
@given(st.lists(OPERATION, max_size=12), st.lists(OPERATION, max_size=25))
def test_everything_is_as_before(history, work):
    files = FakeTracefs()
    with open_fake(files) as tracing:
        for operation in history:
            machine.perform(tracing, operation)
        tracing.keep()
    before = read_everything(files)
    with open_fake(files) as tracing:
        for operation in work:
            machine.perform(tracing, operation)
    assert read_everything(files) == before


@settings(max_examples=examples(300))
@example([MADE], [LEFT], 6, False, 2)
@example([MADE], [LEFT, MADE], 9, True, 3)
@given(
    st.lists(OPERATION, max_size=12),
    st.lists(OPERATION, min_size=1, max_size=20),
    st.integers(1, 40),
    st.booleans(),
    st.integers(0, 6),
)
def test_killed_at_any_write_even_while_restoring(tmp_path_factory, history, work, moment, is_after, again):
    folder = tmp_path_factory.mktemp("journals")
    files = FakeTracefs()
    with open_fake(files) as tracing:
        for operation in history:
            machine.perform(tracing, operation)
        tracing.keep()
    before = read_everything(files)
    journal = Journal(folder, files.root)
    tracing = TracefsSession(Tracefs(files, journal))
    _kill_at(files, files.n_changes + moment, is_after)
    try:
        for operation in work:
            machine.perform(tracing, operation)
    except Killed:
        pass
    journal.leave()
    _, entries = _entries(journal)
    _kill_at(files, files.n_changes + again, is_after)
    try:
        restore_settings(files, entries)
    except Killed:
        restore_settings(files, entries)
    assert read_everything(files) == before


def _entries(journal):
    return read_journal(journal.path) if Path(journal.path).exists() else (None, {})


def _kill_at(files: FakeTracefs, moment: int, is_after: bool) -> None:
    def die(number: int) -> None:
        if number == moment:
            raise Killed

    files.before_write = files.after_write = lambda number: None
    if is_after:
        files.after_write = die
    else:
        files.before_write = die


def test_an_instance_that_was_removed_has_its_settings_again(tmp_path):
    files = FakeTracefs()
    with open_fake(files) as tracing:
        machine.perform(tracing, MADE)
        instance = tracing.instance("tp-machine")
        instance.pids = [7]
        instance.set_option("verbose", True)
        instance.event("sched:sched_wakeup").set_filter("prio < 100")
        tracing.keep()
    before = read_everything(files)
    with open_tracefs(files, journal=tmp_path) as tracing:
        tracing.remove_instance("tp-machine")
        assert tracing.instances == []
    assert read_everything(files) == before
    assert list(tmp_path.iterdir()) == []


def test_an_instance_that_somebody_reads_stays_as_it_is(tmp_path):
    files = FakeTracefs()
    with open_fake(files) as tracing:
        machine.perform(tracing, MADE)
        tracing.keep()
    with open_tracefs(files, journal=tmp_path) as tracing:
        remove, files.remove_folder = files.remove_folder, raise_busy
        with pytest.raises(TracefsError, match="another program still reads a file of it"):
            tracing.remove_instance("tp-machine")
        files.remove_folder = remove
        assert tracing.tracefs.journal.entries == {}


def raise_busy(path):
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), path)


def test_every_operation_alone_succeeds_or_fails_as_meant():
    """Nothing but errors made on purpose; and the good ones do change something."""
    changed = 0
    for operation in machine.OPERATIONS:
        files = FakeTracefs()
        before = read_settings(files)
        tracing = open_fake(files)
        answer = machine.perform(tracing, operation)
        assert answer == "ok" or answer.startswith("Tracefs"), operation
        changed += read_settings(files) != before
        assert answer == "ok" or operation[0] == "set_event" or read_settings(files) == before, operation
        tracing.restore()
        assert read_settings(files) == before, operation
    assert changed > 60


def test_restoring_leaves_what_others_changed(tmp_path):
    files = FakeTracefs()
    with open_tracefs(files, journal=tmp_path) as tracing:
        tracing.enable("sched:sched_switch")
        files.write("events/irq/softirq_entry/enable", "1")
    assert files.read("set_event") == "irq:softirq_entry\n"


def test_journals_of_the_dead_are_restored_and_go(tmp_path, monkeypatch):
    folder = tmp_path / "journals"
    files = FakeTracefs()
    before = read_settings(files)
    tracing = open_tracefs(files, journal=folder)
    tracing.enable("sched")
    tracing.event("irq:softirq_entry").trigger = "hist:keys=vec"
    tracing.tracefs.journal.leave()
    (report,) = restore_journals(folder, lambda: files)
    assert "still runs" in report.message
    assert read_settings(files) != before
    monkeypatch.setattr("tracepoint.control.journal.JournalHead.is_running", False)
    (report,) = restore_journals(folder, lambda: files)
    assert read_settings(files) == before
    assert list(folder.iterdir()) == []
    assert restore_journals(folder, lambda: pytest.fail("nothing to open it for")) == []
