"""One event in one instance: is it recorded, what holds it registered, and what passes its filters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.filter.parse import Filter
from tracepoint.filter.program import FilterProgram, compile_filter
from tracepoint.filter.tree import And

if TYPE_CHECKING:
    from tracepoint.filter.tree import Expression
    from tracepoint.layout.format import EventFormat

NONE = "none"


@dataclass(slots=True)
class EventState:
    """One event in one instance.

    `was_enabled` says that it is or once was recorded; `filter_text` is what the `filter` file
    shows, `parsed` its meaning; `gate` is a filter that no file shows (`set_event_pid`,
    `tracing_cpumask`); `n_soft` counts the triggers that need the event (soft mode); `program` is
    what the core runs.
    """

    is_enabled: bool = False
    was_enabled: bool = False
    filter_text: str = NONE
    parsed: Filter | None = None
    n_soft: int = 0

    @property
    def is_registered(self) -> bool:
        """Whether the event counts as enabled for its system, as the kernel's ENABLED flag does."""
        return self.is_enabled or self.n_soft > 0

    @property
    def state(self) -> str:
        """What the `enable` file shows: event_enable_read() in kernel/trace/trace_events.c."""
        return ("1" if self.is_enabled else "0") + ("*" if self.n_soft else "")

    def compile(self, layout: EventFormat, gate: Expression | None) -> FilterProgram | None:
        """Return the program of gate and filter together, or None when everything passes."""
        own = self.parsed.expression if self.parsed is not None else None
        terms = tuple(term for term in (gate, own) if term is not None)
        if not terms:
            return None
        return compile_filter(Filter("", And(terms), layout))
