"""The settings that a write changes, and how to read the value of each.

A setting is named by its path, and its value is a text.  Some writes change many settings: the
`enable` of a system, a histogram that chooses the clock, a trigger that turns tracing off later.
"""

from __future__ import annotations

import contextlib
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tracepoint.control.operations import Files

# Files of a trace array (the top level or an instance) that are settings.
ARRAY_SETTINGS = (
    "trace_clock",
    "buffer_percent",
    "set_event_pid",
    "set_event_notrace_pid",
    "tracing_cpumask",
    "current_tracer",
    "tracing_on",
)
SNAPSHOT_FREED = "freed"
SNAPSHOT_ALLOCATED = "allocated"
INSTANCE_MADE = "made"
INSTANCE_REMOVED = "removed"
# What every event of a new instance has.
_NEW_EVENT = {"enable": ("0", "0*"), "filter": ("none",), "trigger": ("",)}
_ARRAY = re.compile(r"instances/[^/]+/")


def split_array(path: str) -> tuple[str, str]:
    """Split a path into its trace array (empty for the top level) and the rest.

    >>> split_array("instances/web/events/sched/enable")
    ('instances/web/', 'events/sched/enable')
    """
    match = _ARRAY.match(path)
    return (match[0], path[match.end() :]) if match else ("", path)


def touched_by(files: Files, path: str, text: str) -> Iterator[str]:
    """Yield the settings that writing `text` to `path` can change, now or when an event fires."""
    array, rest = split_array(path)
    match rest.split("/"):
        case ["events", "enable"] | ["set_event"]:
            for system in _folders(files, array + "events"):
                yield from _of_events(files, f"{array}events/{system}", "enable")
        case ["events", system, ("enable" | "filter") as what]:
            yield from _of_events(files, f"{array}events/{system}", what)
        case ["events", _, _, "trigger"]:
            yield path
            yield from _touched_by_trigger(array, text)
            yield from _touched_again(files, array, path)
        case ["buffer_size_kb"] | ["per_cpu", _, "buffer_size_kb"]:
            for cpu in files.names(array + "per_cpu"):
                yield f"{array}per_cpu/{cpu}/buffer_size_kb"
        case ["trace_options"]:
            yield f"{array}options/{text.strip().removeprefix('no')}"
            yield f"{array}options/{text.strip()}"
        case [("synthetic_events" | "kprobe_events" | "uprobe_events" | "dynamic_events")]:
            yield "dynamic_events"
            yield from _of_dynamic_events(files)
        case ["trace" | "trace_marker" | "trace_marker_raw" | "error_log"] | ["per_cpu", _, "trace"]:
            # Data, not settings: clearing it cannot be undone.
            return
        case _:
            yield path


def _touched_again(files: Files, array: str, path: str) -> Iterator[str]:
    """Yield the settings that existing triggers change when a restore sets them again."""
    from tracepoint.trigger.command import read_trigger_file  # noqa: PLC0415 - the language of triggers
    from tracepoint.trigger.error import TriggerError  # noqa: PLC0415

    with contextlib.suppress(OSError, TriggerError):
        for trigger in read_trigger_file(files.read(path)):
            found = _touched_by_trigger(array, trigger.text)
            yield from (name for name in found if name in (f"{array}snapshot", f"{array}trace_clock"))


def _touched_by_trigger(array: str, text: str) -> Iterator[str]:
    """Yield what a trigger changes besides itself: right away, or each time it fires."""
    from tracepoint.trigger.command import parse_trigger  # noqa: PLC0415 - the language of triggers
    from tracepoint.trigger.error import TriggerError  # noqa: PLC0415

    try:
        trigger = parse_trigger(text)
    except TriggerError:
        return
    match trigger.command:
        case "traceon" | "traceoff":
            yield array + "tracing_on"
        case "snapshot":
            yield array + "snapshot"
        case "enable_event" | "disable_event":
            yield f"{array}events/{trigger.target.replace(':', '/')}/enable"
        case "enable_hist" | "disable_hist":
            yield f"{array}events/{trigger.target.replace(':', '/')}/trigger"
        case "hist":
            # A key or value that is a time stamp chooses the clock of the whole array.
            yield array + "trace_clock"
            if "snapshot(" in trigger.parameters:
                yield array + "snapshot"


def _of_dynamic_events(files: Files) -> Iterator[str]:
    """Yield what goes with a definition that is removed: the event's settings, in every instance too."""
    arrays = ["", *(f"instances/{name}/" for name in files.names("instances"))]
    for line in files.read("dynamic_events").splitlines():
        event = line.split(None, 1)[0].partition(":")[2]
        for array in arrays:
            yield from (f"{array}events/{event}/{what}" for what in ("enable", "filter", "trigger"))


def _of_events(files: Files, folder: str, what: str) -> Iterator[str]:
    # Not each has such a file (those of `ftrace` have none); who reads it finds that out.
    for event in _folders(files, folder):
        yield f"{folder}/{event}/{what}"


def _folders(files: Files, folder: str) -> Iterable[str]:
    plain = {"enable", "filter", "header_page", "header_event"}
    return [name for name in files.names(folder) if name not in plain]


def capture(files: Files, path: str) -> str | None:
    """Return the value of a setting as it is kept and compared, None when there is no such setting.

    Only the facts that can be put back count: of a snapshot whether its buffer is there, of the
    clock the one chosen, of an instance that is not there yet that it is `made`; for one that is
    removed see `read_instance`.
    """
    _, rest = split_array(path)
    if path.startswith("instances/") and not rest:
        return None if files.exists(path.rstrip("/")) else INSTANCE_MADE
    try:
        return _value(rest, files.read(path))
    except FileNotFoundError:
        return None


def read_instance(files: Files, array: str) -> dict[str, str]:
    """Return what is needed to recreate an instance that is about to be removed: path -> value.

    This omits what every event of a new instance has.
    """
    return {array: INSTANCE_REMOVED} | {
        path: value
        for path, value in read_settings(files, array).items()
        if value not in _NEW_EVENT.get(path.rpartition("/")[2], ())
    }


def _value(rest: str, text: str) -> str:
    if rest == "snapshot":
        return SNAPSHOT_FREED if "* Snapshot is freed *" in text else SNAPSHOT_ALLOCATED
    if rest == "trace_clock":
        return chosen(text)
    if rest.endswith("/trigger"):
        return "".join(line + "\n" for line in text.splitlines() if not line.startswith("#"))
    if rest.endswith("buffer_size_kb"):
        return text.split(" ", 1)[0].strip()
    return text.removesuffix("\n")


def chosen(text: str) -> str:
    """Return the word in brackets.

    >>> chosen("local [global] counter")
    'global'
    """
    match = re.search(r"\[([^\]]*)\]", text)
    return match[1] if match else text.strip()


def read_settings(files: Files, array: str = "") -> dict[str, str]:
    """Return every setting of a trace array that can be restored: path -> value.

    With the top level (`array` empty) also the dynamic events and the names of the instances.
    """
    found: dict[str, str] = {}
    paths = [array + name for name in ARRAY_SETTINGS] + [array + "snapshot"]
    paths += [f"{array}options/{name}" for name in files.names(array + "options")]
    paths += [f"{array}per_cpu/{cpu}/buffer_size_kb" for cpu in files.names(array + "per_cpu")]
    if not array:
        paths.append("dynamic_events")
        found["instances"] = "\n".join(files.names("instances"))
    for system in _folders(files, array + "events"):
        events = [f"{array}events/{system}/{event}" for event in _folders(files, f"{array}events/{system}")]
        paths += [f"{event}/{what}" for event in events for what in ("enable", "filter", "trigger")]
    for path in paths:
        with contextlib.suppress(OSError):
            value = capture(files, path)
            if value is not None:
                found[path] = value
    return found
