"""From records to interrupts, softirqs, what they ran, and how long that had waited."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.irq.needs import VECTORS
from tracepoint.analysis.pair_events import PairKind, pair_events
from tracepoint.analysis.pairs import EndScope, Order
from tracepoint.analysis.spans import OPEN
from tracepoint.decode.labels import value_labels
from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.analysis.records import AnalysisRecords
    from tracepoint.analysis.spans import Spans

HARD, SOFT, RAISED = "irq_handler", "softirq", "softirq_raise"
DUE, TIMER_DUE = "hrtimer_start", "timer_start"
QUEUED, WORK = "workqueue_queue_work", "workqueue_execute"
#: Functions that ran, with the event and the field that name them.
FUNCTIONS = {
    "tasklet": ("irq:tasklet_entry", "func"),
    "hrtimer": ("timer:hrtimer_expire_entry", "function"),
    "timer": ("timer:timer_expire_entry", "function"),
    WORK: ("workqueue:workqueue_execute_start", "function"),
}
_CPU, _ALL = EndScope.CPU, EndScope.ALL
_ENTRY, _EXPIRE = "irq:softirq_entry", "timer:hrtimer_expire_entry"
_START = "workqueue:workqueue_execute_start"

KINDS = {
    # One pair for each action of a shared line: kernel/irq/handle.c: __handle_irq_event_percpu().
    HARD: PairKind("irq:irq_handler_entry", "irq:irq_handler_exit", "irq", Order.STACK, _CPU),
    # Vectors are entered once at a time on a CPU.
    **{
        name: PairKind(f"irq_vectors:{name}_entry", f"irq_vectors:{name}_exit", "", Order.LAST, _CPU)
        for name in VECTORS
    },
    # Raising sets a bit, so the first counts: kernel/softirq.c: __raise_softirq_irqoff().
    RAISED: PairKind("irq:softirq_raise", _ENTRY, "vec", Order.FIRST, _CPU),
    SOFT: PairKind(_ENTRY, "irq:softirq_exit", "vec", Order.LAST, _CPU),
    "tasklet": PairKind("irq:tasklet_entry", "irq:tasklet_exit", "tasklet", Order.LAST, _CPU),
    # Starting a timer that is queued moves it; what is cancelled is started again before it expires.
    DUE: PairKind("timer:hrtimer_start", _EXPIRE, "hrtimer", Order.LAST, _ALL),
    "hrtimer": PairKind(_EXPIRE, "timer:hrtimer_expire_exit", "hrtimer", Order.LAST, _CPU),
    TIMER_DUE: PairKind("timer:timer_start", "timer:timer_expire_entry", "timer", Order.LAST, _ALL),
    "timer": PairKind("timer:timer_expire_entry", "timer:timer_expire_exit", "timer", Order.LAST, _CPU),
    QUEUED: PairKind("workqueue:workqueue_queue_work", _START, "work", Order.LAST, _ALL),
    # The work may be freed or queued again before its end, so the worker counts.
    WORK: PairKind(_START, "workqueue:workqueue_execute_end", "common_pid", Order.LAST, _ALL),
}


class Irqs(NamedTuple):
    """Interrupts and softirqs by their begin.

    `kind` is HARD, SOFT or a vector, `row` that of the entry; `parent` the interrupt that it interrupted
    (NO_PARENT), `net` the time in ns without interrupts (OPEN: no end).
    """

    kind: list[str]
    row: list[int]
    ts: list[int]
    dur: list[int]
    cpu: list[int]
    parent: list[int]
    net: list[int]


class IrqWork(NamedTuple):
    """All that was paired, by kind; how late timers were, in ns and in ticks; names of what ran."""

    spans: Mapping[str, Spans]
    irqs: Irqs
    names: Sequence[str]
    softirq_names: Mapping[int, str]
    late_ns: Sequence[int]
    late_ticks: Sequence[int]
    functions: Mapping[int, str]
    workqueues: Sequence[str]


def read_irqs(records: AnalysisRecords) -> IrqWork:
    """Return the interrupts of a recording, and what they deferred."""
    spans = pair_events(records, KINDS)
    irqs = nested(spans, records.cpus)
    softirqs = _softirq_names(records)
    expiry = "bucket_expiry" if "bucket_expiry" in records.fields.get("timer:timer_start", ()) else "expires"
    addresses = {
        address
        for kind, (event, field) in FUNCTIONS.items()
        if kind in spans
        for address in _values(records, event, field, spans[kind].begin)
    }
    return IrqWork(
        spans,
        irqs,
        _names(records, irqs, softirqs),
        softirqs,
        _late(records, spans.get(DUE), _EXPIRE, ("timer:hrtimer_start", "softexpires")),
        _late(records, spans.get(TIMER_DUE), "timer:timer_expire_entry", ("timer:timer_start", expiry)),
        {address: records.function(address) or hex(address) for address in addresses},
        _texts(records, "workqueue:workqueue_queue_work", "workqueue", spans.get(QUEUED)),
    )


def _values(records: AnalysisRecords, event: str, field: str, rows: Sequence[int]) -> list[int]:
    numbers = records.column(event, field).numbers
    return [numbers[row] for row in rows]


def _late(records: AnalysisRecords, spans: Spans | None, expire: str, due: tuple[str, str]) -> list[int]:
    """Return how much later than due timers expired; a timer of another clock base may be early: 0."""
    if spans is None:
        return []
    now, when = records.column(expire, "now").numbers, records.column(*due).numbers
    return [
        max(now[end] - when[begin], 0)
        for begin, end, dur in zip(spans.begin, spans.end, spans.dur, strict=True)
        if dur != OPEN
    ]


def _texts(records: AnalysisRecords, event: str, field: str, spans: Spans | None) -> list[str]:
    if spans is None:
        return []
    if field not in records.fields[event]:
        return ["?"] * len(spans)
    column = records.column(event, field)
    numbers, words = column.numbers, column.words
    return [words[numbers[row]] for row in spans.begin]


def _softirq_names(records: AnalysisRecords) -> dict[int, str]:
    """Return the names of softirqs by number, as the print format has them."""
    found: dict[int, str] = {}
    for event in (KINDS[RAISED].begin, _ENTRY):
        if event in records:
            labels = value_labels(records.trace.format(event), "vec")
            for vec in set(records.column(event, "vec").numbers):
                found[vec] = (labels(vec) if labels is not None else "") or f"softirq {vec}"
    return found


def _names(records: AnalysisRecords, irqs: Irqs, softirqs: Mapping[int, str]) -> list[str]:
    """Return the name of each interrupt and softirq."""
    vectors = records.column(_ENTRY, "vec").numbers if _ENTRY in records else []
    handler = records.columns("irq:irq_handler_entry") if "irq:irq_handler_entry" in records else {}
    lines = handler["irq"].numbers if handler else []
    words = handler.get("name")

    def name_of(kind: str, row: int) -> str:
        if kind == SOFT:
            return softirqs[vectors[row]]
        if kind == HARD:
            return (
                f"{lines[row]} {words.words[words.numbers[row]]}"
                if words is not None
                else f"irq {lines[row]}"
            )
        return kind

    return [name_of(kind, row) for kind, row in zip(irqs.kind, irqs.row, strict=True)]


#: The parent of what interrupted no interrupt.
NO_PARENT = -1


def nested(spans: Mapping[str, Spans], cpus: Sequence[int]) -> Irqs:
    """Return interrupts and softirqs by time, with the time that interrupts took of each."""
    found = sorted(
        (ts, row, kind, dur)
        for kind in (HARD, SOFT, *VECTORS)
        if kind in spans
        for ts, row, dur in zip(spans[kind].ts, spans[kind].begin, spans[kind].dur, strict=True)
    )
    irqs = Irqs([], [], [], [], [], [], [])
    # Of each CPU the interrupts and softirqs that are not over: when they end, and their number.
    active: dict[int, list[tuple[int, int]]] = {}
    for number, (ts, row, kind, dur) in enumerate(found):
        cpu = cpus[row]
        own = active.setdefault(cpu, [])
        while own and own[-1][0] <= ts:
            own.pop()
        parent = next((at for _, at in reversed(own) if irqs.kind[at] != SOFT), NO_PARENT)
        irqs.kind.append(kind)
        numbers = (irqs.row, irqs.ts, irqs.dur, irqs.cpu, irqs.parent, irqs.net)
        for column, value in zip(numbers, (row, ts, dur, cpu, parent, dur), strict=True):
            column.append(value)
        if dur == OPEN:
            continue
        if kind != SOFT and own:
            # The next one outside: what that is in has lost its time already.
            irqs.net[own[-1][1]] -= dur
        own.append((ts + dur, number))
    return irqs
