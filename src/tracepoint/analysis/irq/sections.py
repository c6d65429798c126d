"""Interrupts as sections: by CPU and task, by name, and how long what they deferred waited."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.irq.needs import NEEDS
from tracepoint.analysis.sections import CPU, MAX, MEAN, P99, TASK, TOTAL, Heading, N, Unit
from tracepoint.analysis.units import task_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracepoint.analysis.distribution import Samples
    from tracepoint.analysis.irq.sums import IrqSums
    from tracepoint.analysis.sections import Choice, TableSection

SOFT_EVENTS = ("irq:softirq_raise", "irq:softirq_entry", "irq:softirq_exit")
HARD_EVENTS = tuple(
    name for need in NEEDS for name in need.names if name.startswith(("irq:irq_handler", "irq_vectors:"))
)
TIMER_EVENTS = tuple(name for need in NEEDS for name in need.names if name.startswith("timer:"))
WORK_EVENTS = tuple(name for need in NEEDS for name in need.names if name.startswith("workqueue:"))
_TIMES = (N, TOTAL, Heading("net", "net", Unit.TIME), MEAN, P99, MAX, Heading("name", "name", Unit.WORD))
_FUNCTIONS = (
    N, TOTAL, MEAN, P99, MAX, Heading("kind", "kind", Unit.WORD), Heading("name", "function", Unit.WORD),
)  # fmt: skip
_CPUS = (
    CPU,
    Heading("hard_share", "interrupts", Unit.SHARE),
    Heading("soft_share", "softirqs", Unit.SHARE),
    Heading("hard", "", Unit.TIME),
    Heading("soft", "", Unit.TIME),
)
_TASKS = (
    Heading("hard", "interrupts", Unit.TIME),
    Heading("soft", "softirqs", Unit.TIME),
    *TASK,
)


def irq_section(
    key: str, title: str, samples: Mapping[str, Samples], net: Mapping[str, int], choice: Choice
) -> TableSection:
    """Return how long interrupts or softirqs took, by name; `net` is without what interrupted them."""
    rows = [
        (made.count, made.sum, net[name], made.mean, *made.quantiles(0.99, 1.0), name)
        for name, made in samples.items()
    ]
    return choice.table(key, title, _TIMES, rows, HARD_EVENTS if key == "hard_irqs" else SOFT_EVENTS)


def function_section(samples: Mapping[tuple[str, str], Samples], choice: Choice) -> TableSection:
    """Return how long functions ran, by their kind and name, interrupts included."""
    rows = [
        (made.count, made.sum, made.mean, *made.quantiles(0.99, 1.0), kind, name)
        for (kind, name), made in sorted(samples.items(), key=lambda item: -item[1].total)
    ]
    return choice.table("functions", "Functions", _FUNCTIONS, rows, (*TIMER_EVENTS, *WORK_EVENTS))


def cpu_section(sums: IrqSums, span_ns: int, choice: Choice) -> TableSection:
    """Return which part of the time CPUs spent in interrupts and softirqs."""
    span = span_ns or 1
    rows = [(cpu, hard / span, soft / span, hard, soft) for cpu, (hard, soft) in sorted(sums.by_cpu.items())]
    return choice.table("cpus", "CPUs", _CPUS, rows, (*HARD_EVENTS, *SOFT_EVENTS))


def task_section(sums: IrqSums, choice: Choice) -> TableSection:
    """Return the time that interrupts and softirqs took of each task."""
    rows = [(hard, soft, task_text(sums.tasks, tid), tid) for tid, (hard, soft) in sums.by_tid.items()]
    rows.sort(key=lambda row: -(row[0] + row[1]))
    return choice.table("tasks", "Interrupted tasks", _TASKS, rows, (*HARD_EVENTS, *SOFT_EVENTS))
