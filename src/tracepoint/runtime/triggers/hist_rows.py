"""The rows of a hist trigger."""

from __future__ import annotations

from dataclasses import dataclass, field

Value = int | str | tuple[int, ...]
Key = tuple[Value, ...]


@dataclass(slots=True)
class HistEntry:
    """One row: hits, sums, variables, what `onmax` and `onchange` saw, and what `save()` kept."""

    n_hits: int = 0
    sums: list[int] = field(default_factory=list)
    variables: dict[str, Value] = field(default_factory=dict)
    tracked: dict[str, int] = field(default_factory=dict)
    saved: dict[str, dict[str, Value]] = field(default_factory=dict)


@dataclass(slots=True)
class HistRows:
    """The rows of a hist trigger; triggers with one name share it."""

    entries: dict[Key, HistEntry] = field(default_factory=dict)
    n_hits: int = 0
    n_dropped: int = 0

    def clear(self) -> None:
        """Forget all rows and counts."""
        self.entries.clear()
        self.n_hits = self.n_dropped = 0
