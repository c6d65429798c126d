"""Where a `trace_x()` call may stand in a function, and the edits that put it there."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.errors import PlaceError

if TYPE_CHECKING:
    from tracepoint.diagnostics import Edit, Span
    from tracepoint.source.text import SourceFile

#: In an argument of a call at `Where.RETURNS`: the value that the function is about to return.
RETURN_VALUE = "RETURN_VALUE"


class Where(enum.StrEnum):
    """Which places of a function are meant."""

    ENTRY = "entry"
    RETURNS = "returns"
    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Place:
    """A function, and where in it.

    `BEFORE` and `AFTER` need `statement`, its text with any white space, or `line`, a line number
    from 1.  Both together name the statement of that text on that line.  For `ENTRY` and `RETURNS` a
    line chooses one of several functions of the same name.
    """

    function: str
    where: Where
    statement: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """A call of `trace_<event>(args)`.

    `args` are C expressions, which may hold RETURN_VALUE at `Where.RETURNS`.  `guard` asks for
    `if (trace_<event>_enabled())` around it, None for deciding by the arguments' cost.  `params` are
    type and name of each parameter of the event, empty when they are not known.
    """

    event: str
    args: tuple[str, ...]
    guard: bool | None = None
    params: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Placement:
    """What to change: `edits` of the source, and the `spans` before or after which calls were put.

    `notes` say what was added besides the calls, and what could not be checked.
    """

    edits: tuple[Edit, ...]
    spans: tuple[Span, ...]
    function_span: Span
    notes: tuple[str, ...] = ()


def place_call(source: SourceFile, place: Place, call: Call) -> Placement:
    """Return the edits that put a call into a function of a C file.

    Raises PlaceError with the reason when the function is not there or not understood, when no call
    may stand at the place, or when an argument has no meaning there.
    """
    raise PlaceError(f"{place.function}: trace_{call.event}() cannot be placed in {source.path} yet")
