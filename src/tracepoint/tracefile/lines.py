"""The lines of `trace`, `trace_pipe`, `trace-cmd report` and `perf script`: task, CPU, time, event, text."""

from __future__ import annotations

import re
from functools import cache
from types import MappingProxyType

from tracepoint.named import NamedTuple
from tracepoint.tracefile.text import flags_text

# A task that is not known is `:-1`, with the id -1, to perf; to the kernel `<...>` in three letters X.
_TRACE = re.compile(
    r"(?!\s{0,40}:-1\s{1,40}-1[/\s])"
    r"\s{0,40}(?P<comm>.{0,60}?)-(?P<pid>(?:(?<=<X{3}>-)-)?\d{1,10})\s{1,40}(?:\(\s{0,9}(?P<tgid>[\d-]{1,10})\)\s{1,9})?\[(?P<cpu>\d{1,5})\]\s+"
    r"(?:(?P<flags>[.dDbXnNpzZHhs][.nNplLbB][.zZhHs][.0-9a-f][.0-9a-f]?[.0-9a-f]?)\s+)?"
    r"(?P<time>\d{1,19}(?:\.(?P<part>\d{6,9}))?): "
    # The time since the record before, of `trace-cmd report --ts-diff`; the first has none.
    r"(?:\([+-]{1,2}\d{1,20}\) {1,20}| {9}(?=\w))?(?P<rest>.*)",
    re.DOTALL,
)
_PERF = re.compile(
    r"\s{0,40}(?P<comm>.{0,60}?)\s{1,40}(?:(?P<tgid>-?\d{1,10})/)?(?P<pid>-?\d{1,10})\s{1,40}\[(?P<cpu>\d{1,5})\]\s+(?P<flags>)"
    r"(?P<time>\d{1,12}\.(?P<part>\d{6,9})):\s+(?:\d+\s+)?(?P<rest>[\w-]+:[\w-]+:.*)",
    re.DOTALL,
)
_SAMPLE = re.compile(
    r".{1,100}?\s(?:-?\d{1,10}/)?-?\d{1,10}\s{1,40}(?:\[\d{1,5}\]\s{1,40})?\d{1,12}\.\d{6,9}: "
)
_NAME = re.compile(r"(?P<system>[A-Za-z_][\w-]*:(?=\S+:))?(?P<name>[A-Za-z_][\w.-]*):\s*")
_SYSCALL = re.compile(r"(?P<name>sys_\w+)(?P<exit> -> )?")
_LOST = re.compile(
    r"CPU:(?P<cpu>\d{1,5}) \[(?:LOST (?P<n>\d{1,18} )?EVENTS|(?P<m>\d{1,18}) EVENTS DROPPED)\]"
)
# What kernels begin a stack with, whose lines follow.
_STACK_NAMES = MappingProxyType({"<stack trace>": "kernel_stack", "<user stack trace>": "user_stack"})
_REPORT_HEADING = re.compile(r"version = \d{1,5}|CPU \d{1,5} is empty|cpus=\d{1,5}", re.ASCII)
_FRAME = re.compile(r"[ \t]+[0-9a-f]{1,16}(?:[ \t].*)?", re.DOTALL)
#: The events that are stacks.
STACKS = frozenset(_STACK_NAMES.values())
MAX_LINE = 1 << 16


class TraceLine(NamedTuple):
    """One record as a line shows it; `system` is empty where the line does not name it.

    The time is known to `unit` (1000 where a line shows microseconds).
    """

    cpu: int
    stamp: int
    unit: int
    pid: int
    comm: str
    tgid: int
    flags: int
    preempt_count: int
    system: str
    event: str
    text: str
    is_of_perf: bool


def read_line(text: str) -> TraceLine | None:
    """Read one line, without its end; None when it is not a record."""
    match = _TRACE.fullmatch(text) or _PERF.fullmatch(text)
    if match is None:
        return None
    part = match["part"]
    stamp, unit = (
        (int(match["time"]), 1) if part is None else (_nanoseconds(match["time"]), 10 ** (9 - len(part)))
    )
    system, event, body = split_event(match["rest"])
    tgid = match["tgid"] or ""
    flags, count = read_flags(match["flags"] or "")
    return TraceLine(
        int(match["cpu"]), stamp, unit, int(match["pid"]), match["comm"].strip(),
        int(tgid) if tgid.isdigit() else 0, flags, count, system, event, body,
        match.re is _PERF,
    )  # fmt: skip


def _nanoseconds(text: str) -> int:
    seconds, _, part = text.partition(".")
    return int(seconds) * 10**9 + int(part.ljust(9, "0"))


def split_event(text: str) -> tuple[str, str, str]:
    """Return system, event and body of what follows the time.

    >>> split_event("sched_wakeup: comm=a")
    ('', 'sched_wakeup', 'comm=a')
    >>> split_event("sched:sched_wakeup: comm=a")
    ('sched', 'sched_wakeup', 'comm=a')
    >>> split_event("sys_write -> 0x2")
    ('syscalls', 'sys_exit_write', 'sys_write -> 0x2')
    >>> split_event("<stack trace>")
    ('', 'kernel_stack', '<stack trace>')
    """
    match = _NAME.match(text)
    if match is not None:
        return (match["system"] or "")[:-1], match["name"], text[match.end() :]
    call = _SYSCALL.match(text)
    if call is not None:
        kind = "exit" if call["exit"] else "enter"
        return "syscalls", f"sys_{kind}_{call['name'][4:]}", text
    named = _STACK_NAMES.get(text.rstrip())
    return "", named or ("function" if " <-" in text else "line"), text


def read_flags(text: str) -> tuple[int, int]:
    """Return `common_flags` and `common_preempt_count` of the characters that show them.

    >>> read_flags("d.h1.")
    (9, 1)
    """
    counts = text[3:5].replace(".", "0").ljust(2, "0")
    return _flags_by_text().get(text[:3], 0), int(counts[0], 16) | int(counts[1], 16) << 4


@cache
def _flags_by_text() -> dict[str, int]:
    """Return the flags with the fewest bits that are shown by each text."""
    numbers = sorted(range(256), key=int.bit_count, reverse=True)
    return {flags_text(n, 0, may_be_lazy=is_lazy)[:3]: n for is_lazy in (True, False) for n in numbers}


def read_lost(text: str) -> tuple[int, int] | None:
    """Return CPU and number of events of a line about a loss, -1: not counted; None for another line."""
    match = _LOST.match(text.lstrip())
    if match is None:
        return None
    number = match["n"] or match["m"]
    return int(match["cpu"]), int(number) if number else -1


def is_report_heading(text: str) -> bool:
    """Say whether a line is one that `trace-cmd report` writes before the records.

    >>> is_report_heading("cpus=2")
    True
    """
    return _REPORT_HEADING.fullmatch(text) is not None


def is_sample(text: str) -> bool:
    """Say whether a line of `perf script` is one of its own, of an event that is not a tracepoint too.

    >>> is_sample("sh   104 [001]    11.000001:     250000 cycles:  7f01 [unknown] (/bin/sh)")
    True
    """
    return _SAMPLE.match(text) is not None


def is_frame(text: str) -> bool:
    r"""Say whether a line may be a frame of a stack of `perf script`: an address, and what is there.

    >>> is_frame("\tffffffff81000010 schedule+0x10 ([kernel.kallsyms])")
    True
    """
    return _FRAME.fullmatch(text) is not None


def is_text(head: str) -> bool:
    """Say whether a file that begins with `head` is one of these texts."""
    if head.startswith("# tracer:"):
        return True
    return any(read_line(line) or read_lost(line) for line in head[:MAX_LINE].split("\n")[:60])
