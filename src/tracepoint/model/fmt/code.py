"""Set the lines of one part of a declaration: argument lists, fields, statements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.model.fmt.columns import FieldStyle, assign_gaps, field_gaps
from tracepoint.model.fmt.items import (
    TAB,
    TextItem,
    What,
    advance,
    indentation,
    split_ranges,
    text_of,
)
from tracepoint.source.brackets import find_close, step

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


# --- argument lists -------------------------------------------------------------------------


def is_item_start(before: TextItem | None, item: TextItem, depth: int) -> bool:
    """Return whether a line that begins with `item` begins an argument, or goes on with a string."""
    if depth:
        return False
    if before is None or before.text == ",":
        return True
    return before.is_string and item.is_string


def set_list(inside: Sequence[TextItem], continuation: int, first: int, *, is_tight: bool) -> None:
    """Indent the lines of an argument list, keeping the line breaks as they are.

    Lines that begin an argument go to column `continuation`, those inside one move along with
    it.  A list whose first argument is on a new line begins at `first` and continues there.
    `is_tight` makes every run of blanks a single space, and puts one after each comma.
    """
    depth = 0
    delta = 0
    before: TextItem | None = None
    if inside and inside[0].nl:
        continuation = first
    for at, item in enumerate(inside):
        if item.nl and item.what is not What.DIRECTIVE:
            if is_item_start(before, item, depth):
                delta = continuation - item.indent
            column = max(0, item.indent + delta)
            item.break_line(column, blank=item.nl > 1 and at > 0)
        elif not item.nl:
            _space(item, before, depth, is_first=at == 0, is_tight=is_tight)
        if item.is_code:
            depth += step(item.text)
            before = item


def _space(item: TextItem, before: TextItem | None, depth: int, *, is_first: bool, is_tight: bool) -> None:
    """Set the blanks inside a line; only a tight list gets or loses any."""
    if is_first:
        item.join()
    elif is_tight:
        is_comma = item.is_code and not depth and item.text == ","
        follows_comma = item.is_code and before is not None and not depth and before.text == ","
        item.join(" " if (item.ws or follows_comma) and not is_comma else "")


# --- fields ---------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class FieldCall:
    """One field macro; `arguments` are item ranges, None when it is left as it is."""

    items: list[TextItem]
    arguments: list[list[TextItem]] | None = None
    texts: list[str] = field(default_factory=list)
    commas: list[TextItem] = field(default_factory=list)

    @property
    def gap_items(self) -> list[TextItem]:
        """The items after the columns' blanks."""
        return [argument[0] for argument in self.arguments or ()] + [self.items[-1]]


def field_calls(inside: Sequence[TextItem]) -> list[FieldCall]:
    """Split the contents of TP_STRUCT__entry into field macros, comments and directives."""
    calls: list[FieldCall] = []
    at = 0
    while at < len(inside):
        end = at + 1
        if inside[at].is_name and end < len(inside) and inside[end].text == "(":
            end = closing_item(inside, end) + 1
            calls.append(_field_call(list(inside[at:end])))
        elif inside[at].text == ";" and inside[at].is_code and calls and not inside[at].nl:
            inside[at].join()
        else:
            calls.append(FieldCall([inside[at]]))
        at = end
    return calls


def closing_item(items: Sequence[TextItem], at: int) -> int:
    """Return the index of the bracket that closes the one at `at` (the last index if none does)."""
    found = find_close(items, at)
    return len(items) - 1 if found < 0 else found


def _field_call(items: list[TextItem]) -> FieldCall:
    call = FieldCall(items)
    if all(item.is_code and (not item.nl or item is items[0]) for item in items):
        ranges = split_ranges(items, 2, len(items) - 1)
        if all(start < end for start, end in ranges):
            call.arguments = [items[start:end] for start, end in ranges]
            call.commas = [items[end] for _, end in ranges[:-1]]
            call.texts = [text_of(argument) for argument in call.arguments]
    return call


def set_fields(calls: Sequence[FieldCall], base: int, style: FieldStyle) -> None:
    """Put each field on a line of its own at column `base`, in the columns of `style`."""
    for at, call in enumerate(calls):
        first = call.items[0]
        if first.what is What.DIRECTIVE or (not first.is_code and not first.nl and at):
            continue
        delta = base - first.indent if first.nl else 0
        first.break_line(base, blank=first.nl > 1 and at > 0)
        for item in call.items[1:]:
            if item.nl and item.what is not What.DIRECTIVE:
                item.break_line(max(0, item.indent + delta))
    for call, gaps in styled(calls, base, style):
        call.items[1].join()
        for argument in call.arguments or ():
            for item in argument[1:]:
                item.join(" " if item.ws else "")
        for comma in call.commas:
            comma.join()
        for item, gap in zip(call.gap_items, gaps, strict=True):
            item.join(gap)


def styled(calls: Sequence[FieldCall], base: int, style: FieldStyle) -> Iterator[tuple[FieldCall, list[str]]]:
    """Yield the fields that go in columns, with the blanks that `style` gives them."""
    having = [call for call in calls if call.arguments is not None]
    gaps = field_gaps([(call.items[0].text, call.texts) for call in having], style, base)
    yield from zip(having, gaps, strict=True)


# --- statements -----------------------------------------------------------------------------

_DEEPEST = 16  # levels of nesting that are indented: lines of hostile text must not grow for ever
_HEADS = frozenset(("if", "for", "while", "switch"))


@dataclass(slots=True, eq=False)
class StatementLines:
    """The lines of one statement: its first item, the place of `=`, the lines that follow."""

    first: TextItem
    delta: int
    level: int
    equals: TextItem | None = None
    after: TextItem | None = None
    old_end: int = 0
    new_end: int = 0
    lines: list[TextItem] = field(default_factory=list)


@dataclass(slots=True)
class _Walk:
    """Where in nested statements the walk is."""

    level: int = 0
    heads: int = 0
    parens: int = 0
    is_open: bool = True  # the next token begins a statement
    after_head: bool = False  # ... which is the body of `if (...)` without braces
    in_head: bool = False
    in_label: bool = False
    current: int = 0
    stack: list[tuple[int, int]] = field(default_factory=list)

    def enter(self, item: TextItem, *, is_line: bool) -> int | None:
        """Return the level of the statement that `item` begins on a new line, else None."""
        if self.parens or not self.is_open:
            return None
        if self.after_head and item.text != "{" and is_line and item.is_code:
            self.heads += 1
        level = self.level + self.heads
        if not item.is_code:
            return level + (1 if self.after_head else 0)
        if item.text == "{" and self.after_head:
            return self.current
        if item.text == "}" and self.stack:
            return self.stack[-1][1]
        self.in_label = item.text in ("case", "default")
        self.current = max(0, level - 1) if self.in_label else level
        return self.current

    def step(self, item: TextItem) -> None:
        """Take in one token."""
        text = item.text
        may_be_head = self.is_open or self.after_head
        self.is_open = self.after_head = False
        if text in ("(", "["):
            self.parens += 1
        elif text in (")", "]"):
            self.parens = max(0, self.parens - 1)
            if not self.parens and self.in_head:
                self.is_open = self.after_head = True
                self.in_head = False
        elif not self.parens:
            self._step_outside(item, may_be_head=may_be_head)

    def _step_outside(self, item: TextItem, *, may_be_head: bool) -> None:
        """Take in one token that no round bracket encloses."""
        match item.text:
            case "{":
                self.stack.append((self.level, self.current))
                self.level, self.heads, self.is_open = self.current + 1, 0, True
            case "}":
                self.level = self.stack.pop()[0] if self.stack else self.level
                self.heads, self.is_open = 0, True
            case ";":
                self.heads, self.is_open = 0, True
            case ":" if self.in_label:
                self.is_open, self.in_label = True, False
            case "else" | "do":
                self.is_open = self.after_head = True
            case text if may_be_head and item.is_name and (text in _HEADS or "for_each" in text):
                self.in_head = True


def set_statements(inside: Sequence[TextItem], base: int) -> list[StatementLines]:
    """Indent statements from column `base` on, keeping the line breaks; return their lines."""
    walk = _Walk()
    statements: list[StatementLines] = []
    for at, item in enumerate(inside):
        is_line = bool(item.nl) or at == 0
        if item.what is What.DIRECTIVE:
            continue
        if is_line:
            level = walk.enter(item, is_line=True)
            if level is not None:
                level = min(level, _DEEPEST)
                column = base + TAB * level
                delta = column - item.indent if item.nl else 0
                statements.append(StatementLines(item, delta, level))
                item.break_line(column, blank=item.nl > 1 and at > 0)
            else:
                delta = statements[-1].delta if statements else 0
                item.break_line(max(0, item.indent + delta), blank=item.nl > 1)
                statements[-1].lines.append(item)
        elif item.is_code:
            walk.enter(item, is_line=False)
        if item.is_code:
            walk.step(item)
    _find_assignments(inside, statements)
    return statements


def _find_assignments(inside: Sequence[TextItem], statements: Sequence[StatementLines]) -> None:
    """Note the `=` of lines of the form `__entry->name = ...`."""
    place = {id(item): at for at, item in enumerate(inside)}
    for statement in statements:
        at = place[id(statement.first)]
        if statement.first.text != "__entry" or inside[at + 1 : at + 2] == []:
            continue
        old, new = statement.first.indent, advance(0, statement.first.new_ws)
        old, new = old + len("__entry"), new + len("__entry")
        depth = 0
        for index in range(at + 1, len(inside)):
            item = inside[index]
            if item.nl or not item.is_code or item.text in (";", ","):
                break
            if item.text == "=" and not depth:
                statement.equals = item
                following = inside[index + 1] if index + 1 < len(inside) else item
                statement.after = following if following.is_code and not following.nl else None
                statement.old_end, statement.new_end = advance(old, item.ws), new
                break
            depth += step(item.text)
            old = advance(old, item.ws) + len(item.text)
            new = advance(new, item.ws) + len(item.text)


def assignment_gaps(statements: Sequence[StatementLines], style: str) -> list[tuple[StatementLines, str]]:
    """Return the assignments with the blanks that `style` puts before their `=`."""
    run = 0
    runs: list[int] = []
    having: list[StatementLines] = []
    for statement in statements:
        if statement.equals is None:
            run += 1
            continue
        run += statement.first.nl > 1
        having.append(statement)
        runs.append(run)
    out: list[tuple[StatementLines, str]] = []
    for level in sorted({statement.level for statement in having}):
        chosen = [i for i, statement in enumerate(having) if statement.level == level]
        gaps = assign_gaps([having[i].new_end for i in chosen], [runs[i] for i in chosen], style)
        out += [(having[i], gap) for i, gap in zip(chosen, gaps, strict=True)]
    return out


def set_assignments(statements: Sequence[StatementLines], style: str, *, adds_blanks: bool) -> None:
    """Set the `=` of assignments in columns; lines that were aligned after it stay aligned.

    Unless `adds_blanks`, an `=` without a blank before it stays where it is.
    """
    for statement, gap in assignment_gaps(statements, style):
        equals = statement.equals
        if equals is None or not (equals.ws or adds_blanks):
            continue
        equals.join(gap)
        moved = advance(statement.new_end, gap) - statement.old_end
        after = statement.after
        if after is not None and (after.ws or adds_blanks):
            moved += 1 - len(after.ws)
            after.join(" ")
        for item in statement.lines:
            if item.indent > statement.old_end:
                item.new_ws = indentation(max(0, item.indent + moved))
