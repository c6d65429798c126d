"""Structs and unions as preprocessed text defines them: their members, and what packs or aligns them.

Names in lengths and widths are left as tokens: what they are worth depends on who asks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.errors import SourceError
from tracepoint.named import NamedTuple
from tracepoint.source.brackets import CLOSERS, find_close
from tracepoint.source.ctype import (
    BASIC_WORDS,
    QUALIFIERS,
    TAG_WORDS,
    TYPEOF_WORDS,
    CType,
    parse_ctype,
)
from tracepoint.source.lexer import Kind
from tracepoint.source.macros import spell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.source.lexer import Token

_MAX_NESTING = 40
_TAGGED = frozenset({"struct", "union"})
_ATTRIBUTE = frozenset({"__attribute__", "__attribute"})
_PACKED = frozenset({"packed", "__packed__", "__packed"})
_ALIGNED = frozenset({"aligned", "__aligned__", "__aligned", "_Alignas", "alignas"})
_ASSERTS = frozenset({"static_assert", "_Static_assert"})
_PRAGMA_PACK = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+pack[ \t]*\(([^)\n]*)\)", re.MULTILINE)
#: Words that GCC takes for an alignment of all that the machine has.
_BIGGEST = ()


class StructText(NamedTuple):
    """A definition from `struct` or `union` to the `;` that ends it.

    `pack` is the limit in bytes that `#pragma pack` sets there, 0 for none.
    """

    tokens: tuple[Token, ...]
    pack: int = 0


@dataclass(slots=True)
class Marks:
    """What attributes ask for: `packed`, and the lengths of `aligned` (empty tokens: the largest)."""

    is_packed: bool = False
    aligns: list[tuple[Token, ...]] = field(default_factory=list)

    def take(self, other: Marks) -> None:
        """Add what other attributes ask for."""
        self.is_packed = self.is_packed or other.is_packed
        self.aligns += other.aligns


@dataclass(frozen=True, slots=True)
class MemberDeclaration:
    """One member: its type, or `body` when it is defined in its place; `name` is empty without one.

    `lengths` are those of its array, outermost first (an empty one is `[]`); `bits` the width of a
    bit-field, None for others.
    """

    name: str
    ctype: CType | None
    body: StructBody | None
    lengths: tuple[tuple[Token, ...], ...]
    bits: tuple[Token, ...] | None
    marks: Marks


@dataclass(frozen=True, slots=True)
class StructBody:
    """The members of a struct or union in order, and its own attributes; `pack` as in `StructText`."""

    is_union: bool
    members: tuple[MemberDeclaration, ...]
    marks: Marks
    pack: int = 0


def pack_at(text: str, at: int) -> int:
    r"""Return the limit in bytes that `#pragma pack` sets at a place of a text, 0 for none.

    >>> pack_at("#pragma pack(1)\nstruct a;\n#pragma pack()\n", 20), pack_at("struct a;", 3)
    (1, 0)
    """
    if "pragma" not in text:
        return 0
    pack, kept = 0, list[int]()
    for found in _PRAGMA_PACK.finditer(text, 0, at):
        words = [word.strip() for word in found[1].split(",")]
        if words[0] == "push":
            kept.append(pack)
            words = words[1:]
        elif words[0] == "pop":
            pack = kept.pop() if kept else 0
            continue
        elif not words[0]:
            pack = 0
        numbers = [int(word) for word in words if word.isdigit()]
        pack = numbers[-1] if numbers else pack
    return pack


def find_definition(tokens: Sequence[Token], keyword: str, tag: str) -> StructText | None:
    """Return the definition of `struct tag`, `union tag` or, without a keyword, of a typedef for one.

    None when the tokens hold none, or only one that is cut off.
    """
    for at, token in enumerate(tokens):
        if token.text not in _TAGGED or token.kind is not Kind.NAME or (keyword and token.text != keyword):
            continue
        found = find_body(tokens, at)
        if found is None or (keyword and found[0] != tag):
            continue
        if not keyword and (not at or tokens[at - 1].text != "typedef"):
            continue
        end = _end_of_definition(tokens, found[1])
        is_named = keyword or (tokens[end - 1].text == tag and tokens[end - 2].text != "*")
        if end > 0 and is_named:
            first = token.root
            return StructText(tuple(tokens[at:end]), pack_at(first.file.text, first.start))
    return None


def find_body(tokens: Sequence[Token], at: int) -> tuple[str, int] | None:
    """Return the tag (maybe empty) and the index of the `{` when a definition begins at `struct`."""
    tag = ""
    index = _after_marks(tokens, at + 1)
    if index < len(tokens) and tokens[index].kind is Kind.NAME:
        tag = tokens[index].text
        index = _after_marks(tokens, index + 1)
    return (tag, index) if index < len(tokens) and tokens[index].text == "{" else None


def _end_of_definition(tokens: Sequence[Token], brace: int) -> int:
    """Return the index of the `;` that ends what begins with a body at `brace`, -1 when it is cut off."""
    at = find_close(tokens, brace)
    while 0 <= at < len(tokens) and tokens[at].text != ";":
        at = find_close(tokens, at) if tokens[at].text in CLOSERS else at
        if at < 0 or tokens[at].kind is Kind.END:
            return -1
        at += 1
    return at if at < len(tokens) else -1


def read_struct(text: StructText) -> StructBody:
    """Read a definition; raises SourceError for a member that is not understood.

    >>> from tracepoint.source.lexer import lex
    >>> from tracepoint.source.text import SourceFile
    >>> tokens = lex(SourceFile("a.h", "struct s { u8 a, *b[2]; int c:3; struct t d; } __packed;"))
    >>> body = read_struct(StructText(tuple(tokens[:-1])))
    >>> [(m.name, str(m.ctype), len(m.lengths), m.bits is not None) for m in body.members]
    [('a', 'u8', 0, False), ('b', 'u8 *', 1, False), ('c', 'int', 0, True), ('d', 'struct t', 0, False)]
    >>> body.marks.is_packed
    True
    """
    return _Reader(text.tokens, text.pack).definition(0)[0]


class _Reader:
    def __init__(self, tokens: Sequence[Token], pack: int) -> None:
        self.tokens = tokens
        self.pack = pack

    def wrong(self, at: int) -> SourceError:
        token = self.tokens[min(at, len(self.tokens) - 1)]
        return SourceError(f"`{token.text}` in a struct is not understood", token.root.span)

    def text(self, at: int) -> str:
        return self.tokens[at].text if at < len(self.tokens) else ""

    def definition(self, at: int, level: int = 0) -> tuple[StructBody, int]:
        """Read `struct tag { ... } attributes`; returns the body and the index after it."""
        found = find_body(self.tokens, at)
        if found is None or level > _MAX_NESTING:
            raise self.wrong(at)
        brace = found[1]
        marks = Marks()
        for index in range(at + 1, brace):
            self.mark(index, marks)
        close = find_close(self.tokens, brace)
        if close < 0:
            raise self.wrong(brace)
        members: list[MemberDeclaration] = []
        index = brace + 1
        while index < close:
            index = self.item(index, close, members, level)
        after = self.marks(close + 1, len(self.tokens), marks)
        return StructBody(self.text(at) == "union", tuple(members), marks, self.pack), after

    def mark(self, at: int, marks: Marks) -> None:
        """Take the attribute word at an index, if it is one that matters."""
        word = self.text(at)
        if word in _PACKED:
            marks.is_packed = True
        elif word in _ALIGNED:
            close = find_close(self.tokens, at + 1) if self.text(at + 1) == "(" else -1
            marks.aligns.append(tuple(self.tokens[at + 2 : close]) if close > 0 else _BIGGEST)

    def marks(self, at: int, stop: int, marks: Marks) -> int:
        """Take the attributes from an index on; returns the index after them."""
        after = _after_marks(self.tokens, at, stop)
        for index in range(at, after):
            self.mark(index, marks)
        return after

    def item(self, at: int, stop: int, members: list[MemberDeclaration], level: int) -> int:
        """Read one declaration up to its `;`; returns the index after it."""
        if self.text(at) == ";":
            return at + 1
        if self.text(at) in _ASSERTS and self.text(at + 1) == "(":
            return find_close(self.tokens, at + 1, stop) + 1
        end = at
        while end < stop and self.text(end) != ";":
            end = find_close(self.tokens, end, stop) + 1 if self.text(end) in CLOSERS else end + 1
            if not end:
                raise self.wrong(at)
        self.declaration(at, end, members, level)
        return end + 1

    def declaration(self, at: int, stop: int, members: list[MemberDeclaration], level: int) -> None:
        marks = Marks()
        start = at
        ctype, body, at = self.specifiers(at, stop, marks, level)
        if at >= stop:
            if body is not None or (ctype is not None and ctype.base.startswith(("struct ", "union "))):
                members.append(MemberDeclaration("", ctype, body, (), None, marks))
            elif self.text(start) not in TAG_WORDS:  # a macro that holds members, presumably
                raise self.wrong(start)
            return
        while at < stop:
            end = at
            while end < stop and self.text(end) != ",":
                end = find_close(self.tokens, end, stop) + 1 if self.text(end) in CLOSERS else end + 1
            members.append(self.declarator(at, end, ctype, body, marks))
            at = end + 1

    def specifiers(
        self, at: int, stop: int, marks: Marks, level: int
    ) -> tuple[CType | None, StructBody | None, int]:
        """Read the type that begins a declaration: the type or the body, and the index after it."""
        words: list[str] = []
        body: StructBody | None = None
        while at < stop:
            word = self.text(at)
            after = self.marks(at, stop, marks)
            if after > at:
                at = after
            elif word in QUALIFIERS or word == "volatile":
                at += 1
            elif body is None and not words and word in TAG_WORDS:
                found = find_body(self.tokens, at) if word != "enum" else None
                if found is not None and found[1] < stop:
                    body, at = self.definition(at, level + 1)
                else:
                    words, at = self.tagged(at, stop)
            elif word in BASIC_WORDS and all(known in BASIC_WORDS for known in words) and body is None:
                words.append(word)
                at += 1
            elif body is None and not words and word in TYPEOF_WORDS:
                close = find_close(self.tokens, at + 1, stop)
                words = [f"typeof({spell(self.tokens[at + 2 : close])})"]
                at = max(close, at) + 1
            elif body is None and not words and self.tokens[at].kind is Kind.NAME:
                words = [word]
                at += 1
            else:
                break
        if body is None and not words:
            raise self.wrong(at)
        return (parse_ctype(" ".join(words)) if words else None), body, at

    def tagged(self, at: int, stop: int) -> tuple[list[str], int]:
        """Read `struct tag` or an enum, whose constants in place make no other type of it."""
        keyword, after = self.text(at), _after_marks(self.tokens, at + 1, stop)
        tag = ""
        if after < stop and self.tokens[after].kind is Kind.NAME:
            tag, after = self.text(after), after + 1
        if self.text(after) == "{":
            close = find_close(self.tokens, after, stop)
            if close < 0:
                raise self.wrong(after)
            after = close + 1
        if not tag and keyword != "enum":
            raise self.wrong(at)
        return ([keyword, tag] if tag else ["unsigned", "int"]), after

    def declarator(
        self, at: int, stop: int, ctype: CType | None, body: StructBody | None, shared: Marks
    ) -> MemberDeclaration:
        """Read `*name[2]`, `(*name)(int)` or `name:3`."""
        marks = Marks(shared.is_packed, list(shared.aligns))
        n_stars = 0
        while at < stop and (
            self.text(at) == "*" or self.text(at) in QUALIFIERS or self.text(at) == "volatile"
        ):
            n_stars += self.text(at) == "*"
            at += 1
        at = self.marks(at, stop, marks)
        if self.text(at) == "(":
            return self.in_parentheses(at, stop, marks)
        name = ""
        if at < stop and self.tokens[at].kind is Kind.NAME:
            name, at = self.text(at), at + 1
        lengths, at = self.dimensions(at, stop)
        bits: tuple[Token, ...] | None = None
        if self.text(at) == ":":
            end = at + 1
            while end < stop and _after_marks(self.tokens, end, stop) == end:
                end += 1
            bits, at = tuple(self.tokens[at + 1 : end]), end
        at = self.marks(at, stop, marks)
        if at < stop or (not name and bits is None):
            raise self.wrong(at)
        if n_stars:
            base = ctype if ctype is not None else CType("void")
            return MemberDeclaration(
                name, CType(base.base, n_stars, (), base.qualifiers), None, lengths, bits, marks
            )
        return MemberDeclaration(name, ctype, body, lengths, bits, marks)

    def in_parentheses(self, at: int, stop: int, marks: Marks) -> MemberDeclaration:
        """Read a pointer to a function or to an array: `(*name)(int)`, `(*name[4])(void)`."""
        close = find_close(self.tokens, at, stop)
        inner = at + 1
        is_pointer = self.text(inner) == "*"
        while inner < close and (self.text(inner) == "*" or self.text(inner) in QUALIFIERS):
            inner += 1
        if close < 0 or not is_pointer or self.tokens[inner].kind is not Kind.NAME:
            raise self.wrong(at)
        lengths, _ = self.dimensions(inner + 1, close)
        self.marks(find_close(self.tokens, close + 1, stop) + 1, stop, marks)
        return MemberDeclaration(self.text(inner), CType("void", 1), None, lengths, None, marks)

    def dimensions(self, at: int, stop: int) -> tuple[tuple[tuple[Token, ...], ...], int]:
        found: list[tuple[Token, ...]] = []
        while self.text(at) == "[":
            close = find_close(self.tokens, at, stop)
            if close < 0:
                raise self.wrong(at)
            found.append(tuple(self.tokens[at + 1 : close]))
            at = close + 1
        return tuple(found), at


def _after_marks(tokens: Sequence[Token], at: int, stop: int | None = None) -> int:
    """Return the index after attributes such as `__packed`, `__aligned(8)` and `__attribute__((...))`."""
    stop = len(tokens) if stop is None else stop
    while at < stop and tokens[at].kind is Kind.NAME:
        word = tokens[at].text
        has_group = at + 1 < stop and tokens[at + 1].text == "("
        if not (word in _ATTRIBUTE or word in _ALIGNED or word in _PACKED or word in ATTRIBUTE_WORDS):
            break
        close = find_close(tokens, at + 1, stop) if has_group and word not in _PACKED else at
        if close < 0:
            break
        at = close + 1
    return at


#: Attributes of the kernel that move nothing.  `____cacheline_aligned` and its like are macros.
ATTRIBUTE_WORDS = frozenset(
    (
        *("__randomize_layout", "__no_randomize_layout", "__designated_init", "__counted_by", "__nonstring"),
        *("__counted_by_le", "__counted_by_be", "__extension__", "__deprecated", "__maybe_unused"),
        *("__guarded_by", "__pt_guarded_by", "__must_hold"),
    )
)
#: What must stay in the text of a struct when its macros are expanded.
KEPT_WORDS = _PACKED | _ALIGNED | ATTRIBUTE_WORDS
