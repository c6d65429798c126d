"""What each worker does: one recording to a small result."""

from __future__ import annotations

from tracepoint.analysis.summarise import summarise_by
from tracepoint.decode.trace import open_trace
from tracepoint.errors import TracepointError
from tracepoint.fleet.inputs import host_in_path, local_file
from tracepoint.fleet.result import FleetResult, Unread
from tracepoint.named import NamedTuple


class Job(NamedTuple):
    """What is asked of each recording."""

    analysis: str
    by: tuple[str, ...]


def run_job(job: Job, path: str, threads: int = 1) -> FleetResult:
    """Return the summaries of one recording; one that cannot be read is among `unread`, with the reason.

    A host that the path names, `host=web1`, is the host; else the one that the recording names.
    """
    try:
        with local_file(path) as name, open_trace(name, threads=threads) as trace:
            groups = summarise_by(trace, job.analysis, job.by, host_in_path(path))
    except (TracepointError, OSError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return FleetResult(job.analysis, job.by, unread=[Unread(path, reason)])
    return FleetResult(job.analysis, job.by, groups, 1)
