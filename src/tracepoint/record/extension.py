"""The C modules: loaded where they were built, else replaced by their twins in Python."""

from __future__ import annotations

import importlib
import os
import warnings
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any


#: The modules that `setup.py` builds.
EXTENSIONS = ("_core", "_decode")


def is_main_interpreter() -> bool:
    """Return whether this is the interpreter that the process began with."""
    for name in ("_interpreters", "_xxsubinterpreters"):
        with suppress(ImportError):
            module: Any = importlib.import_module(name)
            return bool(module.get_current() == module.get_main())
    return True


def load_extension(name: str, without: str) -> ModuleType | None:
    """Return `tracepoint.NAME`, or None for its twin, as `without` says: "events run in Python".

    The twin is chosen by `TRACEPOINT_PURE=1` in the environment, else with a RuntimeWarning where the module
    is not built or cannot be loaded, as in an interpreter that is not the main one and that it does not
    support.
    """
    if os.environ.get("TRACEPOINT_PURE", "") not in ("", "0"):
        return None
    full_name = f"tracepoint.{name}"
    try:
        return importlib.import_module(full_name)
    except ImportError as error:
        warnings.warn(_warning(full_name, without, error), RuntimeWarning, stacklevel=3)
        return None


def _warning(full_name: str, without: str, error: ImportError) -> str:
    is_missing = isinstance(error, ModuleNotFoundError) and error.name == full_name
    remedy = "Install a C compiler and Python's headers (Debian: gcc python3-dev), then the package again; "
    reason = "is not built" if is_missing else f"cannot be loaded ({error})"
    if "interpreter" in str(error):
        # What it keeps belongs to the process, so the main interpreter has it.
        reason, remedy = "works in the main interpreter only", ""
    return (
        f"the C module {full_name} {reason}: {without}. {remedy}TRACEPOINT_PURE=1 chooses this form without "
        "a warning"
    )
