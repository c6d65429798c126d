"""Files as bytes, mapped; what is compressed or cannot be mapped goes through a temporary file.

So memory stays bounded whatever the size: the temporary file has no name, is in the folder that `TMPDIR`
names, and is gone when it is unmapped.
"""

from __future__ import annotations

import lzma
import mmap
import os
import stat
import sys
import tempfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tracepoint.errors import DecodeError, LayoutError
from tracepoint.layout.compressed import new_expander
from tracepoint.tracefile.damage import Damage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Self

    from tracepoint.tracefile.cursor import Bytes

    Report = Callable[[Damage], None]

# What compressed data may grow to: traces shrink to a tenth, texts to a fiftieth; more than this is a bomb.
_MAX_GROWTH = 1000
_ALWAYS_ALLOWED = 1 << 26
# So short that even a bomb gives little at once.
_STEP = 1 << 10
_BLOCK = 1 << 16
_HEAD = 16


def map_file(path: str | os.PathLike[str], report: Report) -> Bytes:
    """Return the bytes of a file, of a pipe or of standard input (`-`), expanded where they are compressed.

    Of compressed data that is damaged, `report` gets the place, and what is before it is returned.  Raises
    OSError, and DecodeError for a device, for data that needs a library, and for data that grows more than
    a thousandfold.
    """
    name = os.fspath(path)
    if name == "-":
        data = _spooled(iter(lambda: sys.stdin.buffer.read(_BLOCK), b""))
    else:
        with Path(path).open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if stat.S_ISREG(mode):
                data = map_whole(file)
            elif stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
                data = _spooled(iter(lambda: file.read(_BLOCK), b""))
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
        return _spooled(_expanded(data, expander, name, report))
    finally:
        unmap(data)


class MappedFile(mmap.mmap):
    """A mapped file that can be read too: a first touch of mapped pages costs as much as decoding them."""

    _number = -1

    def __new__(cls, number: int, size: int) -> Self:
        """Map `size` bytes of an open file, which may be closed afterwards."""
        made = super().__new__(cls, number, size, access=mmap.ACCESS_READ)
        made._number = os.dup(number)
        return made

    def fileno(self) -> int:
        """Return the descriptor of the file; raises ValueError when it is closed."""
        if self._number < 0:
            raise ValueError("the file is closed")
        return self._number

    def read_at(self, start: int, n_bytes: int) -> bytes:
        """Return bytes of the file, fewer where it has become shorter; raises ValueError when closed."""
        number = self.fileno()
        return os.pread(number, n_bytes, start) if n_bytes > 0 else b""

    def close(self) -> None:
        """Unmap and close the file."""
        self._close_number()
        super().close()

    def _close_number(self) -> None:
        number, self._number = self._number, -1
        if number >= 0:
            os.close(number)

    def __del__(self) -> None:
        """Close the file of a mapping that was not closed."""
        self._close_number()


def map_whole(file: IO[bytes]) -> Bytes:
    """Map an open file; an empty one, which cannot be mapped, gives no bytes."""
    size = os.fstat(file.fileno()).st_size
    return MappedFile(file.fileno(), size) if size else b""


def read_at(data: Bytes, start: int, stop: int) -> bytes:
    """Return a part of what `map_file` returned, without mapping its pages."""
    return data.read_at(start, stop - start) if isinstance(data, MappedFile) else bytes(data[start:stop])


def unmap(data: Bytes) -> None:
    """Let go of what `map_file` returned; nothing more can be read from it."""
    if isinstance(data, mmap.mmap):
        # A thread that looks at the frames of others, as samplers do, keeps views a moment longer: then the
        # last of them lets go.
        with suppress(BufferError):
            data.close()


def _spooled(blocks: Iterable[bytes]) -> Bytes:
    """Write blocks to a temporary file without a name and map it."""
    with tempfile.TemporaryFile(prefix="tracepoint-") as file:
        for block in blocks:
            file.write(block)
        file.flush()
        return map_whole(file)


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
            except (lzma.LZMAError, zlib.error, ValueError, EOFError, OSError) as error:
                report(Damage(None, at, f"the compressed data is damaged: {error}"))
                return
            total += len(made)
            if total > limit:
                raise DecodeError("compressed data that grows more than a thousandfold", path, at)
            yield made
            step = expander.unused_data if expander.eof else b""
    if not expander.eof:
        report(Damage(None, len(data), "the compressed data is cut off"))
