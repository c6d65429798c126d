"""What was recorded and lost, of any recording, as figures that add up."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from tracepoint.analysis.coverage import Coverage, count_coverage, read_coverage
from tracepoint.analysis.summary import TraceSummary
from tracepoint.analysis.top import TopK
from tracepoint.decode.found import NO_ID
from tracepoint.decode.names import names_by_id
from tracepoint.decode.selection import unknown_name
from tracepoint.record.page import LOST_UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tracepoint.decode.trace import Trace

#: What the recordings of this kind can be told apart by.
EVENT_KEYS = ("host", "event", "cpu")


def event_summaries(
    trace: Trace, by: Collection[str], host: str
) -> Iterator[tuple[dict[str, str], TraceSummary]]:
    """Yield the summary of a recording, or one for each of its CPUs, events or both, with its name.

    What is lost belongs to a CPU, and to no event: so each event may have as many records more.
    """
    start = trace.span[0]
    starts = array("q", [start]) * len(trace.lost), array("i", trace.lost)
    coverage = read_coverage(trace, lambda: [starts])
    names = names_by_id(trace.file)
    cpus = {str(cpu): [cpu] for cpu in trace.lost} if "cpu" in by else {"": [*trace.lost]}
    for shown, chosen in cpus.items():
        # What no page says the place of, any of the CPUs may have lost.
        part = (
            coverage
            if "cpu" not in by
            else coverage._replace(gaps={cpu: coverage.gaps.get(cpu, ()) for cpu in chosen})
        )
        records: dict[str, int] = {}
        for cpu in chosen:
            for number, n in trace.n_by_id_on(cpu).items():
                if number != NO_ID:
                    name = names.get(number, unknown_name(number))
                    records[name] = records.get(name, 0) + n
        groups = {name: {name: n} for name, n in records.items()} if "event" in by else {"": records}
        for event, counts in groups.items():
            summary = _summary(part, counts, host)
            if "cpu" in by and coverage.n_unplaced:
                summary.counts["lost_events"] -= coverage.n_unplaced
                summary.hidden.setdefault("lost_events", coverage.n_unplaced)
            yield {"host": host, "event": event, "cpu": shown}, summary


def _summary(coverage: Coverage, records: dict[str, int], host: str) -> TraceSummary:
    made = TraceSummary("events", *count_coverage(coverage))
    made.tops |= {"records_by_event": TopK(), "records_by_host": TopK(), "lost_by_host": TopK()}
    for name, n in records.items():
        made.tops["records_by_event"].add(name, n)
    made.counts["records"] = sum(records.values())
    made.hidden["records"] = None if coverage.n_lost == LOST_UNKNOWN else coverage.n_lost
    made.tops["records_by_host"].add(host, made.counts["records"])
    made.tops["lost_by_host"].add(host, made.counts["lost_events"])
    return made
