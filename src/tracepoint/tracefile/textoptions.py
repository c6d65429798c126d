"""The options of tracefs that change the text of `trace`: those of all tracers, and function_graph's."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tracepoint.errors import TracepointError
from tracepoint.printk.own_events import NO_COMMENTS, USUAL, OwnStyle, is_own_event

if TYPE_CHECKING:
    from collections.abc import Collection

    from tracepoint.layout.format import EventFormat

# The other clocks count ns; kernel/trace/trace.c: trace_clocks[].
CLOCKS_NOT_IN_NS = frozenset({"counter", "uptime", "x86-tsc"})
GRAPH_TRACER = "function_graph"
#: Those that say where what they measure began and ended, and those that measure wakeups.
SECTION_TRACERS = frozenset({"irqsoff", "preemptoff", "preemptirqsoff"})
LATENCY_TRACERS = SECTION_TRACERS | {"wakeup", "wakeup_rt", "wakeup_dl"}
_RELEASE = re.compile(r"(\d{1,4})\.(\d{1,4})", re.ASCII)
_VERSION = (6, 13)
# The last that is set wins: print_trace_line() in kernel/trace/trace.c.
FORMS = ("raw", "hex", "bin")


def is_from_6_13(release: str) -> bool:
    """Return whether a kernel is Linux 6.13 or later, by its release; one that is not known may be.

    >>> [is_from_6_13(release) for release in ("6.12.1-cloud", "7.2.0", "")]
    [False, True, True]
    """
    found = _RELEASE.match(release)
    return found is None or (int(found[1]), int(found[2])) >= _VERSION


@dataclass(frozen=True, slots=True)
class GraphOptions:
    """What the function_graph tracer shows: its options `funcgraph-...`."""

    cpu: bool = True
    overhead: bool = True
    proc: bool = False
    duration: bool = True
    abstime: bool = False
    irqs: bool = True
    tail: bool = False
    overrun: bool = False
    retval: bool = False
    retval_hex: bool = False


@dataclass(frozen=True, slots=True)
class TextOptions:
    """The options of tracefs that change the text, and what it depends on beside the records.

    `clock` is the name of the trace clock; `annotate` shows where the buffer of a CPU begins when events
    were overwritten; `own` is how the tracer's own entries are shown; `printk_msg_only` leaves the message
    of printed text alone, where `trace_printk` is set too; `raw`, `hex`, `bin` are other forms of lines;
    `fields` shows the fields of events instead of their print format; `time_start_ns` is when the buffer was
    cleared, which latency times count from; `release` and `preemption` (`preempt`, `desktop`; empty where
    it is not known) describe the kernel, `n_cpus` the CPUs that it can have; `is_from_6_13` says that it is
    Linux 6.13 or later, which shows lazy rescheduling, and returned values in other words.
    """

    clock: str = "local"
    irq_info: bool = True
    record_tgid: bool = False
    context_info: bool = True
    latency_format: bool = False
    verbose: bool = False
    annotate: bool = True
    tracer: str = "nop"
    time_start_ns: int = 0
    release: str = ""
    preemption: str = ""
    n_cpus: int = 1
    is_from_6_13: bool = False
    own: OwnStyle = USUAL
    printk_msg_only: bool = False
    trace_printk: bool = True
    raw: bool = False
    hex: bool = False
    bin: bool = False
    fields: bool = False
    graph: GraphOptions = field(default_factory=GraphOptions)

    @property
    def is_in_ns(self) -> bool:
        """Whether the clock counts nanoseconds."""
        return self.clock not in CLOCKS_NOT_IN_NS

    @property
    def is_graph(self) -> bool:
        """Whether records are shown as the function_graph tracer shows them."""
        return self.tracer == GRAPH_TRACER

    @property
    def measures_latency(self) -> bool:
        """Whether the tracer keeps the trace of the longest latency, whose lines have the latency format."""
        return self.tracer in LATENCY_TRACERS

    @property
    def is_mmio(self) -> bool:
        """Whether records are shown as the mmiotrace tracer shows them."""
        return self.tracer == "mmiotrace"

    @property
    def is_usual(self) -> bool:
        """Whether lines have the layout that most tracers give them, or a graph, in its short form."""
        return not (self.is_mmio or self.latency_format or self.is_message_only or self.form or self.fields)

    @property
    def form(self) -> str:
        """The form of lines: one of FORMS, or empty for the usual text."""
        set_forms = (self.raw, self.hex, self.bin)
        return next((f for f, is_set in zip(FORMS[::-1], set_forms[::-1], strict=True) if is_set), "")

    def own_style(self, event: EventFormat) -> OwnStyle:
        """Return how an event is shown; what function_graph draws or makes a comment is in no other form."""
        is_drawn = self.is_graph and not (is_own_event(event) and event.name in NO_COMMENTS)
        form = "" if is_drawn or self.is_mmio else self.form or "fields" * self.fields
        return self.own._replace(
            is_message_only=self.is_graph or self.is_mmio or self.is_message_only, form=form
        )

    @property
    def is_message_only(self) -> bool:
        """Whether lines of printed text are only its message."""
        return self.printk_msg_only and self.trace_printk


_GRAPH = "funcgraph-"
#: The options of OwnStyle, by the name that tracefs gives them.
_OWN = MappingProxyType({"print-parent": "has_parent", "sym-offset": "has_offset", "sym-addr": "has_address"})
_TEXT = (
    "irq-info", "record-tgid", "context-info", "latency-format", "verbose", "annotate", "printk-msg-only",
    "trace_printk", *FORMS, "fields",
)  # fmt: skip
# What changes how the kernel records, or the text of tracers that are not shown here.
_WITHOUT_EFFECT = (
    "blk_cgname", "blk_cgroup", "blk_classic", "block", "branch", "copy_trace_marker", "disable_on_free",
    "event-fork", "func-no-repeats", "func_stack_trace", "function-fork", "function-trace", "graph-time",
    "hash-ptr", "markers", "overwrite", "pause-on-trace", "prof-text-offset", "record-cmd", "sleep-time",
    "stacktrace", "test_nop_accept", "test_nop_refuse", "trace_printk_dest", "userstacktrace",
)  # fmt: skip
# What is in no recording, or is not shown here: these can only be off.
_NOT_SHOWN = (
    "bitmask-list",
    "display-graph",
    "func-args",
    "funcgraph-args",
    "funcgraph-retaddr",
    "sym-userobj",
)
_GRAPH_NAMES = tuple(f"{_GRAPH}{one.name.replace('_', '-')}" for one in fields(GraphOptions))
NAMES = (*_TEXT, *_OWN, *_GRAPH_NAMES, *_WITHOUT_EFFECT, *_NOT_SHOWN)


def is_option(word: str) -> bool:
    """Return whether `with_option` takes a word of `trace_options`."""
    return word not in _NOT_SHOWN and (word in NAMES or word.removeprefix("no") in NAMES)


def is_of_layout(word: str) -> bool:
    """Return whether a word that `with_option` takes changes lines beside the text of a record.

    >>> is_of_layout("raw"), is_of_layout("nofuncgraph-cpu"), is_of_layout("sym-offset=no")
    (True, True, False)
    """
    return _is_one_of(word, (*_TEXT, *_GRAPH_NAMES))


def is_of_text(word: str) -> bool:
    """Return whether a word that `with_option` takes changes lines, or the text of a record.

    >>> is_of_text("nosym-offset"), is_of_text("overwrite")
    (True, False)
    """
    return is_of_layout(word) or _is_one_of(word, tuple(_OWN))


def _is_one_of(word: str, names: Collection[str]) -> bool:
    name = word.partition("=")[0]
    return name in names or (name not in NAMES and name.removeprefix("no") in names)


def with_option(options: TextOptions, word: str) -> TextOptions:
    """Return options with one set, or cleared by `noNAME` and `NAME=no`; names are those of `trace_options`.

    Raises TracepointError for what is not the name of an option, and for one that cannot be shown.

    >>> with_option(TextOptions(), "nofuncgraph-cpu").graph.cpu
    False
    >>> with_option(TextOptions(), "verbose=yes").verbose
    True
    """
    name, equals, answer = word.partition("=")
    is_on = answer != "no"
    if equals and answer not in ("yes", "no"):
        raise TracepointError(f"{word!r}: an option is set by NAME, cleared by noNAME or NAME=no")
    if name not in NAMES and name.startswith("no") and name[2:] in NAMES and not equals:
        name, is_on = name[2:], False
    if name not in NAMES:
        close = difflib.get_close_matches(name, NAMES, n=1)
        advice = f"; did you mean {close[0]}?" if close else ""
        raise TracepointError(f"{name!r} is no option of trace_options{advice}")
    if is_on and name in _NOT_SHOWN:
        raise TracepointError(f"what the option {name} shows is in no recording, or not known here")
    return _changed(options, name, is_on=is_on)


def _changed(options: TextOptions, name: str, *, is_on: bool) -> TextOptions:
    changes: dict[str, Any] = {_OWN.get(name, name.removeprefix(_GRAPH).replace("-", "_")): is_on}
    if name in _OWN:
        return replace(options, own=options.own._replace(**changes))
    if name in _GRAPH_NAMES:
        return replace(options, graph=replace(options.graph, **changes))
    return replace(options, **changes) if name in _TEXT else options
