"""A Markdown page that describes events: what they record, how they print, how to enable them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.errors import GenerateError
from tracepoint.generate.fileset import FileSet
from tracepoint.generate.writer import check_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.layout.format import EventFormat, FieldFormat
    from tracepoint.model.event import Event


def markdown_page(
    events: Sequence[tuple[Event, EventFormat]], *, name: str = "events", title: str = ""
) -> FileSet:
    """Return a page about the events, each with its record's layout.

    `title` is the first heading (default: the systems' names).  Raises GenerateError when there are
    no events.
    """
    if not events:
        raise GenerateError("", "no events to describe")
    systems = ", ".join(dict.fromkeys(event.system for event, _ in events))
    lines = [f"# {title or f'Trace events of {systems}'}", ""]
    for event, layout in events:
        lines += _section(event, layout)
    return FileSet({f"{check_name(name, 'page')}.md": "\n".join(lines).rstrip("\n") + "\n"})


def _section(event: Event, layout: EventFormat) -> list[str]:
    lines = [f"## `{event.full_name}`", ""]
    if event.event_class.name != event.name:
        lines += [f"An event of class `{event.event_class.name}`.", ""]
    lines += ["Fired by", "", "```c", f"trace_{event.name}({event.proto});", "```", ""]
    if event.condition:
        lines += [f"and recorded when `{event.condition}`.", ""]
    lines += [f"The record has {layout.end} bytes before what has a length of its own.", ""]
    lines += ["| offset | size | signed | type | field |", "|---:|---:|---|---|---|"]
    lines += [_row(field) for field in layout.fields]
    lines += ["", "Print format", "", "```c", layout.print_fmt, "```", ""]
    place = f"/sys/kernel/tracing/events/{event.system}/{event.name}"
    lines += [
        "Enable it and look",
        "",
        "```sh",
        f"echo 1 > {place}/enable",
        "cat /sys/kernel/tracing/trace_pipe",
    ]
    return [*lines, "```", ""]


def _row(field: FieldFormat) -> str:
    sign = "yes" if field.is_signed else "no"
    kind = field.ctype.replace("|", "\\|")
    return f"| {field.offset} | {field.size} | {sign} | `{kind}` | `{field.name}` |"
