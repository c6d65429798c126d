"""Events with the same record share a class: a TRACE_EVENT is kilobytes of code, a DEFINE_EVENT a tenth."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from tracepoint.diagnostics import Edit
from tracepoint.errors import PlaceError
from tracepoint.model.event import NO_CODE
from tracepoint.model.origin import Code
from tracepoint.model.rewrite import break_print
from tracepoint.model.write import write_field, write_proto
from tracepoint.named import NamedTuple
from tracepoint.source.lexer import Kind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from tracepoint.model.event import Event, EventClass

_OPENING = re.compile(r"TRACE_EVENT(\s*\(\s*)(\w+)")


class Sharing(NamedTuple):
    """Edits of the declarations' text that make them use classes, and notes about them."""

    edits: tuple[Edit, ...]
    notes: tuple[str, ...]


def share_classes(
    text: str,
    events: Sequence[Event],
    existing: Iterable[EventClass],
    taken: Collection[str],
    class_name: str = "",
) -> Sharing:
    """Make TRACE_EVENTs use an existing class, or share a new one, if the record is the same.

    `events` were read from `text`, which the edits change; `existing` are the classes that may be used
    and `taken` the names that a new class cannot have.  Records are the same when prototype, fields
    and assignments are, whatever the names of the parameters are. New classes combine events that
    also print the same; with a `class_name`, all events with the same record, which must be two or more.
    """
    plain = [e for e in events if e.macro == "TRACE_EVENT" and e.origin is not None and not e.origin.chain]
    edits: list[Edit] = []
    notes: list[str] = []
    known = {_signature(cls): cls for cls in existing}
    left: dict[tuple[str, ...], list[Event]] = {}
    for event in plain:
        signature = _signature(event.event_class)
        found = known.get(signature)
        if found is not None:
            edits.append(_replace(event, _instance(event, found)))
            notes.append(f"{event.name} has the same record as {found.name} and uses its class")
        else:
            key = signature if class_name else (*signature, _print_of(event.event_class))
            left.setdefault(key, []).append(event)
    groups = [group for group in left.values() if len(group) > 1]
    if class_name and len(groups) != 1:
        raise PlaceError(f"{len(groups)} sets of events share a record, so class {class_name} cannot be made")
    for group in groups:
        name = _class_name(group, taken, class_name)
        edits += _make_class(group, text, name)
        notes.append(f"{', '.join(e.name for e in group)} have the same record and use the new class {name}")
    return Sharing(tuple(edits), tuple(notes))


def _make_class(group: Sequence[Event], text: str, name: str) -> Iterator[Edit]:
    first = group[0]
    assert first.origin is not None  # noqa: S101 - chosen so
    span = first.origin.span
    declared = _OPENING.sub(
        lambda m: f"DECLARE_EVENT_CLASS{m[1]}{name}", text[span.start : span.end], count=1
    )
    # The comment stays with the event that it describes.
    before = text[: span.start].rstrip()
    at = before.rfind("/*") if before.endswith("*/") else span.start
    yield Edit("", at, at, f"{declared};\n\n")
    for event in group:
        yield _replace(event, _instance(event, first.event_class, name))


def _replace(event: Event, text: str) -> Edit:
    assert event.origin is not None  # noqa: S101 - chosen so
    return Edit("", event.origin.span.start, event.origin.span.end, text)


def _instance(event: Event, cls: EventClass, name: str = "") -> str:
    parts = [
        name or cls.name,
        event.name,
        f"TP_PROTO({write_proto(event.proto)})",
        f"TP_ARGS({', '.join(event.args)})",
    ]
    own_print = _print_of(event.event_class) != _print_of(cls)
    if own_print:
        parts.append(f"TP_printk({break_print(event.printk.text)})")
    return f"DEFINE_EVENT{'_PRINT' if own_print else ''}({', '.join(parts)})"


def _signature(cls: EventClass) -> tuple[str, ...]:
    params = tuple(p.name for p in cls.proto.params)
    # A field may have the name of a parameter, but its own name does not count as one.
    fields = (
        field.name + _neutral(Code(write_field(replace(field, name=""))), params) for field in cls.fields
    )
    return (
        " ".join(_neutral(Code(p.ctype), ()) for p in cls.proto.params),
        " ".join(str(params.index(name)) if name in params else name for name in cls.args),
        *fields,
        _neutral(cls.assign, params),
    )


def _print_of(cls: EventClass) -> str:
    return _neutral(cls.printk or NO_CODE, ())


def _neutral(code: Code, params: Sequence[str]) -> str:
    """Return C text without white space, with numbers instead of parameters."""
    numbers = {name: f"@{index}" for index, name in enumerate(params)}
    words: list[str] = []
    for token in code.all_tokens():
        if token.kind is Kind.END:
            break
        is_member = words[-1:] in (["->"], ["."])
        is_name = token.kind is Kind.NAME and not is_member
        words.append(numbers.get(token.text, token.text) if is_name else token.text)
    return " ".join(words)


def _class_name(group: Sequence[Event], taken: Collection[str], wanted: str) -> str:
    names = [event.name for event in group]
    common = ""
    for letters in zip(*names, strict=False):
        if len(set(letters)) > 1:
            break
        common += letters[0]
    stem = common[: common.rfind("_")] if "_" in common else ""
    made = [stem] if "_" in stem else []
    candidates = [wanted] if wanted else [*made, f"{stem or names[0]}_class", f"{names[0]}_template"]
    for name in candidates:
        if name not in taken and name not in names:
            return name
    raise PlaceError(f"the class of {', '.join(names)} cannot be called {candidates[-1]}: the name is in use")
