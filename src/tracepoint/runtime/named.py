"""Events by name, for pickles: `shop:order_placed` is looked up in the process that loads one.

The core's tracepoint objects say that they live here.  Whoever makes one loads this module too, for
there are picklers that look only at modules that are loaded.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    try:
        return _find(name)
    except KeyError:
        raise AttributeError(f"event {name!r} is not declared in this process") from None


def _find(name: str) -> Any:
    """Return an event, or the tracepoint without a record of that name; raises KeyError."""
    if ":" in name:
        return import_module("tracepoint.runtime.hierarchy").tracing.event(name).tracepoint
    load: Any = sys.modules["tracepoint.runtime.load"]
    return load.hook_named(name)
