"""Write declarations in the form of 2008 as today's: a proper header, or a TRACE_EVENT to start from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.model.python.declare import declare
from tracepoint.model.python.fields import scalar, string, struct_field
from tracepoint.model.write import Vocabulary, header_of, modernise, write_header
from tracepoint.source.types import conversion_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracepoint.model.event import Event, Param, TraceHeader, Tracepoint
    from tracepoint.model.field import Field

_CASTS = {"%lld": "(long long)", "%llu": "(unsigned long long)"}


def write_today(
    header: TraceHeader, *, system: str = "", as_events: bool = False, vocabulary: Vocabulary | None = None
) -> str:
    """Return a header in today's form for what was declared in that of 2008.

    `system` is TRACE_SYSTEM when the old text had none; by default it is what stands before the first
    underscore of the first name, as the documentation advised.  With `as_events` each tracepoint
    becomes a TRACE_EVENT that records its arguments, to be edited further.
    """
    system = system or header.system or _first_word(header)
    events: Iterable[Event] = header.events
    tracepoints: Iterable[Tracepoint] = modernise(header).tracepoints
    if as_events:
        events = (*header.events, *(skeleton(tracepoint, system) for tracepoint in header.tracepoints))
        tracepoints = ()
    return write_header(header_of(events, system=system, tracepoints=tracepoints), vocabulary=vocabulary)


def _first_word(header: TraceHeader) -> str:
    names = [t.name for t in header.tracepoints] + [e.name for e in header.events]
    return names[0].partition("_")[0] if names and names[0].partition("_")[0] else "legacy"


def skeleton(tracepoint: Tracepoint, system: str) -> Event:
    """Return an event that records and prints each argument of a tracepoint.

    Strings are copied, other pointers are recorded as addresses (what they point to may be gone
    when the trace is read), structures as a whole and not printed.

    >>> from tracepoint.model.python.declare import declare_tracepoint
    >>> skeleton(declare_tracepoint("a", proto="int n, const char *s"), "demo").printk.text
    '"n=%d s=%s", __entry->n, __get_str(s)'
    """
    fields: list[Field] = []
    formats: list[str] = []
    shown: list[str] = []
    for param in tracepoint.proto.params:
        field, conversion = _record(param)
        fields.append(field)
        if conversion:
            formats.append(f"{param.name}={conversion}")
            shown.append(_CASTS.get(conversion, "") + param.name)
    return declare(
        tracepoint.name,
        system=system,
        proto=tracepoint.proto,
        args=tracepoint.args,
        struct=fields,
        assign={},
        printk=", ".join([f'"{" ".join(formats)}"', *shown]),
        condition=tracepoint.condition.text if tracepoint.condition else "",
    )


def _record(param: Param) -> tuple[Field, str]:
    """Return the field for a parameter and the conversion that prints it (empty: none does)."""
    ctype = " ".join(word for word in param.ctype.split() if word not in ("const", "volatile"))
    if ctype == "char *":
        return string(param.name), "%s"
    if "*" in ctype or "[" in ctype:
        return scalar("const void *", param.name), "%p"
    if ctype.startswith(("struct ", "union ")):
        return struct_field(ctype, param.name), ""
    if ctype.startswith("enum "):
        return scalar(ctype, param.name), "%d"
    return scalar(ctype, param.name), conversion_of(ctype) or "%lld"
