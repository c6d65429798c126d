"""What a run over recordings returns: summaries by host, task or event, and what could not be read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from tracepoint.analysis.summary import TraceSummary, merge_groups
from tracepoint.errors import TracepointError
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.analysis.summary import Key

#: Of the JSON form.
SCHEMA = "tracepoint.fleet/1"
#: How many results are put together at once.  Top lists that are not exact depend on it: so each engine
#: takes the same blocks of recordings, in the order in which they were named.
BLOCK = 16


class Unread(NamedTuple):
    """A recording that could not be read, or that lacks what the analysis needs."""

    path: str
    reason: str


@dataclass
class FleetResult:
    """The summaries of recordings by the values of `by`, such as a host, and what could not be read.

    `groups` has one summary for each; without `by` its key is `()`.  `n_read` recordings were read.
    """

    analysis: str
    by: tuple[str, ...] = ()
    groups: dict[Key, TraceSummary] = field(default_factory=dict)
    n_read: int = 0
    unread: list[Unread] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<FleetResult {self.analysis} of {self.n_read:,} recordings, {len(self.unread):,} unread>"

    def __getitem__(self, key: str | Key) -> TraceSummary:
        """Return the summary of one group: `result["web1"]`, `result["web1", "nginx"]`; raises KeyError."""
        return self.groups[(key,) if isinstance(key, str) else key]

    @property
    def summary(self) -> TraceSummary:
        """The summary of all recordings, of a run without `by`; raises KeyError for another one."""
        if self.by:
            raise KeyError(f"there is a summary for each {', '.join(self.by)}: groups has them")
        return self.groups.get((), TraceSummary(self.analysis))

    def facts(self) -> dict[str, Any]:
        """Return the result as values for JSON; times in ns."""
        return {
            "schema": SCHEMA,
            "analysis": self.analysis,
            "by": list(self.by),
            "n_read": self.n_read,
            "unread": [unread._asdict() for unread in self.unread],
            "groups": [{"key": list(key), **self.groups[key].facts()} for key in sorted(self.groups)],
        }

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> Self:
        """Return the result that `facts` gave; raises TracepointError for what it cannot have given."""
        try:
            if facts["schema"] != SCHEMA:
                raise TracepointError(f"a result in the form {facts['schema']!r}, not {SCHEMA}")
            by = tuple(map(str, facts["by"]))
            groups = {tuple(map(str, one["key"])): TraceSummary.from_facts(one) for one in facts["groups"]}
            unread = [Unread(str(one["path"]), str(one["reason"])) for one in facts["unread"]]
            return cls(str(facts["analysis"]), by, groups, int(facts["n_read"]), unread)
        except (KeyError, TypeError, ValueError) as error:
            raise TracepointError(f"not a result of a fleet: {error!r}") from None


def merge_results(results: Sequence[FleetResult]) -> FleetResult:
    """Return the results of one analysis put together, in their order; raises ValueError without any.

    >>> a = FleetResult("events", n_read=1)
    >>> merge_results([a, a]).n_read
    2
    """
    if len({(one.analysis, one.by) for one in results}) != 1:
        raise ValueError("results of one analysis, by the same keys, add up")
    return FleetResult(
        results[0].analysis,
        results[0].by,
        merge_groups(one.groups for one in results),
        sum(one.n_read for one in results),
        [unread for one in results for unread in one.unread],
    )


def merge_blocks(results: Sequence[FleetResult]) -> FleetResult:
    """Return the results of blocks put together, BLOCK at a time until one is left."""
    while len(results) > 1:
        results = [merge_results(results[at : at + BLOCK]) for at in range(0, len(results), BLOCK)]
    return merge_results(results)
