"""The text of the function_graph tracer: calls as nested blocks, other records as comments among them.

kernel/trace/trace_functions_graph.c.  A layout over records: it takes what `TextWriter` makes of a record
where the kernel does not draw it as part of the graph.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from heapq import merge
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from tracepoint.printk.own_events import NO_COMMENTS, is_own_event
from tracepoint.tracefile.graphcalls import CallSteps
from tracepoint.tracefile.graphnames import FunctionNames
from tracepoint.tracefile.text import mark_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tracepoint.record.raw import RawRecord
    from tracepoint.tracefile.graphcalls import GraphCall, Step
    from tracepoint.tracefile.text import TextWriter

_MOST_BATCH = 1024
# Contexts that are kept: a damaged file has any number.
_MOST_KEPT = 1 << 16
_INDENT = 2
# FTRACE_RETFUNC_DEPTH: deeper calls are not compared with their returns.
_MOST_DEPTH = 50
_PROC_WIDTH = 14
_RULE = f" {42 * '-'}\n"
_NO_DURATION = "              |  "
_IRQ_SYMBOLS = ("__irqentry_text_start", "__irqentry_text_end")


def duration_text(duration_ns: int) -> str:
    """Write a duration in the seven digits that the column has: trace_print_graph_duration().

    >>> duration_text(1272)
    '1.272 us    '
    >>> duration_text(12345678)
    '12345.67 us '
    """
    whole, part = divmod(duration_ns, 1000)
    if whole < 10_000:
        text = f"{whole}.{part:03d}"
    elif whole < 100_000:
        text = f"{whole}.{part // 10:02d}"
    else:
        text = f"{whole}.{part // 100}" if whole < 1_000_000 else str(whole)
    return f"{text} us ".ljust(12)


@dataclass(slots=True)
class _Cpu:
    """What the kernel keeps for each CPU while it prints: struct fgraph_cpu_data."""

    last_pid: int = -1
    last_word: bytes = b""
    depth: int = 0
    depth_irq: int = -1
    entered: dict[int, int] = field(default_factory=dict)


class GraphLayout:
    """Writes records as function_graph shows them, with a `TextWriter` for all that are no calls."""

    def __init__(self, writer: TextWriter) -> None:
        events = writer.events
        self._writer = writer
        self._shown = writer.options.graph
        self._has_context = writer.options.context_info
        self._steps = CallSteps(events, is_big_endian=writer.is_big_endian)
        self._plain = plain_types(writer)
        self._events = events
        self._cpus: defaultdict[int, _Cpu] = defaultdict(_Cpu)
        self._names = FunctionNames(writer)
        self._contexts: dict[tuple[int, bytes], str] = {}
        self._irq_range = irq_range(writer)
        self._cpu_width = cpu_width(writer)

    def lines(self, streams: Iterable[Iterable[RawRecord]], *, has_overruns: bool = False) -> Iterator[str]:
        """Yield the text of the records of all CPUs by time; `streams` has the records of each CPU."""
        started: set[int] | None = set() if self._writer.options.annotate and has_overruns else None
        steps = merge(*map(self._steps.of, streams), key=lambda step: step.record.timestamp)
        index = 0
        for batch in _batches(steps):
            others = iter(self._writer.bodies([step.record for step, _ in batch if step.call is None]))
            for step, following in batch:
                if step.call is None:
                    yield self._other(step, next(others), following.timestamp, index, started)
                else:
                    yield self._drawn(step.record, step.call, step.end)
                index += 1

    def _other(self, step: Step, body: str, next_time: int, index: int, started: set[int] | None) -> str:
        """Return the text of a record that is no call: a comment, or as without the graph."""
        record = step.record
        if step.number in self._plain or step.number not in self._events:
            return self._writer.entry(record, body, next_time, index, started)
        return self._writer.lost_text(record) + self._comment(record, body)

    def _drawn(self, record: RawRecord, call: GraphCall, end: GraphCall | None) -> str:
        lost = self._writer.lost_text(record) if record.lost else ""
        return lost + (self._entry(record, call, end) if call.is_entry else self._return(record, call))

    def _entry(self, record: RawRecord, call: GraphCall, end: GraphCall | None) -> str:
        cpu = self._cpus[record.cpu]
        if self._is_in_irq(cpu, call):
            # The kernel hides the return too, on its own.
            return "" if end is None else self._return(record, end)
        text = self._prologue(record, call.function, "==========>")
        name = f"{' ' * (call.depth * _INDENT)}{self._names.name(call.function)}"
        if end is None:
            cpu.depth = call.depth
            if 0 <= call.depth < _MOST_DEPTH:
                cpu.entered[call.depth] = call.function
            return f"{text}{self._column()}{name}() {{\n"
        cpu.depth = call.depth - 1
        cpu.entered.pop(call.depth, None)
        value = f" /* {self._value(end)} */" if self._shown.retval else ""
        text += f"{self._column(end.duration)}{name}();{value}\n"
        return text + self._irq(record, end.function, "<==========")

    def _return(self, record: RawRecord, call: GraphCall) -> str:
        cpu = self._cpus[record.cpu]
        if self._leaves_irq(cpu, call):
            return ""
        cpu.depth = call.depth - 1
        is_entered = True
        if 0 <= call.depth < _MOST_DEPTH:
            is_entered = cpu.entered.pop(call.depth, 0) == call.function
        text = self._prologue(record) + self._column(call.duration) + " " * (call.depth * _INDENT)
        if self._shown.retval:
            text += f"}} /* {self._names.name(call.function)} {self._value(call)} */\n"
        elif is_entered and not self._shown.tail:
            text += "}\n"
        else:
            text += f"}} /* {self._names.name(call.function)} */\n"
        if self._shown.overrun:
            text += f" (Overruns: {call.overrun})\n"
        return text + self._irq(record, call.function, "<==========")

    def _comment(self, record: RawRecord, body: str) -> str:
        depth = self._cpus[record.cpu].depth
        indent = " " * ((depth + 1) * _INDENT) if depth > 0 else ""
        return f"{self._prologue(record)}{self._column()}{indent}/* {body.removesuffix(chr(10))} */\n"

    def _value(self, call: GraphCall) -> str:
        """Write what a function returned: errors as negative numbers."""
        sign = "ret=" if self._writer.options.is_from_6_13 else "= "
        value = call.value
        if value and not self._shown.retval_hex:
            wide = value | 0xFFFFFFFF << 32 if value >> 31 == 1 else value
            if wide >= (1 << 64) - 4095:
                return f"{sign}{wide - (1 << 64)}"
        return f"{sign}0x{value:x}"

    def _is_in_irq(self, cpu: _Cpu, call: GraphCall) -> bool:
        if self._shown.irqs:
            return False
        if cpu.depth_irq >= 0:
            return True
        if call.function not in self._irq_range:
            return False
        cpu.depth_irq = call.depth
        return True

    def _leaves_irq(self, cpu: _Cpu, call: GraphCall) -> bool:
        if self._shown.irqs or cpu.depth_irq == -1:
            return False
        if cpu.depth_irq >= call.depth:
            cpu.depth_irq = -1
        return True

    def _prologue(self, record: RawRecord, function: int = 0, arrow: str = "") -> str:
        text = self._switch(record)
        if arrow:
            text += self._irq(record, function, arrow)
        return text + self._context(record)

    def _context(self, record: RawRecord) -> str:
        """Return the columns before the duration."""
        if not self._has_context:
            return ""
        key = record.cpu, record.data[2:8]
        text = self._contexts.get(key)
        if text is None:
            if len(self._contexts) >= _MOST_KEPT:
                self._contexts.clear()
            text = self._contexts[key] = self._columns(record)
        if not self._shown.abstime:
            return text
        seconds, rest = divmod(record.timestamp, 10**9)
        return f"{seconds:5d}.{rest // 1000:06d} |  {text}"

    def _columns(self, record: RawRecord) -> str:
        """Return the columns before the duration but for the time."""
        shown, text = self._shown, ""
        _, flags, count, pid = self._writer.common(record)
        if shown.cpu:
            text += self._cpu(record.cpu)
        if shown.proc:
            text += f"{self._task(pid)} | "
        if self._writer.options.latency_format:
            text += f" {self._writer.flags_text(flags, count)} | "
        return text

    def _cpu(self, cpu: int) -> str:
        return f" {cpu:{self._cpu_width}d}) "

    def _task(self, pid: int) -> str:
        """Return the first seven bytes of a task's name with its pid, in the middle of the column."""
        comm = self._writer.comm(pid).encode("utf-8", "surrogateescape")[:7]
        text = f"{comm.decode('utf-8', 'surrogateescape')}-{pid}"
        spaces = max(_PROC_WIDTH - len(comm) - len(str(pid)) - 1, 0)
        return " " * (spaces // 2) + text + " " * (spaces - spaces // 2)

    def _switch(self, record: RawRecord) -> str:
        """Return the lines that say that another task runs on the CPU now: verif_pid()."""
        cpu, word = self._cpus[record.cpu], record.data[4:8]
        if word == cpu.last_word:
            return ""
        last, pid = cpu.last_pid, self._writer.common(record)[3]
        cpu.last_pid, cpu.last_word = pid, word
        if last in (pid, -1):
            return ""
        return f"{_RULE}{self._cpu(record.cpu)}{self._task(last)} => {self._task(pid)}\n{_RULE}\n"

    def _irq(self, record: RawRecord, function: int, arrow: str) -> str:
        """Return the line where an interrupt begins or ends: print_graph_irq()."""
        if function not in self._irq_range:
            return ""
        before, after = ("  ", " |") if self._shown.duration and self._has_context else ("", "")
        return f"{self._context(record)}{before}{arrow}{after}\n"

    def _column(self, duration: int | None = None) -> str:
        if not (self._shown.duration and self._has_context):
            return ""
        if duration is None:
            return _NO_DURATION
        sign = mark_of(duration) if self._shown.overhead else " "
        return f"{sign} {duration_text(duration)}|  "


def _batches(steps: Iterator[Step]) -> Iterator[list[tuple[Step, RawRecord]]]:
    """Yield steps, some at a time, each with the record after it; the last with itself."""
    pairs = ((step, following.record) for step, following in pairwise(_with_last_twice(steps)))
    while batch := list(islice(pairs, _MOST_BATCH)):
        yield batch


def _with_last_twice(steps: Iterator[Step]) -> Iterator[Step]:
    last = None
    for last in steps:
        yield last
    if last is not None:
        yield last


def plain_types(writer: TextWriter) -> set[int]:
    """Return the types of records that are shown as without the graph."""
    return {n for n, event in writer.events.items() if is_own_event(event) and event.name in NO_COMMENTS}


def cpu_width(writer: TextWriter) -> int:
    """Return how many digits the column of CPUs has."""
    return len(str(max(writer.options.n_cpus - 1, 0)))


def irq_range(writer: TextWriter) -> range:
    """Return the addresses of the functions in which interrupts begin; empty where they are not known."""
    table = writer.facts.kallsyms
    first, last = (table.address_of(name) for name in _IRQ_SYMBOLS) if table is not None else (None, None)
    return range(first or 0, last or 0)


def graph_header(writer: TextWriter, n_entries: int, n_written: int, n_cpus: int) -> str:
    """Return the heading of `trace`: print_graph_headers_flags()."""
    options, shown = writer.options, writer.options.graph
    head = f"# tracer: {options.tracer}\n#\n"
    if not options.context_info:
        return head
    if options.latency_format:
        if not n_entries:
            return head
        head += writer.latency_heading(n_entries, n_written, n_cpus)
        size = 16 * shown.abstime + 4 * shown.cpu + 17 * shown.proc
        head += "".join(f"#{' ' * size}{line}\n" for line in _LATENCY_COLUMNS)
    columns = (
        (shown.abstime, "     TIME       ", "      |         "),
        (shown.cpu, " CPU", " |  "),
        (shown.proc, "  TASK/PID       ", "   |    |        "),
        (options.latency_format, "||||   ", "||||   "),
        (shown.duration, "  DURATION   ", "   |   |      "),
        (True, "               FUNCTION CALLS", "               |   |   |   |"),
    )
    names = "".join(name for is_shown, name, _ in columns if is_shown)
    bars = "".join(bar for is_shown, _, bar in columns if is_shown)
    return f"{head}#{names}\n#{bars}\n"


_LATENCY_COLUMNS = (
    "  _-----=> irqs-off        ",
    " / _----=> need-resched    ",
    "| / _---=> hardirq/softirq ",
    "|| / _--=> preempt-depth   ",
    "||| /                      ",
)
