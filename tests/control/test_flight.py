"""Flight recorders: the newest records, saved when a signal or an event asks for them."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from control.test_record import array, files, pages_of, records_of  # noqa: F401
from tracepoint.cli.main import main
from tracepoint.control.recording import numbered


def test_pages_before_the_newest_time_are_left_out(array, files, tmp_path):  # noqa: F811
    # 10 ns apart; the last page of CPU 0 begins before 10,990 ns, that of CPU 1 at 11,000.
    for newest, first in ((10**9, 0), (0, 1000), (2000, 800)):
        files.pages = {0: pages_of(0, 1000), 1: pages_of(1000, 30)}
        told = array.record(tmp_path / f"{newest}.dat", 0, newest_ns=newest)
        found = records_of(tmp_path / f"{newest}.dat")
        assert found == list(range(found[0], 1030))
        assert told.n_records == len(found)
        # What is asked for, and of each CPU less than a page more.
        assert min(first, 1000) - 255 < found[0] <= first
    assert array.is_on


def running(act) -> threading.Thread:
    """Call `act` when a recording has turned its instance on."""
    thread = threading.Thread(target=act)
    thread.start()
    return thread


def after(condition) -> None:
    deadline = time.monotonic() + 30
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert condition()


def test_a_signal_saves_and_the_flight_goes_on(files, tmp_path, capsys):  # noqa: F811
    def act() -> None:
        after(lambda: files.recording)
        os.kill(os.getpid(), signal.SIGUSR1)
        after((tmp_path / "web.001.dat").exists)
        files.pages[0] += pages_of(5000, 7)
        os.kill(os.getpid(), signal.SIGINT)

    handler = signal.getsignal(signal.SIGUSR1)
    thread = running(act)
    assert main(["record", "irq", "--flight", "10s", "-o", str(tmp_path / "web.dat")]) == 0
    thread.join()
    assert signal.getsignal(signal.SIGUSR1) == handler
    assert records_of(tmp_path / "web.001.dat") == list(range(1030))
    assert records_of(tmp_path / "web.002.dat") == list(range(5000, 5007))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["web.001.dat", "web.002.dat"]
    assert set(files.arrays) == {""}
    assert "web.002.dat: 7 records" in capsys.readouterr().err


@pytest.mark.parametrize("options", [[], ["--flight", "500ms"]])
def test_an_event_ends_it(files, tmp_path, options):  # noqa: F811
    seen: list[str] = []

    def act() -> None:
        after(lambda: files.recording)
        seen.append(
            files.read(f"instances/{next(n for n in files.arrays if n)}/events/irq/softirq_entry/trigger")
        )
        files.recording.numbers["tracing_on"] = "0"

    thread = running(act)
    words = ["record", "irq", "--until", "irq:softirq_entry if vec > 3", "-o", str(tmp_path / "web.dat")]
    assert main([*words, *options]) == 0
    thread.join()
    assert "traceoff:unlimited if vec > 3" in seen[0]
    name = "web.001.dat" if options else "web.dat"
    assert records_of(tmp_path / name) == list(range(1030))


def test_a_signal_that_asks_may_come_at_any_time(files, tmp_path):  # noqa: F811
    """It would end us with everything changed, and nothing saved."""
    before, seen = signal.getsignal(signal.SIGUSR1), []
    files.before_write = lambda _: seen.append(signal.getsignal(signal.SIGUSR1) != before)
    assert main(["record", "irq", "--flight", "1s", "--seconds", "0", "-o", str(tmp_path / "web.dat")]) == 0
    assert seen == [True] * files.n_changes
    assert signal.getsignal(signal.SIGUSR1) == before


def test_a_command_is_flown_to_its_end(files, tmp_path):  # noqa: F811
    words = ["record", "irq", "--flight", "1m", "-o", str(tmp_path / "web.dat"), "--", "sh", "-c", "exit 3"]
    assert main(words) == 5
    assert (tmp_path / "web.001.dat").exists()


# As in docs/howto/record.md; it ends when the save is there.
FAILING = """
import os, signal, sys, time
def save_flight(*raised):
    os.kill(os.getppid(), signal.SIGUSR1)
    sys.__excepthook__(*raised)
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.02)
sys.excepthook = save_flight
1 / 0
"""


def test_a_python_program_that_fails_saves_what_led_to_it(files, tmp_path, capfd):  # noqa: F811
    first = tmp_path / "web.001.dat"
    words = ["record", "irq", "--flight", "1m", "-o", str(tmp_path / "web.dat"), "--"]
    assert main([*words, sys.executable, "-c", FAILING, str(first)]) == 5
    assert records_of(first) == list(range(1030))
    told = capfd.readouterr().err
    assert "ZeroDivisionError" in told
    assert "the command ended with status 1" in told


def test_what_a_flight_refuses(files, tmp_path, capsys):  # noqa: F811
    words = ["record", "irq", "-o", str(tmp_path / "web.dat"), "--flight", "10s"]
    assert main([*words, "--clock", "counter"]) == 2
    assert "does not count ns" in capsys.readouterr().err
    assert main([*words, "--max-size", "1M"]) == 2
    assert "--max-size" in capsys.readouterr().err
    assert main([*words, "--py", "7"]) == 2
    assert "--py" in capsys.readouterr().err
    assert main(["record", "irq", "--flight", "ten"]) == 2
    assert (
        main(["record", "irq", "--until", "irq:softirq_entry if vex > 3", "-o", str(tmp_path / "a.dat")]) == 4
    )
    assert list(tmp_path.iterdir()) == []


def test_numbers_go_on_after_those_that_are_there(tmp_path):
    (tmp_path / "web.001.dat").touch()
    (tmp_path / "web.003.dat").touch()
    names = numbered(str(tmp_path / "web.dat"), replace=False)
    assert [Path(next(names)).name for _ in range(2)] == ["web.002.dat", "web.004.dat"]
    assert Path(next(numbered(str(tmp_path / "web.dat"), replace=True))).name == "web.001.dat"
