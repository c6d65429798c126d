"""What `dir()` and `help()` show of an event: the names that a user needs, each with its first sentence."""

from __future__ import annotations

#: How each is used; the sentence is that of the member's docstring.
_USES = {
    "register": "register(probe, data=..., prio=10)",
    "enable": "enable(instance=None)",
    "disable": "disable(instance=None)",
    "enabled": "enabled",
    "filter": "filter = 'FIELD > 1000'",
    "set_filter": "set_filter(text, instance)",
    "format": "format",
    "full_name": "full_name",
    "system": "system",
    "id": "id",
    "is_enabled_in": "is_enabled_in(instance)",
    "filter_in": "filter_in(instance)",
    "where": "",
    "event": "",
    "layout": "",
}
USER_NAMES = tuple(_USES)


def event_doc(full_name: str, own: str, control: type) -> str:
    """Return the docstring of an event: the declaration's own, then what can be done with it.

    >>> print(event_doc("shop:sold", "Somebody bought.", str).splitlines()[0])
    Somebody bought.
    """
    lines = [
        own.rstrip() or f"The trace event {full_name}.",
        "",
        "Calling it fires it: next to free while nothing listens, and it never raises.  It is true while",
        "something listens.",
        "",
    ]
    for name, use in _USES.items():
        doc = getattr(getattr(control, name, None), "__doc__", None)
        if use and doc:
            lines.append(f"    {use:36} {doc.splitlines()[0]}")
    return "\n".join(lines)
