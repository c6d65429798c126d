"""Moving the pages of one CPU's ring buffer to a file, until it is time to end.

`csrc/decode/drain.c` does it where the pages come from a file of the kernel: with splice(2), so that they are
never copied into this process.  `drain_slowly` is its twin, and what reads the pages of another process.
"""

from __future__ import annotations

import errno
import os
import threading
from array import array
from enum import IntEnum

from tracepoint.named import NamedTuple
from tracepoint.record.decode import DECODE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tracepoint.control.operations import PageSource

# The ring buffer wakes its reader where `buffer_percent` of it are full; kernels before 6.1 may forget to.
_MOST_WAIT_MS, _FIRST_WAIT_MS = 100, 20
_PAGES, _UNSAVED = range(2)
_room_lock = threading.Lock()


class DrainEnd(IntEnum):
    """Why moving pages ended: it was asked to, the file has all the pages that it may, or a side failed."""

    ENDED = 0
    NO_ROOM = 1
    SOURCE = 2
    TARGET = 3


class MovedPages:
    """What was moved so far, which another thread may read meanwhile."""

    def __init__(self) -> None:
        self.counts = array("Q", bytes(16))

    @property
    def n_pages(self) -> int:
        """The pages in the file."""
        return self.counts[_PAGES]

    @property
    def n_unsaved(self) -> int:
        """The pages that were taken from the ring buffer and could not be written."""
        return self.counts[_UNSAVED]


class DrainPlan(NamedTuple):
    """What the drains of all CPUs share: when to end, and how many pages they may write together.

    `end` is a file that can be read when it is time to end, `room` one number: the pages that all may write.
    """

    page_size: int
    end: int
    room: array[int]


def drain(
    source: PageSource, target: int, plan: DrainPlan, n_ring: int, moved: MovedPages
) -> tuple[DrainEnd, int]:
    """Move whole pages of a ring buffer of `n_ring` pages to a file; return why it ended, and the errno.

    After the end has come, what is left is moved, at most `n_ring` pages: others may go on writing.  A page
    that could not be written as a whole is cut off.
    """
    if DECODE is None or source.handle is None:
        return drain_slowly(source, target, plan, n_ring, moved)
    reason, error = DECODE.drain(
        source.handle, target, plan.end, plan.page_size, _MOST_WAIT_MS, n_ring, moved.counts, plan.room
    )
    return DrainEnd(reason), error


def drain_slowly(
    source: PageSource, target: int, plan: DrainPlan, n_ring: int, moved: MovedPages
) -> tuple[DrainEnd, int]:
    """Do what `drain` does with one read and one write a page: what the C module must do too."""
    import select  # noqa: PLC0415 - the C module needs none

    end = select.poll()
    end.register(plan.end, select.POLLIN)
    is_ended, wait_ms, n_since = False, _FIRST_WAIT_MS, 0
    while n_ring:
        if not _take_room(plan.room):
            return DrainEnd.NO_ROOM, 0
        try:
            page = source.read(plan.page_size)
        except OSError as error:
            _give_room_back(plan.room)
            return DrainEnd.SOURCE, error.errno or errno.EIO
        if page:
            if len(page) != plan.page_size:
                return DrainEnd.SOURCE, errno.EIO
            if error_number := _write_page(page, target, plan, moved):
                return DrainEnd.TARGET, error_number
            n_since += 1
            n_ring -= is_ended
            is_ended = is_ended or bool(end.poll(0))
            continue
        _give_room_back(plan.room)
        if is_ended:
            break
        wait_ms = max(wait_ms // 2, 1) if n_since > n_ring // 4 else min(2 * wait_ms, _MOST_WAIT_MS)
        is_ended, n_since = bool(end.poll(wait_ms)), 0
    return DrainEnd.ENDED, 0


def _take_room(room: array[int]) -> bool:
    with _room_lock:
        has_room = room[0] > 0
        room[0] -= has_room
    return has_room


def _give_room_back(room: array[int]) -> None:
    with _room_lock:
        room[0] += 1


def _write_page(page: bytes, target: int, plan: DrainPlan, moved: MovedPages) -> int:
    """Write a page and count it; return the errno where it does not fit, with the file cut to whole pages."""
    at, done = os.lseek(target, 0, os.SEEK_CUR), 0
    try:
        while done < len(page):
            done += os.write(target, page[done:])
    except OSError as error:
        moved.counts[_UNSAVED] += 1
        _give_room_back(plan.room)
        os.ftruncate(target, at)
        os.lseek(target, at, os.SEEK_SET)
        return error.errno or errno.EIO
    moved.counts[_PAGES] += 1
    return 0


def free_space(handle: int, at: int, size: int) -> None:
    """Give the space of `size` bytes of a file back; where the file system cannot, they stay."""
    if DECODE is not None:
        DECODE.free_space(handle, at, size)
