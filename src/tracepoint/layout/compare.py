"""What changed between two formats, or two sets of them, and which readers that breaks."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.layout.format import EventFormat
from tracepoint.wording import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.layout.format import FieldFormat


class Reader(enum.StrEnum):
    """A way of reading records, by what it relies on.

    `OFFSETS` has offsets and sizes compiled in (an eBPF program on `trace_event_raw_*` without
    CO-RE, a struct copied into a program); `BPF_CORE` is an eBPF program that finds members by
    name in BTF; `BY_NAME` reads the `format` file and looks fields up by name; `TEXT` parses the
    printed line.
    `PROBE` is a function called with the arguments of `trace_<event>()`: a module's probe, an eBPF
    program on a raw tracepoint.
    """

    OFFSETS = "hard-coded offsets"
    BPF_CORE = "eBPF with CO-RE"
    BY_NAME = "the format file by name"
    TEXT = "the printed text"
    PROBE = "probes and raw tracepoints"


_ALL = frozenset(Reader)
_BINARY = frozenset({Reader.OFFSETS, Reader.BPF_CORE, Reader.BY_NAME})


class ChangeKind(enum.StrEnum):
    """What happened to an event or to a field."""

    EVENT_ADDED = "event added"
    EVENT_REMOVED = "event removed"
    EVENT_RENAMED = "event perhaps renamed"
    FIELD_ADDED = "field added"
    FIELD_REMOVED = "field removed"
    FIELD_MOVED = "field moved"
    FIELD_RESIZED = "field resized"
    SIGN_CHANGED = "sign changed"
    TYPE_CHANGED = "type changed"
    STORAGE_CHANGED = "storage changed"
    PRINT_CHANGED = "print format changed"
    SIZE_CHANGED = "record size changed"
    PROTO_CHANGED = "prototype changed"
    CLASS_CHANGED = "class changed"


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: where, what, the values before and after, who breaks, and a sentence.

    `event` is `system:name`; `field` is empty for the whole event; `breaks` are the
    readers that stop working or read wrong values without a change of their own.
    """

    kind: ChangeKind
    event: str
    field: str
    before: str
    after: str
    breaks: frozenset[Reader]
    sentence: str

    def __repr__(self) -> str:
        return f"<Change {one_line(self.event, 50)}: {one_line(self.sentence, 55)}>"

    @property
    def breaks_readers(self) -> bool:
        """Whether any reader breaks."""
        return bool(self.breaks)

    def __str__(self) -> str:
        where = f"{self.event} {self.field}".rstrip()
        return f"{where}: {self.sentence}"


Formats = EventFormat | Mapping[str, EventFormat]


def compare_formats(old: Formats, new: Formats) -> list[Change]:
    """Return the differences between two formats, or between two mappings of `system:name` to them.

    In mappings an event that went away and one of the same system that came with the same fields
    are reported as perhaps renamed.

    >>> from dataclasses import replace
    >>> from tracepoint.layout.format import COMMON_FIELDS
    >>> a = EventFormat("foo", "bar", COMMON_FIELDS, '"", ')
    >>> [c.kind.value for c in compare_formats({"foo:bar": a}, {"foo:baz": replace(a, name="baz")})]
    ['event perhaps renamed']
    """
    if isinstance(old, EventFormat) and isinstance(new, EventFormat):
        return list(_compare_events(old, new))
    if isinstance(old, EventFormat) or isinstance(new, EventFormat):
        raise TypeError("compare two formats or two mappings of formats, not one of each")
    return list(_compare_sets(old, new))


def _compare_sets(old: Mapping[str, EventFormat], new: Mapping[str, EventFormat]) -> Iterator[Change]:
    added = {name: new[name] for name in new if name not in old}
    for name in sorted(old.keys() & new.keys()):
        yield from _compare_events(old[name], new[name], name)
    for name in sorted(old.keys() - new.keys()):
        renamed = _renamed(old[name], added)
        if renamed:
            del added[renamed]
            sentence = f"gone, but {renamed} is new and has the same fields: perhaps renamed"
            yield Change(ChangeKind.EVENT_RENAMED, name, "", name, renamed, _ALL, sentence)
        else:
            yield event_removed(name)
    for name in sorted(added):
        yield event_added(name)


def event_removed(name: str) -> Change:
    """Return what is said of `system:name` that is there no more."""
    sentence = "the event is gone: enabling it fails, and readers get no records"
    return Change(ChangeKind.EVENT_REMOVED, name, "", name, "", _ALL, sentence)


def event_added(name: str) -> Change:
    """Return what is said of `system:name` that was not there before."""
    return Change(ChangeKind.EVENT_ADDED, name, "", "", name, frozenset(), "the event is new")


def _renamed(gone: EventFormat, added: Mapping[str, EventFormat]) -> str | None:
    """The only new event of the system with the same fields; an event without fields says nothing."""
    same = [
        name
        for name, candidate in added.items()
        if candidate.system == gone.system and candidate.same_record(gone)
    ]
    if not gone.event_fields:
        same = [name for name in same if added[name].print_fmt == gone.print_fmt]
    return same[0] if len(same) == 1 else None


def _compare_events(old: EventFormat, new: EventFormat, name: str = "") -> Iterator[Change]:
    event = name or f"{new.system}:{new.name}".lstrip(":")
    before, after = _numbered(old), _numbered(new)
    last_old = max((f.offset for f in old.fields), default=-1)
    # A new field after the old end can still have pushed others further back.
    is_still = all(after[key].offset == item.offset for key, item in before.items() if key in after)
    for key, item in before.items():
        if key in after:
            yield from _compare_fields(event, item, after[key])
        else:
            sentence = f"the field ({item.ctype}) is gone"
            yield Change(ChangeKind.FIELD_REMOVED, event, item.name, item.ctype, "", _BINARY, sentence)
    for key, item in after.items():
        if key not in before:
            at_end = is_still and item.offset > last_old
            place = "at the end, so no other field moves" if at_end else f"at offset {item.offset}"
            sentence = f"a new field ({item.ctype}) {place}"
            yield Change(ChangeKind.FIELD_ADDED, event, item.name, "", item.ctype, frozenset(), sentence)
    yield from _compare_wholes(event, old, new)


def _numbered(layout: EventFormat) -> dict[tuple[str, int], FieldFormat]:
    """Return the fields by name and how often that stood before: some events declare one twice."""
    seen: Counter[str] = Counter()
    found = {}
    for item in layout.fields:
        found[item.name, seen[item.name]] = item
        seen[item.name] += 1
    return found


def _compare_wholes(event: str, old: EventFormat, new: EventFormat) -> Iterator[Change]:
    if old.size_bytes and new.size_bytes and old.size_bytes != new.size_bytes:
        before, after = f"{old.size_bytes} bytes", f"{new.size_bytes} bytes"
        sentence = f"the fixed part of the record was {before}, now {after}"
        # A program that checks the size, or copies a fixed struct, sees it; dynamic data move along.
        yield Change(ChangeKind.SIZE_CHANGED, event, "", before, after, frozenset({Reader.OFFSETS}), sentence)
    if old.print_fmt != new.print_fmt:
        sentence = "the printed line looks different, or shows other values"
        yield Change(
            ChangeKind.PRINT_CHANGED,
            event,
            "",
            old.print_fmt,
            new.print_fmt,
            frozenset({Reader.TEXT}),
            sentence,
        )


def _compare_fields(event: str, old: FieldFormat, new: FieldFormat) -> Iterator[Change]:
    def change(
        kind: ChangeKind, before: object, after: object, breaks: frozenset[Reader], text: str
    ) -> Change:
        return Change(kind, event, old.name, str(before), str(after), breaks, text)

    if old.offset != new.offset:
        text = f"moved from offset {old.offset} to {new.offset}: fixed offsets read other bytes"
        yield change(ChangeKind.FIELD_MOVED, old.offset, new.offset, frozenset({Reader.OFFSETS}), text)
    if (old.is_data_loc, old.is_rel_loc) != (new.is_data_loc, new.is_rel_loc):
        yield change(
            ChangeKind.STORAGE_CHANGED,
            old.ctype,
            new.ctype,
            _BINARY,
            f"stored as {old.ctype}, now as {new.ctype}: the data are in another place",
        )
        return
    if old.size != new.size:
        yield change(
            ChangeKind.FIELD_RESIZED,
            old.size,
            new.size,
            frozenset({Reader.OFFSETS}) if _is_read_alike(old, new) else _BINARY,
            f"{old.size} bytes before, {new.size} now ({old.ctype} -> {new.ctype})",
        )
    elif old.ctype != new.ctype:
        yield change(
            ChangeKind.TYPE_CHANGED,
            old.ctype,
            new.ctype,
            frozenset(),
            f"called {old.ctype}, now {new.ctype}; the bytes are the same",
        )
    if old.is_signed != new.is_signed:
        breaks, text = _sign_change(new)
        yield change(ChangeKind.SIGN_CHANGED, int(old.is_signed), int(new.is_signed), breaks, text)


def _is_read_alike(old: FieldFormat, new: FieldFormat) -> bool:
    """Return whether a reader that knows the size finds the same: numbers and text, not parts of arrays."""
    if not (old.is_array or new.is_array):
        return True
    return old.is_array and new.is_array and old.element_ctype == new.element_ctype == "char"


def _sign_change(new: FieldFormat) -> tuple[frozenset[Reader], str]:
    """Say which readers a changed sign breaks: that of a char array does not affect text."""
    sign = "signed" if new.is_signed else "unsigned"
    if new.element_ctype == "char" and new.is_array:
        return frozenset(), f"now {sign}; text reads the same"
    return frozenset({Reader.OFFSETS, Reader.BY_NAME}), f"now {sign}: large values read differently"
