"""The names of Python's threads stand in what they recorded."""

import ctypes
import threading
from pathlib import Path

import pytest

from tracepoint.model.python.types import u64
from tracepoint.runtime.files.tree import ControlFiles
from tracepoint.runtime.rings.save import save
from tracepoint.tracefile.text import facts_of
from tracepoint.tracefile.tracedat import open_tracedat

PROGRAM = Path("/proc/self/comm").read_text(encoding="ascii").rstrip("\n")
PR_SET_NAME = 15


@pytest.fixture
def tick(runtime):
    @runtime.trace_event(system="names", printk='"%llu", n')
    def tick(n: u64) -> None: ...

    tick.enable()
    return tick


def in_thread(name, function, *args):
    thread = threading.Thread(target=function, args=args, name=name)
    thread.start()
    thread.join()
    return thread.native_id


def names_in(runtime):
    return {tid: comm.decode() for _, tid, _, comm, _ in runtime.tracing.buffer.rings()}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("worker-3", "worker-3"),
        ("a name that is longer than a comm", "a name that is "),
        ("größer, als es geht", "größer, als e"),
        ("zwölf BBuchstäben", "zwölf BBuchst"),
        ("two\nlines\x7f", "two?lines?"),
    ],
)
def test_a_named_thread(runtime, tick, name, shown):
    tid = in_thread(name, tick, 1)
    assert names_in(runtime)[tid] == shown


def test_the_first_thread_has_the_name_of_the_process(runtime, tick):
    tick(1)
    assert names_in(runtime)[threading.main_thread().native_id] == PROGRAM


def test_a_name_that_is_set_later(runtime, tick):
    seen = []

    def work():
        threading.current_thread().name = "early"
        tick(1)
        seen.append(names_in(runtime)[threading.get_native_id()])
        threading.current_thread().name = "late"
        seen.append(names_in(runtime)[threading.get_native_id()])

    tid = in_thread("first", work)
    assert seen == ["early", "late"]
    assert names_in(runtime)[tid] == "late"


def test_a_name_that_was_set_in_the_kernel_counts(runtime, tick):
    def work():
        ctypes.CDLL(None).prctl(PR_SET_NAME, b"of-the-kernel", 0, 0, 0)
        tick(1)

    tid = in_thread("of-python", work)
    assert names_in(runtime)[tid] == "of-the-kernel"


def test_filters_and_triggers_know_it(runtime, tick):
    tick.filter = "comm == 'worker-3'"
    in_thread("worker-3", tick, 1)
    in_thread("worker-4", tick, 2)
    assert runtime.tracing.stats["entries"] == 1


def test_trace_saved_cmdlines_and_trace_dat(runtime, tick, tmp_path):
    tree = ControlFiles(runtime.tracing)
    tid = in_thread("worker-3", tick, 7)
    assert f"worker-3-{tid} " in tree.read_text("trace")
    assert f"{tid} worker-3\n" in tree.read_text("saved_cmdlines")
    save(tmp_path / "x.dat", files=tree)
    with open_tracedat(tmp_path / "x.dat") as trace:
        assert facts_of(trace).comms[tid] == "worker-3"
