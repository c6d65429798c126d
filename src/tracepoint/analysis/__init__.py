"""Answers to the questions that traces are taken for: tables, figures with bounds, and what was lost."""

from tracepoint.analysis.block.report import analyse_block
from tracepoint.analysis.faults.report import analyse_faults
from tracepoint.analysis.irq.report import analyse_irq
from tracepoint.analysis.latency.report import analyse_latency
from tracepoint.analysis.locks.report import analyse_locks
from tracepoint.analysis.memory.report import analyse_memory
from tracepoint.analysis.registry import analyse, missing_events, needed_events
from tracepoint.analysis.sched.report import analyse_sched
from tracepoint.analysis.service.report import analyse_service
from tracepoint.analysis.summarise import summarise, summarise_by
from tracepoint.analysis.swap.report import analyse_swap
from tracepoint.analysis.syscalls.report import analyse_syscalls
from tracepoint.analysis.traps.report import analyse_traps

__all__ = [
    "analyse",
    "analyse_block",
    "analyse_faults",
    "analyse_irq",
    "analyse_latency",
    "analyse_locks",
    "analyse_memory",
    "analyse_sched",
    "analyse_service",
    "analyse_swap",
    "analyse_syscalls",
    "analyse_traps",
    "missing_events",
    "needed_events",
    "summarise",
    "summarise_by",
]
