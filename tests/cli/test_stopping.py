"""Events that signal handlers set."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from tracepoint.cli.stopping import SignalEvent

# Raises the signal before each instruction of a wait, one wait for each, until a wait has fewer.
EVERYWHERE = """
import signal, sys
from tracepoint.cli.kernel.ending import EndingSignals

def wait_until_instruction(number):
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

    with EndingSignals() as ending:
        sys.settrace(look)
        is_set = ending.event.wait(0.001)
        sys.settrace(None)
        return left > 0, is_set, ending.event.is_set()

for number in range(1, 1000):
    is_over, is_set, was_set = wait_until_instruction(number)
    if is_over:
        break
    assert was_set
print("waits of", number, "instructions")
"""


def test_a_signal_may_come_at_any_moment_of_a_wait():
    """With `threading.Event` a process that waits in turns sometimes hung: its handler took the same lock."""
    done = subprocess.run(
        [sys.executable, "-c", EVERYWHERE], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[2]) in range(10, 1000)


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
