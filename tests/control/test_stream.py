"""`tracepoint stream`: the records of a made-up tracefs as lines, as they come."""

from __future__ import annotations

import json
import os
import signal
import threading
import time

import pytest

from control.test_flight import after, running
from control.test_record import array, files, pages_of  # noqa: F401
from tracepoint.cli.main import main
from tracepoint.errors import TracefsError


def test_lines_come_by_time_and_the_settings_come_back(files, capsys):  # noqa: F811
    files.pages = {0: pages_of(0, 1000) + pages_of(1500, 10), 1: pages_of(1000, 500)}
    assert main(["stream", "irq:softirq_entry", "--seconds", "0"]) == 0
    told = capsys.readouterr()
    lines = told.out.splitlines()
    assert len(lines) == 1510
    assert lines[0].split()[:2] == ["seven-7", "[000]"]
    stamps = [float(line.split()[3].rstrip(":")) for line in lines]
    assert stamps == sorted(stamps)
    assert sum("[001]" in line for line in lines) == 500
    assert set(files.arrays) == {""}
    assert files.n_open == 0
    assert "late" not in told.err


def test_a_signal_ends_it_after_what_is_there(files, capsys):  # noqa: F811
    def act() -> None:
        after(lambda: files.recording and not files.pages[0])
        seen.append(files.recording.pids["set_event_notrace_pid"])
        os.kill(os.getpid(), signal.SIGTERM)
        after(lambda: not files.recording)
        files.pages[1] += pages_of(5000, 7)

    seen: list[set[int]] = []
    thread = running(act)
    assert main(["stream", "irq", "--format", "jsonl"]) == 0
    thread.join()
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(records) >= 1030
    assert records[-1]["cpu"] in (0, 1)
    # Its own lines would make events.
    assert seen == [{os.getpid()}]


def test_lines_come_while_events_do(files, capsys):  # noqa: F811
    files.pages = {0: [], 1: []}
    seen: list[str] = []

    def act() -> None:
        after(lambda: files.recording)
        for first in (0, 10):
            files.pages[1] += pages_of(first, 3)
            began = time.monotonic()
            while len("".join(seen).splitlines()) < (first // 10 + 1) * 3 and time.monotonic() < began + 10:
                seen.append(capsys.readouterr().out)
                time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=act)
    thread.start()
    assert main(["stream", "irq", "--color", "always"]) == 0
    thread.join()
    text = "".join(seen)
    assert text.count("\n") == 6
    assert "\x1b[36m" in text.splitlines()[0]
    assert "\x1b[32msoftirq_entry\x1b[0m:" in text.splitlines()[0]


def test_filters_and_a_command(files, capfd):  # noqa: F811
    def look(number: int) -> None:
        for name, made in files.arrays.items():
            if name:
                seen.add(made.events["irq:softirq_entry"].filter)

    seen: set[str] = set()
    files.before_write = look
    words = ["stream", "irq", "--filter", "irq:softirq_entry", "vec > 3", "--", "sh", "-c", "exit 3"]
    assert main(words) == 5
    assert any("vec > 3" in text for text in seen)
    assert "ended with status 3" in capfd.readouterr().err


def test_what_fails_restores_too(files, capsys):  # noqa: F811
    files.fails_with = 5
    assert main(["stream", "irq", "--seconds", "1"]) != 0
    assert set(files.arrays) == {""}
    assert files.n_open == 0
    assert main(["stream", "no_such"]) == 4
    assert set(files.arrays) == {""}


def test_an_array_is_followed_by_a_program(array, files):  # noqa: F811
    with array.follow() as records:
        records.end()
        assert sum(1 for _, batch in records.chunks(lambda file: file.buffers[0]) for _ in batch) == 1030
    assert not array.is_on
    array.disable("irq")
    with pytest.raises(TracefsError, match="no event is enabled"):
        array.follow()
