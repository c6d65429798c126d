"""The mechanism: the C core where it was built, else its twin in Python.

`TRACEPOINT_PURE=1` in the environment chooses the twin.  Everything else in this room uses the
names of this module only.
"""

from __future__ import annotations

import importlib
import os
import warnings
from typing import TYPE_CHECKING, Any

from tracepoint.runtime import twin

if TYPE_CHECKING:
    from types import ModuleType

    from tracepoint.filter.program import FilterProgram


def load_core() -> ModuleType:
    """Return `tracepoint._core`, or the twin: where asked for, or with a warning without a core.

    Raises ImportError in an interpreter that is not the main one.
    """
    if os.environ.get("TRACEPOINT_PURE", "") not in ("", "0"):
        return twin
    try:
        return importlib.import_module("tracepoint._core")
    except ImportError as error:
        # A subinterpreter: what the main one has, it must not have again, in either form.
        if "interpreter" in str(error):
            raise
        is_missing = isinstance(error, ModuleNotFoundError) and error.name == "tracepoint._core"
        reason = "is not built" if is_missing else f"cannot be loaded ({error})"
        warnings.warn(
            f"the C core tracepoint._core {reason}: events run in Python, about 0.5 us a call while they "
            "are off and 30 us while they are recorded, and no ring is kept in a file. Install a C compiler "
            "and Python's headers (Debian: gcc python3-dev), then the package again; TRACEPOINT_PURE=1 "
            "chooses this form without a warning",
            RuntimeWarning,
            stacklevel=2,
        )
        return twin


_core: Any = load_core()

IS_PURE: bool = _core is twin
Buffer: Any = _core.Buffer
Tracepoint: Any = _core.Tracepoint
synchronize: Any = _core.synchronize
faults: Any = _core.faults
clear_faults: Any = _core.clear_faults
set_fault_hook: Any = _core.set_fault_hook
# Only the C core has these: None in the twin.
poke: Any = getattr(_core, "poke", None)
Ring: Any = getattr(_core, "Ring", None) if not IS_PURE else None


def make_filter(program: FilterProgram) -> object:
    """Return the filter in the form that the core runs."""
    return program if IS_PURE else _core.Filter(program.pack())
