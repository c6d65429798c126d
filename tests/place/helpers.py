"""Small C texts with a call put into them."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from tracepoint.errors import PlaceError
from tracepoint.place.insert import EventCall, InsertionPoint, Placement, Where, place_call
from tracepoint.source.text import SourceFile, apply_edits

if TYPE_CHECKING:
    from collections.abc import Sequence

ENTRY, RETURNS, BEFORE, AFTER = Where.ENTRY, Where.RETURNS, Where.BEFORE, Where.AFTER


def c(text: str) -> str:
    """C text written with four spaces, as the kernel writes it."""
    lines = textwrap.dedent(text).lstrip("\n").split("\n")
    indents = [len(line) - len(line.lstrip(" ")) for line in lines]
    return "\n".join(
        "\t" * (n // 4) + " " * (n % 4) + line[n:] for n, line in zip(indents, lines, strict=True)
    )


def place(
    text: str,
    where: Where,
    statement: str = "",
    *args: str,
    function: str = "f",
    line: int = 0,
    guard: bool | None = None,
    params: Sequence[tuple[str, str]] = (),
    path: str = "mm/a.c",
) -> Placement:
    call = EventCall("x", args, guard, tuple(params))
    return place_call(SourceFile(path, text), InsertionPoint(function, where, statement, line), call)


def put(text: str, where: Where, statement: str = "", *args: str, **more: object) -> str:
    """The text after a placement."""
    return apply_edits(text, place(text, where, statement, *args, **more).edits)  # type: ignore[arg-type]


def refusal(text: str, where: Where, statement: str = "", *args: str, **more: object) -> str:
    """The reason for which a placement is refused."""
    with pytest.raises(PlaceError) as caught:
        place(text, where, statement, *args, **more)  # type: ignore[arg-type]
    return caught.value.reason


def body(text: str) -> str:
    """A function `void f(int a, struct page *page)` with this body."""
    lines = c(text).strip("\n").split("\n")
    inner = "".join(f"\t{line}\n" if line else "\n" for line in lines) if text else ""
    return f"void f(int a, struct page *page)\n{{\n{inner}}}\n"
