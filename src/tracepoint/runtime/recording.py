"""One event in one instance: is it recorded, what holds it registered, and what passes its filters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tracepoint.filter.parse import Filter, parse_filter
from tracepoint.filter.profile import KERNEL_6_12
from tracepoint.filter.program import FilterProgram, compile_filter
from tracepoint.filter.tree import And

if TYPE_CHECKING:
    from tracepoint.layout.format import EventFormat

NONE = "none"


@dataclass(slots=True)
class Recording:
    """One event in one instance.

    `was_enabled` tells that it is or once was recorded; `filter_text` is what the `filter` file
    shows, `parsed` its meaning; `gate` is a filter that no file shows (`set_event_pid`,
    `tracing_cpumask`); `n_soft` counts the triggers that need the event (soft mode); `program` is
    what the core runs.
    """

    is_enabled: bool = False
    was_enabled: bool = False
    filter_text: str = NONE
    parsed: Filter | None = None
    gate: str = ""
    n_soft: int = 0
    program: object = None

    @property
    def is_registered(self) -> bool:
        """Whether the event counts as enabled for its system, as the kernel's ENABLED flag does."""
        return self.is_enabled or self.n_soft > 0

    @property
    def state(self) -> str:
        """What the `enable` file shows: event_enable_read() in kernel/trace/trace_events.c."""
        return ("1" if self.is_enabled else "0") + ("*" if self.n_soft else "")

    def compile(self, layout: EventFormat) -> FilterProgram | None:
        """Return the program of filter and gate together, or None when everything passes."""
        if not self.gate:
            return compile_filter(self.parsed) if self.parsed is not None else None
        gate = parse_filter(self.gate, layout, KERNEL_6_12)
        if self.parsed is None:
            return compile_filter(gate)
        return compile_filter(replace(gate, expression=And((gate.expression, self.parsed.expression))))
