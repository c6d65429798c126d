"""Recording: the pages of a trace array's ring buffers, into a trace.dat.

One reader per CPU moves whole pages to a file in a temporary folder next to the target, beside the texts
that describe them.  The trace.dat is written only when all pages are there, whose space is given back on the
way where the disk is nearly full, and gets its name only when it is complete.
"""

from __future__ import annotations

import os

from tracepoint.control.readers import Readers
from tracepoint.control.recording import check_target
from tracepoint.errors import TracepointError
from tracepoint.tracefile.compression import compressor_named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.control.array import ArrayFiles
    from tracepoint.control.limits import RecordLimits
    from tracepoint.control.status import RecordStatus
    from tracepoint.tracefile.recording import Recording


def record(
    array: ArrayFiles,
    path: str | os.PathLike[str],
    limits: RecordLimits,
    *,
    starts: bool = False,
    replace: bool = False,
    compression: str = "none",
    watch: Callable[[RecordStatus], None] | None = None,
) -> Recording:
    """Save what an array records as trace.dat, for some time, `until` an event is set, or `during` a call.

    What the ring buffer holds already comes first.  At the end the array stops recording for the
    moment that reading the rest takes.  With `starts` the array, which should be off, is turned on when its
    readers wait, and off at the end, so that nothing is lost before the first is there.  `max_bytes` ends it
    earlier: so large may the file be without compression (`none`, `zlib` or `zstd`); `while_on` ends it when
    a trigger turns the array off.  With `newest_ns` only the last pages are saved: those that end in that
    time before the last one begins.  `watch` gets a status every second, in a thread of its own.
    Where a process is recorded and ends before, the recording ends too (`is_cut`), and where the disk is
    full (`problem` says so): what was recorded until then is saved.  A file that is there is kept unless
    `replace`.  Raises TracefsError where no event is enabled or the kernel refuses, TracepointError for a
    wrong argument and for a file that cannot be written, of which nothing is left then.
    """
    limits.check()
    compressor_named(compression)
    target = os.fspath(path)
    try:
        check_target(target, replace=replace)
        with Readers(array, target, starts=starts, compression=compression) as readers:
            readers.collect(limits, watch)
            part = readers.newest_part
            if limits.newest_ns is not None:
                part.leave_out_old(limits.newest_ns)
            return readers.save(part, target, lambda path: check_target(path, replace=replace))
    except OSError as error:
        raise TracepointError(f"{target}: {error.strerror or error}; nothing was saved") from error
