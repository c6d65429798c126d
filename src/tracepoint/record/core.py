"""The C core of the runtime, for all that have a use for it; None where its twin runs."""

from __future__ import annotations

from tracepoint.record.extension import load_extension

CORE = load_extension(
    "_core",
    "events run in Python, about 0.5 us a call while they are off and 30 us while they are recorded, "
    "and no ring is kept in a file",
)
