"""The commands on a kernel's events, with `--pid` on those of a running Python process."""

import errno
import re
import signal
import subprocess
import sys
import time

import pytest

from tracepoint import open_trace
from tracepoint.control.session import open_tracefs
from tracepoint.control.tracefs import Tracefs
from tracepoint.record.field import field_values
from tracepoint.runtime.remote.client import ANSWER_WAIT_S, RemoteFiles, SilentError
from tracepoint.runtime.remote.files import ProcessFiles
from tracepoint.tracefile.tracedat import open_tracedat

pytestmark = pytest.mark.programs

PROGRAM = """
import time
from tracepoint.runtime.declare.event import trace_event
from tracepoint.runtime.remote.server import listen
from tracepoint.model.python.types import u64

@trace_event(system="shop", printk='"order=%llu by %s", order_id, customer')
def order_placed(order_id: u64, customer: str) -> None: ...

@trace_event(system="shop", printk='"order=%llu", order_id')
def order_sent(order_id: u64) -> None: ...

listen()
number = 0
while True:
    order_placed(number, "bob" if number % 3 else "ada")
    order_sent(number)
    number += 1
    time.sleep(0.003)
"""


class Shop:
    """A program that runs, and the commands given to it."""

    def __init__(self, pid):
        self.pid = str(pid)

    def run(self, *words, status=0):
        done = subprocess.run(
            [sys.executable, "-m", "tracepoint", *words[:1], "--pid", self.pid, *words[1:]],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == status, done.stderr
        self.said = done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sockets") / "s"
    patch = pytest.MonkeyPatch()
    patch.setenv("TRACEPOINT_SOCKETS", str(folder))
    program = subprocess.Popen([sys.executable, "-c", PROGRAM])
    end = time.monotonic() + 120
    while not (folder / f"{program.pid}.socket").exists() and time.monotonic() < end:
        time.sleep(0.02)
    yield Shop(program.pid)
    program.kill()
    program.wait()
    patch.undo()


def test_events_are_listed_and_switched_at_the_top(shop):
    assert shop.run("list") == "shop:order_placed\nshop:order_sent\n"
    shop.run("enable", "shop:*sent")
    assert "enabled 1 events" in shop.said
    assert shop.run("list", "--state") == "0  shop:order_placed\n1  shop:order_sent\n"
    assert shop.run("ps", "--cat", "set_event") == "shop:order_sent\n"
    shop.run("disable", "shop")
    assert shop.run("list", "--state", "shop:order_sent") == "0  shop:order_sent\n"
    shop.run("enable", "nosuch", status=4)


def test_filters_are_set_shown_cleared_and_refused(shop):
    shop.run("filter", "shop:order_placed", 'customer == "ada" && order_id > 5')
    assert shop.run("filter", "shop") == 'shop:order_placed customer == "ada" && order_id > 5\n'
    shop.run("filter", "shop:order_placed", "0")
    assert shop.run("filter", "shop:order_placed") == ""
    shop.run("filter", "shop:order_placed", "nosuch == 1", status=4)
    assert "Field not found" in shop.said


def test_triggers_are_set_shown_and_removed(shop):
    shop.run("trigger", "shop:order_sent", "traceoff:1 if order_id > 10000000")
    assert shop.run("trigger", "shop:order_sent") == "traceoff:1 if order_id > 10000000\n"
    shop.run("trigger", "shop:order_sent", "--clear")
    assert "traceoff:" not in shop.run("trigger", "shop:order_sent")


def test_a_histogram_counts_and_goes(shop):
    table = shop.run("hist", "shop:order_placed", "customer", "--seconds", "0.5", "--sort", "hitcount")
    counts = dict(line.split() for line in table.splitlines()[1:])
    assert list(counts) == ["ada", "bob"]
    assert abs(int(counts["bob"]) - 2 * int(counts["ada"])) <= 2
    assert "hist:" not in shop.run("trigger", "shop:order_placed")


def test_a_recording_has_every_record(shop, tmp_path):
    target = tmp_path / "shop.dat"
    shop.run("record", "shop", "--seconds", "0.5", "-o", str(target))
    assert f"{target}: " in shop.said
    with open_tracedat(target) as trace:
        found = [
            (trace.events[int.from_bytes(r.data[:2], "little")], r.data) for r in trace.buffers[0].records()
        ]
    numbers = [field_values(form, data)["order_id"] for form, data in found if form.name == "order_sent"]
    assert len(numbers) > 10
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert shop.run("ps", "--cat", "set_event") == ""


def test_stacks_of_a_recording_have_names(shop, tmp_path):
    """A place in the code gets its address when it is first in a stack: after the recording began."""
    with (
        RemoteFiles(int(shop.pid), ANSWER_WAIT_S) as files,
        open_tracefs(ProcessFiles(files, int(shop.pid)), keeps_journal=False) as tracing,
        tracing.instance() as array,
    ):
        path = f"instances/{array.name}/events/shop/order_sent/trigger"

        def fire():
            array.event("shop:order_sent").add_trigger("stacktrace:3")
            while "stacktrace:count=0" not in (text := files.read_text(path)):
                assert "stacktrace:" in text
                time.sleep(0.02)

        # First: a trigger counts the events that are not recorded too.
        array.enable("shop:order_sent")
        array.record(tmp_path / "stacks.dat", during=fire)
    with open_trace(tmp_path / "stacks.dat") as trace:
        stacks = trace.with_stacks("order_sent")["kernel_stack_symbols"].tolist()
    named = [stack[0] for stack in stacks if stack]
    assert len(named) == 3
    assert all(re.fullmatch(r"<module>@<string>:\d+", name) for name in named)


def test_a_change_lasts_as_long_as_a_command(shop):
    shown = shop.run("enable", "shop:order_sent", "--", sys.executable, "-c", "import time; time.sleep(0.3)")
    assert len(re.findall(r"order_sent: order=\d+\n", shown)) > 3
    assert shop.run("ps", "--cat", "set_event") == ""


def test_a_process_that_does_not_listen(shop):
    pid, shop.pid = shop.pid, "1"
    try:
        shop.run("list", status=2)
    finally:
        shop.pid = pid
    assert "process 1 does not listen" in shop.said


def end_meanwhile(tmp_path, monkeypatch, signal_number, *words):
    """Give a command on a process that ends while it works; return its status and what it says."""
    monkeypatch.setenv("TRACEPOINT_SOCKETS", str(tmp_path / "s"))
    program = subprocess.Popen([sys.executable, "-c", PROGRAM], stderr=subprocess.DEVNULL)
    end = time.monotonic() + 120
    while not (tmp_path / "s" / f"{program.pid}.socket").exists() and time.monotonic() < end:
        time.sleep(0.02)
    command = subprocess.Popen(
        [sys.executable, "-m", "tracepoint", words[0], "--pid", str(program.pid), *words[1:]],
        stderr=subprocess.PIPE, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert "Ctrl-C" in command.stderr.readline()
    if words[0] == "record":
        # It says so before it begins.
        while command.poll() is None and not any(
            path.stat().st_size for path in tmp_path.glob(".trace.dat.*/cpu*")
        ):
            time.sleep(0.02)
        time.sleep(0.5)
    program.send_signal(signal_number)
    program.wait()
    said = command.stderr.read()
    command.stderr.close()
    assert "Traceback" not in said
    return command.wait(30), said


def test_a_histogram_of_a_process_that_dies_meanwhile(tmp_path, monkeypatch):
    words = ("hist", "shop:order_sent", "order_id", "--seconds", "2")
    status, said = end_meanwhile(tmp_path, monkeypatch, signal.SIGKILL, *words)
    assert status == 4
    assert "the process is gone" in said or "does not answer" in said


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGINT])
def test_a_recording_keeps_what_was_read_when_the_process_ends(tmp_path, monkeypatch, signal_number):
    begin = time.monotonic()
    asked = 600
    words = ("record", "shop", "--seconds", str(asked))
    status, said = end_meanwhile(tmp_path, monkeypatch, signal_number, *words)
    assert (status, time.monotonic() - begin < asked) == (0, True), said
    assert "has ended: its last records may be missing" in said
    with open_tracedat(tmp_path / "trace.dat") as trace:
        assert trace.damage == ()
        found = [(trace.events[int.from_bytes(r.data[:2], "little")], r) for r in trace.buffers[0].records()]
    numbers = [field_values(form, r.data)["order_id"] for form, r in found if form.name == "order_sent"]
    assert len(numbers) > 20
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_a_process_that_is_silent_is_not_called_gone():
    """What it may be, and how to wake it; a log that would not be answered either is not read."""
    asked = []

    class Silent:
        def open(self, path, flags):
            asked.append(path)
            raise SilentError("process 7 gave no answer within 30 s: it is stopped (kill -CONT)")

    tracefs = Tracefs(ProcessFiles(Silent(), 7), None)
    with pytest.raises(OSError, match="it is stopped") as caught:
        tracefs.files.write("set_event", "shop:")
    told = tracefs.explain(caught.value, "set_event", "shop:")
    assert "is stopped (kill -CONT)" in str(told)
    assert told.errno == errno.ETIMEDOUT
    assert asked == ["set_event"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--filter", "shop:order_placed", "totl > 3"),
            "event filter parse error: error: Field not found\n  Command: totl > 3\n",
        ),
        (
            ("--write", "dynamic_events", "e:x shop/order_placed a=$nosuch"),
            f"have this field\n  Command: e:x shop/order_placed a=$nosuch\n{'^':>34}\n",
        ),
        (("--write", "events/shop/order_sent/trigger", "hist:keys=nosuch"), "error: Couldn't find field\n"),
        (("--write", "buffer_size_kb", "0"), "buffer_size_kb: the process refuses '0': Invalid argument\n"),
        (("--enable", "nosuch"), "set_event: the process refuses 'nosuch': Invalid argument\n"),
    ],
)
def test_ps_says_what_the_log_says(shop, words, said):
    """Twice: an entry of before is not taken for the answer to something else."""
    for _ in range(2):
        shop.run("ps", *words, status=2)
        assert said in shop.said
        assert shop.said.count("  Command: ") == (0 if "refuses" in said else 1)
