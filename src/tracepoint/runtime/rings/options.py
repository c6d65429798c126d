"""Where the environment wants the rings of a process: `TRACEPOINT_DIRECTORY`.

    TRACEPOINT_DIRECTORY=/run/shop

keeps the rings of the top instance as files there, also those of all processes that inherit the variable.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

from tracepoint.errors import TracepointError
from tracepoint.runtime.fire.mechanism import IS_PURE
from tracepoint.runtime.rings.format_table import check_directory

DIRECTORY_VARIABLE = "TRACEPOINT_DIRECTORY"


def ring_options() -> dict[str, Any]:
    """Return how the top instance keeps its rings.

    A directory that cannot be used is a warning, and the rings are in memory: a program must run where its
    trace has no place.
    """
    directory = os.environ.get(DIRECTORY_VARIABLE)
    if not directory:
        return {}
    problem = "rings in files need the C core, which is not there" if IS_PURE else ""
    try:
        check_directory(directory)
    except TracepointError as error:
        problem = str(error)
    if problem:
        warnings.warn(f"{DIRECTORY_VARIABLE}: {problem}", RuntimeWarning, stacklevel=2)
        return {}
    return {"directory": directory}
