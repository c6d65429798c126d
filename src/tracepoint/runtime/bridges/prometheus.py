"""What a process counted, in the text format of Prometheus: hits of events, hist triggers, losses, faults.

The format is text 0.0.4: escapes are those of its description, and `_total` and `_bucket` are its names for
counters and for the buckets of a histogram.
"""

from __future__ import annotations

import re
import threading
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from tracepoint.closing import Closing
from tracepoint.runtime.files.tree import process_files
from tracepoint.runtime.triggers.hist_text import shown_key
from tracepoint.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tracepoint.runtime.files.state import InstanceState
    from tracepoint.runtime.files.tree import ControlFiles
    from tracepoint.runtime.hierarchy import Instance
    from tracepoint.runtime.triggers.hist import RunningHist
    from tracepoint.runtime.triggers.hist_rows import Key, Value
    from tracepoint.trigger.expression import Operand

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MAX_SERIES = 1000
MAX_LABEL = 200
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_LOSSES = ("overrun", "commit_overrun", "dropped")
_FAMILIES = {
    "event_hits_total": ("counter", "Times that an event fired."),
    "faults_total": ("counter", "Faults of probes, filters and values."),
    "records_lost_total": ("counter", "Records that rings did not keep."),
    "hist": ("histogram", "Hits of a hist trigger by a key that is cut into steps."),
    "hist_dropped_total": ("counter", "Records that a full hist trigger had no row for."),
    "hist_hits_total": ("counter", "Hits of a row of a hist trigger."),
    "hist_rows_left_out": ("gauge", "Rows of a hist trigger that are not shown."),
    "hist_sum_total": ("counter", "Sum of a value of a hist trigger, as an unsigned number of 64 bits."),
}

Labels = tuple[tuple[str, str], ...]


class EventCounts(Closing):
    """Counts how often events fire, recorded or not, until `close()`.

    `events` are events as `@trace_event` made them.  While it is open their tracepoints are on, as with every
    probe; without one nothing is counted and nothing is paid.

    >>> import tracepoint as tp
    >>> @tp.trace_event(system="counted", printk='"n=%u", n')
    ... def tick(n: tp.u32) -> None: ...
    >>> with EventCounts([tick]) as counts:
    ...     tick(1)
    ...     tick(2)
    ...     counts.hits()
    {'counted:tick': 2}
    """

    def __init__(self, events: Iterable[Any]) -> None:
        self._counts: dict[str, dict[int, int]] = {}
        self._registrations = []
        for event in events:
            counts = self._counts.setdefault(event.control.full_name, {})
            self._registrations.append(event.control.register(_counter(counts)))

    def __repr__(self) -> str:
        return f"<EventCounts, {counted(len(self._counts), 'event')}>"

    def hits(self) -> dict[str, int]:
        """Return how often each event fired, by `system:name`."""
        return {name: sum(list(counts.values())) for name, counts in self._counts.items()}

    def close(self) -> None:
        """Stop counting; what was counted stays."""
        for registration in self._registrations:
            registration.unregister()
        self._registrations.clear()


def _counter(counts: dict[int, int]) -> Callable[..., None]:
    ident = threading.get_ident

    def count(*_: object) -> None:
        # A number for each thread: adding to one of all threads would lose some.
        thread = ident()
        counts[thread] = counts.get(thread, 0) + 1

    return count


def prometheus_text(
    counts: EventCounts | None = None, *, max_series: int = MAX_SERIES, files: ControlFiles | None = None
) -> str:
    """Return what was counted as the text of a scrape (format 0.0.4), to be served with `CONTENT_TYPE`.

    `tracepoint_event_hits_total` are the `counts` of events, `tracepoint_faults_total` the faults of probes
    and values, `tracepoint_records_lost_total` the records that rings did not keep, by instance and reason.
    Each hist trigger is a counter `tracepoint_hist_hits_total`, and `tracepoint_hist_sum_total` for each of
    its values, with its keys as labels `key_NAME`; one with a key `.log2` or `.buckets=N` is the histogram
    `tracepoint_hist`.  Of a hist, the `max_series` rows with the most hits are shown, and
    `tracepoint_hist_rows_left_out` says how many are not; the text of a key has at most 200 characters.
    `files` are the control files of the hierarchy, those of the process without it.

    >>> print(prometheus_text().splitlines()[-1].split()[0])
    tracepoint_faults_total
    """
    tree = files or process_files()
    text = _Exposition()
    for name, hits in counts.hits().items() if counts else ():
        text.add("event_hits_total", (("event", name),), hits)
    instances: dict[str, Instance] = {"": tree.tracing} | dict(tree.tracing.instances)
    for name, instance in instances.items():
        stats = instance.stats
        for reason in _LOSSES:
            labels = (("trace_instance", name), ("reason", reason))
            text.add("records_lost_total", labels, stats[reason])
        for hist in _hists(tree.state_of(instance)):
            _add_hist(text, hist, (("trace_instance", name), *_names(hist)), max_series)
    n_faults, _ = tree.tracing.faults
    text.add("faults_total", (), n_faults)
    return str(text)


class _Exposition:
    """Metrics in the order of their first sample; those of equal labels add up."""

    def __init__(self) -> None:
        self._samples: dict[str, dict[tuple[str, Labels], int]] = {}

    def add(self, name: str, labels: Labels, value: int, tail: str = "") -> None:
        """Add a sample `tracepoint_NAME` with `tail` after the name."""
        samples = self._samples.setdefault(name, {})
        samples[tail, labels] = samples.get((tail, labels), 0) + value

    def __str__(self) -> str:
        return "".join(self._lines())

    def _lines(self) -> Iterator[str]:
        for short, samples in self._samples.items():
            name, (kind, help_) = f"tracepoint_{short}", _FAMILIES[short]
            yield f"# HELP {name} {help_}\n# TYPE {name} {kind}\n"
            for (tail, labels), value in samples.items():
                inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels if text)
                yield f"{name}{tail}{f'{{{inside}}}' if inside else ''} {value}\n"


def _escaped(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode().translate(_ESCAPES)


def _hists(state: InstanceState) -> list[RunningHist]:
    """Return the hist triggers of an instance, the first of those that share a table by their name."""
    found = [hist for triggers in list(state.triggers.values()) for hist in triggers.hists]
    return list({id(hist.table): hist for hist in reversed(found)}.values())[::-1]


def _names(hist: RunningHist) -> Labels:
    """Return the labels that tell a hist from others: its event, and its name or its trigger."""
    return ("event", hist.event_name), ("hist", hist.spec.name or str(hist.spec).removeprefix("hist:"))


def _key_labels(hist: RunningHist, key: Key) -> Labels:
    """Return the keys of a row as labels, but not one that is cut into steps."""
    labels = []
    for operand, value in zip(hist.spec.keys, key, strict=True):
        if not _is_step(operand):
            text = value if isinstance(value, str) else shown_key(hist, operand, value).partition(":")[2]
            text = " ".join(text.split()) if isinstance(value, (int, tuple)) else text
            label = "key_" + re.sub(r"\W", "_", operand.name, flags=re.ASCII)
            labels.append((label, text if len(text) <= MAX_LABEL else text[: MAX_LABEL - 3] + "..."))
    return tuple(labels)


def _is_step(operand: Operand) -> bool:
    return operand.modifier == "log2" or operand.modifier.startswith("buckets=")


def _add_hist(text: _Exposition, hist: RunningHist, labels: Labels, max_series: int) -> None:
    rows = list(hist.table.entries.items())  # at once: other threads add rows
    rows.sort(key=lambda row: row[1].n_hits, reverse=True)
    steps = [i for i, key in enumerate(hist.spec.keys) if _is_step(key)]
    shown = rows[:max_series]
    text.add("hist_rows_left_out", labels, len(rows) - len(shown))
    text.add("hist_dropped_total", labels, hist.table.n_dropped)
    buckets: dict[Labels, dict[int, int]] = {}
    for key, entry in shown:
        own = labels + _key_labels(hist, key)
        if steps:
            counts = buckets.setdefault(own + _more_steps(hist, key, steps), {})
            bound = _bound(hist.spec.keys[steps[0]], key[steps[0]])
            counts[bound] = counts.get(bound, 0) + entry.n_hits
        else:
            text.add("hist_hits_total", own, entry.n_hits)
        for operand, total in zip(hist.spec.values, entry.sums, strict=True):
            text.add("hist_sum_total", (*own, ("value", operand.name)), total)
    for own, counts in buckets.items():
        _add_histogram(text, own, counts)


def _more_steps(hist: RunningHist, key: Key, steps: list[int]) -> Labels:
    """Return the upper bounds of the second and later keys that are cut into steps, as labels."""
    return tuple((f"key_{hist.spec.keys[i].name}", str(_bound(hist.spec.keys[i], key[i]))) for i in steps[1:])


def _bound(operand: Operand, value: Value) -> int:
    """Return the largest number that a step has: `RunningHist` cuts them."""
    number = value if isinstance(value, int) else 0
    if operand.modifier == "log2":
        return 1 << number
    return number + int(operand.modifier.partition("=")[2], 0) - 1


def _add_histogram(text: _Exposition, labels: Labels, counts: dict[int, int]) -> None:
    bounds = sorted(counts)
    for bound, total in zip(bounds, accumulate(counts[bound] for bound in bounds), strict=True):
        text.add("hist", (*labels, ("le", str(bound))), total, "_bucket")
    total = sum(counts.values())
    text.add("hist", (*labels, ("le", "+Inf")), total, "_bucket")
    text.add("hist", labels, total, "_count")


def prometheus_app(
    counts: EventCounts | None = None, *, files: ControlFiles | None = None
) -> Callable[[dict[str, Any], Callable[..., Any]], list[bytes]]:
    """Return a WSGI application that answers every request with `prometheus_text()`.

    Mount it in a service's own server, or serve it with `wsgiref.simple_server`; whoever reaches it reads the
    keys of hist triggers.

    >>> app = prometheus_app()
    >>> b"".join(app({}, lambda status, headers: print(status))).splitlines()[0][:17]
    200 OK
    b'# HELP tracepoint'
    """

    def app(_: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        data = prometheus_text(counts, files=files).encode()
        start("200 OK", [("Content-Type", CONTENT_TYPE), ("Content-Length", str(len(data)))])
        return [data]

    return app
