"""Keep a header in its own style: change only the lines that break what its other lines do.

For each question of style (how far the parts are indented, what comes before a comma) all answers
that the header gives are counted.  Where one is clearly the usual one, those that are given hardly
anywhere are changed to it; where there is none, all stay as they are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from tracepoint.model.fmt.code import is_item_start
from tracepoint.model.fmt.items import TAB, TextItem, What, advance, indentation, split_ranges
from tracepoint.model.fmt.wrap import HARD_WIDTH, columns_of
from tracepoint.source.brackets import step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tracepoint.model.fmt.code import FieldCall, StatementLines
    from tracepoint.model.fmt.shape import DeclarationShape, Part

_CLEAR = 0.66  # of all answers: from here on one is the usual one
# Up to which share of all answers one breaks the style: where its own declaration is consistent with
# itself, where many headers are written so, and where hardly any is.
_NEVER, _COMMON, _ODD = 0.0, 0.02, 0.25

#: How a gap is written: nothing, a blank, up to the column of a neighbour, tabs, or something else.
NONE, BLANK, COLUMN, TABS, OTHER = "none", "blank", "column", "tabs", "other"
_GAPS: dict[object, str] = {NONE: "", BLANK: " ", TABS: "\t"}


@dataclass(slots=True)
class _Answer:
    """What one line answers to a question, and what makes it answer otherwise."""

    value: object
    change: Callable[[object], None]
    rare: float


class _Answers:
    """The answers of a header, question by question."""

    def __init__(self) -> None:
        self._answers: dict[str, list[_Answer]] = defaultdict(list)

    def add(self, question: str, value: object, change: Callable[[object], None], rare: float) -> None:
        """Note what one line answers."""
        self._answers[question].append(_Answer(value, change, rare))

    def settle(self) -> None:
        """Change the answers that break the header's own style."""
        for answers in self._answers.values():
            counts = Counter(answer.value for answer in answers)
            usual, n_usual = counts.most_common(1)[0]
            if n_usual < _CLEAR * len(answers):
                continue
            for answer in answers:
                if answer.value != usual and counts[answer.value] <= answer.rare * len(answers):
                    answer.change(usual)


def is_laid_out(shape: DeclarationShape) -> bool:
    """Return whether the author broke a declaration into lines; else its text says nothing about style."""
    named = [part for part in shape.parts if part.name]
    if shape.kind == "frame":
        return all(part.lead.nl for part in named[1:])
    return any(part.lead.nl for part in named) or not _is_too_long(shape.items)


def _is_too_long(items: Sequence[TextItem]) -> bool:
    return any(end > HARD_WIDTH for _, end in columns_of(items).values())


def keep_own_style(shapes: Sequence[DeclarationShape]) -> None:
    """Set the white space of declarations that are laid out: as it was, but for what breaks the style."""
    statements = {id(part): part.statements for part in _parts(shapes) if part.is_statements}
    fields = {id(part): part.fields for part in _parts(shapes) if part.is_struct}
    for shape in shapes:
        for item in shape.items:
            item.reset()
        shape.items[0].join()
    _settle(shapes, _frame_answers)
    _settle(shapes, partial(_inner_answers, fields, statements))
    for slot in range(_MOST_SLOTS):
        _settle(shapes, partial(_field_answers, fields, slot))
    _settle(shapes, partial(_assign_answers, statements))
    _settle(shapes, _tight_answers)
    _settle(shapes, _list_answers)


def _settle(shapes: Sequence[DeclarationShape], ask: Callable[[DeclarationShape, _Answers], None]) -> None:
    answers = _Answers()
    for shape in shapes:
        ask(shape, answers)
    answers.settle()


def _parts(shapes: Sequence[DeclarationShape]) -> Iterator[Part]:
    for shape in shapes:
        yield from shape.parts


# --- parts ------------------------------------------------------------------------------------


def _frame_answers(shape: DeclarationShape, answers: _Answers) -> None:
    """Ask where the parts of a declaration begin and end."""
    asked = [part for part in shape.parts if part.lead.what is not What.DIRECTIVE and part.name]
    columns = {advance(0, part.lead.new_ws) for part in asked if part.lead.new_nl}
    kept = columns if len(columns) == 1 and _is_usual_column(shape, *columns) else set()
    for group, parts in ((0, asked[:2]), (2, asked[2:])):
        is_alike = len({part.lead.new_nl for part in parts}) == 1
        for at, part in enumerate(parts):
            question = f"{shape.kind}: part {group or at}"
            _blank_answer(question, part.lead, answers, is_alike=is_alike)
            _column_answer(question, part.lead, answers, kept, _moved_with(part))
    for part in shape.parts:
        if part.opening is not None:
            _gap_answer("before bracket", part.opening, answers)
        if part.close is not None and (part.is_struct or part.is_statements):
            _blank_answer(f"{shape.kind}: end of part", part.close, answers)
            _column_answer(f"{shape.kind}: end of part", part.close, answers, kept)
    if shape.close is not None:
        _blank_answer(f"{shape.kind}: end", shape.close, answers)
        _column_answer(f"{shape.kind}: end", shape.close, answers, {0})


def _moved_with(part: Part) -> Sequence[TextItem]:
    """Return the lines that are aligned to the bracket of a part, and move with it."""
    is_list = part.inside and not part.is_struct and not part.is_statements
    return part.inside if is_list and not part.inside[0].new_nl else ()


def _is_usual_column(shape: DeclarationShape, column: int) -> bool:
    """Return whether parts are often set there: tab stops, half of them, and below the first argument."""
    return column % (TAB // 2) == 0 or column in (len("DEFINE_EVENT("), len(shape.macro) + 1)


def _blank_answer(question: str, item: TextItem, answers: _Answers, *, is_alike: bool = False) -> None:
    """Note whether there is an empty line before a line; `is_alike` when it does so before its neighbours."""
    if not item.new_nl:
        return

    def change(value: object) -> None:
        item.new_nl = 2 if value else 1

    answers.add(f"{question}, blank", item.new_nl > 1, change, _NEVER if is_alike else _COMMON)


def _column_answer(
    question: str, item: TextItem, answers: _Answers, kept: set[int], moved: Sequence[TextItem] = ()
) -> None:
    """Note in which column a line begins; the lines of `moved` move with it."""
    if not item.new_nl:
        return
    column = advance(0, item.new_ws)
    rare = _NEVER if column in kept else _ODD
    answers.add(f"{question}, column", column, partial(_shift, (item, *moved), column), rare)


def _shift(items: Sequence[TextItem], old: int, column: object) -> None:
    """Move the lines that begin in `items` as far as from column `old` to `column`."""
    assert isinstance(column, int)  # noqa: S101 - the answers to one question are alike
    for item in items:
        if item.new_nl and item.what is not What.DIRECTIVE:
            item.new_ws = indentation(max(0, advance(0, item.new_ws) + column - old))


def _gap_answer(question: str, item: TextItem, answers: _Answers, *, is_alike: bool = False) -> None:
    """Note the gap before an item; `is_alike` when all of its neighbours have the same."""
    if item.new_nl:
        return
    value = _gap(item.new_ws)

    def change(usual: object) -> None:
        item.new_ws = _GAPS.get(usual, item.new_ws)

    rare = _NEVER if is_alike else _COMMON if value in (NONE, BLANK) else _ODD
    answers.add(question, value, change, rare)


def _gap(text: str) -> str:
    if not text:
        return NONE
    return BLANK if text == " " else TABS if not text.strip("\t") else OTHER


# --- lines of fields and statements -------------------------------------------------------------


def _inner_answers(
    fields: dict[int, list[FieldCall]],
    statements: dict[int, list[StatementLines]],
    shape: DeclarationShape,
    answers: _Answers,
) -> None:
    for part in shape.parts:
        lines = [
            (call.items[0], call.items[1:], 0)
            for call in fields.get(id(part), ())
            if call.items[0].what is not What.DIRECTIVE
        ]
        lines += [(each.first, each.lines, each.level) for each in statements.get(id(part), ())]
        lines = [line for line in lines if line[0].new_nl]
        columns = {advance(0, first.new_ws) for first, _, level in lines if not level}
        for first, rest, level in lines:
            rare = _ODD if len(columns) > 1 else _NEVER
            _inner_answer(first, rest, level, answers, rare)


def _inner_answer(
    first: TextItem, lines: Sequence[TextItem], level: int, answers: _Answers, rare: float
) -> None:
    column = advance(0, first.new_ws)
    answers.add(f"inner {level}", column, partial(_shift, (first, *lines), column), rare)


# --- columns ------------------------------------------------------------------------------------

_MOST_SLOTS = 6  # gaps of a field that are looked at: more arguments no field macro has


@dataclass(slots=True)
class _Cell:
    """One gap of a table: where the text before it ends, where that after it begins and ends."""

    item: TextItem
    before: int
    start: int
    end: int


def _cells(items: Sequence[TextItem]) -> dict[TextItem, _Cell]:
    """Return the place of each item in its line."""
    cells = {}
    column = 0
    for item in items:
        before = 0 if item.new_nl else column
        start = advance(before, item.new_ws)
        column = start + len(item.text)
        cells[item] = _Cell(item, before, start, column)
    return cells


def _field_answers(
    fields: dict[int, list[FieldCall]], slot: int, shape: DeclarationShape, answers: _Answers
) -> None:
    """Check what comes before argument `slot` of the fields, and before the brackets that close there."""
    for part in shape.parts:
        cells, ends = [], []
        for call in fields.get(id(part), ()):
            if call.arguments is None or slot > len(call.arguments):
                continue
            places = _cells(call.items)
            if slot == len(call.arguments):
                ends.append(places[call.items[-1]])
            else:
                text = call.arguments[slot]
                cells.append(replace(places[text[0]], end=places[text[-1]].end))
        _column_answers(f"field: argument {slot}", cells, answers)
        _column_answers("field: end", ends, answers)


def _column_answers(question: str, cells: Sequence[_Cell], answers: _Answers) -> None:
    """Check what comes before the cells of one column: they begin together, or end together."""
    starts = Counter(cell.start for cell in cells)
    ends = Counter(cell.end for cell in cells)
    usual, n_usual = starts.most_common(1)[0] if starts else (0, 0)
    kinds = Counter(_gap(cell.item.new_ws) for cell in cells)
    is_table = kinds[TABS] + kinds[OTHER] > len(cells) / 2
    for cell in cells:
        value = _gap(cell.item.new_ws)
        if value in (NONE, BLANK):
            is_in_column = is_table and cell.start >= usual and n_usual > 1
        else:
            is_in_column = starts[cell.start] > 1 or ends[cell.end] > 1
        value = COLUMN if is_in_column else value
        target = usual if 2 * n_usual > len(cells) else 0
        rare = _ODD if value is OTHER else _NEVER if value is COLUMN or len(kinds) == 1 else _COMMON
        answers.add(question, value, partial(_set_gap, cell, target), rare)


def _set_gap(cell: _Cell, column: int, value: object) -> None:
    """Set a gap to the usual one; a column that there is none of here changes nothing."""
    if value is COLUMN and column > cell.before and column != cell.start:
        stops = column // TAB - cell.before // TAB
        spaces = column % TAB if stops else column - cell.before
        cell.item.new_ws = "\t" * stops + " " * spaces
    elif value is not COLUMN:
        cell.item.new_ws = _GAPS.get(value, cell.item.new_ws)


def _assign_answers(
    statements: dict[int, list[StatementLines]], shape: DeclarationShape, answers: _Answers
) -> None:
    for part in shape.parts:
        having = [each for each in statements.get(id(part), ()) if each.equals is not None]
        places = _cells(part.inside) if having else {}
        cells = [places[each.equals] for each in having if each.equals is not None]
        _column_answers("before =", cells, answers)
        after = [each.after for each in having if each.after is not None]
        is_alike = len(after) > 1 and len({item.new_ws for item in after}) == 1
        for item in after:
            _gap_answer("behind =", item, answers, is_alike=is_alike)


# --- lists --------------------------------------------------------------------------------------


def _tight_answers(shape: DeclarationShape, answers: _Answers) -> None:
    for part in shape.parts:
        if not part.is_tight or part.close is None or not part.inside:
            continue
        _gap_answer("after (", part.inside[0], answers)
        _gap_answer("before )", part.close, answers)
        ranges = split_ranges(part.inside, 0, len(part.inside))
        for start, _ in ranges[1:]:
            _gap_answer("before comma", part.inside[start - 1], answers)
            if start < len(part.inside):
                _gap_answer("after comma", part.inside[start], answers)


_BELOW, _STOP, _ALIKE = "below the bracket", "at a tab stop", "as another line"


def _list_answers(shape: DeclarationShape, answers: _Answers) -> None:
    """Ask where the lines of a list go on that do not fit on its first."""
    places = _cells(shape.items)
    for part in _lists(shape):
        below = places[part.first].end + 1
        starts = list(_continued(part))
        counts = Counter(advance(0, item.new_ws) for item in starts)
        for item in starts:
            column = advance(0, item.new_ws)
            value = _BELOW if column == below else _STOP if column % (TAB // 2) == 0 else OTHER
            if value is OTHER and counts[column] > 1:
                value = _ALIKE
            rare = _ODD if value is OTHER else _NEVER
            question = "list goes on" if part.is_print else "prototype goes on"
            answers.add(question, value, partial(_move, item, below), rare)


def _lists(shape: DeclarationShape) -> Iterator[Part]:
    for part in shape.parts:
        if part.name and part.close is not None and not part.is_struct and not part.is_statements:
            yield part


def _continued(part: Part) -> Iterator[TextItem]:
    """Yield the items that begin a line of a list and an argument, or go on with a string."""
    depth = 0
    before: TextItem | None = None
    for at, item in enumerate(part.inside):
        if at and item.new_nl and item.what is not What.DIRECTIVE and is_item_start(before, item, depth):
            yield item
        if item.is_code:
            depth += step(item.text)
            before = item


def _move(item: TextItem, below: int, value: object) -> None:
    if value is _BELOW:
        item.new_ws = indentation(below)
