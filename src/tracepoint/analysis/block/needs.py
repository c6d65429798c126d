"""The events of requests to block devices."""

from __future__ import annotations

from tracepoint.analysis.needs import Fields, Need

_REQUEST = ("dev", "sector", "nr_sector", "rwbs")
ISSUE, COMPLETE = "block:block_rq_issue", "block:block_rq_complete"
INSERT, REQUEUE, MERGE = "block:block_rq_insert", "block:block_rq_requeue", "block:block_rq_merge"
FRONT, BACK = "block:block_bio_frontmerge", "block:block_bio_backmerge"

NEEDS = (
    Need({ISSUE: Fields((*_REQUEST, "common_pid"))}, "when requests went to the device", is_needed=True),
    Need({COMPLETE: Fields((*_REQUEST, "error"))}, "when requests were done", is_needed=True),
    Need({INSERT: Fields((*_REQUEST, "common_pid"))}, "how long requests were queued"),
    Need({REQUEUE: Fields(_REQUEST)}, "requests that the device gave back"),
    Need({MERGE: Fields(_REQUEST)}, "requests that others took in"),
    Need({BACK: Fields(_REQUEST)}, "data that was added to requests"),
    Need({FRONT: Fields(_REQUEST)}, "data that was added in front of requests"),
)
