"""The control files of another process, through its socket."""

from __future__ import annotations

import os
import socket
import stat
import struct
import threading
from typing import TYPE_CHECKING, Any, Self

from tracepoint.runtime.files.file import Handle, write_all
from tracepoint.runtime.files.trace import never
from tracepoint.runtime.remote.frames import FrameError, receive_frame, send_frame
from tracepoint.runtime.remote.registry import Process, ProcessError, find_process

if TYPE_CHECKING:
    from collections.abc import Callable

_UCRED = struct.Struct("3i")
MAX_IDLE = 8
MAX_PIECE = 1 << 18
# No process saves more than its rings: an answer that claims more is invalid.
MAX_ANSWER = 1 << 40
# For commands, which users wait for: the other side answers every request but `save` at once.
ANSWER_WAIT_S = 30.0


class SilentError(ProcessError):
    """A process that listens and gives no answer in time."""


class _Answer(dict[str, Any]):
    """What the other side says and the bytes with it; one without what was asked for is not of our kind."""

    def __init__(self, head: dict[str, Any], body: bytes) -> None:
        super().__init__(head)
        self.body = body

    def __missing__(self, key: str) -> Any:
        raise ProcessError(f"the process answers without {key!r}: another version of tracepoint?")


class Line:
    """One connection: asks and gets answers, one at a time, each within `wait_s` seconds (None: whenever)."""

    def __init__(self, process: Process, wait_s: float | None = None) -> None:
        self._lock = threading.Lock()
        self._pid = process.pid
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(wait_s)
        try:
            if not stat.S_ISSOCK(process.path.lstat().st_mode):
                raise ProcessError(f"{process.path} is not a socket")
            self.socket.connect(str(process.path))
        except TimeoutError:
            self.socket.close()
            raise self._silence() from None
        except OSError as error:
            self.socket.close()
            raise ProcessError(f"process {process.pid} does not answer: {error.strerror}") from None
        raw = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
        if _UCRED.unpack(raw)[1] not in (os.geteuid(), 0) and os.geteuid() != 0:
            self.socket.close()
            raise ProcessError(f"the socket of process {process.pid} belongs to another user")
        self._answers = self.socket.makefile("rb")

    def ask(self, op: str, body: bytes = b"", **request: Any) -> _Answer:
        """Send a request and return the answer; raises OSError as the other side says."""
        with self._lock:
            try:
                send_frame(self.socket, {"op": op, **request}, body)
                frame = receive_frame(self._answers, MAX_ANSWER)
            except TimeoutError:
                raise self._silence() from None
            except FrameError:
                raise ProcessError(f"process {self._pid} sent something that is not an answer") from None
            except (OSError, ValueError):
                frame = None
        if frame is None:
            raise ProcessError("the process is gone")
        answer = _Answer(*frame)
        if "errno" in answer:
            raise OSError(answer["errno"], os.strerror(answer["errno"]), request.get("path"))
        return answer

    def _silence(self) -> SilentError:
        return SilentError(
            f"process {self._pid} gave no answer within {self.socket.gettimeout():g} s: it is stopped "
            "(kill -CONT), or in a call that keeps Python's lock"
        )

    def close(self) -> None:
        """Hang up."""
        self._answers.close()
        self.socket.close()


class RemoteHandle(Handle):
    """A file that is open in the other process, over a connection that is its own until it is closed."""

    def __init__(self, line: Line, number: int, give_back: Callable[[Line], None]) -> None:
        self._line = line
        self._number = number
        self._give_back = give_back
        self._end = -1
        self.is_interrupted: Callable[[], bool] = never

    def read(self, size: int, offset: int) -> bytes:
        """Return bytes; waits where the file does, unless it is interrupted."""
        if offset and offset == self._end:
            return b""
        while True:
            answer = self._line.ask("read", handle=self._number, size=size, offset=offset)
            if not answer["again"]:
                self._end = offset + len(answer.body) if answer["end"] else -1
                return answer.body
            if self.is_interrupted():
                raise InterruptedError

    def write(self, data: bytes) -> int:
        """Return how many bytes were taken, of what fits one request."""
        return int(self._line.ask("write", data[:MAX_PIECE], handle=self._number)["taken"])

    def close(self) -> None:
        """Close the file."""
        try:
            self._line.ask("close", handle=self._number)
        except OSError:
            self._give_back(self._line)
            raise
        except BaseException:
            self._line.close()
            raise
        self._give_back(self._line)


class RemoteFiles:
    """The control files of a process, by pid; raises ProcessError when it does not listen.

    A file that is open has a connection for itself, because reading may wait; connections of
    closed files are kept for the next ones.  No answer within `wait_s` seconds is a SilentError; None waits.
    """

    def __init__(self, pid: int, wait_s: float | None = None) -> None:
        self._process = find_process(pid)
        self._wait_s = wait_s
        self._line = Line(self._process, wait_s)
        self._idle: list[Line] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._line.close()
        while self._idle:
            self._idle.pop().close()

    def _take_line(self) -> Line:
        try:
            return self._idle.pop()
        except IndexError:
            return Line(self._process, self._wait_s)

    def _give_back(self, line: Line) -> None:
        if len(self._idle) < MAX_IDLE:
            self._idle.append(line)
        else:
            line.close()

    def hello(self) -> dict[str, int]:
        """Return what the process says of itself: pid, n_events, n_enabled."""
        return self._line.ask("hello")

    def open(self, path: str, flags: int = os.O_RDONLY) -> RemoteHandle:
        """Open a file there."""
        line = self._take_line()
        try:
            return RemoteHandle(line, line.ask("open", path=path, flags=flags)["handle"], self._give_back)
        except OSError:
            self._give_back(line)
            raise
        except BaseException:
            line.close()
            raise

    def stat(self, path: str) -> tuple[int, bool]:
        """Return permission bits and whether it is a folder."""
        answer = self._line.ask("stat", path=path)
        return answer["mode"], answer["folder"]

    def names(self, path: str) -> list[str]:
        """Return what is in a folder."""
        found: list[str] = self._line.ask("list", path=path)["names"]
        return found

    def mkdir(self, path: str) -> None:
        """Make an instance."""
        self._line.ask("mkdir", path=path)

    def rmdir(self, path: str) -> None:
        """Remove an instance."""
        self._line.ask("rmdir", path=path)

    def truncate(self, path: str) -> None:
        """Do what O_TRUNC does."""
        self._line.ask("truncate", path=path)

    def read_text(self, path: str) -> str:
        """Return the whole content of a file that ends."""
        handle = self.open(path)
        parts: list[bytes] = []
        offset = 0
        try:
            while part := handle.read(1 << 16, offset):
                parts.append(part)
                offset += len(part)
        finally:
            handle.close()
        return b"".join(parts).decode(errors="surrogateescape")

    def write_text(self, path: str, text: str, *, append: bool = False) -> None:
        """Write as `echo -n TEXT > path` does."""
        handle = self.open(path, os.O_WRONLY | (os.O_APPEND if append else os.O_TRUNC))
        try:
            write_all(handle, text.encode(errors="surrogateescape"))
        finally:
            handle.close()

    def kallsyms(self) -> str:
        """Return the names of places in the code, in the form of /proc/kallsyms."""
        text: str = self._line.ask("kallsyms")["text"]
        return text

    def directory(self) -> str:
        """Return the directory where the rings of the top instance are files; empty without."""
        path: str = self._line.ask("directory")["path"]
        return path

    def save(self, version: int = 7, compression: str = "none") -> bytes:
        """Return what was recorded there as trace.dat."""
        return self._line.ask("save", version=version, compression=compression).body

    def wait_for_end(self) -> None:
        """Return when the process is gone."""
        line = Line(self._process)
        try:
            while line.socket.recv(1):
                pass
        except OSError:
            return
        finally:
            line.close()
