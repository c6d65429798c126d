"""Work on several threads: results in their order, the first failure, and threads that cannot be had."""

from __future__ import annotations

import threading

import pytest

from tracepoint.decode import threads
from tracepoint.decode.threads import call_each, thread_count


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_results_are_in_the_order_of_what_was_given(n_threads: int) -> None:
    assert call_each(lambda number: -number, range(40), n_threads) == [-number for number in range(40)]


def test_others_take_part() -> None:
    both = threading.Barrier(2, timeout=60)
    assert call_each(lambda number: both.wait() >= 0 and number, [1, 2], 2) == [1, 2]


def test_a_failure_is_raised_and_what_has_not_begun_is_left() -> None:
    begun = []

    def fail(number: int) -> None:
        begun.append(number)
        raise LookupError(f"no {number}")

    with pytest.raises(LookupError, match="no 0"):
        call_each(fail, range(1000), 1)
    with pytest.raises(LookupError, match="no "):
        call_each(fail, range(1000), 4)
    assert len(begun) <= 5


def test_a_system_without_more_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refused(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "Thread", Refused)
    assert call_each(str, range(3), 3) == ["0", "1", "2"]


def test_a_count_of_threads() -> None:
    assert thread_count(3) == 3
    assert thread_count(0) >= 1
    with pytest.raises(ValueError, match="-1 threads"):
        thread_count(-1)
