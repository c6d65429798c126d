"""What a rule yields, and where that is in the text.

A `Finding` has no code and no severity: the engine adds those of the rule.  Its place may be a
token, a node of an expression, the origin of a declaration or a plain span; `locate` turns each
into the span in the source as written, with the macro expansions as further places.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tracepoint.diagnostics import Fix, Related, Span
from tracepoint.model.origin import Origin
from tracepoint.source.ast import Node
from tracepoint.source.lexer import Token

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_STEPS = 12


@dataclass(frozen=True, slots=True)
class Located:
    """A resolved place: its span, the expansions that led to it, and what identifies it."""

    span: Span
    expansions: tuple[Related, ...]
    key: Key


#: What identifies a place in a text: a span, or a file and the offset of a token in it.
Key: TypeAlias = "Span | tuple[str, int] | None"
#: Anything that leads to a stretch of text; a pair is a run of tokens, first and last.
Place = Token | Node | Origin | Span | Located | tuple[Token, Token]


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault, as a rule sees it.

    `message` must not name the event (that is `event`), so that a fault in a macro body
    that many events use is reported once.  `notes` are further places, each with a sentence.
    """

    message: str
    place: Place
    label: str = ""
    notes: tuple[tuple[Place | None, str], ...] = ()
    help: tuple[str, ...] = ()
    fix: Fix | None = None
    event: str = ""


def locate(place: Place) -> Located:
    """Return where a place is: the span at the place of use, and the chain of macro expansions."""
    match place:
        case Located():
            return place
        case Span():
            return Located(place, (), place)
        case Origin():
            return _locate_origin(place)
        case Node():
            if place.first is None:
                return Located(Span("", 1, 1, 1, 1), (), None)
            return _locate_tokens(place.first, place.last or place.first)
        case (first, last):
            return _locate_tokens(first, last)
        case _:
            return _locate_tokens(place, place)


def located_origin(thing: object) -> Located | None:
    """Return where a declaration is, or None when it does not come from text."""
    origin = getattr(thing, "origin", None)
    return _locate_origin(origin) if origin is not None else None


def _locate_origin(origin: Origin) -> Located:
    steps = tuple(
        Related(step.definition, f"in the body of macro {step.macro}")
        for step in origin.chain
        if step.definition is not None
    )
    key = steps[-1].span if steps else origin.span
    return Located(origin.span, steps, key)


def _locate_tokens(first: Token, last: Token) -> Located:
    root, end = first.root, last.root
    if first.expansion is None and last.expansion is None and first.file is last.file:
        return Located(
            first.file.span(first.start, max(last.end, first.end)), (), (first.file.path, first.start)
        )
    if root.file is end.file and end.start >= root.start:
        span = root.file.span(root.start, end.end)
    else:
        span = root.span
    return Located(span, tuple(_expansions(first)), (first.file.path, first.start))


def _expansions(token: Token) -> Iterator[Related]:
    """Yield the bodies that a token passed through, outermost first, then the token's own place."""
    chain: list[tuple[str, Token]] = []
    at: Token = token
    while at.expansion is not None and len(chain) < _MAX_STEPS:
        chain.append((at.expansion.name, at))
        at = at.expansion.call
    for name, inner in reversed(chain):
        yield Related(inner.span, f"in the body of macro {name}")
