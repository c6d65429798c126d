"""The syntax tree of C expressions, as `cexpr` builds it.

Every node keeps its first and last token, so that a finding can point at it; equality compares
meaning only.  Names, numbers and operators are those of C; `Call`, `InitList` and
`StatementExpression` are what trace headers use beyond plain arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracepoint.source.ctype import CType
    from tracepoint.source.lexer import Token


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Base of all nodes; `first` and `last` are the tokens at its ends (None when synthesised)."""

    first: Token | None = field(default=None, compare=False, repr=False)
    last: Token | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Number(Node):
    """An integer constant: its value, and its suffix letters in lower case (`ul`, `llu`, ``)."""

    value: int
    suffix: str = ""
    is_decimal: bool = True


@dataclass(frozen=True, slots=True)
class Float(Node):
    """A floating constant; the kernel has none, headers for user space may."""

    value: float


@dataclass(frozen=True, slots=True)
class Char(Node):
    """A character constant, as its value."""

    value: int


@dataclass(frozen=True, slots=True)
class String(Node):
    """A string literal; adjacent literals are already joined and escapes decoded (latin-1 bytes).

    A macro name between literals that stands for a string (`"a" PRIu64 "b"`) is kept in
    `pieces` as a `Name`; `pieces` is empty for a plain literal.
    """

    value: str
    pieces: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Name(Node):
    """An identifier."""

    name: str


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """A prefix operator: one of `+ - ! ~ & * ++ --`, or a postfix one spelt `p++` and `p--`."""

    op: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """A binary operator of C, `&&`, `||` and comparison included."""

    op: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Assign(Node):
    """An assignment: `=` or a compound operator such as `|=`."""

    op: str
    target: Node
    value: Node


@dataclass(frozen=True, slots=True)
class Ternary(Node):
    """`condition ? then : otherwise`; `then` is None for the GNU form `a ?: b`."""

    condition: Node
    then: Node | None
    otherwise: Node


@dataclass(frozen=True, slots=True)
class Cast(Node):
    """`(type)operand`."""

    ctype: CType
    operand: Node


@dataclass(frozen=True, slots=True)
class SizeOf(Node):
    """`sizeof` or `_Alignof` of a type or an expression (exactly one is set)."""

    ctype: CType | None
    operand: Node | None
    op: str = "sizeof"


@dataclass(frozen=True, slots=True)
class TypeName(Node):
    """A type where an expression is expected, as in `offsetof(struct a, b)`."""

    ctype: CType


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A call; `function` is nearly always a `Name`."""

    function: Node
    arguments: tuple[Node, ...]

    @property
    def name(self) -> str:
        """The called name, or an empty string when it is an expression."""
        return self.function.name if isinstance(self.function, Name) else ""


@dataclass(frozen=True, slots=True)
class Member(Node):
    """`base.name`, or `base->name` when `is_arrow`."""

    base: Node
    name: str
    is_arrow: bool


@dataclass(frozen=True, slots=True)
class Index(Node):
    """`base[index]`."""

    base: Node
    index: Node


@dataclass(frozen=True, slots=True)
class InitList(Node):
    """`{ a, b }`; a designated item is an `Assign` whose target is the bare `Name`."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class CompoundLiteral(Node):
    """`(type){ ... }`."""

    ctype: CType
    items: InitList


@dataclass(frozen=True, slots=True)
class Comma(Node):
    """`left, right`: the value is `right`."""

    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class StatementExpression(Node):
    """`({ ... })`: its tokens, for `assign` or `printk` to read as statements."""

    tokens: tuple[Token, ...] = field(compare=False)
    text: str = ""
