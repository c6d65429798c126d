"""The members of a struct or union, read from the text of its definition."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.place.variables import ATTRIBUTES, STORAGE, declared, split_commas
from tracepoint.source.ctype import BASIC_WORDS, QUALIFIERS, TAG_WORDS

if TYPE_CHECKING:
    from tracepoint.place.code import SourceCode
    from tracepoint.place.variables import Variable

#: Nested structs; the kernel has at most 8.
_MAX_NESTING = 30
#: Words that appear alone between members.
_MARKS = frozenset({"randomized_struct_fields_start", "randomized_struct_fields_end"})
#: Macros that declare one member, and the index of the argument with its name.
_ONE_MEMBER = {
    "DECLARE_BITMAP": 0,
    "DECLARE_HASHTABLE": 0,
    "DECLARE_KFIFO": 0,
    "DECLARE_KFIFO_PTR": 0,
    "DECLARE_FLEX_ARRAY": 1,
    "__DECLARE_FLEX_ARRAY": 1,
    "CACHELINE_PADDING": 0,
    "ZONE_PADDING": 0,
}
#: Macros around members that are also in a named struct: its name, where they begin.
_GROUPS = {
    "struct_group": (0, 1),
    "struct_group_attr": (0, 2),
    "struct_group_tagged": (1, 2),
    "__struct_group": (1, 3),
}


@dataclass(frozen=True, slots=True)
class StructMember:
    """One member: its type as C text without the name (empty if unknown), and how many `[]` follow the name.

    `body` is the struct or union that is defined inline, if any.
    """

    type: str
    n_dimensions: int = 0
    body: Body | None = None


@dataclass(slots=True)
class Body:
    """The contents of the braces of a struct or union.

    `embedded` are `struct x;` without a name, whose members are accessed directly; `unread` the
    words that are alone among the members, presumably macros; `doubt` says why there may be more members,
    empty if there are none.
    """

    members: dict[str, StructMember] = field(default_factory=dict)
    embedded: list[tuple[str, str]] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    doubt: str = ""

    def add(self, name: str, member: StructMember) -> None:
        """Add a member; if another branch or definition disagrees, its type is not known."""
        known = self.members.setdefault(name, member)
        if (known.type, known.n_dimensions) != (member.type, member.n_dimensions):
            self.members[name] = StructMember("")

    def take(self, other: Body) -> None:
        """Add all members of another body."""
        for name, member in other.members.items():
            self.add(name, member)
        self.embedded += other.embedded
        self.unread += other.unread
        self.doubt = self.doubt or other.doubt


def read_members(code: SourceCode, brace: int) -> Body:
    r"""Return the members between the brace at a token and its partner.

    All branches of `#if` count.  Macros with unknown members are recorded as a doubt.

    >>> from tracepoint.place.code import read_code
    >>> from tracepoint.source.text import SourceFile
    >>> text = "struct s { int a, *b[2]; union { u8 c; struct t d; }; struct { int f; } e; M(x) };"
    >>> found = read_members(read_code(SourceFile("a.h", text)), 2)
    >>> {name: member.type for name, member in found.members.items()}
    {'a': 'int', 'b': 'int *', 'c': 'u8', 'd': 'struct t', 'e': 'struct', 'x': ''}
    >>> found.doubt, list(found.members["e"].body.members)
    ('the macro M()', ['f'])
    """
    return _Reader(code).body(brace + 1, code.match[brace], 0)


def count_dimensions(code: SourceCode, variable: Variable) -> int:
    """Return how many `[]` follow the name of a variable."""
    at = variable.at + 1
    count = 0
    while variable.is_array and at < len(code.texts) and code.texts[at] == "[" and at in code.match:
        count += 1
        at = code.match[at] + 1
    return max(count, int(variable.is_array))


class _Reader:
    def __init__(self, code: SourceCode) -> None:
        self.code = code
        self.texts = code.texts

    def body(self, at: int, end: int, level: int) -> Body:
        found = Body()
        if level > _MAX_NESTING:
            found.doubt = "too deeply nested structs"
            return found
        while at < end:
            at = self.item(found, at, end, level)
        return found

    def item(self, found: Body, at: int, end: int, level: int) -> int:
        """Read what begins at a token; returns the token after it."""
        texts = self.texts
        word = texts[at]
        if word == ";" or word in _MARKS:
            return at + 1
        tag_at = at
        while texts[tag_at] in QUALIFIERS:  # const struct { int a; };
            tag_at += 1
        if texts[tag_at] in TAG_WORDS:
            return self.tagged(found, tag_at, end, level)
        has_group = self.code.is_name(at) and texts[at + 1] == "(" and at + 1 in self.code.match
        is_pointer = has_group and texts[at + 2] in {"*", "^"}  # void (*function)(int)
        is_macro = has_group and not is_pointer and word not in ATTRIBUTES and "typeof" not in word
        if is_macro:
            self.macro(found, at, level)
            return self.code.match[at + 1] + 1
        stop = self.stop_of(at, end)
        if stop == end:  # the brace follows without a semicolon: macros that contain it
            found.unread += [texts[k] for k in range(at, end) if self.code.is_name(k)]
            found.doubt = found.doubt or f"`{word}`"
        self.declaration(found, at, stop)
        return stop + 1

    def stop_of(self, at: int, end: int) -> int:
        """Return the semicolon that ends a declaration."""
        while at < end and self.texts[at] != ";":
            at = self.code.match.get(at, at) + 1 if self.texts[at] in "([{" else at + 1
        return min(at, end)

    def tagged(self, found: Body, at: int, end: int, level: int) -> int:
        """Read a struct, union or enum: its members in place, or only its name."""
        texts = self.texts
        keyword, tag = texts[at], ""
        after = self.after_attributes(at + 1)
        if self.code.is_name(after):
            tag = texts[after]
            after = self.after_attributes(after + 1)
        if texts[after] != "{":
            stop = self.stop_of(at, end)
            if stop == after and keyword != "enum":
                found.embedded.append((keyword, tag))
            else:
                self.declaration(found, at, stop)
            return stop + 1
        close = self.code.match.get(after, end)
        inner = Body() if keyword == "enum" else self.body(after + 1, close, level + 1)
        stop = self.stop_of(close + 1, end)
        names = declared(self.code, close + 1, stop) if close + 1 < stop else []
        # An unknown word instead of a name may be an attribute.
        if all(v.name.startswith("__") or v.name.isupper() for v in names):
            found.take(inner)
        for variable in names:
            kind = f"{keyword} {tag}".strip() + (f" {variable.type}" if variable.type else "")
            found.add(variable.name, StructMember(kind, count_dimensions(self.code, variable), inner))
        return stop + 1

    def after_attributes(self, at: int) -> int:
        while self.texts[at] in ATTRIBUTES:
            at = self.code.match.get(at + 1, at) + 1 if self.texts[at + 1] == "(" else at + 1
        return at

    def declaration(self, found: Body, at: int, stop: int) -> None:
        names = declared(self.code, at, stop) if at < stop else []
        if not names:
            return
        n_types, word = self.type_names(at, names[0].at)
        if n_types == 2 and names[0].name.startswith("__"):  # struct x name __an_attribute;
            name_at = names[0].at - 1
            while self.texts[name_at] == "]":
                name_at = self.code.match[name_at] - 1
            found.add(self.texts[name_at], StructMember(""))
            return
        if n_types != 1:  # a macro without parentheses that may hold members
            word = word or names[0].name
            found.unread.append(word)
            found.doubt = found.doubt or f"`{word}`"
        for variable in names:
            kind = variable.type if n_types == 1 else ""
            found.add(variable.name, StructMember(kind, count_dimensions(self.code, variable)))

    def type_names(self, at: int, stop: int) -> tuple[int, str]:
        """Count the types before a name, and return the first that is not a basic type."""
        count = 0
        named = ""
        was_basic = False
        while at < stop and self.texts[at] not in {"*", "("}:
            text = self.texts[at]
            is_basic = text in BASIC_WORDS
            if text in ATTRIBUTES or "typeof" in text:
                count += "typeof" in text
                at = self.code.match.get(at + 1, at)
            elif text in TAG_WORDS:
                count += 1
                at += 1
            elif self.code.is_name(at) and text not in QUALIFIERS and text not in STORAGE:
                count += not (is_basic and was_basic)
                named = named or ("" if is_basic else text)
            was_basic = is_basic or (was_basic and text in QUALIFIERS)
            at += 1
        return count, named

    def macro(self, found: Body, at: int, level: int) -> None:
        """Read `NAME(...)` instead of members."""
        code = self.code
        name, close = self.texts[at], code.match[at + 1]
        parts = list(split_commas(code, at + 2, close))
        if name in _GROUPS and len(parts) > _GROUPS[name][1]:
            index, first = _GROUPS[name]
            inner = self.body(parts[first][0], close, level + 1)
            found.take(inner)
            found.add(self.texts[parts[index][0]], StructMember("struct", 0, inner))
            return
        if name in _ONE_MEMBER and len(parts) > _ONE_MEMBER[name]:
            begin, end = parts[_ONE_MEMBER[name]]
            found.members.update((text, StructMember("")) for text in self.texts[begin:end])
            return
        if name not in {"static_assert", "_Static_assert"}:
            found.doubt = found.doubt or f"the macro {name}()"
            for inside in range(at + 2, close):
                if code.is_name(inside):
                    found.members.setdefault(self.texts[inside], StructMember(""))
