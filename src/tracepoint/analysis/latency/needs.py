"""The two events that a latency is between."""

from __future__ import annotations

from tracepoint.analysis.needs import Fields, Need
from tracepoint.decode.plan import CPU
from tracepoint.errors import TracepointError
from tracepoint.named import NamedTuple


class KeyField(NamedTuple):
    """A field that has the same value in a begin and its end, with its name in each."""

    begin: str
    end: str


def read_key(text: str) -> tuple[KeyField, ...]:
    """Read the fields of a key; raises TracepointError.

    >>> read_key("dev:sector=from")
    (KeyField(begin='dev', end='dev'), KeyField(begin='sector', end='from'))
    """
    found = []
    for part in text.split(":") if text else ():
        begin, equals, end = (word.strip() for word in part.partition("="))
        if not begin or (equals and not end) or "=" in end:
            raise TracepointError(f"--key {text!r}: {part!r} is not FIELD or FIELD=FIELD, as in pid=next_pid")
        found.append(KeyField(begin, end or begin))
    return tuple(found)


def needs_of(begin: str, end: str, key: str = "", order: str = "last") -> tuple[Need, ...]:  # noqa: ARG001
    """Return the events of a latency with the fields of its key."""
    fields: dict[str, list[str]] = {}
    for name, side in ((begin, 0), (end, 1)):
        own = fields.setdefault(name, ["common_pid"])
        own += (pair[side] for pair in read_key(key) if pair[side] != CPU)
    gives = {begin: "where the time begins", end: "where it ends"}
    return tuple(
        Need({name: Fields(tuple(dict.fromkeys(own)))}, gives[name], is_needed=True)
        for name, own in fields.items()
    )
