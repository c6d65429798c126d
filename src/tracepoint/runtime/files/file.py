"""Files of a control hierarchy, free of any file system: `File`, `Folder`, `Handle`, and walking a path.

Every failure is an OSError with the errno that tracefs answers.
"""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

READ_WRITE = 0o640
READ_ONLY = 0o440
WRITE_ONLY = 0o220
FOLDER = 0o750
MAX_WRITE = 4095
SPACE = b" \t\n\v\f\r"
_DECIMAL = re.compile(rb"\+?([0-9]+)\n?")
U64 = 1 << 64


def failure(number: int, path: str = "") -> OSError:
    """Return the exception of an errno."""
    return OSError(number, os.strerror(number), path or None)


def read_decimal(data: bytes) -> int:
    r"""Read what kstrtoul(base 10) reads; raises OSError (EINVAL, ERANGE).

    >>> read_decimal(b"+08\n")
    8
    """
    match = _DECIMAL.fullmatch(data.split(b"\0", 1)[0])
    if match is None:
        raise failure(errno.EINVAL)
    if (value := int(match[1])) >= U64:
        raise failure(errno.ERANGE)
    return value


class Handle:
    """One open file: `read` and `write` as the system calls, with offsets.

    One that `has_end` returns less than was asked for only at its end.
    """

    has_end = False

    def read(self, size: int, offset: int) -> bytes:
        """Return up to `size` bytes from `offset` on; here there are none to read."""
        raise OSError(errno.EINVAL, f"{size} bytes at {offset} cannot be read")

    def write(self, data: bytes) -> int:
        """Take bytes and return how many were taken; here none can be."""
        raise OSError(errno.EINVAL, f"{len(data)} bytes cannot be written")

    def close(self) -> None:
        """Let go of what is held."""


class TextHandle(Handle):
    """An open file whose content is made when it is read from its begin."""

    has_end = True

    def __init__(self, file: File, on_close: Callable[[], None] | None = None) -> None:
        self._file = file
        self._content: bytes | None = None
        self._on_close = on_close

    def read(self, size: int, offset: int) -> bytes:
        """Return a part of the content."""
        if self._file.read is None:
            raise failure(errno.EINVAL)
        if offset == 0 or self._content is None:
            made = self._file.read()
            self._content = made if isinstance(made, bytes) else made.encode(errors="surrogateescape")
        return self._content[offset : offset + size]

    def write(self, data: bytes) -> int:
        """Hand the bytes to the file; it may take fewer."""
        if self._file.write is None:
            raise failure(errno.EINVAL)
        taken = self._file.write(data)
        return len(data) if taken is None else taken

    def close(self) -> None:
        """Tell the file."""
        if self._on_close is not None:
            self._on_close()


class StreamHandle(TextHandle):
    """An open file whose content is made piece by piece while it is read on.

    Reading from 0 starts again, and so does going back.
    """

    def __init__(
        self, file: File, pieces: Callable[[], Iterator[str]], on_close: Callable[[], None] | None = None
    ) -> None:
        super().__init__(file, on_close)
        self._pieces = pieces
        self._rest: Iterator[str] = iter(())
        self._start = 0
        self._held = bytearray()

    def read(self, size: int, offset: int) -> bytes:
        """Return a part of the content; what lies before it is forgotten."""
        if offset == 0 or offset < self._start:
            self._rest, self._start, self._held = self._pieces(), 0, bytearray()
        while self._start + len(self._held) < offset + size:
            piece = next(self._rest, None)
            if piece is None:
                break
            self._held += piece.encode(errors="surrogateescape")
            self._forget(offset)
        self._forget(offset)
        return bytes(self._held[:size]) if offset == self._start else b""

    def _forget(self, offset: int) -> None:
        n_gone = min(offset - self._start, len(self._held))
        del self._held[:n_gone]
        self._start += n_gone


@dataclass(frozen=True, slots=True)
class File:
    """A control file.

    `read` makes the content, `write` takes bytes and returns how many (None: all), `truncate` is
    what opening with O_TRUNC does, `open` replaces the plain handle.
    """

    read: Callable[[], str | bytes] | None = None
    write: Callable[[bytes], int | None] | None = None
    truncate: Callable[[], None] | None = None
    open: Callable[[int], Handle] | None = None

    @property
    def mode(self) -> int:
        """Its permission bits, by what it can do."""
        can_read = self.read is not None or (self.open is not None and self.write is None)
        if self.write is None:
            return READ_ONLY
        return READ_WRITE if can_read else WRITE_ONLY


@dataclass(frozen=True, slots=True)
class Folder:
    """A directory: `names` lists, `child` finds; `mkdir` and `rmdir` where they are allowed."""

    names: Callable[[], list[str]]
    child: Callable[[str], Node | None]
    mkdir: Callable[[str], None] | None = None
    rmdir: Callable[[str], None] | None = None
    mode: int = FOLDER


Node = File | Folder


def fixed_folder(children: Mapping[str, Node], mode: int = FOLDER) -> Folder:
    """Return a folder whose entries do not change."""
    return Folder(lambda: list(children), children.get, mode=mode)


def made_folder(makers: Mapping[str, Callable[[], Node]]) -> Folder:
    """Return a folder whose entries are made when they are asked for."""

    def child(name: str) -> Node | None:
        maker = makers.get(name)
        return None if maker is None else maker()

    return Folder(lambda: list(makers), child)


def number_file(get: Callable[[], int | str], set_to: Callable[[int], None]) -> File:
    """Return a file that shows a number and takes a decimal one."""

    def write(data: bytes) -> None:
        set_to(read_decimal(data))

    return File(lambda: f"{get()}\n", write)


def text_file(get: Callable[[], str]) -> File:
    """Return a file that can only be read."""
    return File(get)


def first_word(data: bytes) -> tuple[bytes, int]:
    """Return the first word of a write and how many bytes it took: trace_get_user() in kernel/trace/trace.c.

    >>> first_word(b"  sched:sched_switch irq")
    (b'sched:sched_switch', 21)
    """
    start = len(data) - len(data.lstrip(SPACE))
    end = next((i for i in range(start, len(data)) if data[i] in SPACE), len(data))
    if end - start > 127:
        raise failure(errno.EINVAL)
    return data[start:end], min(end + 1, len(data))


class FileTree:
    """Paths over a root folder: what a mount and a socket serve."""

    def __init__(self, root: Folder) -> None:
        self.root = root

    def find(self, path: str) -> Node:
        """Return the node at a path; raises OSError (ENOENT, ENOTDIR)."""
        node: Node = self.root
        for name in (part for part in path.split("/") if part):
            if not isinstance(node, Folder):
                raise failure(errno.ENOTDIR, path)
            found = node.child(name)
            if found is None:
                raise failure(errno.ENOENT, path)
            node = found
        return node

    def folder(self, path: str) -> Folder:
        """Return the folder at a path; raises OSError."""
        node = self.find(path)
        if not isinstance(node, Folder):
            raise failure(errno.ENOTDIR, path)
        return node

    def open(self, path: str, flags: int = os.O_RDONLY) -> Handle:
        """Return a handle to a file; O_CREAT without a file is EACCES, as tracefs answers."""
        try:
            node = self.find(path)
        except FileNotFoundError:
            if flags & os.O_CREAT:
                raise failure(errno.EACCES, path) from None
            raise
        wants_write = flags & os.O_ACCMODE != os.O_RDONLY
        if isinstance(node, Folder):
            raise failure(errno.EISDIR, path)
        if wants_write and node.write is None:
            raise failure(errno.EACCES, path)
        if flags & os.O_TRUNC and wants_write and node.truncate is not None:
            node.truncate()
        return node.open(flags) if node.open is not None else TextHandle(node)

    def truncate(self, path: str) -> None:
        """Do what O_TRUNC does, where it comes as a call of its own."""
        node = self.find(path)
        if isinstance(node, File) and node.truncate is not None:
            node.truncate()

    def mkdir(self, path: str) -> None:
        """Make a folder where that is allowed, else raise EPERM."""
        parent, _, name = path.rstrip("/").rpartition("/")
        folder = self.folder(parent)
        if folder.mkdir is None:
            raise failure(errno.EEXIST if folder.child(name) is not None else errno.EPERM, path)
        folder.mkdir(name)

    def rmdir(self, path: str) -> None:
        """Remove a folder where that is allowed, else raise EPERM."""
        parent, _, name = path.rstrip("/").rpartition("/")
        folder = self.folder(parent)
        if folder.rmdir is None:
            raise failure(errno.EPERM if folder.child(name) is not None else errno.ENOENT, path)
        folder.rmdir(name)

    def read_text(self, path: str) -> str:
        """Return the whole content of a file that ends."""
        handle = self.open(path)
        try:
            parts: list[bytes] = []
            offset = 0
            while part := handle.read(1 << 16, offset):
                parts.append(part)
                offset += len(part)
            return b"".join(parts).decode(errors="surrogateescape")
        finally:
            handle.close()

    def write_text(self, path: str, text: str | bytes, *, append: bool = False) -> None:
        """Write as `echo -n TEXT > path` does (`>>` with `append`): again what was not taken."""
        data = text.encode(errors="surrogateescape") if isinstance(text, str) else text
        handle = self.open(path, os.O_WRONLY | (os.O_APPEND if append else os.O_TRUNC))
        try:
            write_all(handle, data)
        finally:
            handle.close()


def write_all(handle: Handle, data: bytes) -> None:
    """Write until everything is taken; an empty text is one write, as a probe of tracefs makes it."""
    taken = handle.write(data)
    while taken < len(data):
        taken += handle.write(data[taken:])
