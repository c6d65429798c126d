"""The language of triggers: `[!]command[:parameters][ if FILTER]`.

Facts: trigger_process_regex(), event_trigger_separate_filter() and event_trigger_parse_num() in
kernel/trace/trace_events_trigger.c, event_hist_trigger_parse() in trace_events_hist.c.
"""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass
from difflib import get_close_matches

from tracepoint.errors import TracefsError
from tracepoint.filter.numbers import read_u64

COUNTED = ("traceon", "traceoff", "snapshot", "stacktrace")
TARGETED = ("enable_event", "disable_event", "enable_hist", "disable_hist")
COMMANDS = (*COUNTED, *TARGETED, "hist")
MAX_TRIGGER = 4095
_STATE = re.compile(r" \[(active|paused)\]$")
_HIST_FILTER = re.compile(r"[ \t]if(?:[ \t]|$)")


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger in its parts.

    `parameters` is the text between the command and the filter (without the first colon), `count`
    how often it still acts (None: without end), `target` the `system:event` that it switches,
    `filter` what stands behind `if`, `is_removal` whether a `!` takes it away, `is_paused` the
    state that a histogram is shown with.
    """

    command: str
    parameters: str = ""
    count: int | None = None
    target: str = ""
    filter: str = ""
    is_removal: bool = False
    is_paused: bool = False

    @property
    def text(self) -> str:
        """The text that sets this trigger (or takes it away)."""
        parts = [("!" if self.is_removal else "") + self.command]
        if self.command == "hist":
            parts.append(self.parameters)
        elif self.target:
            parts.append(self.target)
        if self.count is not None:
            parts.append(str(self.count))
        return ":".join(parts) + (f" if {self.filter}" if self.filter else "")

    @property
    def removal(self) -> str:
        """The text that takes this trigger away."""
        if self.command == "hist":
            return "!" + self.text.removeprefix("!")
        return "!" + self.command + (f":{self.target}" if self.target else "")


def parse_trigger(text: str) -> Trigger:
    """Read a trigger as it is written to a `trigger` file.

    Raises TracefsError (EINVAL) for what the kernel would refuse without looking at the event.

    >>> parse_trigger("enable_event:kmem:kmalloc:3 if nr_rq > 1").target
    'kmem:kmalloc'
    >>> parse_trigger("!traceoff").removal
    '!traceoff'
    """
    stripped = text.strip()
    if not stripped or len(stripped.encode(errors="surrogateescape")) > MAX_TRIGGER:
        raise _refuse(text, "an empty trigger" if not stripped else f"longer than {MAX_TRIGGER} bytes")
    is_removal = stripped.startswith("!")
    body = stripped[is_removal:]
    command = re.split(r"[: \t]", body, maxsplit=1)[0]
    if command not in COMMANDS:
        close = get_close_matches(command, COMMANDS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(COMMANDS)}"
        raise _refuse(text, f"unknown trigger {command!r}; {hint}")
    rest = body[len(command) :]
    if command == "hist":
        return _parse_hist(text, rest, is_removal=is_removal)
    if is_removal and command in COUNTED:
        return Trigger(command, is_removal=True)
    return _parse_simple(text, command, rest, is_removal=is_removal)


def _parse_simple(text: str, command: str, rest: str, *, is_removal: bool) -> Trigger:
    given, _, tail = rest[1:].partition(" ") if rest[:1] == ":" else ("", "", rest)
    given, tab, more = given.partition("\t")
    condition = _condition(text, more + tail if tab else tail)
    words = given.split(":") if rest[:1] == ":" else []
    target = ""
    if command in TARGETED:
        if len(words) < 2 or not words[0] or not words[1]:
            raise _refuse(text, f"{command} needs an event: {command}:SYSTEM:EVENT[:COUNT][ if FILTER]")
        target, words = f"{words[0]}:{words[1]}", words[2:]
    count = None
    if words and not is_removal:
        count = read_u64(words[0].encode(errors="surrogateescape"))
        if count is None:
            raise _refuse(text, f"{words[0]!r} is no count: {command}[:N], N = 0 and more")
    return Trigger(command, given, count, target, condition, is_removal)


def _condition(text: str, rest: str) -> str:
    rest = rest.strip(" \t")
    if not rest:
        return ""
    if not re.match(r"if[ \t]+\S", rest):
        raise _refuse(text, f"{rest!r} is not understood: a trigger may end with ` if FILTER`")
    return rest[2:].strip(" \t")


def _parse_hist(text: str, rest: str, *, is_removal: bool) -> Trigger:
    if rest[:1] != ":" or not rest[1:].strip():
        raise _refuse(text, "a histogram needs a key: hist:keys=FIELD[,FIELD...]")
    body = rest[1:]
    found = _HIST_FILTER.search(body)
    parameters = (body[: found.start()] if found else body).strip(" \t")
    condition = body[found.end() :].strip(" \t") if found else ""
    if found and not condition:
        raise _refuse(text, "nothing stands behind `if`")
    if not any(part.split("=")[0] in ("keys", "key") and "=" in part for part in split_parts(parameters)):
        raise _refuse(text, "a histogram needs a key: hist:keys=FIELD[,FIELD...]")
    return Trigger("hist", parameters, filter=condition, is_removal=is_removal)


def split_parts(parameters: str) -> list[str]:
    """Split the parameters of a histogram at colons that are not inside parentheses.

    >>> split_parts("keys=pid:onmatch(sched.sched_waking).trace(wake,pid)")
    ['keys=pid', 'onmatch(sched.sched_waking).trace(wake,pid)']
    """
    parts = [""]
    depth = 0
    for char in parameters:
        depth += (char == "(") - (char == ")")
        if char == ":" and depth <= 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def read_trigger_file(text: str) -> list[Trigger]:
    r"""Read what a `trigger` file shows; lines with `#` say what could be set.

    >>> [t.text for t in read_trigger_file("traceoff:count=2 if pid > 3\nstacktrace:unlimited\n")]
    ['traceoff:2 if pid > 3', 'stacktrace']
    """
    return [_read_line(line) for line in text.splitlines() if line and not line.startswith("#")]


def _read_line(line: str) -> Trigger:
    state = _STATE.search(line)
    if line.startswith("hist:"):
        parsed = parse_trigger(line[: state.start()] if state else line)
        is_paused = state is not None and state[1] == "paused"
        return Trigger("hist", parsed.parameters, filter=parsed.filter, is_paused=is_paused)
    head, _, condition = line.partition(" if ")
    words = head.split(":")
    shown = words.pop()
    count = int(shown.removeprefix("count=")) if re.fullmatch(r"count=[0-9]+", shown) else None
    return Trigger(words[0], "", count, ":".join(words[1:]), condition)


def _refuse(text: str, message: str) -> TracefsError:
    return TracefsError(f"trigger {text.strip()!r}: {message}", wrote=text, errno=errno.EINVAL)
