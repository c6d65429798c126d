"""The state machine of control: operations on a tracing session, chosen at random or by hypothesis.

An operation is a tuple of a name and plain words, so that it can be sent into a guest.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tracepoint.control import dynamic
from tracepoint.errors import TracepointError

if TYPE_CHECKING:
    from tracepoint.control.session import TracefsSession

EVENTS = (
    "sched:sched_switch",
    "sched:sched_wakeup",
    "sched:sched_process_fork",
    "irq:softirq_entry",
    "irq:softirq_exit",
)
FILTERS = {
    "sched:sched_switch": (
        "prev_pid == 1",
        'prev_comm ~ "a*" || next_prio > 100',
        "prev_pid ==",
        "nosuch == 1",
        "(prev_pid == 2",
    ),
    "sched:sched_wakeup": ("prio < 100", 'comm == "x"', "pid", "pid == 1)"),
    "sched:sched_process_fork": ("child_pid != 0", "child_comm == 3"),
    "irq:softirq_entry": ("vec == 1", "vec & 6 && !(vec == 4)", "vec == TIMER"),
    "irq:softirq_exit": ("vec > 3", "vec > 0x"),
}
# Conditions that never hold, so that real events leave no trace of having fired.
NEVER = {
    "sched:sched_switch": "prev_prio == -7",
    "sched:sched_wakeup": "prio == -7",
    "sched:sched_process_fork": "child_pid == -7",
    "irq:softirq_entry": "vec == 77",
    "irq:softirq_exit": "vec == 77",
}
KEYS = {
    "sched:sched_switch": "prev_pid",
    "sched:sched_wakeup": "pid",
    "sched:sched_process_fork": "child_pid",
    "irq:softirq_entry": "vec",
    "irq:softirq_exit": "vec",
}
DEFINITIONS = ("s:tp_wake u64 lat; pid_t pid", "p:kprobes/tp_open do_sys_openat2", "s:tp_other u64 a")
DYNAMIC = ("synthetic:tp_wake", "kprobes:tp_open", "synthetic:tp_other")
WORDS = (
    "sched_switch",
    "irq",
    "irq:",
    "*:sched_wakeup",
    "!sched:sched_switch",
    "!irq",
    "nosuch",
    "sched:sched_*",
    "sched_wakeup irq:softirq_entry",
)
PATTERNS = (
    "irq:*",
    "irq",
    "sched:sched_sw*",
    "irq:softirq_en*",
    "sched:sched_process_fork",
    "kprobes:tp_*",
    "sched:no*",
)


def operations() -> list[tuple[str, ...]]:
    """Return every operation there is."""
    made: list[tuple[str, ...]] = []
    for pattern in PATTERNS:
        made += [("enable", pattern), ("disable", pattern)]
    made += [("set_event", words) for words in WORDS]
    for event, texts in FILTERS.items():
        made += [("filter", event, text) for text in (*texts, "0")]
        made += [("unchecked_filter", event, text) for text in texts]
        made += [("trigger", event, text) for text in triggers(event)]
    made += [("system_filter", "irq", "vec == 3"), ("system_filter", "sched", "prev_pid == 3")]
    made += [("system_filter", "sched", "0"), ("system_filter", "irq", "nosuch == 3")]
    made += [("clock", name) for name in ("global", "mono", "boot", "nosuch")]
    made += [
        ("option", name, value) for name in ("markers", "overwrite", "verbose", "nosuch") for value in "01"
    ]
    made += [
        ("buffer", "8192", ""),
        ("buffer", "100000", ""),
        ("buffer", "70000", "cpu1"),
        ("buffer", "0", ""),
    ]
    made += [("pids", "1"), ("pids", "1 2"), ("pids", ""), ("excluded_pids", "3")]
    made += [("on", "0"), ("on", "1"), ("snapshot", "take"), ("snapshot", "free"), ("mark", "hello")]
    made += [("define", text) for text in DEFINITIONS] + [("undefine", name) for name in DYNAMIC]
    made += [("filter", name, "common_pid != 0") for name in DYNAMIC]
    made += [("trigger", name, "stacktrace:0 if common_pid == -7") for name in DYNAMIC]
    made += [("enable", name) for name in DYNAMIC] + [("instance", "make"), ("instance", "leave")]
    return made


def triggers(event: str) -> list[str]:
    """Return triggers for an event, some of them wrong."""
    never, key = NEVER[event], KEYS[event]
    others = [name for name in EVENTS if name != event]
    made = [
        f"traceoff if {never}",
        f"traceon:3 if {never}",
        f"stacktrace:0 if {never}",
        f"snapshot if {never}",
        f"enable_event:{others[0]}:2 if {never}",
        f"disable_event:{others[1]} if {never}",
        f"hist:keys={key}:pause if {never}",
        f"hist:keys={key}:vals=hitcount:size=256 if {never}",
        f"hist:keys={key}:tp{EVENTS.index(event)}=common_timestamp.usecs if {never}",
    ]
    removals = [
        "!traceoff",
        "!stacktrace",
        "!snapshot",
        f"!enable_event:{others[0]}",
        f"!disable_event:{others[1]}",
    ]
    removals += ["!" + text.replace(":pause", "") for text in made if text.startswith("hist")]
    wrong = ["nosuch", "traceon:x", "traceoff if nosuch == 1", "enable_event:no:such", "hist:vals=hitcount"]
    return made + removals + wrong


OPERATIONS = operations()


def choose(seed: int, n: int) -> list[tuple[str, ...]]:
    """Return `n` operations, the same for the same seed."""
    source = random.Random(seed)
    return [source.choice(OPERATIONS) for _ in range(n)]


def perform(tracing: TracefsSession, operation: tuple[str, ...]) -> str:
    """Do one operation at the top level; return `ok`, or the error's number and class."""
    try:
        _perform(tracing, operation)
    except TracepointError as error:
        return f"{type(error).__name__} {getattr(error, 'errno', 0)}"
    return "ok"


def _perform(tracing: TracefsSession, operation: tuple[str, ...]) -> None:
    match operation:
        case ("enable", pattern):
            tracing.enable(pattern)
        case ("disable", pattern):
            tracing.disable(pattern)
        case ("set_event", words):
            tracing.set_event(words)
        case ("filter", event, text):
            tracing.event(event).set_filter(text)
        case ("unchecked_filter", event, text):
            tracing.event(event).set_filter(text, is_checked=False)
        case ("system_filter", system, text):
            tracing[system].set_filter(text)
        case ("trigger", event, text):
            tracing.event(event).add_trigger(text)
        case ("clock", name):
            tracing.clock = name
        case ("option", name, value):
            tracing.set_option(name, value == "1")
        case ("buffer", size, cpu):
            tracing.set_buffer(int(size), cpu)
        case ("pids", words):
            tracing.pids = [int(word) for word in words.split()]
        case ("excluded_pids", words):
            tracing.excluded_pids = [int(word) for word in words.split()]
        case ("on", value):
            tracing.is_on = value == "1"
        case ("snapshot", "take"):
            tracing.take_snapshot()
        case ("snapshot", _):
            tracing.free_snapshot()
        case ("mark", text):
            tracing.mark(text)
        case ("define", text):
            dynamic.define_dynamic(tracing.tracefs, text)
            tracing.forget_names()
        case ("undefine", name):
            dynamic.remove_dynamic(tracing.tracefs, name)
            tracing.forget_names()
        case ("instance", "make"):
            made = tracing.instance("tp-machine", buffer_bytes=8192, clock="mono")
            made.enable("sched:sched_switch")
            made.event("irq:softirq_entry").trigger = "hist:keys=vec"
        case ("instance", _):
            if "tp-machine" in tracing.instances:
                tracing.remove_instance("tp-machine")
        case _:
            raise ValueError(operation)
