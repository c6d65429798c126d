"""Moving pages: the C module and its twin, from several sources, with every way to end."""

from __future__ import annotations

import errno
import os
import re
import resource
import socket
import threading
from array import array
from contextlib import contextmanager
from pathlib import Path

import pytest

from tracepoint.control.drain import DrainEnd, DrainPlan, MovedPages, drain, drain_slowly
from tracepoint.record.decode import DECODE
from tracepoint.record.layout import PageLayout

LAYOUT = PageLayout()


class FileSource:
    def __init__(self, handle: int) -> None:
        self.handle = handle

    def read(self, size: int) -> bytes:
        try:
            return os.read(self.handle, size)
        except BlockingIOError:
            return b""


@pytest.fixture(params=["C", "twin"])
def move(request):
    if request.param == "C" and DECODE is None:
        pytest.skip("the C module is not built")
    return drain if request.param == "C" else drain_slowly


def page(number: int) -> bytes:
    return (number.to_bytes(8, "little") + (8).to_bytes(8, "little")).ljust(LAYOUT.page_size, b"\0")


PAGES = [page(n) for n in range(40)]


@contextmanager
def pipe_of(data: bytes):
    """A pipe that holds the data, and waits for more."""
    source, feed = os.pipe()
    try:
        os.set_blocking(source, False)
        if data:
            assert os.write(feed, data) == len(data)
        yield source
    finally:
        os.close(source)
        os.close(feed)


@contextmanager
def socket_of(data: bytes):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with ours, theirs:
        ours.setblocking(False)
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        theirs.sendall(data)
        yield ours.fileno()


class Run:
    """One call, with what it needs."""

    def __init__(self, path, room: int = 1 << 40, flags: int = 0) -> None:
        self.path, self.moved, self.room = path, MovedPages(), array("q", [room])
        self.target = os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o600)
        self.end, self.ends = os.pipe()
        self.plan = DrainPlan(LAYOUT.page_size, self.end, self.room)

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        for handle in (self.target, self.end, *([self.ends] if self.ends >= 0 else [])):
            os.close(handle)

    def stop(self) -> None:
        os.close(self.ends)
        self.ends = -1

    @property
    def counts(self) -> tuple[int, int]:
        return (self.moved.n_pages, self.moved.n_unsaved)

    @property
    def saved(self) -> bytes:
        return self.path.read_bytes()


@pytest.mark.parametrize("flags", [0, os.O_APPEND], ids=["spliced", "a target that takes no pipe"])
@pytest.mark.parametrize("kind", [pipe_of, socket_of])
def test_all_pages_are_moved_in_order(move, tmp_path, kind, flags):
    data = b"".join(PAGES[:12])
    with Run(tmp_path / "cpu0", flags=flags) as run, kind(data) as source:
        run.stop()
        assert move(FileSource(source), run.target, run.plan, 100, run.moved) == (DrainEnd.ENDED, 0)
        assert run.saved == data
        assert run.counts == (12, 0)
        assert run.room[0] == (1 << 40) - 12


@pytest.mark.skipif(DECODE is None, reason="the C module is not built")
def test_a_page_that_is_spliced_takes_no_read(tmp_path):
    """Where system calls are recorded, each call of the recorder is an event too."""

    def n_reads() -> int:
        text = Path("/proc/thread-self/io").read_text()
        return int(re.search(r"^syscr: (\d+)$", text, re.MULTILINE)[1])

    with Run(tmp_path / "cpu0") as run, pipe_of(b"".join(PAGES[:12])) as source:
        run.stop()
        before = n_reads()
        drain(FileSource(source), run.target, run.plan, 100, run.moved)
        # Those of the file itself, and of what is left at the end.
        assert n_reads() - before <= 6
        assert run.counts == (12, 0)


def test_what_is_in_the_file_already_stays(move, tmp_path):
    with Run(tmp_path / "cpu0") as run:
        os.write(run.target, PAGES[0])
        run.stop()
        for n in (1, 2):
            with pipe_of(PAGES[n]) as source:
                move(FileSource(source), run.target, run.plan, 9, run.moved)
        assert run.saved == b"".join(PAGES[:3])


def test_a_part_of_a_page_is_an_error(move, tmp_path):
    """Nor can this file be spliced."""
    with Run(tmp_path / "cpu0") as run:
        run.stop()
        handle = os.open("/proc/self/status", os.O_RDONLY)
        with os.fdopen(handle, closefd=True):
            told = move(FileSource(handle), run.target, run.plan, 9, run.moved)
        assert told == (DrainEnd.SOURCE, errno.EIO)
        assert run.saved == b""


def test_pages_of_a_busy_buffer_end_all_the_same(move, tmp_path):
    with Run(tmp_path / "cpu0") as run:
        run.stop()
        with os.fdopen(os.open("/dev/zero", os.O_RDONLY)) as endless:
            told = move(FileSource(endless.fileno()), run.target, run.plan, 30, run.moved)
        assert told == (DrainEnd.ENDED, 0)
        assert 30 <= run.moved.n_pages <= 30 + 257


def test_it_moves_while_it_waits_and_ends_when_it_is_time(move, tmp_path):
    source, feed = os.pipe()
    os.set_blocking(source, False)
    with Run(tmp_path / "cpu0") as run:
        told: list[object] = []
        arguments = (FileSource(source), run.target, run.plan, 100, run.moved)
        thread = threading.Thread(target=lambda: told.append(move(*arguments)))
        thread.start()
        for data in PAGES:
            os.write(feed, data)
        while run.moved.n_pages < len(PAGES):
            thread.join(0.001)
            assert thread.is_alive()
        os.write(feed, PAGES[0])
        run.stop()
        thread.join(20)
        assert told == [(DrainEnd.ENDED, 0)]
        assert run.saved == b"".join([*PAGES, PAGES[0]])
    os.close(source)
    os.close(feed)


def test_no_more_is_written_than_there_is_room_for(move, tmp_path):
    with Run(tmp_path / "cpu0", room=5) as run, pipe_of(b"".join(PAGES[:12])) as source:
        told = move(FileSource(source), run.target, run.plan, 100, run.moved)
        assert told == (DrainEnd.NO_ROOM, 0)
        assert run.saved == b"".join(PAGES[:5])
        assert run.room[0] == 0
        run.room[0] = 1
        assert move(FileSource(source), run.target, run.plan, 100, run.moved) == (DrainEnd.NO_ROOM, 0)
        assert run.saved == b"".join(PAGES[:6])


@pytest.mark.parametrize("flags", [0, os.O_APPEND], ids=["spliced", "a target that takes no pipe"])
def test_a_full_disk_leaves_whole_pages(move, tmp_path, flags):
    data, old = b"".join(PAGES[:12]), resource.getrlimit(resource.RLIMIT_FSIZE)
    with Run(tmp_path / "cpu0", flags=flags) as run, pipe_of(data) as source:
        # Python ignores SIGXFSZ, so that the limit is an error as a full disk is.
        resource.setrlimit(resource.RLIMIT_FSIZE, (3 * 4096 + 100, old[1]))
        try:
            told = move(FileSource(source), run.target, run.plan, 100, run.moved)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, old)
        assert told == (DrainEnd.TARGET, errno.EFBIG)
        assert run.saved == data[: 3 * 4096]
        assert (run.moved.n_pages, run.room[0]) == (3, (1 << 40) - 3)
        assert run.moved.n_unsaved >= 1


def test_a_source_that_fails(move, tmp_path):
    folder = os.open(tmp_path, os.O_RDONLY)
    with Run(tmp_path / "cpu0") as run:
        told = move(FileSource(folder), run.target, run.plan, 100, run.moved)
    os.close(folder)
    assert told == (DrainEnd.SOURCE, errno.EISDIR)


@pytest.mark.skipif(DECODE is None, reason="the C module is not built")
@pytest.mark.parametrize("n", [0, 1, 3])
def test_the_c_module_takes_no_other_counts(tmp_path, n):
    with Run(tmp_path / "cpu0") as run:
        for counts, room in ((array("Q", [0] * n), run.room), (run.moved.counts, array("q", [0] * 2))):
            with pytest.raises(ValueError, match="counts"):
                DECODE.drain(run.end, run.target, run.end, 4096, 10, 10, counts, room)
        for page_size in (0, -4096, 1 << 40):
            with pytest.raises(ValueError, match=f"pages of {page_size} bytes"):
                DECODE.drain(run.end, run.target, run.end, page_size, 10, 10, run.moved.counts, run.room)
