"""The mechanism: the C core where it was built, else its twin in Python.

`TRACEPOINT_PURE=1` in the environment chooses the twin.  Everything else in this room uses the
names of this module only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracepoint.record.extension import load_extension
from tracepoint.runtime.fire import twin

if TYPE_CHECKING:
    from tracepoint.filter.program import FilterProgram


_core: Any = (
    load_extension(
        "_core",
        "events run in Python, about 0.5 us a call while they are off and 30 us while they are recorded, "
        "and no ring is kept in a file",
    )
    or twin
)

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
