"""Events that signal handlers set."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from tracepoint.cli.stopping import SignalEvent

# Raises the signal before each instruction of a call, one call for each, until a call has fewer.
EVERYWHERE = """
import os, signal, sys
from tracepoint.cli.child import ChildProcess
from tracepoint.cli.kernel.ending import EndingSignals
from tracepoint.cli.output import Output

def call_until_instruction(number, function, *arguments):
    left = number

    def look(frame, what, _):
        nonlocal left
        frame.f_trace_opcodes = True
        if what == "opcode":
            left -= 1
            if left == 0:
                sys.settrace(None)
                signal.raise_signal(signal.SIGTERM)
        return look

    sys.settrace(look)
    function(*arguments)
    sys.settrace(None)
    return left > 0

{once}

number = 1
while not once(number):
    number += 1
print(number)
"""
WAIT = """
def once(number):
    with EndingSignals() as ending:
        is_over = call_until_instruction(number, ending.event.wait, 0.001)
        assert is_over or ending.event.is_set()
        return is_over
"""
START = """
def once(number):
    with EndingSignals() as ending:
        is_over = call_until_instruction(number, ending.start, ["sleep", "600"], Output())
        child = ending._child
        if is_over:
            child.send_signal(signal.SIGTERM)
        assert child is None or child.wait() == -signal.SIGTERM
        assert is_over or ending.wait(Output()) == 0
        return is_over
"""
# The status of a command that has ended by itself is asked for; the signal is sent on to it.
REAP = """
def once(number):
    with EndingSignals() as ending:
        ending.start(["sh", "-c", "exit 3"], Output())
        os.waitid(os.P_PID, ending._child.pid, os.WEXITED | os.WNOWAIT)
        is_over = call_until_instruction(number, ending._child.poll)
        assert ending._child.returncode == 3
        return is_over
"""

# The command that a change is made for; the signal ends us.
RUN = """
from tracepoint.cli.kernel.tracing import run_command
from tracepoint.cli.signals import Ended, ended_by_signal

def once(number):
    is_over = False
    with ended_by_signal():
        try:
            is_over = call_until_instruction(number, run_command, ["sleep", "0.05"], Output())
        except Ended:
            pass
    # It may not have been reaped, but it has ended.
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return is_over
    raise AssertionError("the command goes on")
"""


@pytest.mark.parametrize(
    "once",
    [
        pytest.param(WAIT, id="wait"),
        pytest.param(START, id="start", marks=pytest.mark.thorough),
        pytest.param(REAP, id="reap"),
        pytest.param(RUN, id="run", marks=pytest.mark.thorough),
    ],
)
def test_a_signal_may_come_at_any_moment(once):
    """Else, very rarely, a wait hangs, a command is not told of the signal, or one that has ended is killed."""
    done = subprocess.run(
        [sys.executable, "-c", EVERYWHERE.replace("{once}", once)],
        # Each variable of a command's environment takes many instructions.
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10


def test_all_that_wait_are_woken():
    event = SignalEvent()
    woken: list[bool] = []
    threads = [threading.Thread(target=lambda: woken.append(event.wait(60))) for _ in range(3)]
    for thread in threads:
        thread.start()
    event.set()
    for thread in threads:
        thread.join(60)
    assert woken == [True] * 3
    assert event.wait() is event.wait(-1) is True


@pytest.mark.parametrize("timeout", [0, 0.01, -1])
def test_a_wait_ends_in_time(timeout):
    event = SignalEvent()
    assert not event.wait(timeout)
    event.set()
    event.set()
    assert event.is_set()
    event.clear()
    assert not event.is_set()
    assert not event.wait(timeout)
