"""Choose the layout of a header's declarations, and apply it.

The kernel's headers are written in a handful of layouts.  For each question of style the
formatter takes, for a whole file, the layout that changes the fewest lines of it.  What is
chosen depends on nothing but the lines that would change, so a formatted file is its own result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from tracepoint.model.fmt.code import (
    assignment_gaps,
    set_assignments,
    set_fields,
    set_list,
    set_statements,
    styled,
)
from tracepoint.model.fmt.columns import ASSIGN_STYLES, FIELD_STYLES, FieldStyle
from tracepoint.model.fmt.items import TAB, What, advance, text_of
from tracepoint.model.fmt.wrap import wrap_lists

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tracepoint.model.fmt.shape import DeclarationShape, Part


@dataclass(frozen=True, slots=True)
class Frame:
    """The places of the parts of a declaration.

    `first` and `between` are the line ends before the first and the other parts (0: same line),
    `is_aligned` puts the parts below the first argument instead of one tab in, `ends_line` puts
    the closing bracket on a line of its own.
    """

    first: int
    between: int
    is_aligned: bool
    ends_line: bool


def _frames(*, aligned: bool) -> tuple[Frame, ...]:
    rows = ((2, 2), (1, 2), (1, 1), (2, 1))
    tabs = [Frame(a, b, is_aligned=False, ends_line=e) for a, b in rows for e in (True, False)]
    if not aligned:
        return tuple(tabs)
    lined = [Frame(1, 1, is_aligned=True, ends_line=e) for e in (False, True)]
    return (
        *tabs,
        *lined,
        Frame(0, 0, is_aligned=True, ends_line=False),
        Frame(0, 1, is_aligned=True, ends_line=False),
    )


CLASS_FRAMES = _frames(aligned=False)
INSTANCE_FRAMES = _frames(aligned=True)
_TIGHT = Frame(1, 1, is_aligned=False, ends_line=False)
_LONGEST_LINE = 72  # characters that are not blanks in a declaration that may stay on one line


@dataclass(frozen=True, slots=True)
class Style:
    """One answer to each question of style; the defaults are what most kernel headers do.

    Without `adds_blanks`, tokens that touch in TP_fast_assign go on touching, so that the text of
    the statements stays the same as the preprocessor sees it.  In TP_printk they always do, because
    tracefs shows that text.
    """

    frame: Frame = CLASS_FRAMES[0]
    instance: Frame = INSTANCE_FRAMES[0]
    tracepoint: Frame = INSTANCE_FRAMES[0]
    fields: FieldStyle = FIELD_STYLES[0]
    assign: str = ASSIGN_STYLES[0]
    proto_below_bracket: bool = True
    print_below_bracket: bool = True
    adds_blanks: bool = True


_QUESTIONS: dict[str, Sequence[object]] = {
    "frame": CLASS_FRAMES,
    "instance": INSTANCE_FRAMES,
    "tracepoint": INSTANCE_FRAMES,
    "fields": FIELD_STYLES,
    "assign": ASSIGN_STYLES,
    "proto_below_bracket": (True, False),
    "print_below_bracket": (True, False),
}
#: Questions answered once for a file, and those answered again for each declaration.
FILE_QUESTIONS = tuple(_QUESTIONS)
BLOCK_QUESTIONS = ("fields", "assign", "proto_below_bracket", "print_below_bracket")


def choose_style(
    shapes: Sequence[DeclarationShape], default: Style, questions: Sequence[str] = FILE_QUESTIONS
) -> Style:
    """Return the style that changes the fewest lines of `shapes`; ties go to `default`."""
    style = default
    for name in questions:
        candidates = [getattr(default, name), *(c for c in _QUESTIONS[name] if c != getattr(default, name))]
        best = -1
        chosen = default
        for candidate in candidates:
            style_with = replace(style, **{name: candidate})
            cost = sum(_COSTS[name](shape, style_with) for shape in shapes)
            if best < 0 or cost < best:
                best, chosen = cost, style_with
            if not cost:
                break
        style = chosen
    return style


def _frame_cost(shape: DeclarationShape, frame: Frame) -> int:
    column = _part_column(shape, frame)
    cost = 0
    if shape.kind == "frame" and not any(part.lead.nl for part in shape.parts):
        return 0  # all on one line: it says nothing about how lines should be
    for part, nl in _part_breaks(shape, frame):
        cost += abs(min(part.lead.nl, 2) - nl) + (nl > 0 and part.lead.indent != column)
    close = shape.close
    return cost + (close is not None and bool(close.nl) != frame.ends_line)


def _field_cost(shape: DeclarationShape, style: Style) -> int:
    cost = 0
    for part in shape.parts:
        if part.is_struct:
            for call, gaps in styled(part.fields, 2 * TAB, style.fields):
                cost += [item.ws for item in call.gap_items] != gaps
    return cost


def _assign_cost(shape: DeclarationShape, style: Style) -> int:
    cost = 0
    for part in shape.parts:
        if part.is_statements:
            gaps = assignment_gaps(part.statements, style.assign)
            cost += sum(s.equals is not None and s.equals.ws != gap for s, gap in gaps)
    return cost


def _list_cost(shape: DeclarationShape, style: Style, *, is_print: bool) -> int:
    cost = 0
    for part, column in _lists(shape, style):
        if part.is_print is is_print:
            set_list(part.inside, column, TAB, is_tight=False)
            cost += sum(item.nl > 0 and advance(0, item.new_ws) != item.indent for item in part.inside[1:])
    return cost


_COSTS: dict[str, Callable[[DeclarationShape, Style], int]] = {
    **{
        kind: lambda shape, style, kind=kind: (  # type: ignore[misc]
            _frame_cost(shape, _frame(shape, style)) if shape.kind == kind else 0
        )
        for kind in ("frame", "instance", "tracepoint")
    },
    "fields": _field_cost,
    "assign": _assign_cost,
    "proto_below_bracket": lambda shape, style: _list_cost(shape, style, is_print=False),
    "print_below_bracket": lambda shape, style: _list_cost(shape, style, is_print=True),
}


def _frame(shape: DeclarationShape, style: Style) -> Frame:
    match shape.kind:
        case "frame":
            return style.frame
        case "instance":
            frame = style.instance
        case _:
            frame = style.tracepoint
    # Counted without blanks, so that the answer is the same for the formatted text.
    is_long = sum(len(item.text) for item in shape.items) > _LONGEST_LINE
    return _TIGHT if not frame.first and is_long else frame


def _part_column(shape: DeclarationShape, frame: Frame) -> int:
    if not frame.is_aligned:
        return TAB
    return len("DEFINE_EVENT(") if shape.kind == "instance" else len(shape.macro) + 1


def _part_breaks(shape: DeclarationShape, frame: Frame) -> Iterator[tuple[Part, int]]:
    """Yield the parts with the line ends before them; plain ones stay on a line if they were."""
    for at, part in enumerate(shape.parts):
        nl = frame.between if at else frame.first
        if at and not part.name and not part.lead.nl:
            nl = 0
        yield part, nl


def _lists(shape: DeclarationShape, style: Style) -> Iterator[tuple[Part, int]]:
    """Yield the parts that are lists, with the column of lines that go on."""
    frame = _frame(shape, style)
    column = _part_column(shape, frame)
    for part in shape.parts:
        if part.name and not part.is_struct and not part.is_statements:
            below = style.print_below_bracket if part.is_print else style.proto_below_bracket
            start = column + len(part.name) + 1
            yield part, start if below or frame.is_aligned else column // TAB * TAB + TAB


def apply_style(shape: DeclarationShape, style: Style) -> None:
    """Set the white space of one declaration."""
    frame = _frame(shape, style)
    column = _part_column(shape, frame)
    _set_head(shape)
    for part, nl in _part_breaks(shape, frame):
        _set_part(part, nl, column)
    if shape.close is not None:
        if frame.ends_line or _is_after_line_comment(shape):
            shape.close.break_line(0)
        else:
            shape.close.join()
    inner = column // TAB * TAB + TAB
    for part in shape.parts:
        _set_inside(part, column, inner, style)
    for part, continuation in _lists(shape, style):
        set_list(part.inside, continuation, inner, is_tight=part.is_tight)
    wrap_lists(shape, list(_lists(shape, style)))


def _is_after_line_comment(shape: DeclarationShape) -> bool:
    at = shape.items.index(shape.close) if shape.close is not None else 0
    return at > 0 and shape.items[at - 1].what is What.LINE_COMMENT


def _set_head(shape: DeclarationShape) -> None:
    """Put the names on the first line if they fit and there is no comment between them."""
    first = shape.parts[0].lead
    head = shape.items[: shape.items.index(first)]
    semicolon = shape.items[-1]
    if semicolon.text == ";" and semicolon.is_code:
        semicolon.join()
    if not all(item.is_code for item in head) or len(text_of(head)) > 100:
        return
    for before, item in pairwise(head):
        is_apart = item.nl or item.ws or before.text == ","
        item.join(" " if is_apart and before.text != "(" and item.text != "," else "")


def _set_part(part: Part, nl: int, column: int) -> None:
    if nl:
        part.lead.break_line(column, blank=nl > 1)
        if part.lead.what is What.DIRECTIVE:
            part.lead.break_line(0, blank=nl > 1)
    else:
        part.lead.join(" " if part.lead.new_nl or part.lead.ws or part.name else "")
    if part.first is not part.lead:
        part.first.break_line(column)


def _set_inside(part: Part, column: int, inner: int, style: Style) -> None:
    close = part.close
    if close is None or part.opening is None:
        return
    part.opening.join()
    if part.is_struct or part.is_statements:
        if part.is_struct:
            set_fields(part.fields, inner, style.fields)
        else:
            statements = set_statements(part.inside, inner)
            set_assignments(statements, style.assign, adds_blanks=style.adds_blanks)
        if part.inside:
            close.break_line(column // TAB * TAB)
        else:
            close.join()
    elif close.nl and part.inside:
        close.break_line(column // TAB * TAB)
    else:
        close.join()
