"""The language of triggers: `[!]command[:parameters][ if FILTER]`.

Facts: trigger_process_regex(), event_trigger_separate_filter() and event_trigger_parse_num() in
kernel/trace/trace_events_trigger.c, event_hist_trigger_parse() in trace_events_hist.c.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches

from tracepoint.filter.numbers import read_u64
from tracepoint.trigger.error import TriggerError

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
    `filter` what follows `if`, `is_removal` whether a `!` takes it away, `is_paused` the
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

    Raises TriggerError (EINVAL) for what the kernel would refuse without looking at the event.

    >>> parse_trigger("enable_event:kmem:kmalloc:3 if nr_rq > 1").target
    'kmem:kmalloc'
    >>> parse_trigger("!traceoff").removal
    '!traceoff'
    """
    stripped = text.strip()
    if not stripped or len(stripped.encode(errors="surrogateescape")) > MAX_TRIGGER:
        raise _refuse(text, "an empty trigger" if not stripped else f"longer than {MAX_TRIGGER} bytes")
    is_removal = stripped.startswith("!")
    command, rest = _split_at(stripped[is_removal:], ": \t")
    if command not in COMMANDS:
        close = get_close_matches(command, COMMANDS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(COMMANDS)}"
        raise _refuse(text, f"unknown trigger {command!r}; {hint}")
    if command == "hist":
        return _parse_hist(text, rest, is_removal=is_removal)
    target = ""
    if command in TARGETED:
        target, rest = _parse_target(text, command, rest)
    if is_removal:
        return Trigger(command, target=target, is_removal=True)
    return _parse_rest(text, command, target, rest)


def _parse_target(text: str, command: str, rest: str) -> tuple[str, str]:
    """Return the event that a trigger switches, and what follows it: event_enable_trigger_parse()."""
    parameters, condition = _split_at(rest, " \t")
    system, _, name = parameters.partition(":")
    name, _, count = name.partition(":")
    if not system or not name:
        raise _refuse(text, f"{command} needs an event: {command}:SYSTEM:EVENT[:COUNT][ if FILTER]")
    return f"{system}:{name}", f"{count} {condition}".strip()


def _parse_rest(text: str, command: str, target: str, rest: str) -> Trigger:
    """Read `[COUNT][ if FILTER]`: event_trigger_separate_filter(), event_trigger_parse_num()."""
    count, parameters = None, ""
    if rest[:1].isdigit():
        parameters, rest = _split_at(rest, " \t")
        count = read_u64(parameters.split(":", 1)[0].encode(errors="surrogateescape"))
        if count is None:
            raise _refuse(text, f"{parameters!r} is not a count: {command}[:N], N = 0 and more")
    if not rest:
        return Trigger(command, parameters, count, target)
    word, condition = _split_at(rest, " \t")
    if word != "if" or not condition:
        raise _refuse(text, f"{rest!r} is not understood: a trigger may end with ` if FILTER`")
    return Trigger(command, parameters, count, target, condition)


def _parse_hist(text: str, rest: str, *, is_removal: bool) -> Trigger:
    """Separate the filter: event_hist_trigger_parse()."""
    found = _HIST_FILTER.search(rest)
    parameters = (rest[: found.start()] if found else rest).strip(" \t")
    condition = rest[found.end() :].strip(" \t") if found else ""
    if found and not condition:
        raise _refuse(text, "nothing follows `if`")
    if not parameters:
        raise _refuse(text, "a histogram needs a key: hist:keys=FIELD[,FIELD...]")
    return Trigger("hist", parameters, filter=condition, is_removal=is_removal)


def _split_at(text: str, separators: str) -> tuple[str, str]:
    """Cut at the first separator, and drop the blanks that follow."""
    at = next((i for i, char in enumerate(text) if char in separators), len(text))
    return text[:at], text[at + 1 :].lstrip(" \t")


def read_trigger_file(text: str) -> list[Trigger]:
    r"""Read what a `trigger` file shows; lines with `#` say what could be set.

    >>> [t.text for t in read_trigger_file("traceoff:count=2 if pid > 3\nstacktrace:unlimited\n")]
    ['traceoff:2 if pid > 3', 'stacktrace']
    """
    return [read_shown_trigger(line) for line in text.splitlines() if line and not line.startswith("#")]


def read_shown_trigger(line: str) -> Trigger:
    """Read a trigger as a kernel shows it: histograms with their state, others with the count left.

    Raises TriggerError for a line that no kernel shows.

    >>> read_shown_trigger("hist:keys=pid:vals=hitcount:sort=hitcount:size=2048 [paused]").is_paused
    True
    """
    state = _STATE.search(line)
    if line.startswith("hist:"):
        parsed = parse_trigger(line[: state.start()] if state else line)
        is_paused = state is not None and state[1] == "paused"
        return Trigger("hist", parsed.parameters, filter=parsed.filter, is_paused=is_paused)
    head, _, condition = line.partition(" if ")
    words = head.split(":")
    shown = words.pop()
    if not words:
        raise _refuse(line, "this is not how a kernel shows a trigger")
    count = int(shown.removeprefix("count=")) if re.fullmatch(r"count=[0-9]+", shown) else None
    return Trigger(words[0], "", count, ":".join(words[1:]), condition)


def _refuse(text: str, message: str) -> TriggerError:
    return TriggerError(f"trigger {text.strip()!r}: {message}")
