"""The syntax tree of C expressions, as `cexpr` builds it, and the walks over it.

Every node keeps its first and last token, so that a finding can point at it; equality compares
meaning only.  Names, numbers and operators are those of C; `Call`, `InitList` and
`StatementExpression` are what trace headers use beyond plain arithmetic.

Whatever looks for nodes or replaces some does it with `children`, `operands`, `walk`, `map_children`,
`map_operands` and `transform`; statements are nodes too.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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

    A macro name between literals that expands to a string (`"a" PRIu64 "b"`) is kept in
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
    """`({ ... })`: its tokens; `statements.statements_of` reads them, once for each node."""

    tokens: tuple[Token, ...] = field(compare=False)
    text: str = ""
    read: list[Any] = field(default_factory=list, compare=False, repr=False)


#: Annotations of members that hold no nodes: a tree has hundred thousands of such members.
_NO_NODES = frozenset(
    ("str", "int", "float", "bool", "CType", "CType | None", "frozenset[str]", "tuple[Token, ...]")
)
_MEMBERS: dict[type[Node], tuple[str, ...]] = {}
AnyNode = TypeVar("AnyNode", bound=Node)


def _members(cls: type[Node]) -> tuple[str, ...]:
    """Return the names of the members of a kind of node that may hold nodes."""
    names = _MEMBERS.get(cls)
    if names is None:
        wanted = (f for f in fields(cls) if f.name not in ("first", "last") and f.type not in _NO_NODES)
        names = _MEMBERS[cls] = tuple(f.name for f in wanted)
    return names


def children(node: Node) -> Iterator[Node]:
    """Yield the nodes directly below a node, in the order of the text.

    >>> [type(child).__name__ for child in children(Index(Name("a"), Number(1)))]
    ['Name', 'Number']
    """
    for name in _members(type(node)):
        value = getattr(node, name)
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from value


def operands(node: Node) -> tuple[Node, ...]:
    """Return the nodes directly below a node that are evaluated with it.

    A function's name is not, nor what `sizeof` is about, nor a type.

    >>> operands(Call(Name("f"), (Name("a"),)))
    (Name(name='a'),)
    """
    match node:
        case SizeOf():
            return ()
        case Call(function=Name(), arguments=arguments):
            return arguments
    return tuple(children(node))


def walk(node: Node, below: Callable[[Node], Sequence[Node]] | None = None) -> Iterator[Node]:
    """Yield a node and everything below it, outermost first, in the order of the text.

    `below`, such as `operands`, gives the nodes to go on with; all children without it.

    >>> [node.name for node in walk(Binary("+", Name("a"), Name("b"))) if isinstance(node, Name)]
    ['a', 'b']
    """
    stack = [node]
    push = stack.append
    while stack:
        at = stack.pop()
        yield at
        if below is not None:
            stack.extend(reversed(below(at)))
            continue
        # As `children`, written out: all rules of a check walk.
        for name in reversed(_members(type(at))):
            value = getattr(at, name)
            if isinstance(value, Node):
                push(value)
            elif isinstance(value, tuple):
                stack.extend(reversed(value))


def map_children(node: AnyNode, function: Callable[[Node], Node]) -> AnyNode:
    """Return a node with what `function` makes of each node directly below it; itself when nothing changed.

    >>> map_children(Unary("-", Name("a")), lambda child: Number(1)).operand
    Number(value=1, suffix='', is_decimal=True)
    """
    changed: dict[str, Any] = {}
    for name in _members(type(node)):
        value = getattr(node, name)
        if isinstance(value, Node) and (made := function(value)) is not value:
            changed[name] = made
        elif isinstance(value, tuple):
            items = tuple(map(function, value))
            if any(new is not old for new, old in zip(items, value, strict=True)):
                changed[name] = items
    return replace(node, **changed) if changed else node


def map_operands(node: AnyNode, function: Callable[[Node], Node]) -> AnyNode:
    """Return a node with what `function` makes of each of its `operands`; called functions stay.

    >>> map_operands(Call(Name("f"), (Name("a"),)), lambda node: Number(1)).arguments
    (Number(value=1, suffix='', is_decimal=True),)
    """
    match node:
        case SizeOf():
            return node
        case Call(function=Name() as called):
            return map_children(node, lambda child: child if child is called else function(child))
    return map_children(node, function)


def transform(node: Node, function: Callable[[Node], Node]) -> Node:
    """Return a tree with `function` done to every node, innermost first.

    >>> double = lambda node: Number(2 * node.value) if isinstance(node, Number) else node
    >>> transform(Unary("-", Number(2)), double).operand.value
    4
    """
    return function(map_children(node, lambda child: transform(child, function)))
