"""Locks that a child process never finds taken by a thread that it does not have."""

from __future__ import annotations

import os
import threading


def make_process_lock() -> threading.RLock:
    """Return a re-entrant lock that is held while the process forks, so that it is free in the child.

    Made once for a module: the fork hooks stay for the life of the process.
    """
    lock = threading.RLock()
    os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock
