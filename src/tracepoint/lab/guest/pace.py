"""How slow this machine is now: time limits are for an idle, usual machine, and grow by this factor."""

from __future__ import annotations

import os
import time

_TURNS = 400_000
# The time of this many turns of an empty loop on the machine that the limits are for.
_USUAL_SECONDS = 0.02


def slowness() -> float:
    """Return the factor for time limits here: 1.0, or more on a slow or busy machine.

    A fixed loop is timed, which takes some hundredths of a second and shows the speed of the processor
    and, less surely, how busy it is; so does the load.
    """
    begin = time.perf_counter()
    for _ in range(_TURNS):
        pass
    return max((time.perf_counter() - begin) / _USUAL_SECONDS, crowding())


def crowding() -> float:
    """Return how many want each processor that we may use, from the load of the last minute; at least 1.0."""
    return max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0)))
