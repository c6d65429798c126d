"""What counting finds in pages: numbers of events, losses and damage."""

from __future__ import annotations

from tracepoint.named import NamedTuple

#: For a record that is too short to say which event it is.
NO_ID = -1
N_IDS = 1 << 16


class HeadFacts(NamedTuple):
    """What a page says of losses (LOST_UNKNOWN: some) and damage, at `fault_at` of the buffer."""

    stamp: int
    lost: int
    fault: str
    fault_at: int


class Found(NamedTuple):
    """What a buffer of pages holds: pages that tell of losses or faults, the first and the last time.

    `goes_back` says that a record is earlier than another one before it.
    """

    heads: list[HeadFacts]
    first: int
    last: int
    goes_back: bool
