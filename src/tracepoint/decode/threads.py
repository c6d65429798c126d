"""Work on several threads: C gives up the GIL while it decodes."""

from __future__ import annotations

import os
from threading import Lock, Thread
from typing import TYPE_CHECKING, TypeVar

from tracepoint.record.extension import is_main_interpreter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Given = TypeVar("Given")
Made = TypeVar("Made")


def n_threads() -> int:
    """Return how many threads read: one for each CPU that this process may run on.

    An interpreter that is not the main one may not be allowed threads.
    """
    if not is_main_interpreter():
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_count(threads: int) -> int:
    """Return how many threads read where that many are asked for, 0: as many as there are CPUs.

    Raises ValueError for less.
    """
    if threads < 0:
        raise ValueError(f"{threads} threads: give 0 for one on each CPU, or how many")
    return threads or n_threads()


def call_each(function: Callable[[Given], Made], given: Sequence[Given], threads: int) -> list[Made]:
    """Return what a function makes of each thing, on up to `threads` threads, this one among them.

    Raises what the function raises first; what has not begun by then is left.

    >>> call_each(lambda number: number * number, range(5), 2)
    [0, 1, 4, 9, 16]
    """
    # Not concurrent.futures: importing it takes longer than reading a small recording.
    if threads < 2 or len(given) < 2:
        return [function(one) for one in given]
    made: dict[int, Made] = {}
    failures: list[BaseException] = []
    places, lock = iter(range(len(given))), Lock()

    def work() -> None:
        while not failures:
            with lock:
                at = next(places, None)
            if at is None:
                return
            try:
                made[at] = function(given[at])
            except BaseException as failure:  # noqa: BLE001 - raised below, from the thread that asked
                failures.append(failure)

    others: list[Thread] = []
    for _ in range(min(threads, len(given)) - 1):
        thread = Thread(target=work)
        try:
            thread.start()
        except RuntimeError:
            # The system gives no more threads: those that there are do all.
            break
        others.append(thread)
    work()
    for thread in others:
        thread.join()
    if failures:
        raise failures[0]
    return [made[at] for at in range(len(given))]
