"""The plan: declarations and calls, from the command line or from a TOML file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from tracepoint.errors import PlaceError
from tracepoint.place.arguments import split_text
from tracepoint.place.fragment import EventText
from tracepoint.place.from_prototype import write_event
from tracepoint.place.insert import InsertionPoint, Where
from tracepoint.place.kernel import check_path
from tracepoint.source.lexer import lex
from tracepoint.source.macros import spell
from tracepoint.source.text import SourceFile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MAX_ITEMS = 500
_PLACES = ("entry", "returns", "before", "after")


@dataclass(frozen=True, slots=True)
class CallAt:
    """A call of an event in a file: its place, its C expressions, and whether it is in an `if`.

    The first of `places` that the tree has is used, since kernels differ.  `event` may be empty when the
    plan declares only one.
    """

    path: str
    places: tuple[InsertionPoint, ...]
    event: str = ""
    args: tuple[str, ...] = ()
    guard: bool | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Declarations, calls, and the text of the patch.

    `subject` is the first line without `[PATCH]`, generated if empty; `why` is the reason, in
    paragraphs; `author` is `NAME <MAIL>`; `exports` adds EXPORT_TRACEPOINT_SYMBOL_GPL for every
    new event.
    """

    events: tuple[EventText, ...] = ()
    calls: tuple[CallAt, ...] = ()
    subject: str = ""
    why: str = ""
    exports: bool = False
    author: str = ""


def split_args(text: str) -> tuple[str, ...]:
    """Split C arguments at their commas.

    >>> split_args("a, f(b, c), (x) ? 1 : 2")
    ('a', 'f(b, c)', '(x) ? 1 : 2')
    """
    if not text.strip():
        return ()
    parts = split_text(text, frozenset(";"))
    if parts is None:
        raise PlaceError(f"{text!r} is not a list of arguments")
    return parts


def split_call(text: str) -> tuple[str, tuple[str, ...] | None]:
    """Split `name` or `name(args)`, with or without `trace_` and `;`.

    >>> split_call("trace_swap_in(page, 1);"), split_call("swap_in")
    (('swap_in', ('page', '1')), ('swap_in', None))
    """
    name, bracket, rest = text.strip().removesuffix(";").rstrip().partition("(")
    name = name.strip().rpartition(":")[2]
    if bracket:
        name = name.removeprefix("trace_")
        if not rest.endswith(")"):
            raise PlaceError(f"{text!r} is not a call of an event")
    if not name.isidentifier() or not name.isascii():
        raise PlaceError(f"{text!r} names no event")
    return name, split_args(rest[:-1]) if bracket else None


def split_place(word: str) -> tuple[str, str]:
    """Split `FILE:FUNCTION`.

    >>> split_place("mm/memory.c:do_swap_page")
    ('mm/memory.c', 'do_swap_page')
    """
    path, _, function = word.rpartition(":")
    if not path or not function.removesuffix("()").isidentifier():
        raise PlaceError(f"{word!r} is not a FILE:FUNCTION")
    path = path.removeprefix("./")
    check_path(path)
    if path.endswith(".h"):
        raise PlaceError(
            f"{path}: headers must not call trace_x() (Documentation/trace/tracepoints.rst); "
            "call it in a C file"
        )
    if not path.endswith(".c"):
        raise PlaceError(f"{path}: not a C file")
    return path, function.removesuffix("()")


def make_places(function: str, chosen: Mapping[str, Any]) -> tuple[InsertionPoint, ...]:
    """Return places from `entry`, `returns`, `before` or `after`, one of which must be set, and `line`.

    >>> make_places("f", {"after": "g();", "line": 3})
    (InsertionPoint(function='f', where=<Where.AFTER: 'after'>, statement='g();', line=3),)
    """
    line = chosen.get("line") or 0
    given = [key for key in _PLACES if chosen.get(key)]
    if len(given) != 1:
        raise PlaceError(
            f"{function}: name a place: its entry, its returns, or before or after a statement"
            + (f" (only one of {', '.join(given)})" if given else "")
        )
    value = chosen[given[0]]
    texts = value if isinstance(value, list) else ["" if value is True else value]
    if not all(isinstance(text, str) for text in texts):
        raise PlaceError(f"{function}: {given[0]} is a statement, or a list of them")
    return tuple(InsertionPoint(function, Where(given[0]), text, line) for text in texts)


def read_plan(text: str, path: str, read_text: Callable[[str], str]) -> Plan:
    """Return the plan in a TOML text.

    `path` is shown in messages; `read_text` returns the text of a declaration file that the
    plan names. Raises PlaceError for an invalid plan.
    """
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise PlaceError(f"{path}: {error}") from None
    reader = _Reader(path, read_text)
    reader.keys(
        data,
        "the plan",
        {"subject": str, "why": str, "author": str, "export": bool, "event": list, "call": list},
    )
    return Plan(
        tuple(reader.event(item, n) for n, item in enumerate(reader.items(data, "event"), 1)),
        tuple(reader.call(item, n) for n, item in enumerate(reader.items(data, "call"), 1)),
        data.get("subject", ""),
        data.get("why", ""),
        data.get("export", False),
        data.get("author", ""),
    )


class _Reader:
    def __init__(self, path: str, read_text: Callable[[str], str]) -> None:
        self._path = path
        self._read_text = read_text

    def fail(self, reason: str) -> NoReturn:
        raise PlaceError(f"{self._path}: {reason}")

    def items(self, data: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
        found = data.get(key, [])
        if len(found) > _MAX_ITEMS or not all(isinstance(item, dict) for item in found):
            self.fail(f"{key} must be written [[{key}]], at most {_MAX_ITEMS} times")
        return list(found)

    def keys(self, data: Mapping[str, Any], what: str, known: Mapping[str, type | tuple[type, ...]]) -> None:
        for key, value in data.items():
            kinds = known.get(key)
            if kinds is None:
                self.fail(f"{what} has no {key}; there are: {', '.join(known)}")
            if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is int):
                self.fail(f"{key} of {what} has the wrong type ({type(value).__name__})")

    def event(self, item: dict[str, Any], number: int) -> EventText:
        what = f"event {number}"
        texts = ("text", "file", "name", "proto", "fields", "system", "header", "class", "creator")
        self.keys(item, what, {**dict.fromkeys(texts, str), "new": bool})
        if sum(key in item for key in ("text", "file", "name")) != 1:
            self.fail(f"{what} needs one of text, file, and name with proto")
        return EventText(
            self._text(item, what),
            item.get("file", f"{self._path}, {what}"),
            item.get("system", ""),
            item.get("header", ""),
            item.get("class", ""),
            item.get("new", False),
            item.get("creator", ""),
        )

    def _text(self, item: dict[str, Any], what: str) -> str:
        if "name" in item:
            return write_event(item["name"], item.get("proto", ""), item.get("fields", ""))
        if "proto" in item or "fields" in item:
            self.fail(f"{what}: proto and fields need name")
        if "text" in item:
            return str(item["text"])
        name = item["file"]
        if not name or name.startswith("/") or ".." in name.split("/") or not name.isprintable():
            self.fail(f"{name!r} is not a file next to the plan")
        return self._read_text(name)

    def call(self, item: dict[str, Any], number: int) -> CallAt:
        what = f"call {number}"
        known: dict[str, type | tuple[type, ...]] = {
            "at": str,
            "call": str,
            "args": str,
            "guard": bool,
            "line": int,
            "entry": bool,
            "returns": bool,
            "before": (str, bool, list),
            "after": (str, bool, list),
        }
        self.keys(item, what, known)
        try:
            path, function = split_place(item.get("at", ""))
            return make_call(path, make_places(function, item), item)
        except PlaceError as error:
            self.fail(f"{what}: {error.reason}")


def make_call(path: str, places: tuple[InsertionPoint, ...], chosen: Mapping[str, Any]) -> CallAt:
    """Return a call from `call` (`name` or `name(args)`), `args` and `guard`."""
    name, args = split_call(chosen["call"]) if chosen.get("call") else ("", None)
    if args is not None and chosen.get("args") is not None:
        raise PlaceError(f"{name} has its arguments twice")
    if args is None:
        args = split_args(chosen.get("args") or "")
    return CallAt(path, places, name, args, chosen.get("guard"))


def shown(text: str) -> str:
    r"""Return C text on one line.

    >>> shown("f(a,\n\t  b);")
    'f(a, b);'
    """
    return spell(lex(SourceFile("", text))) if "\n" in text else text.strip()
