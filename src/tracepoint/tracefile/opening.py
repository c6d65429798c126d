"""Opening a recording, whose form is detected by its content."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.errors import DecodeError
from tracepoint.tracefile.container import DamageLog
from tracepoint.tracefile.damage import Damage
from tracepoint.tracefile.filebytes import STDIN, close_bytes, open_bytes
from tracepoint.tracefile.folder import open_folder
from tracepoint.tracefile.head import MAGIC, PERF_MAGICS
from tracepoint.tracefile.pagefiles import PAGE_NAMES, cpu_files, other_recordings
from tracepoint.tracefile.tracedat import TraceFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.tracefile.container import Container
    from tracepoint.tracefile.filebytes import Bytes

_CAN_OPEN = (
    "a trace.dat of version 6 or 7, a perf.data, a text of trace, trace_pipe, trace-cmd report or perf "
    "script, a folder of trace_pipe_raw files or of rings of Python processes, or a CTF 1.8 trace"
)

_OF_PROCESS = "pid:"
_PROCESS = re.compile(r"pid:\d{1,10}", re.ASCII)


def is_process(path: str | os.PathLike[str]) -> bool:
    """Say whether a text names the rings of a process, `pid:1234`, and not a file."""
    return isinstance(path, str) and _PROCESS.fullmatch(path) is not None


def open_container(path: str | os.PathLike[str]) -> Container:
    """Open a file, a folder, a pipe or standard input (`-`); files may be compressed (zstd, gzip, xz, bzip2).

    The text `pid:1234` names the rings of that Python process; of a file with such a name give the folder
    too, `./pid:1234`.  Raises OSError, and DecodeError for an unsupported form or a damaged head.
    """
    log = DamageLog()
    if not os.fspath(path):
        raise DecodeError("an empty name: give a file, a folder, - or pid:N")
    if is_process(path):
        from tracepoint.tracefile.rings import open_process  # noqa: PLC0415 - for processes only

        return open_process(int(str(path).removeprefix(_OF_PROCESS)), log)
    if Path(path).is_dir():
        return _open_in_folder(Path(path), log)
    data = open_bytes(path, log.report)
    try:
        return read_container(data, os.fspath(path), log)
    except BaseException:
        close_bytes(data)
        raise


def open_containers(paths: Sequence[str | os.PathLike[str]]) -> Container:
    """Open several recordings as one, merged by time; one is opened as it is.

    Raises OSError, and DecodeError for one that cannot be read, or does not go with the others.
    """
    files: list[Container] = []
    try:
        files += map(open_container, paths)
        if len(files) == 1:
            return files[0]
        from tracepoint.tracefile.merged import MergedContainer  # noqa: PLC0415 - most open one file

        return MergedContainer(files)
    except BaseException:
        for file in files:
            file.close()
        raise


def _open_in_folder(folder: Path, log: DamageLog) -> Container:
    from tracepoint.tracefile.ctf.opening import ctf_folders, open_ctf  # noqa: PLC0415 - for folders only

    if found := ctf_folders(folder, is_deep=False):
        return open_ctf(folder, found, log)
    # Loads the C core.
    from tracepoint.tracefile.ringfiles import is_ring_folder  # noqa: PLC0415 - for folders only

    if is_ring_folder(folder):
        from tracepoint.tracefile.rings import open_ring_folder  # noqa: PLC0415 - for rings only

        return open_ring_folder(folder, log)
    if cpu_files(folder):
        return open_folder(folder, log)
    if found := ctf_folders(folder, is_deep=True):
        return open_ctf(folder, found, log)
    if others := other_recordings(folder):
        raise DecodeError(f"a folder of recordings: open one of them, such as {others[0]}", str(folder))
    raise DecodeError(
        f"a folder with nothing to open: no {PAGE_NAMES} in it or in one of its sub-folders, no "
        "metadata of CTF 1.8, and no rings of Python processes",
        str(folder),
    )


def read_container(data: Bytes, path: str = "", log: DamageLog | None = None) -> Container:
    """Read a recording from the bytes of one file; `path` is for messages.

    Raises DecodeError for an unsupported form or a damaged head.
    """
    log = DamageLog() if log is None else log
    if not data:
        reason = "nothing came through stdin, which can be read once" if path == STDIN else "an empty file"
        # What was compressed and damaged is empty, too.
        found = next(iter(log.all()), Damage(None, 0, reason))
        raise DecodeError(found.reason, path, found.offset)
    head = bytes(data[:64])
    if head.startswith(MAGIC):
        return TraceFile(data, path, log)
    # A command that reads a trace.dat starts in half the time without these.
    from tracepoint.tracefile.perfdata import open_perfdata  # noqa: PLC0415
    from tracepoint.tracefile.textfile import is_text_file, open_text  # noqa: PLC0415

    if head.startswith(PERF_MAGICS):
        return open_perfdata(data, path, log)
    if is_text_file(data):
        return open_text(data, path, log)
    raise DecodeError(f"begins with {head[:8].hex(' ')}, which is not {_CAN_OPEN}", path, 0)
