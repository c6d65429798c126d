"""Control from outside: a socket that only the owner of the process may open.

`listen()` starts it; nothing listens before.  A request is a frame (`frames`), and so is the answer.  One
connection has the files open that it opened.
"""

from __future__ import annotations

import atexit
import errno
import os
import socket
import struct
import threading
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from tracepoint.errors import TracepointError
from tracepoint.record.extension import is_main_interpreter
from tracepoint.runtime.files.file import File, Folder, Handle
from tracepoint.runtime.files.tree import process_files
from tracepoint.runtime.remote.frames import FrameError, receive_frame, send_frame
from tracepoint.runtime.remote.registry import ProcessError, check_folder, socket_folder, socket_path
from tracepoint.runtime.rings.symbols import kallsyms_text
from tracepoint.wording import one_line

if TYPE_CHECKING:
    from tracepoint.runtime.files.tree import ControlFiles

MAX_READ = MAX_WRITE = 1 << 18
MAX_HANDLES = 256
# Each is a thread and a descriptor of the traced program, which needs its own.
MAX_CONNECTIONS = 64
_SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ECONNABORTED)
WAIT_S = 0.25
_UCRED = struct.Struct("3i")
# What each request carries beside `op`.
REQUESTS: dict[str, dict[str, type]] = {
    "hello": {},
    "open": {"path": str, "flags": int},
    "read": {"handle": int, "size": int, "offset": int},
    "write": {"handle": int},
    "close": {"handle": int},
    "stat": {"path": str},
    "list": {"path": str},
    "mkdir": {"path": str},
    "rmdir": {"path": str},
    "truncate": {"path": str},
    "kallsyms": {},
    "directory": {},
    "save": {"version": int, "compression": str},
}


_NO_REQUEST = {"errno": errno.EPROTO, "text": "this is not a request"}


def _is_request(head: dict[str, Any], body: bytes) -> bool:
    """Return whether the values have the types that the `op` wants, and only a write has a body."""
    if not isinstance(head.get("op"), str) or (body and head["op"] != "write"):
        return False
    if any(isinstance(value, str) and _has_no_bytes(value) for value in head.values()):
        return False
    wanted = REQUESTS.get(head["op"])
    return wanted is None or {name: type(value) for name, value in head.items() if name != "op"} == wanted


def _has_no_bytes(text: str) -> bool:
    """Return whether no bytes stand for a text: it has half a surrogate pair, which JSON can carry."""
    try:
        text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return True
    return False


def _internal_error(op: str, error: Exception) -> str:
    """Say what failed and where: it is our fault, or that of a function of the program, not the client's."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(place.filename).name}:{place.lineno}"
    said = one_line("".join(traceback.format_exception_only(error)).strip())
    return f"internal error in {op!r}: {said} ({where})"


class _Connection:
    """One client: reads requests, answers them, closes its files at the end."""

    def __init__(self, stream: socket.socket, tree: ControlFiles) -> None:
        self._stream = stream
        self._tree = tree
        self._handles: dict[int, Handle] = {}
        self._next = 0

    def run(self) -> None:
        """Serve until the client goes."""
        try:
            with self._stream, self._stream.makefile("rb") as frames:
                while self._serve_one(frames):
                    pass
        except OSError:
            pass
        finally:
            for handle in self._handles.values():
                handle.close()

    def _serve_one(self, frames: BinaryIO) -> bool:
        """Answer the next request; False at the end and for a client that does not speak our language."""
        try:
            frame = receive_frame(frames, MAX_WRITE)
        except FrameError:
            answer, data = _NO_REQUEST, b""
        else:
            if frame is None:
                return False
            answer, data = self._answer(*frame)
        send_frame(self._stream, answer, data)
        return answer is not _NO_REQUEST

    def _answer(self, head: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
        """Do what is asked; only a frame that is not a request answers EPROTO."""
        if not _is_request(head, body):
            return _NO_REQUEST, b""
        op = head.pop("op")
        if op not in REQUESTS:
            return {"errno": errno.ENOSYS, "text": "no such request"}, b""
        if op == "write":
            head["data"] = body
        try:
            answer: dict[str, Any] = getattr(self, f"_do_{op}")(**head)
        except OSError as error:
            answer = {"errno": error.errno or errno.EIO, "text": str(error)}
        except TracepointError as error:
            answer = {"errno": errno.EINVAL, "text": str(error)}
        except MemoryError:
            answer = {"errno": errno.ENOMEM, "text": "no memory for the answer"}
        except Exception as error:  # noqa: BLE001 - the client goes on, and so does the program
            answer = {"errno": errno.EIO, "text": _internal_error(op, error)}
        return answer, answer.pop("data", b"")

    def _handle(self, number: int) -> Handle:
        handle = self._handles.get(number)
        if handle is None:
            raise OSError(errno.EBADF, f"handle {number} is not open")
        return handle

    def _do_hello(self) -> dict[str, Any]:
        tracing = self._tree.tracing
        n_enabled = len(tracing.enabled_events)
        return {"pid": os.getpid(), "n_events": len(tracing.events), "n_enabled": n_enabled}

    def _do_open(self, path: str, flags: int) -> dict[str, Any]:
        if len(self._handles) >= MAX_HANDLES:
            raise OSError(errno.EMFILE, "too many open files")
        handle = self._tree.open(path, flags)
        self._next += 1
        self._handles[self._next] = handle
        return {"handle": self._next}

    def _do_read(self, handle: int, size: int, offset: int) -> dict[str, Any]:
        if size < 0 or offset < 0:
            raise OSError(errno.EINVAL, f"{size} bytes at {offset} cannot be read")
        opened = self._handle(handle)
        end = time.monotonic() + WAIT_S
        opened.is_interrupted = lambda: time.monotonic() > end  # type: ignore[attr-defined]
        try:
            data = opened.read(min(size, MAX_READ), offset)
        except InterruptedError:
            return {"again": True}
        is_end = opened.has_end and len(data) < min(size, MAX_READ)
        return {"data": data, "again": False, "end": is_end}

    def _do_write(self, handle: int, data: bytes) -> dict[str, Any]:
        return {"taken": self._handle(handle).write(data)}

    def _do_close(self, handle: int) -> dict[str, Any]:
        opened = self._handle(handle)
        del self._handles[handle]
        opened.close()
        return {}

    def _do_stat(self, path: str) -> dict[str, Any]:
        node = self._tree.find(path)
        return {"mode": node.mode, "folder": isinstance(node, Folder)}

    def _do_list(self, path: str) -> dict[str, Any]:
        return {"names": self._tree.folder(path).names()}

    def _do_mkdir(self, path: str) -> dict[str, Any]:
        self._tree.mkdir(path)
        return {}

    def _do_rmdir(self, path: str) -> dict[str, Any]:
        self._tree.rmdir(path)
        return {}

    def _do_truncate(self, path: str) -> dict[str, Any]:
        if isinstance(self._tree.find(path), File):
            self._tree.truncate(path)
        return {}

    def _do_kallsyms(self) -> dict[str, Any]:
        return {"text": kallsyms_text()}

    def _do_directory(self) -> dict[str, Any]:
        return {"path": self._tree.tracing.directory}

    def _do_save(self, version: int, compression: str) -> dict[str, Any]:
        from tracepoint.runtime.rings.save import saved_bytes  # noqa: PLC0415 - loads the writer of trace.dat

        data, _ = saved_bytes(self._tree, version, compression)
        return {"data": data}


class Listener:
    """The socket of this process, for the control files of a hierarchy; `close()` ends it."""

    def __init__(self, tree: ControlFiles) -> None:
        folder = socket_folder()
        check_folder(folder, make=True)
        self.path = socket_path(os.getpid(), folder)
        # It gets its name when it listens: who sees it may connect at once.
        new = self.path.with_suffix(".new")
        new.unlink(missing_ok=True)
        self.tree = tree
        self._pid = os.getpid()
        self._places = threading.Semaphore(MAX_CONNECTIONS)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # No other process can interfere: the folder is closed to others.
        self._socket.bind(str(new))
        new.chmod(0o600)
        self._socket.listen(MAX_CONNECTIONS)
        new.replace(self.path)
        self._thread = threading.Thread(target=self._serve, name="tracepoint", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                stream, _ = self._socket.accept()
            except OSError as error:
                if error.errno not in _SHORTAGES:
                    return
                # The program has no descriptor left: it may have one soon, and no caller waits.
                time.sleep(WAIT_S)
                continue
            if not is_owner(stream) or not self._places.acquire(blocking=False):
                stream.close()
                continue
            try:
                threading.Thread(
                    target=self._run, args=(stream,), name="tracepoint-client", daemon=True
                ).start()
            except RuntimeError:
                self._places.release()
                stream.close()

    def _run(self, stream: socket.socket) -> None:
        try:
            _Connection(stream, self.tree).run()
        finally:
            self._places.release()

    def close(self) -> None:
        """Stop listening and remove the socket; in a child, only let go of the parent's."""
        if self._pid == os.getpid():
            self.path.unlink(missing_ok=True)
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def is_owner(stream: socket.socket) -> bool:
    """Return whether the other side runs as this user, or as root: SO_PEERCRED, which cannot be forged."""
    raw = stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    _, uid, _ = _UCRED.unpack(raw)
    return uid in (os.geteuid(), 0)


_listeners: list[Listener] = []


def listen(files: ControlFiles | None = None) -> Path:
    """Let this user's commands (`tracepoint ps`, `tracepoint mount --pid`) control this process.

    Returns the socket's path; a second call changes nothing.  `files` are the control files that are shown,
    those of the process without it.  Raises ProcessError when the
    socket cannot be made, and in an interpreter that is not the main one, which has the process's socket.
    """
    if not is_main_interpreter():
        raise ProcessError("cannot listen: only the main interpreter of a process can be traced from outside")
    if not _listeners:
        shown = files or process_files()
        shown.add_text("metrics", lambda: _metrics(shown))
        try:
            _listeners.append(Listener(shown))
        except OSError as error:
            raise ProcessError(f"cannot listen: {error}") from None
    return _listeners[0].path


def _metrics(files: ControlFiles) -> str:
    from tracepoint.runtime.bridges.prometheus import prometheus_text  # noqa: PLC0415 - seldom asked for

    return prometheus_text(files=files)


def stop_listening() -> None:
    """Close the socket."""
    while _listeners:
        _listeners.pop().close()


def _after_fork_in_child() -> None:
    if _listeners:
        files = _listeners[0].tree
        stop_listening()
        # A child without a socket is better than a child that fails.
        with suppress(TracepointError):
            listen(files)


atexit.register(stop_listening)
os.register_at_fork(after_in_child=_after_fork_in_child)
