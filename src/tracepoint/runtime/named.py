"""Events by name, for pickles: `shop:order_placed` is looked up in the process that loads one.

The core's tracepoint objects say that they live here.
"""

from __future__ import annotations

from typing import Any

from tracepoint.runtime.hierarchy import tracing


def __getattr__(name: str) -> Any:
    try:
        return tracing.event(name).tracepoint
    except KeyError:
        raise AttributeError(f"event {name!r} is not declared in this process") from None
