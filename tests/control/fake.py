"""A tracefs made of Python objects, behaving as spec and kernel source say; mounted nowhere.

The guest tests run the same operations against it and against real kernels and compare every
setting after each of them, so it cannot lie for long.
"""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass, field

from tracepoint.filter.error import FilterError
from tracepoint.filter.parse import is_clear, parse_filter
from tracepoint.filter.profile import KERNEL_6_1, FilterProfile
from tracepoint.layout.format import EventFormat, read_format, write_format
from tracepoint.trigger.command import parse_trigger
from tracepoint.trigger.error import TriggerError

COMMON = """name: {name}
ID: {id}
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:unsigned char common_flags;	offset:2;	size:1;	signed:0;
	field:unsigned char common_preempt_count;	offset:3;	size:1;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

{fields}
print fmt: "%d", REC->common_pid
"""
AVAILABLE = (
    "# Available triggers:\n"
    "# traceon traceoff snapshot stacktrace enable_event disable_event enable_hist disable_hist hist\n"
)
CLOCKS = "local global counter uptime perf mono mono_raw boot tai x86-tsc".split()
OPTIONS = {
    "annotate": 1,
    "context-info": 1,
    "event-fork": 0,
    "irq-info": 1,
    "markers": 1,
    "overwrite": 1,
    "record-tgid": 0,
    "record-cmd": 1,
    "verbose": 0,
}
GLOBAL_FILTER = "### global filter ###\n"
PAGE = 4080


def fail(number: int) -> OSError:
    return OSError(number, "")


def make_format(system: str, name: str, fields: str, number: int = 20) -> EventFormat:
    """Return a format with fields given as `type name[;...]`, laid out one after the other."""
    at = 8
    lines = []
    for declaration in fields.split(";"):
        ctype, _, rest = declaration.strip().rpartition(" ")
        _, bracket, count = rest.partition("[")
        size = {"char": 1, "int": 4, "pid_t": 4, "long": 8, "u64": 8}.get(ctype.split()[-1], 8)
        size *= int(count.rstrip("]")) if bracket else 1
        lines.append(f"\tfield:{ctype} {rest};\toffset:{at};\tsize:{size};\tsigned:1;\n")
        at += size
    return read_format(COMMON.format(name=name, id=number, fields="".join(lines)), system)


DEFAULT_EVENTS = {
    "irq:softirq_entry": "unsigned int vec",
    "irq:softirq_exit": "unsigned int vec",
    "sched:sched_process_fork": "char parent_comm[16]; pid_t parent_pid; char child_comm[16]; pid_t child_pid",
    "sched:sched_switch": (
        "char prev_comm[16]; pid_t prev_pid; int prev_prio; long prev_state; "
        "char next_comm[16]; pid_t next_pid; int next_prio"
    ),
    "sched:sched_wakeup": "char comm[16]; pid_t pid; int prio; int target_cpu",
}


def default_formats() -> dict[str, EventFormat]:
    return {
        name: make_format(*name.split(":"), fields, 20 + n)
        for n, (name, fields) in enumerate(DEFAULT_EVENTS.items())
    }


@dataclass
class FakeEvent:
    is_enabled: bool = False
    n_soft: int = 0
    is_soft_disabled: bool = False
    filter: str = "none\n"
    simple: list[str] = field(default_factory=list)  # newest first, as the kernel lists them
    hists: list[str] = field(default_factory=list)

    def switch(self, is_on: bool, is_soft: bool) -> None:
        """Do what __ftrace_event_enable_disable() in kernel/trace/trace_events.c does."""
        if is_on:
            if is_soft:
                self.n_soft += 1
                if self.n_soft > 1:
                    return
                self.is_soft_disabled = self.is_soft_disabled or not self.is_enabled
            else:
                self.is_soft_disabled = False
            self.is_enabled = True
            return
        if is_soft:
            self.n_soft -= 1
            if self.n_soft > 0:
                return
            ends = self.is_soft_disabled
        else:
            ends = not self.n_soft
        if ends:
            self.is_enabled = False
        self.is_soft_disabled = bool(self.n_soft)

    @property
    def state(self) -> str:
        mark = "*" if self.n_soft or self.is_soft_disabled else ""
        return ("1" if self.is_enabled and not self.is_soft_disabled else "0") + mark


@dataclass
class FakeArray:
    events: dict[str, FakeEvent]
    clock: str = "global"
    options: dict[str, int] = field(default_factory=lambda: dict(OPTIONS))
    pages: list[int] = field(default_factory=lambda: [354, 354])
    pids: dict[str, set[int]] = field(
        default_factory=lambda: {"set_event_pid": set(), "set_event_notrace_pid": set()}
    )
    numbers: dict[str, str] = field(
        default_factory=lambda: {"tracing_on": "1", "buffer_percent": "50", "tracing_cpumask": "3"}
    )
    has_snapshot: bool = False
    trace: str = ""
    errors: list[str] = field(default_factory=list)


class FakeTracefs:
    """Files of a made-up kernel; `before_write` is called with the number of each change."""

    root = "/fake/tracing"
    symbols_last = True

    def __init__(
        self, formats: dict[str, EventFormat] | None = None, profile: FilterProfile = KERNEL_6_1
    ) -> None:
        self.formats = dict(formats or default_formats())
        self.profile = profile
        self.arrays = {"": FakeArray({name: FakeEvent() for name in self.formats})}
        self.dynamic: list[tuple[str, str]] = []
        self.readers: set[str] = set()
        self.n_changes = 0
        self.tracer = "nop"
        self.before_write = lambda number: None
        self.after_write = lambda number: None

    @property
    def recording(self) -> FakeArray | None:
        """An instance that records, for other threads: one that has just been made is on, without events."""
        for name, array in list(self.arrays.items()):
            # In this order: it is turned off before events are enabled.
            if (
                name
                and any(e.is_enabled for e in array.events.values())
                and array.numbers["tracing_on"] == "1"
            ):
                return array
        return None

    # -- the Files protocol ------------------------------------------------------------------

    def read(self, path: str) -> str:
        array, rest = self._array(path)
        match rest.split("/"):
            case ["available_events"]:
                return "".join(f"{name}\n" for name in reversed(self.formats))
            case ["set_event"]:
                return "".join(f"{n}\n" for n, e in reversed(array.events.items()) if e.is_enabled)
            case ["events", "enable"]:
                return self._mixed(array, "")
            case ["events", system, "enable"] if system in self._systems():
                return self._mixed(array, system)
            case ["events", system, "filter"] if system in self._systems():
                return GLOBAL_FILTER
            case ["events", system, name, what] if f"{system}:{name}" in array.events:
                return self._read_event(array, f"{system}:{name}", what)
            case ["options", name] if name in array.options:
                return f"{array.options[name]}\n"
            case ["per_cpu", cpu, "buffer_size_kb"]:
                return f"{array.pages[int(cpu[3:])] * PAGE // 1024}\n"
            case ["buffer_size_kb"]:
                same = len(set(array.pages)) == 1
                return f"{array.pages[0] * PAGE // 1024}\n" if same else "X\n"
            case ["trace_clock"]:
                return " ".join(f"[{c}]" if c == array.clock else c for c in CLOCKS) + "\n"
            case [("set_event_pid" | "set_event_notrace_pid") as name]:
                return "".join(f"{pid}\n" for pid in sorted(array.pids[name]))
            case [name] if name in array.numbers:
                return array.numbers[name] + "\n"
            case ["current_tracer"]:
                return f"{self.tracer}\n"
            case ["trace_options"]:
                return f"print-parent\n{'' if int(array.options['record-tgid']) else 'no'}record-tgid\n"
            case ["snapshot"]:
                return "# tracer: nop\n" + ("" if array.has_snapshot else "# * Snapshot is freed *\n")
            case ["error_log"]:
                return "".join(array.errors)
            case ["trace"]:
                return array.trace
            case ["dynamic_events"] if array is self.arrays[""]:
                return "".join(line + "\n" for line, _ in self.dynamic)
            case _:
                raise fail(errno.ENOENT)

    def write(self, path: str, text: str, *, truncate: bool = False) -> None:
        self.n_changes += 1
        self.before_write(self.n_changes)
        self._write(path, text, truncate)
        self.after_write(self.n_changes)

    def names(self, path: str) -> list[str]:
        array, rest = self._array(path)
        match rest.split("/"):
            case ["events"]:
                return sorted({*self._systems(), "enable", "header_page"})
            case ["events", system]:
                own = [n.split(":")[1] for n in array.events if n.startswith(system + ":")]
                return sorted([*own, "enable", "filter"])
            case ["options"]:
                return sorted(array.options)
            case ["per_cpu"]:
                return [f"cpu{n}" for n in range(len(array.pages))]
            case ["instances"]:
                return sorted(name for name in self.arrays if name)
        raise fail(errno.ENOENT)

    def exists(self, path: str) -> bool:
        try:
            self.read(path)
        except OSError:
            try:
                array, rest = self._array(path + "/")
            except OSError:
                return False
            words = rest.rstrip("/").split("/")
            if words == [""]:
                return True
            if len(words) == 3:
                return f"{words[1]}:{words[2]}" in array.events
            return len(words) == 2 and words[1] in self._systems()
        return True

    def make_folder(self, path: str) -> None:
        self.n_changes += 1
        self.before_write(self.n_changes)
        parent, _, name = path.partition("/")
        if parent != "instances" or "/" in name:
            raise fail(errno.EPERM)
        if name in self.arrays:
            raise fail(errno.EEXIST)
        self.arrays[name] = FakeArray({n: FakeEvent() for n in self.formats}, clock="local")
        self.after_write(self.n_changes)

    def remove_folder(self, path: str) -> None:
        self.n_changes += 1
        self.before_write(self.n_changes)
        name = path.removeprefix("instances/")
        if name not in self.arrays or not name:
            raise fail(errno.ENOENT)
        if name in self.readers:
            raise fail(errno.EBUSY)
        del self.arrays[name]
        self.after_write(self.n_changes)

    # -- how each file answers ---------------------------------------------------------------

    def _array(self, path: str) -> tuple[FakeArray, str]:
        words = path.split("/")
        name, rest = (words[1], words[2:]) if words[0] == "instances" and len(words) > 2 else ("", words)
        if name not in self.arrays:
            raise fail(errno.ENOENT)
        return self.arrays[name], "/".join(rest)

    def _systems(self) -> list[str]:
        return sorted({name.split(":")[0] for name in self.formats})

    @staticmethod
    def _mixed(array: FakeArray, system: str) -> str:
        states = {e.is_enabled for n, e in array.events.items() if not system or n.startswith(system + ":")}
        return "?\n" if not states else "X\n" if len(states) > 1 else "1\n" if True in states else "0\n"

    def _read_event(self, array: FakeArray, name: str, what: str) -> str:
        event = array.events[name]
        match what:
            case "enable":
                return event.state + "\n"
            case "filter":
                return event.filter
            case "trigger":
                return "".join(f"{line}\n" for line in event.simple + event.hists) or AVAILABLE
            case "format":
                return write_format(self.formats[name])
            case "id":
                return f"{self.formats[name].id}\n"
            case "hist":
                empty = "\n\nTotals:\n    Hits: 0\n    Entries: 0\n    Dropped: 0\n"
                return "\n\n".join(
                    f"# event histogram\n#\n# trigger info: {t}\n#\n{empty}" for t in event.hists
                )
        raise fail(errno.ENOENT)

    def _write(self, path: str, text: str, truncate: bool) -> None:
        array, rest = self._array(path)
        match rest.split("/"):
            case ["set_event"]:
                self._set_event(array, text, truncate)
            case ["events", "enable"]:
                self._enable(array, "", text)
            case ["events", system, "enable"] if system in self._systems():
                self._enable(array, system, text)
            case ["events", system, "filter"] if system in self._systems():
                self._system_filter(array, system, text)
            case ["events", system, name, what] if f"{system}:{name}" in array.events:
                self._write_event(array, f"{system}:{name}", what, text, truncate)
            case ["options", name] if name in array.options:
                if text.strip() not in ("0", "1"):
                    raise fail(errno.EINVAL)
                array.options[name] = int(text)
            case ["per_cpu", cpu, "buffer_size_kb"]:
                array.pages[int(cpu[3:])] = self._pages(text)
            case ["buffer_size_kb"]:
                array.pages = [self._pages(text)] * len(array.pages)
            case ["trace_clock"]:
                if text.strip() not in CLOCKS:
                    raise fail(errno.EINVAL)
                array.clock, array.trace = text.strip(), ""
            case [("set_event_pid" | "set_event_notrace_pid") as name]:
                if truncate:
                    array.pids[name].clear()
                for word in text.split():
                    if not word.isdecimal():
                        raise fail(errno.EINVAL)
                    array.pids[name].add(int(word))
            case ["tracing_on"]:
                array.numbers["tracing_on"] = "1" if int(text) else "0"
            case [name] if name in array.numbers:
                array.numbers[name] = text.strip()
            case ["snapshot"]:
                array.has_snapshot = {"0": False, "1": True}.get(text.strip(), array.has_snapshot)
            case ["trace_marker"]:
                if array.numbers["tracing_on"] == "0":
                    raise fail(errno.EBADF)
                if not array.options["markers"]:
                    raise fail(errno.EINVAL)
                array.trace += f"tracing_mark_write: {text}\n"
            case ["trace"]:
                array.trace = ""
            case ["dynamic_events"] if array is self.arrays[""]:
                self._define(text)
            case _:
                raise fail(errno.ENOENT)

    @staticmethod
    def _pages(text: str) -> int:
        if not text.strip().isdecimal() or not int(text):
            raise fail(errno.EINVAL)
        return max(2, -(-int(text) * 1024 // PAGE))

    def _set_event(self, array: FakeArray, text: str, truncate: bool) -> None:
        if truncate:
            for event in array.events.values():
                if event.is_enabled:
                    event.switch(False, False)
        for word in text.split():
            is_on = not word.startswith("!")
            match = word.removeprefix("!")
            left, colon, right = match.partition(":")
            found = []
            for name in array.events:
                system, _, event = name.partition(":")
                if colon:
                    hit = left in ("", "*", system) and right in ("", "*", event)
                else:
                    hit = match in (system, event)
                if hit:
                    found.append(name)
            if not found:
                raise fail(errno.EINVAL)
            for name in found:
                array.events[name].switch(is_on, False)

    @staticmethod
    def _enable(array: FakeArray, system: str, text: str) -> None:
        if text.strip() not in ("0", "1") or text != text.strip(" "):
            raise fail(errno.EINVAL)
        for name, event in array.events.items():
            if not system or name.startswith(system + ":"):
                event.switch(text.strip() == "1", False)

    def _write_event(self, array: FakeArray, name: str, what: str, text: str, truncate: bool) -> None:
        event = array.events[name]
        if what == "enable":
            if text.strip() not in ("0", "1"):
                raise fail(errno.EINVAL)
            event.switch(text.strip() == "1", False)
        elif what == "filter":
            self._filter(array, event, self.formats[name], text)
        elif what == "trigger":
            if truncate:
                while event.hists:
                    event.hists.pop()
                    self._hold(event, False)
            self._trigger(array, name, text)
        else:
            raise fail(errno.EACCES)

    def _filter(self, array: FakeArray, event: FakeEvent, layout: EventFormat, text: str) -> None:
        if is_clear(text):
            event.filter = "none\n"
            return
        try:
            event.filter = parse_filter(text, layout, self.profile).text + "\n"
        except FilterError as error:
            event.filter = error.report
            array.errors = [*array.errors[-7:], "[    1.000000] " + error.log_entry]
            raise fail(error.errno) from error

    def _system_filter(self, array: FakeArray, system: str, text: str) -> None:
        for name, event in array.events.items():
            if not name.startswith(system + ":"):
                continue
            if is_clear(text):
                event.filter = "none\n"
                continue
            try:
                event.filter = parse_filter(text, self.formats[name], self.profile).text + "\n"
            except FilterError as error:
                event.filter = error.for_system().report

    @staticmethod
    def _hold(event: FakeEvent, is_on: bool) -> None:
        """Put the event in soft mode with its first trigger, and out with its last."""
        n_left = len(event.simple) + len(event.hists)
        if n_left == (1 if is_on else 0):
            event.switch(is_on, True)

    def _trigger(self, array: FakeArray, name: str, text: str) -> None:
        event = array.events[name]
        try:
            trigger = parse_trigger(text)
            if trigger.filter and not trigger.is_removal:
                parse_filter(trigger.filter, self.formats[name], self.profile)
        except (TriggerError, FilterError):
            raise fail(errno.EINVAL) from None
        target = array.events.get(trigger.target)
        if trigger.target and target is None:
            raise fail(errno.EINVAL)
        if trigger.command == "hist":
            self._hist(array, event, trigger.parameters, trigger.filter, trigger.is_removal)
            return
        heads = {"traceon": ("traceon", "traceoff"), "traceoff": ("traceon", "traceoff")}
        heads |= dict.fromkeys(("enable_event", "disable_event"), ("enable_event", "disable_event"))
        heads |= dict.fromkeys(("enable_hist", "disable_hist"), ("enable_hist", "disable_hist"))
        same = [
            h + (f":{trigger.target}" if trigger.target else "") + ":"
            for h in heads.get(trigger.command, (trigger.command,))
        ]
        there = [line for line in event.simple if line.startswith(tuple(same))]
        if trigger.is_removal:
            for line in there[:1]:
                event.simple.remove(line)
                self._hold(event, False)
                if target is not None:
                    target.switch(False, True)
            return
        if there:
            raise fail(errno.EEXIST)
        count = "unlimited" if trigger.count is None else f"count={trigger.count}"
        head = trigger.command + (f":{trigger.target}" if trigger.target else "")
        event.simple.insert(0, f"{head}:{count}" + (f" if {trigger.filter}" if trigger.filter else ""))
        if target is not None:
            target.switch(True, True)
        self._hold(event, True)
        if trigger.command == "snapshot":
            array.has_snapshot = True

    def _hist(
        self, array: FakeArray, event: FakeEvent, parameters: str, condition: str, is_removal: bool
    ) -> None:
        parts = dict(part.split("=", 1) for part in parameters.split(":") if "=" in part)
        values = [
            "hitcount",
            *[v for v in parts.get("vals", parts.get("values", "")).split(",") if v not in ("", "hitcount")],
        ]
        variables = "".join(
            f":{k}={v}"
            for k, v in parts.items()
            if k not in ("keys", "key", "vals", "values", "sort", "size", "clock")
        )
        uses_clock = "common_timestamp" in parameters
        shown = (
            f"hist:keys={parts.get('keys', parts.get('key'))}:vals={','.join(values)}{variables}"
            f":sort={parts.get('sort', 'hitcount')}:size={parts.get('size', '2048')}"
            + (f":clock={parts.get('clock', 'global')}" if uses_clock else "")
            + (f" if {condition}" if condition else "")
        )
        # The number of entries makes no difference: hist_trigger_match() in trace_events_hist.c.
        there = [line for line in event.hists if _without_size(line) == _without_size(shown)]
        if is_removal:
            for line in there[:1]:
                event.hists.remove(line)
                self._hold(event, False)
            return
        state = "paused" if parameters.endswith(":pause") else "active"
        if there:
            if state == "active":
                raise fail(errno.EEXIST)
            event.hists[event.hists.index(there[0])] = f"{there[0].rpartition(' [')[0]} [paused]"
            return
        event.hists.append(f"{shown} [{state}]")
        if uses_clock:
            array.clock = parts.get("clock", "global")
        self._hold(event, True)

    def _define(self, text: str) -> None:
        head, rest = (*text.split(None, 1), "")[:2]
        kind, _, name = head.partition(":")
        full = name.replace("/", ":")
        if kind == "-":
            lines = [line for line, event in self.dynamic if event == full]
            if not lines:
                raise fail(errno.ENOENT)
            if any(array.events[full].is_enabled for array in self.arrays.values()):
                raise fail(errno.EBUSY)
            self.dynamic.remove((lines[0], full))
            del self.formats[full]
            for array in self.arrays.values():
                del array.events[full]
            return
        if kind == "s" and ":" not in full:
            full = f"synthetic:{full}"
        if full in self.formats:
            raise fail(errno.EEXIST)
        self.formats[full] = make_format(*full.split(":"), rest if kind == "s" else "long __probe_ip", 1000)
        for array in self.arrays.values():
            array.events[full] = FakeEvent()
        gap = "\t" if kind == "s" else " "
        self.dynamic.append((f"{kind}:{full.replace(':', '/')}{gap}{rest}", full))


def _without_size(shown: str) -> str:
    return re.sub(r":size=\d+| \[(active|paused)\]$", "", shown)
