"""The C modules: loaded where they were built, else replaced by their twins in Python."""

from __future__ import annotations

import importlib
import os
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType


#: The modules that `setup.py` builds.
EXTENSIONS = ("_core", "_decode")


def load_extension(name: str, without: str) -> ModuleType | None:
    """Return `tracepoint.NAME`, or None for its twin, as `without` says: "events run in Python".

    The twin is chosen by `TRACEPOINT_PURE=1` in the environment, else with a RuntimeWarning where the module
    is not built or cannot be loaded.  Raises ImportError for a module that another interpreter of this
    process has.
    """
    if os.environ.get("TRACEPOINT_PURE", "") not in ("", "0"):
        return None
    full_name = f"tracepoint.{name}"
    try:
        return importlib.import_module(full_name)
    except ImportError as error:
        # A subinterpreter: what the main one has, it must not have again, in either form.
        if "interpreter" in str(error):
            raise
        is_missing = isinstance(error, ModuleNotFoundError) and error.name == full_name
        reason = "is not built" if is_missing else f"cannot be loaded ({error})"
        warnings.warn(
            f"the C module {full_name} {reason}: {without}. Install a C compiler and Python's headers "
            "(Debian: gcc python3-dev), then the package again; TRACEPOINT_PURE=1 chooses this form without "
            "a warning",
            RuntimeWarning,
            stacklevel=3,
        )
        return None
