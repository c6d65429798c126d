"""Which figures of a recording add up: one kind of summary for each analysis that has them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tracepoint.analysis.counted import COUNTED, COUNTED_KEYS, counted_summaries
from tracepoint.analysis.recorded import EVENT_KEYS, event_summaries
from tracepoint.analysis.sched.summary import SCHED_KEYS, sched_summaries
from tracepoint.named import NamedTuple
from tracepoint.tracefile.options import machine_name
from tracepoint.wording import no_such

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from tracepoint.analysis.summary import Key, TraceSummary
    from tracepoint.decode.trace import Trace

    Run = Callable[[Trace, Collection[str], str], Iterator[tuple[dict[str, str], TraceSummary]]]


class SummaryKind(NamedTuple):
    """How the summaries of a kind are made, and what recordings and their parts can be told apart by."""

    keys: tuple[str, ...]
    run: Run


#: By the name of the analysis.
KINDS: dict[str, SummaryKind] = {
    "sched": SummaryKind(SCHED_KEYS, sched_summaries),
    "events": SummaryKind(EVENT_KEYS, event_summaries),
    **{name: SummaryKind(COUNTED_KEYS, partial(counted_summaries, name)) for name in COUNTED},
}


def kind_of(analysis: str, by: Iterable[str] = ()) -> SummaryKind:
    """Return a kind of summary; raises KeyError for an unknown one, and for keys that it does not have."""
    if analysis not in KINDS:
        raise KeyError(no_such("summary", analysis, list(KINDS)))
    kind = KINDS[analysis]
    for word in by:
        if word not in kind.keys:
            raise KeyError(no_such(f"key of {analysis}", word, kind.keys))
    return kind


def summarise(trace: Trace, analysis: str) -> TraceSummary:
    """Return the figures of a recording that add up, for one of KINDS: `sched`, `events`, `faults`.

    Raises KeyError for another analysis, and TracepointError where the events that it needs are missing.

    >>> import tracepoint as tp
    >>> with tp.open_trace("tests/tracefile/golden/cut.v6.dat") as trace:
    ...     summary = summarise(trace, "sched")
    >>> both = summary.merge(summary)
    >>> both["traces"].low, both["run_ns"].low, both.histograms["latency_ns"].n
    (2, 39782240, 6)
    """
    return summarise_by(trace, analysis)[()]


def summarise_by(
    trace: Trace, analysis: str, by: Sequence[str] = (), host: str = ""
) -> dict[Key, TraceSummary]:
    """Return the summaries of the parts of a recording by the values of `by`, such as `comm`.

    `host` names the machine; empty: as the recording has it, else `unknown`.  Raises as `summarise`.

    >>> import tracepoint as tp
    >>> with tp.open_trace("tests/tracefile/golden/cut.v6.dat") as trace:
    ...     found = summarise_by(trace, "sched", ["comm"])
    >>> found["rcu_preempt",]["run_ns"].low
    19891120
    """
    kind = kind_of(analysis, by)
    name = host or machine_name(trace.file.options) or "unknown"
    return {tuple(of[word] for word in by): summary for of, summary in kind.run(trace, by, name)}
