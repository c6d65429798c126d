"""Locks that a child process never finds taken by a thread that it does not have."""

from __future__ import annotations

import os
import threading

_locks: list[threading.RLock] = []
_held: list[threading.RLock] = []


def make_process_lock() -> threading.RLock:
    """Return a re-entrant lock that is held while the process forks, so that it is free in the child.

    Made once for a module: it stays for the life of the process.  Such locks may be taken one
    inside the other in any one order, which the fork need not know.
    """
    lock = threading.RLock()
    _locks.append(lock)
    return lock


def _take_all() -> None:
    """Wait for one lock at a time while holding none, so that no other thread can wait for this one."""
    locks = list(_locks)
    first = 0
    while locks:
        locks[first].acquire()
        taken = [first]
        for number, lock in enumerate(locks):
            if number == first:
                continue
            if not lock.acquire(blocking=False):
                break
            taken.append(number)
        else:
            _held.extend(locks)
            return
        for other in taken:
            locks[other].release()
        first = number


def _release_all() -> None:
    while _held:
        _held.pop().release()


os.register_at_fork(before=_take_all, after_in_parent=_release_all, after_in_child=_release_all)
