"""What is kept of a recording when many are put together: figures that add up, with bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from tracepoint.analysis.distribution import Bounds
from tracepoint.analysis.histogram import Histogram
from tracepoint.analysis.top import TopK
from tracepoint.errors import TracepointError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Self

Part = TypeVar("Part", Histogram, TopK)
#: Of the JSON form; a reader of one refuses another.
SCHEMA = "tracepoint.summary/1"
#: Values of what recordings are told apart by: a host, a task's name.
Key = tuple[str, ...]


@dataclass
class TraceSummary:
    """Figures of recordings that add up, whatever the order: counts, histograms and top lists, by name.

    `kind` is the analysis, units are in the names.  `hidden` is how much more a count may be, as events were
    lost: nothing where it has no entry, None where that is not known.

    >>> a, b = (TraceSummary("events", {"records": 5}, {"records": n}) for n in (0, 2))
    >>> a.merge(b)["records"]
    Bounds(low=10, high=12)
    """

    kind: str
    counts: dict[str, int] = field(default_factory=dict)
    hidden: dict[str, int | None] = field(default_factory=dict)
    histograms: dict[str, Histogram] = field(default_factory=dict)
    tops: dict[str, TopK] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<TraceSummary {self.kind} of {self.counts.get('traces', 0):,} recordings>"

    def __getitem__(self, name: str) -> Bounds:
        """Return a count with its bounds; raises KeyError."""
        low, more = self.counts[name], self.hidden.get(name, 0)
        return Bounds(low, None if more is None else low + more)

    def merge(self, other: TraceSummary) -> Self:
        """Return the figures of both; raises ValueError for another kind."""
        if other.kind != self.kind:
            raise ValueError(f"a summary of {self.kind!r} and one of {other.kind!r} do not add up")
        names = dict.fromkeys([*self.counts, *other.counts])
        more = dict.fromkeys([*self.hidden, *other.hidden])
        return type(self)(
            self.kind,
            {name: self.counts.get(name, 0) + other.counts.get(name, 0) for name in names},
            {name: _added(self.hidden.get(name, 0), other.hidden.get(name, 0)) for name in more},
            _merged(self.histograms, other.histograms),
            _merged(self.tops, other.tops),
        )

    def facts(self) -> dict[str, Any]:
        """Return the summary as values for JSON; times in ns."""
        return {
            "schema": SCHEMA,
            "kind": self.kind,
            "counts": self.counts,
            "hidden": self.hidden,
            "histograms": {name: made.facts() for name, made in self.histograms.items()},
            "tops": {name: made.facts() for name, made in self.tops.items()},
        }

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> Self:
        """Return the summary that `facts` gave; raises TracepointError for what it cannot have given."""
        try:
            if facts["schema"] != SCHEMA:
                raise TracepointError(f"a summary in the form {facts['schema']!r}, not {SCHEMA}")
            return cls(
                str(facts["kind"]),
                {name: int(n) for name, n in facts["counts"].items()},
                {name: None if n is None else int(n) for name, n in facts["hidden"].items()},
                {name: Histogram.from_facts(made) for name, made in facts["histograms"].items()},
                {name: TopK.from_facts(made) for name, made in facts["tops"].items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise TracepointError(f"not a summary: {error!r}") from None


def _added(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _merged(a: Mapping[str, Part], b: Mapping[str, Part]) -> dict[str, Part]:
    return {
        name: a[name].merge(b[name]) if name in a and name in b else a[name] if name in a else b[name]
        for name in dict.fromkeys([*a, *b])
    }


def merge_groups(parts: Iterable[Mapping[Key, TraceSummary]]) -> dict[Key, TraceSummary]:
    """Return the summaries of several recordings by their keys, those of one key put together in order."""
    found: dict[Key, TraceSummary] = {}
    for part in parts:
        for key, summary in part.items():
            found[key] = found[key].merge(summary) if key in found else summary
    return found
