"""The events of contended locks, since Linux 5.19."""

from __future__ import annotations

from tracepoint.analysis.needs import Fields, Need

BEGIN, END = "lock:contention_begin", "lock:contention_end"

NEEDS = (
    Need(
        {BEGIN: Fields(("common_pid", "lock_addr", "flags"))}, "where a task begins to wait", is_needed=True
    ),
    Need({END: Fields(("common_pid", "lock_addr", "ret"))}, "where it has the lock", is_needed=True),
)
