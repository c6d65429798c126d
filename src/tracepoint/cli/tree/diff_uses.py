"""The input of `tracepoint diff --uses`: a script, or a recording, all fields of which count."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.cli.files import read_bytes
from tracepoint.errors import SourceError
from tracepoint.layout.compare import Reader
from tracepoint.source.text import decode
from tracepoint.tracefile.head import MAGIC
from tracepoint.tracefile.tracedat import open_tracedat
from tracepoint.tree.uses import Uses, find_uses

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tracepoint.cli.output import Output
    from tracepoint.layout.format import EventFormat


def plural(number: int, word: str) -> str:
    """Return `1 event`, `2 events`."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def is_recording(word: str) -> bool:
    """Return whether a word names a trace.dat."""
    path = Path(word)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def recorded_formats(path: str) -> dict[str, EventFormat]:
    """Return the formats of the events in a trace.dat, by `system:name`; raises DecodeError."""
    with open_tracedat(path) as trace:
        return {f"{e.system}:{e.name}": e for e in trace.events.values() if e.system != "ftrace"}


def read_uses(name: str, known: Mapping[str, Collection[str]], out: Output) -> Uses:
    """Return what a script or recording uses of the events in `known`; warn about what is not there."""
    if name != "-" and is_recording(name):
        uses = _of_recording(name, known)
    else:
        data = read_bytes(Path(name))
        if data.startswith(b"\x7fELF"):
            raise SourceError(f"{name}: a compiled program; give its C source to --uses")
        uses = find_uses(decode(data), known)
    for event in uses.unknown:
        out.warn(f"{name}: {event} is in neither of them{_guess(event, known)}")
    for missing in uses.missing:
        event, _, field = missing.partition(" ")
        out.warn(f"{name}: {missing}: no such field in either of them{_guess(field, known[event])}")
    n_fields = sum(map(len, uses.fields.values()))
    if uses.fields:
        ways = ", ".join(sorted(uses.readers))
        events = plural(len(uses.fields), "event")
        out.say(f"{name} uses {events} and {plural(n_fields, 'field')}, by {ways}")
    else:
        out.warn(f"{name}: it names no event of either")
    return uses


def _guess(word: str, known: Collection[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only a typing error needs it

    close = get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _of_recording(name: str, known: Mapping[str, Collection[str]]) -> Uses:
    formats = recorded_formats(name)
    fields = {
        event: frozenset(field.name for field in layout.event_fields)
        for event, layout in sorted(formats.items())
        if event in known
    }
    unknown = tuple(sorted(event for event in formats if event not in known))
    return Uses(fields, frozenset({Reader.BY_NAME}), unknown)
