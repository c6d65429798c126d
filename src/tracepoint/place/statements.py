"""The statements of one function: a tree of token ranges, kernel macros included."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.place.variables import ATTRIBUTES, is_declaration
from tracepoint.source.brackets import step
from tracepoint.source.lexer import Kind as TokenKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.errors import PlaceError
    from tracepoint.place.code import SourceCode
    from tracepoint.place.functions import Function

#: Nested blocks; fs/, mm/ and kernel/ of 6.1 have at most 11.
_MAX_NESTING = 60
#: Consecutive `else if`.
_MAX_ARMS = 250
_LOOPS = re.compile(r"\w*(?:for_?each|each_|_for_|^for_|while|_loop|list_for|FOR_?EACH|FOREACH)\w*")
_JUMPS = frozenset({"goto", "break", "continue", "fallthrough"})
_ASM = frozenset({"asm", "__asm__", "__asm", "asm_volatile_goto", "asm_inline", "asm_goto_output"})


class StatementKind(enum.Enum):
    """What a statement is; `MACRO` is a macro call without a semicolon, `LABEL` a label alone."""

    BLOCK = enum.auto()
    IF = enum.auto()
    LOOP = enum.auto()
    DO = enum.auto()
    SWITCH = enum.auto()
    LABEL = enum.auto()
    RETURN = enum.auto()
    JUMP = enum.auto()
    DECLARATION = enum.auto()
    EXPRESSION = enum.auto()
    MACRO = enum.auto()
    EMPTY = enum.auto()


@dataclass(slots=True, eq=False)
class StatementSpan:
    """One statement from token `first` to `last`, both included.

    `children` are the statements of a block, or the bodies of an `if`, loop or switch (the `else`
    body second); `values` are the blocks of statement expressions in it.  `header` are the
    parentheses after its word, `else_at` the token `else`.  `is_value` marks the block of a statement
    expression.  `opaque` are braces in its expressions that were not read.
    """

    kind: StatementKind
    first: int
    last: int
    parent: StatementSpan | None = None
    children: list[StatementSpan] = field(default_factory=list)
    values: list[StatementSpan] = field(default_factory=list)
    opaque: list[tuple[int, int]] = field(default_factory=list)
    header: tuple[int, int] | None = None
    else_at: int = -1
    is_value: bool = False

    @property
    def is_body(self) -> bool:
        """Whether it is the body of an `if`, loop or switch without braces."""
        parent = self.parent
        return (
            parent is not None
            and parent.kind is not StatementKind.BLOCK
            and self.kind is not StatementKind.BLOCK
        )

    def walk(self) -> Iterator[StatementSpan]:
        """Yield this statement and every statement in it, in the order of the text."""
        stack = [self]
        while stack:
            statement = stack.pop()
            yield statement
            inner = statement.values + statement.children
            stack.extend(sorted(inner, key=lambda s: s.first, reverse=True))

    def ancestors(self) -> Iterator[StatementSpan]:
        """Yield the enclosing statements, innermost first."""
        at = self.parent
        while at is not None:
            yield at
            at = at.parent


def read_body(code: SourceCode, function: Function) -> StatementSpan:
    r"""Read the statements of a function; the result is the block of its braces.

    Raises PlaceError at a token that is not understood.

    >>> from tracepoint.place.code import read_code
    >>> from tracepoint.place.functions import find_functions
    >>> from tracepoint.source.text import SourceFile
    >>> text = "int f(int a)\n{\n\tlist_for_each(x, y)\n\t\tg(x);\n\tif (a)\n\t\treturn 1;\n\treturn 0;\n}\n"
    >>> code = read_code(SourceFile("a.c", text))
    >>> [s.kind.name for s in read_body(code, find_functions(code)[0]).walk()]
    ['BLOCK', 'LOOP', 'EXPRESSION', 'IF', 'RETURN', 'RETURN']
    """
    inside = [
        at for at in code.unmatched if function.open <= at and (at <= function.close or function.close < 0)
    ]
    if inside:
        text = code.texts[inside[0]]
        raise code.error(f"this `{text}` has no partner", inside[0])
    for at in range(function.open, function.close):
        if code.tokens[at].kind is TokenKind.BAD:
            raise code.error("this is not C", at)
    return _Reader(code).block(function.open, None)


class _Reader:
    def __init__(self, code: SourceCode) -> None:
        self.code = code
        self.texts = code.texts
        self.level = 0

    def error(self, reason: str, at: int) -> PlaceError:
        return self.code.error(reason, at)

    def block(self, at: int, parent: StatementSpan | None) -> StatementSpan:
        close = self.code.match[at]
        found = StatementSpan(StatementKind.BLOCK, at, close, parent)
        self.level += 1
        if self.level > _MAX_NESTING:
            raise self.error(f"more than {_MAX_NESTING} nested blocks", at)
        at += 1
        while at < close:
            statement = self.statement(at, found, close)
            found.children.append(statement)
            at = statement.last + 1
        self.level -= 1
        return found

    def statement(self, at: int, parent: StatementSpan, stop: int) -> StatementSpan:
        """Read the statement at a token; it must end before `stop`, the brace of the block around it."""
        text = self.texts[at]
        match text:
            case "{":
                return self.block(at, parent)
            case ";":
                return StatementSpan(StatementKind.EMPTY, at, at, parent)
            case "if" | "for" | "while" | "switch":
                return self.headed(at, parent, stop)
            case "do":
                return self.do(at, parent, stop)
            case "case" | "default":
                return self.case(at, parent, stop)
            case "else":
                raise self.error("this `else` belongs to no `if`", at)
        return self.other(at, parent, stop)

    def other(self, at: int, parent: StatementSpan, stop: int) -> StatementSpan:
        """Read a statement without a keyword of its own."""
        text = self.texts[at]
        if self.code.is_name(at) and at + 1 < stop:
            if self.texts[at + 1] == ":":
                return StatementSpan(StatementKind.LABEL, at, at + 1, parent)
            if self.texts[at + 1] == "(" and text not in _ASM and text not in {"return", "goto"}:
                made = self.macro(at, parent, stop)
                if made is not None:
                    return made
        return self.simple(at, parent, stop)

    def case(self, at: int, parent: StatementSpan, stop: int) -> StatementSpan:
        begin, questions = at, 0
        while at < stop:
            text = self.texts[at]
            if text in "([{":
                at = self.code.match[at]
            elif text == "?":
                questions += 1
            elif text == ":":
                if not questions:
                    return StatementSpan(StatementKind.LABEL, begin, at, parent)
                questions -= 1
            elif text == ";":
                break
            at += 1
        raise self.error("this label has no colon", begin)

    def body(self, at: int, parent: StatementSpan, stop: int) -> StatementSpan:
        """Read the body of an `if` or loop."""
        if at >= stop:
            raise self.error("the body is missing", at)
        self.level += 1
        if self.level > _MAX_NESTING:
            raise self.error(f"more than {_MAX_NESTING} nested statements", at)
        found = self.statement(at, parent, stop)
        if found.kind is StatementKind.LABEL:
            raise self.error("a label is the body of a statement without braces", at)
        self.level -= 1
        return found

    def headed(self, at: int, parent: StatementSpan, stop: int) -> StatementSpan:
        kinds = {"if": StatementKind.IF, "switch": StatementKind.SWITCH}
        found = StatementSpan(kinds.get(self.texts[at], StatementKind.LOOP), at, at, parent)
        if self.texts[at + 1] != "(":
            raise self.error(f"`{self.texts[at]}` without parentheses: its header is a macro", at)
        self._with_body(found, at + 1, stop)
        return self._else(found, stop) if found.kind is StatementKind.IF else found

    def _with_body(self, found: StatementSpan, paren: int, stop: int) -> None:
        close = self.code.match[paren]
        found.header = (paren, close)
        self.inner(found, paren + 1, close)
        found.children.append(self.body(close + 1, found, stop))
        found.last = found.children[0].last

    def _else(self, found: StatementSpan, stop: int) -> StatementSpan:
        """Read the arms after the first one, without recursion."""
        chain = [found]
        while chain[-1].last + 1 < stop and self.texts[chain[-1].last + 1] == "else":
            last = chain[-1]
            last.else_at = last.last + 1
            if len(chain) > _MAX_ARMS:
                raise self.error(f"more than {_MAX_ARMS} `else if` in a row", last.else_at)
            if self.texts[last.else_at + 1] != "if" or self.texts[last.else_at + 2] != "(":
                last.children.append(self.body(last.else_at + 1, last, stop))
                last.last = last.children[1].last
                break
            arm = StatementSpan(StatementKind.IF, last.else_at + 1, last.else_at + 1, last)
            self._with_body(arm, last.else_at + 2, stop)
            last.children.append(arm)
            chain.append(arm)
        for outer in reversed(chain[:-1]):
            outer.last = outer.children[1].last
        return found

    def do(self, at: int, parent: StatementSpan, stop: int) -> StatementSpan:
        found = StatementSpan(StatementKind.DO, at, at, parent)
        found.children.append(self.body(at + 1, found, stop))
        at = found.children[0].last + 1
        if at + 1 >= stop or not self.texts[at].startswith("while") or self.texts[at + 1] != "(":
            raise self.error("this `do` has no `while`", found.first)
        close = self.code.match[at + 1]
        found.header = (at + 1, close)
        self.inner(found, at + 2, close)
        # Without the semicolon: a macro of the file that contains it.
        found.last = close + 1 if self.texts[close + 1] == ";" else close
        return found

    def macro(self, at: int, parent: StatementSpan, stop: int) -> StatementSpan | None:
        """Read `NAME(...)` with a body or without a semicolon; None for anything else."""
        code, texts = self.code, self.texts
        close = code.match[at + 1]
        after = close + 1
        if after < stop and texts[after] == "{":
            return self._macro_with_body(at, parent, stop)
        if after >= stop:
            found = StatementSpan(StatementKind.MACRO, at, close, parent)
            self.inner(found, at + 2, close)
            return found
        is_next_line = code.line(after) > code.line(close)
        is_loop = _LOOPS.fullmatch(texts[at]) is not None
        begins = code.is_name(after) or (is_next_line and texts[after] in {"*", "(", "++", "--", "}"})
        if not begins or texts[after] in ATTRIBUTES or not (is_next_line or is_loop):
            return None
        if is_loop or self._is_deeper(after, at):
            found = StatementSpan(StatementKind.LOOP, at, at, parent)
            self._with_body(found, at + 1, stop)
            return found
        found = StatementSpan(StatementKind.MACRO, at, close, parent)
        self.inner(found, at + 2, close)
        return found

    def _macro_with_body(self, at: int, parent: StatementSpan, stop: int) -> StatementSpan:
        texts = self.texts
        found = StatementSpan(StatementKind.LOOP, at, at, parent)
        self._with_body(found, at + 1, stop)
        after = found.last + 1
        if after < stop and texts[after] == "else":
            found.kind = StatementKind.IF
            return self._else(found, stop)
        if after + 1 < stop and texts[after].startswith("while_") and texts[after + 1] == "(":
            found.kind = StatementKind.DO
            found.last = self.code.match[after + 1]
            if texts[found.last + 1] == ";":
                found.last += 1
        return found

    def _is_deeper(self, inner: int, outer: int) -> bool:
        """Return whether a token's line is indented more than another's."""
        position = self.code.file.position
        return _indent(self.code, position(self.code.tokens[inner].start)[0]) > _indent(
            self.code, position(self.code.tokens[outer].start)[0]
        )

    def simple(self, at: int, parent: StatementSpan, stop: int) -> StatementSpan:
        """Read up to the semicolon."""
        found = StatementSpan(StatementKind.EXPRESSION, at, at, parent)
        end = self.inner(found, at, stop)
        if end >= stop:
            raise self.error("no semicolon ends this statement", at)
        found.last = end
        word = self.texts[at]
        if word == "return":
            found.kind = StatementKind.RETURN
        elif word in _JUMPS:
            found.kind = StatementKind.JUMP
        elif word not in _ASM and is_declaration(self.code, at, end):
            found.kind = StatementKind.DECLARATION
        return found

    def inner(self, found: StatementSpan, at: int, stop: int) -> int:
        """Read the expressions of a statement up to a semicolon outside brackets, or `stop`."""
        texts = self.texts
        depth = 0
        while at < stop:
            text = texts[at]
            if text == "{":
                if texts[at - 1] == "(" and texts[self.code.match[at] + 1] == ")":
                    block = self.block(at, found)
                    block.is_value = True
                    found.values.append(block)
                elif depth == 0 and texts[at - 1] == ";":
                    break
                else:
                    found.opaque.append((at, self.code.match[at]))
                at = self.code.match[at]
            elif text == ";" and depth == 0:
                return at
            elif step(text):
                depth += step(text)
            elif depth == 0 and text in _KEYWORDS and at != found.first and found.header is None:
                raise self.error(f"`{text}` in the middle of a statement", at)
            at += 1
        return at


_KEYWORDS = frozenset("if else for while do switch case default return goto break continue".split())


def _indent(code: SourceCode, line: int) -> int:
    text = code.file.line_text(line)
    return len(text) - len(text.lstrip())
