"""Become a program that ends with the process that started it, however that ends.

Run as a file: `python watched.py OWNER PROGRAM [WORD ...]`, where OWNER is the process id of the one that
starts it.  A process forked here waits for the end of the owner or of the program; PR_SET_PDEATHSIG would
also fire when only the thread that started the program ends.
"""

from __future__ import annotations

import os
import select
import signal
import sys


def main(words: list[str]) -> None:
    """Start the process that waits, then become the program; returns only when the owner has ended."""
    owner = int(words[0])
    try:
        watched = [os.pidfd_open(pid) for pid in (owner, os.getpid())]
    except ProcessLookupError:
        return
    except OSError:
        watched = []  # a kernel before 5.3, or a container that forbids it: the program is not watched
    if os.getppid() != owner:
        return
    if watched and os.fork() == 0:
        try:
            _wait(*watched)
        finally:
            os._exit(0)
    os.execv(words[1], words[1:])  # noqa: S606 (it stands for the program that it was asked to become)


def _wait(owner: int, program: int) -> None:
    """Wait until one of two processes ends, and end the program then; none of their files are held open."""
    os.setsid()
    low, high = sorted((owner, program))
    os.closerange(0, low)
    os.closerange(low + 1, high)
    os.closerange(high + 1, os.sysconf("SC_OPEN_MAX"))
    poll = select.poll()
    poll.register(owner, select.POLLIN)
    poll.register(program, select.POLLIN)
    if program not in dict(poll.poll()):
        signal.pidfd_send_signal(program, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1:])
