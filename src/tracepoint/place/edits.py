"""Edits that put lines before or after statements, and braces around bodies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.diagnostics import Edit
from tracepoint.errors import PlaceError
from tracepoint.place.statements import StatementKind, StatementSpan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracepoint.place.code import SourceCode
    from tracepoint.source.text import SourceFile

# The pattern for comments allows no backtracking that joins two of them.
_REST = re.compile(r"(?:[ \t\f\v\r]|/\*[^*]*(?:\*(?!/)[^*]*)*\*/|//[^\n]*)*(?:\n|\Z)")
_COMMENT = re.compile(r"/\*[^*]*(?:\*(?!/)[^*]*)*\*/|//[^\n]*")
_BLANK_END = re.compile(r"[ \t\r\n\f\v]*\Z")
# Order of edits at one place: first those of inner statements, last those of the next one.
_FIRST, _PLAIN, _LAST, _BEFORE = (-1, 0), (0, 0), (0, 1), (1, 0)
_BLANK_LINES = re.compile(r"(?:[ \t]*\r?\n)*")
BLANK_LINE = re.compile(r"\n[ \t\r]*\n")
_TAB = 8
_WIDTH = 80


def width(text: str) -> int:
    r"""Return the columns that a line takes.

    >>> width("\tab"), width("  \tc")
    (10, 9)
    """
    return len(text.expandtabs(_TAB))


def normal_indent(text: str) -> str:
    r"""Return white space of the same width, with as many tabs as possible.

    >>> normal_indent("            ")
    '\t    '
    """
    columns = width(text)
    return "\t" * (columns // _TAB) + " " * (columns % _TAB)


def call_lines(indent: str, head: str, args: tuple[str, ...], tail: str = ");") -> list[str]:
    r"""Format a call within 80 columns, with later lines aligned to the first argument.

    >>> call_lines("\t", "trace_x(", ("a", "b"))
    ['\ttrace_x(a, b);']
    """
    lines = [indent + head]
    align = normal_indent(" " * width(lines[0]))
    for index, arg in enumerate(args):
        part = arg + (tail if index == len(args) - 1 else ",")
        is_start = lines[-1].endswith(head) or lines[-1] == align
        joined = lines[-1] + part if is_start else f"{lines[-1]} {part}"
        if is_start or width(joined) <= _WIDTH:
            lines[-1] = joined
        else:
            lines.append(align + part)
    if not args:
        lines[-1] += tail
    return lines


def check_edits(file: SourceFile, edits: Iterable[Edit]) -> None:
    """Raise PlaceError when two placements in one text conflict: both rewrite the same characters."""
    before: Edit | None = None
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        if before is not None:
            is_twice = edit == before and "trace_" in edit.replacement
            if is_twice or edit.start < before.end:
                what = (
                    "the same call is added here twice"
                    if is_twice
                    else "two calls change this place differently"
                )
                raise PlaceError(what, file.span(edit.start, max(edit.end, edit.start)))
        before = edit


@dataclass(slots=True)
class _Kept:
    """A `return` that is rewritten with a variable: its statement, the variable, the calls before it."""

    statement: StatementSpan
    name: str
    lines: list[str]


class Editor:
    """Collects the edits of all placements in one file.

    `blanks` are the last tokens of declarations that got an empty line after them, `added` the new
    variables of functions by the token of their brace.
    """

    def __init__(self, code: SourceCode) -> None:
        self.code = code
        self.text = code.file.text
        self.newline = "\r\n" if "\r\n" in self.text[:1000] else "\n"
        self._edits: list[tuple[tuple[int, int], Edit]] = []
        self._braced: dict[int, StatementSpan] = {}
        self._split_closers: set[int] = set()
        self._moved: set[int] = set()
        self._spread: set[int] = set()
        self._kept: dict[int, _Kept] = {}
        self.blanks: set[int] = set()
        self.added: set[tuple[int, str]] = set()

    def edit(self, start: int, end: int, replacement: str, rank: tuple[int, int] = _PLAIN) -> None:
        """Replace characters; edits at one place are ordered by rank."""
        self._edits.append((rank, Edit(self.code.file.path, start, end, replacement)))

    def edits(self) -> tuple[Edit, ...]:
        """Return all edits, in the order of the text."""
        for kept in self._kept.values():
            indent = self.indent_for(kept.statement)
            self.after(kept.statement, [*kept.lines, f"{indent}return {kept.name};"], indent)
        self._kept = {}
        owners = sorted(self._braced.values(), key=lambda s: (-_depth(s), s.first))
        for body in owners:
            self._write_braces(body)
        self._braced = {}
        ordered = sorted(self._edits, key=lambda e: (e[1].start, e[1].end, e[0]))
        return tuple(edit for _, edit in ordered)

    def indent_of(self, at: int) -> str:
        """Return the white space that begins the line of a token."""
        start = self.text.rfind("\n", 0, self.code.tokens[at].start) + 1
        end = start
        while end < len(self.text) and self.text[end] in " \t":
            end += 1
        return normal_indent(self.text[start:end])

    def is_first(self, at: int) -> bool:
        """Return whether a token is the first on its line."""
        start = self.code.tokens[at].start
        begin = self.text.rfind("\n", 0, start) + 1
        return not self.text[begin:start].strip()

    def inner_indent(self, block: StatementSpan) -> str:
        """Return the indentation of statements in a block or body."""
        for child in block.children if block.kind is StatementKind.BLOCK else []:
            if child.kind is not StatementKind.LABEL and self.is_first(child.first):
                return self.indent_of(child.first)
        return self.owner_indent(block) + "\t"

    def owner_indent(self, block: StatementSpan) -> str:
        """Return the indentation of the statement that a block is the body of."""
        owner = block
        if (
            block.kind is StatementKind.BLOCK
            and block.parent is not None
            and block.parent.kind is not StatementKind.BLOCK
        ):
            owner = block.parent
        return self.indent_of(owner.first)

    def indent_for(self, statement: StatementSpan) -> str:
        """Return the indentation of lines beside a statement."""
        if statement.kind is not StatementKind.LABEL and self.is_first(statement.first):
            return self.indent_of(statement.first)
        parent = statement.parent
        return self.inner_indent(parent) if parent is not None else "\t"

    def before(self, statement: StatementSpan, lines: list[str]) -> None:
        """Put lines before a statement, and before the comment that belongs to it."""
        start = self.code.tokens[statement.first].start
        if self.is_first(statement.first):
            at = self._attached(self.code.floor(statement.first), start)
            self.edit(at, at, "".join(line + self.newline for line in lines), _BEFORE)
            return
        blank = _BLANK_END.search(self.text, self.code.floor(statement.first), start)
        begin = blank.start() if blank else start
        block = self.newline + self.newline.join(lines) + self.newline
        self._moved.add(statement.first)
        self.edit(begin, start, block + self.indent_for(statement))
        self._split_closer(statement)

    def has_blank_after(self, statement: StatementSpan) -> bool:
        """Return whether there is a blank line or a directive between a statement and the next one."""
        end = self.code.tokens[statement.last].end
        between = self.text[end : self.code.tokens[statement.last + 1].start]
        return bool(BLANK_LINE.search(between)) or "\n#" in between

    def own_line(self, statement: StatementSpan) -> None:
        """Put a statement on a line of its own."""
        if self.is_first(statement.first) or statement.first in self._moved:
            return
        self._moved.add(statement.first)
        start = self.code.tokens[statement.first].start
        blank = _BLANK_END.search(self.text, self.code.floor(statement.first), start)
        self.edit(blank.start() if blank else start, start, self.newline + self.indent_for(statement))
        self._split_closer(statement)

    def spread(self, body: StatementSpan) -> None:
        """Split a function whose body begins on the line of its opening brace."""
        code = self.code
        is_spread = code.line(body.first) != code.line(body.last) or self.is_first(body.first)
        if is_spread or body.first in self._spread:
            return
        self._spread.add(body.first)
        start = code.tokens[body.first].start
        self.edit(len(self.text[:start].rstrip(" \t")), start, self.newline)
        if body.children:
            self.own_line(body.children[0])

    def keep(self, statement: StatementSpan, name: str, lines: list[str]) -> None:
        """Write `return f();` as `name = f();`, the lines, `return name;`."""
        if statement.first in self._kept:
            self._kept[statement.first].lines += lines
            return
        token = self.code.tokens[statement.first]
        gap = "" if self.code.tokens[statement.first + 1].space else " "
        self.edit(token.start, token.end, f"{name} ={gap}")
        self.own_line(statement)
        self._realign(statement, len(f"{name} =") - len("return"))
        self._kept[statement.first] = _Kept(statement, name, lines)

    def _realign(self, statement: StatementSpan, columns: int) -> None:
        """Shift the lines of a statement that are aligned to one of its parentheses."""
        code = self.code
        stack: list[int] = []
        moved = {code.line(statement.first)}
        for at in range(statement.first, statement.last):
            if code.texts[at] == ")" and stack:
                stack.pop()
            if at > statement.first and stack and self.is_first(at):
                opener = code.tokens[stack[-1]]
                line_start = self.text.rfind("\n", 0, opener.start) + 1
                start = self.text.rfind("\n", 0, code.tokens[at].start) + 1
                here = width(self.text[start : code.tokens[at].start])
                if code.line(stack[-1]) in moved and here == width(self.text[line_start : opener.end]):
                    moved.add(code.line(at))
                    self.edit(start, code.tokens[at].start, normal_indent(" " * (here + columns)))
            if code.texts[at] == "(":
                stack.append(at)

    def at_end(self, block: StatementSpan, lines: list[str]) -> None:
        """Put lines before the brace that ends a block."""
        close = self.code.tokens[block.last].start
        if self.is_first(block.last):
            at = self.text.rfind("\n", 0, close) + 1
            self.edit(at, at, "".join(line + self.newline for line in lines), _BEFORE)
            return
        floor = self.code.floor(block.last)
        blank = _BLANK_END.search(self.text, floor, close)
        begin = blank.start() if blank else close
        text = self.newline + self.newline.join(lines) + self.newline + self.owner_indent(block)
        self._split_closers.add(block.last)
        self.edit(begin, close, text)

    def at_line(self, offset: int, lines: list[str], rank: tuple[int, int] = _BEFORE) -> None:
        """Put lines at an offset that begins a line."""
        self.edit(offset, offset, "".join(line + self.newline for line in lines), rank)

    def split(self, declaration: StatementSpan, condition: str, lines: list[str]) -> None:
        """Put lines after a declaration, outside its branch: `#endif`, the lines, the branch again."""
        end = self.code.tokens[declaration.last].end
        rest = _REST.match(self.text, end)
        end = rest.end() if rest is not None else end
        blank = _BLANK_LINES.match(self.text, end)
        at = blank.end() if blank is not None else end
        if declaration.last not in self.blanks:
            self.blanks.add(declaration.last)
            self.edit(end, end, f"#endif{self.newline}{self.newline if at == end else ''}", _FIRST)
            self.edit(at, at, f"{condition}{self.newline}", _LAST)
        self.at_line(at, lines, _PLAIN)

    def top_of(self, statement: StatementSpan) -> int:
        """Return the offset at which `before` would put lines."""
        start = self.code.tokens[statement.first].start
        return (
            self._attached(self.code.floor(statement.first), start)
            if self.is_first(statement.first)
            else start
        )

    def _attached(self, floor: int, start: int) -> int:
        """Return the start of the lines of a statement and of the comments directly above it."""
        at = self.text.rfind("\n", 0, start) + 1
        for comment in reversed(list(_COMMENT.finditer(self.text, floor, start))):
            line = self.text.rfind("\n", 0, comment.start()) + 1
            is_own_line = line >= floor and not self.text[line : comment.start()].strip()
            if not is_own_line or self.text[comment.end() : at].strip(" \t\r") != "\n":
                break
            at = line
        return at

    def after(self, statement: StatementSpan, lines: list[str], indent: str) -> None:
        """Put lines after a statement and the comment that ends its line."""
        end = self.code.tokens[statement.last].end
        rest = _REST.match(self.text, end)
        if rest is not None:
            begin = "" if rest[0].endswith("\n") else self.newline
            text = begin + "".join(line + self.newline for line in lines)
            self.edit(rest.end(), rest.end(), text, (-_depth(statement), 0))
            return
        if statement.is_body:  # its new brace goes on the next line
            self.edit(end, end, self.newline + self.newline.join(lines), (-_depth(statement), 0))
            return
        if statement.last + 1 in self._moved:  # what follows already gets its own line
            self.edit(end, end, self.newline + self.newline.join(lines))
            return
        following = self.code.tokens[statement.last + 1]
        block = self.newline + self.newline.join(lines) + self.newline
        parent = statement.parent
        is_close = (
            parent is not None and parent.kind is StatementKind.BLOCK and parent.last == statement.last + 1
        )
        if is_close and parent is not None:
            if parent.last in self._split_closers:  # the newline before it is already there
                self.edit(end, end, block.removesuffix(self.newline))
                return
            indent = self.owner_indent(parent)
            self._split_closers.add(parent.last)
        self.edit(end, self._code_after(end, following.start), block + indent)

    def _code_after(self, end: int, start: int) -> int:
        return start if not self.text[end:start].strip() else end

    def _split_closer(self, statement: StatementSpan) -> None:
        """Put the closing brace of a block on its own line, if it is on a statement's line."""
        parent = statement.parent
        if parent is None or parent.kind is not StatementKind.BLOCK or parent.last in self._split_closers:
            return
        last = parent.children[-1].last
        start = self.code.tokens[parent.last].start
        if "\n" not in self.text[self.code.tokens[last].end : start]:
            self._split_closers.add(parent.last)
            blank = _BLANK_END.search(self.text, self.code.tokens[last].end, start)
            begin = blank.start() if blank else start
            self.edit(begin, start, self.newline + self.owner_indent(parent))

    def brace(self, body: StatementSpan) -> None:
        """Put braces around a body, and around the other arms of its `if`."""
        owner = body.parent
        if owner is None:
            return
        head = owner
        while (
            head.parent is not None
            and head.parent.kind is StatementKind.IF
            and head.parent.children[-1] is head
        ):
            if head.parent.else_at < 0 or head.kind is not StatementKind.IF:
                break
            head = head.parent
        arm: StatementSpan | None = head
        while arm is not None:
            following = None
            for child in arm.children:
                if (
                    child.kind is StatementKind.IF
                    and arm.kind is StatementKind.IF
                    and arm.children[1:] == [child]
                ):
                    following = child
                elif child.kind is not StatementKind.BLOCK:
                    self._braced[child.first] = child
            arm = following if head.kind is StatementKind.IF else None

    def bodies(self) -> list[StatementSpan]:
        """Return the bodies that get braces."""
        return list(self._braced.values())

    def _write_braces(self, body: StatementSpan) -> None:
        owner = body.parent
        if owner is None:
            return
        code, text = self.code, self.text
        is_else = owner.kind is StatementKind.IF and owner.children[0] is not body
        opener = owner.else_at if is_else else owner.first
        if not is_else and owner.kind is not StatementKind.DO and owner.header is not None:
            opener = owner.header[1]
        self.edit(code.tokens[opener].end, code.tokens[opener].end, " {")
        if is_else and code.texts[opener - 1] == "}" and self.is_first(opener):
            before = code.tokens[opener - 1].end
            if not text[before : code.tokens[opener].start].strip():
                self.edit(before, code.tokens[opener].start, " ")
        self.own_line(body)
        indent = self.indent_of(owner.first)
        end = code.tokens[body.last].end
        next_word = -1
        if owner.kind is StatementKind.IF and not is_else:
            next_word = owner.else_at
        elif owner.kind is StatementKind.DO:
            next_word = body.last + 1
        if next_word >= 0 and self.is_first(next_word):
            start = code.tokens[next_word].start
            self.edit(start, start, "} ")
            return
        rest = _REST.match(text, end)
        if rest is not None and next_word < 0:
            begin = "" if rest[0].endswith("\n") else self.newline
            self.edit(rest.end(), rest.end(), f"{begin}{indent}}}{self.newline}", (-_depth(body), 1))
            return
        tail = " " if next_word >= 0 else self.newline + indent
        stop = self._code_after(end, code.tokens[body.last + 1].start)
        if any(edit.start == end < edit.end == stop for _, edit in self._edits):
            tail, stop = "", end  # a call goes before the next statement, on lines of its own
        self.edit(end, stop, f"{self.newline}{indent}}}{tail}")


def _depth(statement: StatementSpan) -> int:
    return sum(1 for _ in statement.ancestors())
