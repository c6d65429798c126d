"""Control of a tracefs that is simulated: mounts, names, triggers, histograms, journals, signals, errors."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.fake import FakeTracefs
from tracepoint.control import dynamic
from tracepoint.control.events import State
from tracepoint.control.files import MountedFiles, find_files, find_mount
from tracepoint.control.hist import Named, read_hist_tables, read_value
from tracepoint.control.journal import (
    Journal,
    identity,
    journal_folder,
    read_journal,
)
from tracepoint.control.restore import restore_journals, restore_settings
from tracepoint.control.session import open_tracefs
from tracepoint.control.settings import read_settings
from tracepoint.control.validate import read_trigger, read_triggers
from tracepoint.errors import TracefsError, TracefsNotFound, TracefsPermission
from tracepoint.model.patterns import matches, matching
from tracepoint.trigger.command import parse_trigger, read_trigger_file
from tracepoint.trigger.hist import read_hist_trigger

NO_JOURNALS = (
    b"[]\n", b"x", b"\xff\xfe", b"tracepoint.journal/2\n", b"tracepoint.journal/1\t/\t1\t\t\n",
    b"tracepoint.journal/2\t/\t-1\t\t\n", b"tracepoint.journal/2\t/\t1\t\t\\x\n", b"[" * 100_000,
)  # fmt: skip


@pytest.fixture
def files() -> FakeTracefs:
    return FakeTracefs()


@pytest.fixture
def tracing(files, tmp_path):
    with open_tracefs(files, journal=tmp_path / "journals") as opened:
        yield opened


# -- finding the mount ----------------------------------------------------------------------------


def test_tracefs_wins_over_debugfs():
    mounts = "d /sys/kernel/debug debugfs rw 0 0\nt /mnt/a\\040b tracefs rw 0 0\n"
    assert find_mount(mounts) == "/mnt/a b"


@pytest.mark.parametrize("mounts", ["", "proc /proc proc rw 0 0\n", "junk\n"])
def test_no_mount_says_how(mounts):
    with pytest.raises(TracefsNotFound, match="mount -t tracefs nodev /sys/kernel/tracing"):
        find_mount(mounts)


def test_this_machine_is_left_alone():
    with pytest.raises(TracefsNotFound):
        find_files()


def test_mounted_files_write_append_and_truncate(tmp_path):
    (tmp_path / "a").write_text("old\n")
    files = MountedFiles(tmp_path)
    files.write("a", "new\n")
    assert files.read("a") == "old\nnew\n"
    files.write("a", "x\udcff", truncate=True)
    assert files.read("a") == "x\udcff"
    assert files.names("") == ["a"]
    with pytest.raises(FileNotFoundError):
        files.write("b", "no file may appear")
    assert not files.exists("b")


def test_short_writes_are_continued(tmp_path, monkeypatch):
    (tmp_path / "set_event").write_text("")
    real = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: real(handle, data[:3]))
    MountedFiles(tmp_path).write("set_event", "sched irq ")
    assert (tmp_path / "set_event").read_text() == "sched irq "


# -- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("sched:sched_sw*", {"sched:sched_switch"}),
        ("irq", {"irq:softirq_entry", "irq:softirq_exit"}),
        ("*:*_e*", {"irq:softirq_entry", "irq:softirq_exit"}),
        (":sched_wakeup", {"sched:sched_wakeup"}),
        ("sched_wak*", {"sched:sched_wakeup"}),
    ],
)
def test_patterns(tracing, files, pattern, names):
    assert set(tracing.available_events(pattern)) == names
    tracing.enable(pattern)
    assert set(tracing.enabled) == names
    tracing.disable(pattern)
    assert tracing.enabled == []


@given(
    st.text("ab:*?[]", max_size=5),
    st.lists(st.from_regex(r"[ab]{0,2}:[ab:]{0,3}", fullmatch=True), max_size=8),
)
def test_names_without_globs_match_as_patterns_do(pattern, events):
    assert matching(pattern, events) == [event for event in events if matches(pattern, event)]


@pytest.mark.parametrize(
    ("word", "meant"),
    [("sched:sched_swich", "sched:sched_switch"), ("shed", "sched"), ("softirq_enty", "irq:softirq_entry")],
)
def test_wrong_names_are_guessed(tracing, word, meant):
    for act in (tracing.enable, tracing.__getitem__):
        with pytest.raises(TracefsError, match=f"did you mean {meant}"):
            act(word)


@pytest.mark.parametrize("word", ["..", "../..:x", "sched/../irq", "sched:", ":", "sched:../x", ""])
def test_names_do_not_leave_the_tree(tracing, word):
    with pytest.raises(TracefsError):
        tracing.event(word)


# -- states ---------------------------------------------------------------------------------------


def test_states(tracing):
    assert tracing["sched"].state is State.OFF
    tracing["sched:sched_switch"].enable()
    assert (tracing["sched"].state, tracing["sched:sched_switch"].state) == (State.MIXED, State.ON)
    tracing["irq:softirq_entry"].trigger = "enable_event:irq:softirq_exit if vec == 77"
    assert tracing["irq:softirq_entry"].state is State.SOFT_OFF
    tracing["irq:softirq_entry"].enable()
    assert tracing["irq:softirq_entry"].state is State.SOFT_ON
    tracing["sched"].enable()
    assert tracing["sched"].state is State.ON


def test_an_odd_state_is_an_error(tracing, files, monkeypatch):
    monkeypatch.setattr(files, "read", lambda path: "7\n")
    with pytest.raises(TracefsError, match="not a state"):
        tracing.event("sched:sched_switch").state  # noqa: B018


# -- filters --------------------------------------------------------------------------------------


def test_a_wrong_filter_changes_nothing_and_says_what_is_meant(tracing, files):
    event = tracing.event("sched:sched_switch")
    event.filter = "prev_pid == 1"
    n_changes = files.n_changes
    with pytest.raises(TracefsError) as caught:
        event.filter = "prev_comn == 'x'"
    assert str(caught.value).endswith("did you mean 'prev_comm'?\n  prev_comn == 'x'\n            ^")
    assert caught.value.errno == errno.EINVAL
    assert (event.filter, files.n_changes) == ("prev_pid == 1", n_changes)


def test_when_the_kernel_refuses_the_old_filter_comes_back_with_its_words(tracing):
    event = tracing.event("sched:sched_switch")
    event.filter = "prev_pid == 1"
    with pytest.raises(TracefsError) as caught:
        event.set_filter("(prev_pid == 2", is_checked=False)
    assert "Too many '('" in caught.value.error_log
    assert "  Command: (prev_pid == 2\n           ^" in caught.value.error_log
    assert caught.value.errno == errno.ENOENT
    assert event.filter == "prev_pid == 1"
    event.filter = None
    assert event.filter == ""


@pytest.mark.parametrize("text", ["prev_pid == 1 &&", "CPU & CPUS{0}", "prev_state.function == schedule"])
def test_what_one_kernel_takes_is_left_to_the_kernel(tracing, text):
    with pytest.raises(TracefsError) as caught:
        tracing.event("sched:sched_switch").filter = text
    assert "kernel refuses" in str(caught.value)


def test_a_system_filter_names_the_events_that_it_does_not_fit(tracing, files):
    unfit = tracing["sched"].set_filter("prev_pid == 3")
    assert unfit == ["sched:sched_process_fork", "sched:sched_wakeup"]
    assert tracing.event("sched:sched_switch").filter == "prev_pid == 3"
    assert files.read("events/sched/sched_wakeup/filter") == "none\n"
    with pytest.raises(TracefsError, match="Field not found"):
        tracing["sched"].set_filter("nosuch == 3")
    assert tracing.event("sched:sched_switch").filter == "prev_pid == 3"
    assert tracing["sched"].set_filter("0") == []


@given(st.text(max_size=40))
def test_any_text_is_judged_or_taken(text):
    with open_tracefs(FakeTracefs(), keeps_journal=False) as tracing:
        for act in (
            tracing.event("sched:sched_switch").set_filter,
            tracing.event("sched:sched_switch").add_trigger,
        ):
            with contextlib.suppress(TracefsError):
                act(text)


# -- triggers and histograms ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "part", "value"),
    [
        ("traceoff", "count", None),
        ("traceoff:0x10", "count", 16),
        ("traceoff:3:rest", "count", 3),
        ("stacktrace:5 if pid > 3", "filter", "pid > 3"),
        ("traceon if  a == 1 && b == 2", "filter", "a == 1 && b == 2"),
        ("enable_event:a:b:2 if x == 1", "target", "a:b"),
        ("hist:keys=pid:vals=x if  y > 1", "filter", "y > 1"),
        ("hist:keys=pid:s=if", "filter", ""),
        ("!traceoff:junk if more junk", "text", "!traceoff"),
        ("  snapshot\n", "text", "snapshot"),
        # trigger_process_regex() cuts at a colon or a blank, and drops the blanks that follow.
        ("traceoff: if a == 1", "filter", "a == 1"),
        ("hist keys=pid", "parameters", "keys=pid"),
    ],
)
def test_triggers(text, part, value):
    assert getattr(parse_trigger(text), part) == value


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            " ",
            "nosuch",
            "!nosuch",
            "traceon:x",
            "traceon:-1",
            "traceon :3",
            "traceoff if",
            "traceoff unless x",
        ),
        *(
            "enable_event",
            "enable_event:a",
            "enable_event::b",
            "hist",
            "hist:",
            "hist:vals=x",
            "hist:keys=a if ",
        ),
        "stacktrace:1 " + "x" * 5000,
    ],
)
def test_wrong_triggers(text):
    with pytest.raises(TracefsError) as caught:
        read_trigger(text)
    assert caught.value.errno == errno.EINVAL


def test_what_the_kernel_shows_of_triggers_sets_them_again():
    text = (
        "enable_event:sched:sched_wakeup:count=2 if vec == 3\nsnapshot:unlimited\nstacktrace:count=0\n"
        "hist:keys=vec:vals=hitcount:sort=hitcount:size=2048 if vec > 1 [paused]\n"
    )
    triggers = read_trigger_file(text)
    assert [t.text for t in triggers] == [
        "enable_event:sched:sched_wakeup:2 if vec == 3",
        "snapshot",
        "stacktrace:0",
        "hist:keys=vec:vals=hitcount:sort=hitcount:size=2048 if vec > 1",
    ]
    assert triggers[3].is_paused
    assert read_trigger_file("# Available triggers:\n# traceon traceoff\n") == []


@pytest.mark.parametrize("line", ["traceoff", "x if", "traceoff if pid > 1:unlimited", "hist:keys=pid if"])
def test_a_line_that_no_kernel_shows_as_a_trigger_is_an_error_of_tracefs(line):
    with pytest.raises(TracefsError, match="trigger"):
        read_triggers(f"{line}\n")


def test_a_trigger_that_cannot_be_read_is_reported_and_the_rest_restored(files):
    events = "events/sched/sched_switch"
    before = {f"{events}/trigger": "traceoff\n", f"{events}/enable": "1\n"}
    restored = restore_settings(files, before)
    assert restored.problems == [
        f"{events}/trigger: trigger 'traceoff': this is not how a kernel shows a trigger"
    ]
    assert restored.changed == [f"{events}/enable"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hist:keys=prev_pidd", "did you mean prev_pid"),
        ("hist:keys=prev_pid.hexx", "unknown modifier .hexx"),
        ("hist:keys=prev_pid:size=big", "not a number of entries"),
        ("hist:keys=prev_pid.execname", "execname is for common_pid only"),
        ("enable_event:sched:sched_wakup", "did you mean sched:sched_wakeup"),
        ("traceoff if nosuch == 1", "Field not found"),
    ],
)
def test_triggers_are_judged_by_the_event(tracing, text, message):
    with pytest.raises(TracefsError, match=message):
        tracing.event("sched:sched_switch").add_trigger(text)
    assert tracing.event("sched:sched_switch").triggers == []


def test_setting_a_trigger_keeps_the_histograms(tracing):
    event = tracing.event("sched:sched_switch")
    event.trigger = "hist:keys=prev_pid"
    event.trigger = "stacktrace"
    assert [t.command for t in event.triggers] == ["stacktrace", "hist"]
    with pytest.raises(TracefsError) as caught:
        event.trigger = "stacktrace"
    assert caught.value.errno == errno.EEXIST
    event.remove_triggers()
    assert event.trigger == ""


TABLE = """# event histogram
#
# trigger info: hist:keys=comm,pid.execname,lat.log2:vals=hitcount,len.hex,bytes:sort=hitcount:size=2048 if a == 1 [active]
#

{ comm: a, pid: 3                                         , pid: sh              [        12], lat: ~ 2^3  } hitcount:          2  len:         1f  bytes:         10
{ comm: 17                                                , pid: x [y]           [         7], lat: ~ 2^0  } hitcount:         40  len:         10  bytes:         -1

Totals:
    Hits: 42
    Entries: 2
    Dropped: 1


# event histogram
#
# trigger info: hist:keys=stacktrace:vals=hitcount:sort=hitcount:size=2048 [paused]
#

{ stacktrace:
         __schedule+0x1/0x2
         schedule+0x3/0x4
} hitcount:          5

Totals:
    Hits: 5
    Entries: 1
    Dropped: 0
"""


def test_histogram_tables_are_typed():
    first, second = read_hist_tables(TABLE)
    assert (first.hits, first.entries, first.dropped) == (42, 2, 1)
    assert first.hist.keys == ("comm", "pid.execname", "lat.log2")
    assert first.rows[0].keys == {"comm": "a, pid: 3", "pid": Named("sh", 12), "lat": range(5, 9)}
    assert first.rows[1].keys == {"comm": "17", "pid": Named("x [y]", 7), "lat": range(2)}
    assert first.rows[1].values == {"hitcount": 40, "len": 16, "bytes": -1}
    assert second.rows[0].keys == {"stacktrace": ("__schedule+0x1/0x2", "schedule+0x3/0x4")}
    assert read_hist_tables("") == []


@pytest.mark.parametrize(
    ("shown", "modifier", "value"),
    [
        ("       255", "", 255),
        ("255".ljust(50), "", "255"),
        ("ff", "hex", 255),
        ("10", "hex", 16),
        ("~ 20-29", "buckets=10", range(20, 30)),
        (
            "[ffffffff81000000] schedule+0x1                          ",
            "sym",
            Named("schedule+0x1", 0xFFFFFFFF81000000),
        ),
        ("sys_read                      [  0]", "syscall", Named("sys_read", 0)),
        ("12.50", "percent", 12.5),
        ("strange", "log2", "strange"),
    ],
)
def test_cells(shown, modifier, value):
    assert read_value(shown, modifier) == value


def test_parts_of_a_hist_trigger():
    hist = read_hist_trigger(
        "key=a,b:ts=common_timestamp,x=$y+1:val=c:sort=c.descending:size=256:onmax($x).save(a,b):pause"
    )
    assert (hist.keys, hist.values, hist.sort, hist.size) == (("a", "b"), ("c",), ("c.descending",), 256)
    assert (dict(hist.definitions), hist.actions) == (
        {"ts": "common_timestamp", "x": "$y+1"},
        ("onmax($x).save(a,b)",),
    )
    assert hist.flags == ("pause",)


@pytest.mark.parametrize("part", ["size=no", "size=1", "vals="])
def test_a_table_of_a_trigger_that_no_kernel_takes_is_an_error_of_tracefs(part):
    text = f"# event histogram\n#\n# trigger info: hist:keys=pid:{part} [active]\n#\n\nTotals:\n    Hits: 3\n"
    with pytest.raises(TracefsError, match="the histogram's trigger"):
        read_hist_tables(text)


@given(st.text(max_size=200), st.text(alphabet=TABLE, max_size=300))
def test_odd_tables_do_not_break_the_reader(noise, more):
    with contextlib.suppress(TracefsError):
        read_hist_tables(TABLE[: len(noise)] + noise + more + TABLE[len(noise) :])


# -- arrays and instances -------------------------------------------------------------------------


def test_instances_hold_their_own_settings_and_go(tracing, files):
    with tracing.instance("web", buffer_bytes=8 << 10, clock="mono") as web:
        web.enable("sched")
        web.event("irq:softirq_entry").trigger = "hist:keys=vec"
        assert (web.clock, set(web.buffer_bytes.values()), web.path) == (
            "mono",
            {11264},
            "/fake/tracing/instances/web",
        )
        assert tracing.enabled == []
        assert files.read("instances/web/events/sched/enable") == "1\n"
    assert tracing.instances == []


def test_a_busy_instance_says_so_and_stays_in_the_journal(files, tmp_path, monkeypatch):
    monkeypatch.setattr("tracepoint.control.restore._BUSY_SECONDS", 0)
    tracing = open_tracefs(files, journal=tmp_path).__enter__()
    made = tracing.instance("web")
    files.readers.add("web")
    with pytest.raises(TracefsError, match="another program still reads"):
        made.remove()
    with pytest.raises(TracefsError, match="not everything could be put back"):
        tracing.__exit__(None, None, None)
    monkeypatch.setattr("tracepoint.control.journal.JournalHead.is_running", False)
    files.readers.clear()
    (report,) = restore_journals(tmp_path, lambda: files)
    assert report.restored.problems == []
    assert files.names("instances") == []


def test_an_instance_that_was_there_stays_and_is_restored(files, tmp_path):
    files.make_folder("instances/other")
    files.write("instances/other/events/irq/enable", "1")
    before = read_settings(files, "instances/other/")
    with open_tracefs(files, journal=tmp_path) as tracing, tracing.instance("other", clock="boot") as other:
        other.disable("irq")
        other.enable("sched:sched_switch")
    assert read_settings(files, "instances/other/") == before


@pytest.mark.parametrize("name", ["a/b", ".", "..", "a\0", "x" * 300])
def test_names_of_instances(tracing, name):
    with pytest.raises(TracefsError, match="cannot be the name of an instance"):
        tracing.instance(name)


def test_settings_of_an_array(tracing):
    tracing.pids = [3, 1]
    tracing.excluded_pids = [9]
    assert (tracing.pids, tracing.excluded_pids) == ([1, 3], [9])
    tracing.pids = []
    assert tracing.pids == []
    assert "mono" in tracing.clocks
    with pytest.raises(TracefsError, match="no clock 'sundial'"):
        tracing.clock = "sundial"
    tracing.set_option("markers", False)
    assert tracing.options["markers"] is False
    with pytest.raises(TracefsError, match="no option 'nosuch'"):
        tracing.set_option("nosuch", True)
    tracing.is_on = False
    assert not tracing.is_on
    with pytest.raises(TracefsError) as caught:
        tracing.mark("x")
    assert caught.value.errno == errno.EBADF
    with pytest.raises(TracefsError, match="at least 1024"):
        tracing.set_buffer(10)
    tracing.take_snapshot()
    assert tracing.has_snapshot
    tracing.free_snapshot()
    assert not tracing.has_snapshot


def test_dynamic_events(tracing):
    dynamic.define_dynamic(tracing.tracefs, "s:wake u64 lat; pid_t pid")
    dynamic.define_dynamic(tracing.tracefs, "p:kprobes/opens do_sys_openat2")
    tracing.forget_names()
    assert [(e.kind, e.system, e.name) for e in dynamic.list_dynamic(tracing.tracefs)] == [
        ("s", "synthetic", "wake"),
        ("p", "kprobes", "opens"),
    ]
    tracing.enable("kprobes:opens")
    with pytest.raises(TracefsError) as caught:
        dynamic.remove_dynamic(tracing.tracefs, "opens")
    assert caught.value.errno == errno.EBUSY
    with pytest.raises(TracefsError, match="there are: synthetic:wake, kprobes:opens"):
        dynamic.remove_dynamic(tracing.tracefs, "nothing")
    with pytest.raises(TracefsError, match="not a definition"):
        dynamic.define_dynamic(tracing.tracefs, "what")


# -- journals, signals, refusals ------------------------------------------------------------------


def test_the_journal_is_on_disk_before_the_change(files, tmp_path):
    seen = []
    files.before_write = lambda number: seen.append(read_journal(next(tmp_path.glob("*.journal")))[1])
    with open_tracefs(files, journal=tmp_path) as tracing:
        tracing.event("sched:sched_switch").enable()
        assert seen == [{"events/sched/sched_switch/enable": "0"}]
        tracing.event("sched:sched_switch").disable()
        tracing.keep()
    assert list(tmp_path.iterdir()) == []


def test_a_journal_cut_off_anywhere_is_read(tmp_path):
    journal = Journal(tmp_path)
    journal.record({"a": "1", "b": "\udcff\n"})
    journal.record({"a": "2", "c": "3"})
    journal.forget("b")
    journal.leave()
    path = Path(journal.path)
    data = path.read_bytes()
    for size in range(len(data) + 1):
        path.write_bytes(data[:size])
        head, entries = read_journal(path)
        assert (head is None) == (b"\n" not in data[:size])
        assert entries.get("a", "1") == "1"
    assert entries == {"a": "1", "c": "3"}


@pytest.mark.parametrize("data", NO_JOURNALS)
def test_what_is_no_journal(tmp_path, data):
    path = tmp_path / "x.journal"
    path.write_bytes(data)
    with pytest.raises(TracefsError, match="not a journal"):
        read_journal(path)


def test_journals_know_their_process(tmp_path):
    journal = Journal(tmp_path)
    journal.record({"a": "1"})
    journal.leave()
    head, _ = read_journal(journal.path)
    assert head.is_running
    assert not head._replace(start="1").is_running
    assert head.is_of_this_boot
    assert not head._replace(boot="another").is_of_this_boot
    path = Path(journal.path)
    path.write_text(path.read_text().replace(head.boot, "another"))
    assert read_journal(path) == (head._replace(boot="another"), {"a": "1"})
    (report,) = restore_journals(tmp_path, lambda: pytest.fail("not of this boot"))
    assert "boot" in report.message
    assert not path.exists()


@pytest.mark.parametrize("begun", ["", "tracepoint.journ"])
def test_a_journal_that_is_being_begun_stays(tmp_path, begun):
    path = tmp_path / f"{os.getpid()}-7f.journal"
    path.write_text(begun)
    (report,) = restore_journals(tmp_path, lambda: pytest.fail("it has nothing"))
    assert report.message == f"process {os.getpid()} still runs: left alone"
    assert path.exists()
    with subprocess.Popen(["true"]) as ended:
        pass
    left = path.rename(tmp_path / f"{ended.pid}-7f.journal")
    restore_journals(tmp_path, lambda: pytest.fail("it has nothing"))
    assert not left.exists()


def test_a_journal_may_go_while_others_are_restored(tmp_path, monkeypatch):
    """Its session has ended: between the listing and the reading of it."""
    for name in ("1-a", "1-b"):
        (tmp_path / f"{name}.journal").write_text("")

    def read_first(path):
        for each in tmp_path.iterdir():
            each.unlink()
        return read_journal(path)

    monkeypatch.setattr("tracepoint.control.restore.read_journal", read_first)
    assert restore_journals(tmp_path, lambda: pytest.fail("nothing is there")) == []


def test_no_place_for_the_journal_changes_nothing(files, tmp_path):
    (tmp_path / "file").write_text("")
    tracing = open_tracefs(files, journal=tmp_path / "file")
    with pytest.raises(TracefsError, match="nothing was changed"):
        tracing.enable("sched")
    assert files.n_changes == 0


def test_where_journals_are(monkeypatch):
    assert Path(journal_folder()) == Path(os.environ["XDG_STATE_HOME"]) / "tracepoint"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert Path(journal_folder()) == Path.home() / ".local/state/tracepoint"
    assert all(identity(os.getpid()))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_restore(files, tmp_path, number):
    before = read_settings(files)

    def work() -> None:
        with open_tracefs(files, journal=tmp_path) as tracing:
            tracing.enable("sched")
            os.kill(os.getpid(), number)

    with pytest.raises(SystemExit) as caught:
        work()
    assert caught.value.code == 128 + number
    assert read_settings(files) == before
    assert signal.getsignal(number) is signal.SIG_DFL
    assert list(tmp_path.iterdir()) == []


def test_a_forked_child_restores_nothing(files, tmp_path, monkeypatch):
    with open_tracefs(files, journal=tmp_path) as tracing:
        tracing.enable("sched:sched_switch")
        monkeypatch.setattr(tracing, "_owner", -1)
        tracing.restore()
        assert tracing.enabled == ["sched:sched_switch"]
        monkeypatch.undo()


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM])
def test_no_permission_says_what_to_do(files, monkeypatch, number):
    def refuse(path):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files, "names", refuse)
    with pytest.raises(TracefsPermission, match="run as root, or let a group in"):
        open_tracefs(files)


def test_settings_of_events_that_went_are_passed_over(files):
    done = restore_settings(files, {"events/gone/gone/enable": "1", "instances/x/trace_clock": "boot"})
    assert (done.changed, done.problems) == ([], [])


def test_a_refused_filter_comes_back_as_it_was(files, tmp_path):
    for text in ("prev_pid ==", "nosuch == 1"):
        with pytest.raises(OSError):
            files.write("events/sched/sched_switch/filter", text)
        before = files.read("events/sched/sched_switch/filter")
        with open_tracefs(files, journal=tmp_path) as tracing:
            tracing.event("sched:sched_switch").filter = "prev_pid == 1"
        assert files.read("events/sched/sched_switch/filter") == before


def test_a_filter_refused_for_a_system_is_noted(files, tmp_path):
    files.write("events/sched/filter", "prev_pid == 3")
    tracing = open_tracefs(files, journal=tmp_path)
    tracing.event("sched:sched_wakeup").filter = "pid == 1"
    done = tracing.restore()
    assert (done.problems, len(done.notes)) == ([], 1)
    assert files.read("events/sched/sched_wakeup/filter") == "none\n"
    assert list(tmp_path.iterdir()) == []
