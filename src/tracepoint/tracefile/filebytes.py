"""Files as bytes; what is compressed, and what comes through a pipe, goes through a temporary file.

So memory stays bounded whatever the size: the temporary file has no name, is in the folder that `TMPDIR`
names, and is gone when it is closed.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tracepoint.errors import DecodeError, LayoutError, TracepointError
from tracepoint.layout.compressed import is_damage, new_expander
from tracepoint.tracefile.damage import Damage
from tracepoint.wording import counted, size_text, tail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Report = Callable[[Damage], None]

# What compressed data may grow to: traces shrink to a tenth, texts to a fiftieth; more than this is a bomb.
_MAX_GROWTH = 1000
_ALWAYS_ALLOWED = 1 << 26
# So short that even a bomb gives little at once.
_STEP = 1 << 10
_BLOCK = 1 << 16
_HEAD = 16
# How often the room for a temporary file is looked at, and what is left to others.
_CHECKED_BYTES = 1 << 24
_LEAST_FREE = 1 << 27
#: The name of standard input.
STDIN = "-"
# Heads and tables are read a number at a time, texts behind them one after the other.
_HELD = 1 << 14


def open_bytes(path: str | os.PathLike[str], report: Report) -> bytes | FileBytes:
    """Return the bytes of a file, of a pipe or of standard input (`-`), expanded where they are compressed.

    Of compressed data that is damaged, `report` gets the place, and what is before it is returned.  Raises
    OSError, and DecodeError for a device, for data that needs a library, for data that grows more than
    a thousandfold, and for what does not fit into the temporary folder.
    """
    name = os.fspath(path)
    if name == STDIN:
        data = _spooled(_blocks_of_stdin(), name)
    else:
        with Path(path).open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if stat.S_ISREG(mode):
                data = file_bytes(file, name)
            elif stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
                data = _spooled(_blocks_of(file), name)
            else:
                # /dev/zero would fill the disk.
                raise DecodeError("not a file, a folder or a pipe", name)
    try:
        expander = new_expander(bytes(data[:_HEAD]))
    except LayoutError as error:
        raise DecodeError(str(error), name, 0) from None
    if expander is None:
        return data
    try:
        return _spooled(_expanded(data, expander, name, report), name)
    finally:
        close_bytes(data)


class _Descriptor:
    """A descriptor of an open file, closed when the last who reads from it lets go of it."""

    def __init__(self, number: int) -> None:
        self.number = os.dup(number)

    def __del__(self) -> None:
        os.close(self.number)


class FileBytes:
    """The bytes of an open file, read where they are asked for.

    They are not mapped: a mapped file that becomes shorter ends the process, and the first touch of its pages
    costs as much as decoding them.  A slice that the file no longer has raises DecodeError.  `path` is for
    messages.
    """

    def __init__(self, number: int, size: int, path: str = "") -> None:
        self._descriptor: _Descriptor | None = _Descriptor(number)
        self._size = size
        self._path = path
        # Where it begins, and what was read last.
        self._held = (0, b"")

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"<FileBytes of {tail(self._path)}, {counted(self._size, 'byte')}>"

    @property
    def descriptor(self) -> _Descriptor:
        """The descriptor, open as long as this is kept; raises TracepointError when the file is closed."""
        found = self._descriptor
        if found is None:
            raise TracepointError(f"{self._path or 'a file'}: the recording is closed")
        return found

    def read_at(self, start: int, n_bytes: int) -> bytes:
        """Return bytes of the file, fewer where it has become shorter; raises TracepointError when closed."""
        descriptor = self.descriptor
        return os.pread(descriptor.number, n_bytes, start) if n_bytes > 0 else b""

    def __getitem__(self, place: slice) -> bytes:
        start, stop, _ = place.indices(self._size)
        n_bytes = max(stop - start, 0)
        base, held = self._held
        if base <= start and stop <= base + len(held):
            return held[start - base : stop - base]
        block = self.read_at(start, max(n_bytes, min(_HELD, self._size - start)))
        if len(block) < n_bytes:
            raise self.shorter(start + len(block))
        if n_bytes < _HELD:
            self._held = (start, block)
        return block[:n_bytes]

    def __bytes__(self) -> bytes:
        return self[:]

    def find(self, wanted: bytes, start: int, stop: int | None = None) -> int:
        """Return where some bytes begin first in a part of the file, -1 when they do not."""
        stop = self._size if stop is None else stop
        for at in range(start, stop, _BLOCK):
            found = self[at : min(at + _BLOCK + len(wanted) - 1, stop)].find(wanted)
            if found >= 0:
                return at + found
        return -1

    def shorter(self, at: int) -> DecodeError:
        """Make the error that says that the file ends at a place where it did not when it was opened."""
        return DecodeError(shorter_by(self._size - at), self._path, at)

    def close(self) -> None:
        """Close the file, once those that read from it at this moment have done so."""
        self._descriptor, self._held = None, (0, b"")


Bytes = bytes | bytearray | memoryview | FileBytes


def shorter_by(n_bytes: int) -> str:
    """Say that a file ends before the bytes that it had when it was opened."""
    return f"the file became {n_bytes} bytes shorter while it was read"


def file_bytes(file: IO[bytes], path: str = "") -> bytes | FileBytes:
    """Return the bytes of an open file, which may be closed afterwards."""
    size = os.fstat(file.fileno()).st_size
    return FileBytes(file.fileno(), size, path) if size else b""


def read_at(data: Bytes, start: int, stop: int) -> bytes:
    """Return a part of what `open_bytes` returned, shorter where the file has become shorter."""
    return data.read_at(start, stop - start) if isinstance(data, FileBytes) else bytes(data[start:stop])


def read_whole(data: Bytes, start: int, stop: int) -> bytes:
    """Return a part of what `open_bytes` returned; raises DecodeError where the file has become shorter."""
    if not isinstance(data, FileBytes):
        return bytes(data[start:stop])
    # As read_at(), but without its calls: there are many thousands of chunks.
    descriptor = data.descriptor
    found = os.pread(descriptor.number, stop - start, start)
    if len(found) < stop - start:
        raise data.shorter(start + len(found))
    return found


def close_bytes(data: Bytes) -> None:
    """Let go of what `open_bytes` returned; nothing more can be read from it."""
    if isinstance(data, FileBytes):
        data.close()


def _blocks_of(file: IO[bytes]) -> Iterator[bytes]:
    return iter(lambda: file.read(_BLOCK), b"")


def _blocks_of_stdin() -> Iterator[bytes]:
    if sys.stdin is None:
        raise OSError(errno.EBADF, "it is closed", "stdin")
    try:
        yield from _blocks_of(sys.stdin.buffer)
    except OSError as error:
        raise OSError(error.errno, error.strerror, "stdin") from None


def _spooled(blocks: Iterable[bytes], name: str) -> bytes | FileBytes:
    """Write blocks to a temporary file without a name and return its bytes; `name` is for messages."""
    with tempfile.TemporaryFile(prefix="tracepoint-") as file:
        n_bytes = n_checked = 0
        try:
            for block in blocks:
                if n_bytes >= n_checked:
                    _check_room(file)
                    n_checked = n_bytes + _CHECKED_BYTES
                file.write(block)
                n_bytes += len(block)
            file.flush()
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            reason = (
                f"no room for it in {tempfile.gettempdir()}, after {size_text(n_bytes)}: TMPDIR names another"
                " folder, and `read --follow` prints records without keeping them"
            )
            raise DecodeError(reason, name) from None
        return file_bytes(file)


def _check_room(file: IO[bytes]) -> None:
    """Raise OSError when a file system is nearly full: other programs need it too."""
    status = os.fstatvfs(file.fileno())
    if status.f_bavail * status.f_frsize < min(_LEAST_FREE, status.f_blocks * status.f_frsize // 16):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _expanded(data: Bytes, expander: Any, path: str, report: Report) -> Iterator[bytes]:
    """Yield what compressed data expands to; frames may follow each other."""
    limit, total, ended_at = len(data) * _MAX_GROWTH + _ALWAYS_ALLOWED, 0, 0
    for at in range(0, len(data), _STEP):
        step = bytes(data[at : at + _STEP])
        while step:
            if expander.eof:
                ended_at = at + _STEP - len(step)
                expander = new_expander(step.ljust(_HEAD, b"\0"))
                if expander is None:
                    # gzip's own tool passes over zeros at the end of a tape block.
                    if step.strip(b"\0"):
                        report(Damage(None, ended_at, "what follows the compressed data was left out"))
                    return
            try:
                made = expander.decompress(step)
            except Exception as error:
                if not is_damage(error):
                    raise
                report(Damage(None, at, f"the compressed data is damaged: {error}"))
                return
            total += len(made)
            if total > limit:
                raise DecodeError("compressed data that grows more than a thousandfold", path, at)
            yield made
            step = expander.unused_data if expander.eof else b""
    if not expander.eof:
        report(Damage(None, len(data), "the compressed data is cut off"))
