"""Statements of TP_fast_assign for LTTng's TP_code_pre: pruned, written, and analysed.

An assignment is cut into pieces, one per statement or declarator.  Each knows the fields and names in
it, so that `assign` can decide which pieces a probe needs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tracepoint.generate.statements import statement_lines
from tracepoint.source import ast
from tracepoint.source.lexer import Kind, lex
from tracepoint.source.statements import (
    Block,
    Case,
    Declare,
    If,
    Jump,
    Loop,
    Run,
    Statement,
    Switch,
    Unreadable,
)
from tracepoint.source.text import SourceFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tracepoint.source.lexer import Token

#: Calls that copy into a dynamic member; where from is known without the statement.
STORES = frozenset(
    "__assign_" + kind
    for kind in (
        *("str", "rel_str", "str_len", "rel_str_len", "vstr"),
        *("bitmask", "rel_bitmask", "cpumask", "rel_cpumask", "sockaddr", "rel_sockaddr"),
    )
)
_POINTERS = frozenset(
    f"__get_{rel}{kind}"
    for rel in ("", "rel_")
    for kind in ("dynamic_array", "str", "bitmask", "cpumask", "sockaddr")
)
_LENGTHS = frozenset(("__get_dynamic_array_len", "__get_rel_dynamic_array_len"))
_PERF = frozenset(("__perf_count", "__perf_task", "__perf_addr"))
CHANGES = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"))
_CUT = 200  # an Unreadable keeps no more than this of its text


@dataclass(frozen=True, slots=True)
class Piece:
    """One statement of an assignment, and the names in it.

    `text` has the kernel's layout, one tab per level; `declares` is the local that it declares; `fields`
    are members of the record, `names` all other names, `changes` those that are assigned to, `resets`
    those of them that are assigned to before anything else; `trouble` says why a probe cannot run it;
    `jumps` says whether it has a `return` or `goto`.
    """

    statement: Statement
    text: str
    declares: str
    fields: frozenset[str]
    names: frozenset[str]
    changes: frozenset[str]
    resets: frozenset[str]
    trouble: str = ""
    jumps: bool = False


def cut(block: Block) -> list[Piece]:
    """Cut an assignment into pieces, without the calls in `STORES`."""
    pieces = []
    for statement in _flat(block):
        kept = _prune(statement)
        if kept is not None:
            pieces.append(_piece(kept))
    return pieces


def _flat(block: Block) -> Iterator[Statement]:
    for statement in block.body:
        match statement:
            case Block(is_scope=False):
                yield from statement.body
            case Run(expression=ast.Comma() as comma):
                yield from _flat(Block((Run(comma.left), Run(comma.right))))
            case _:
                yield statement


def stores(statement: Statement) -> Iterator[ast.Call]:
    """Yield the calls in `STORES`, however deeply nested."""
    for found in ast.walk(statement):
        match found:
            case Run(expression=ast.Call() as call) if call.name in STORES:
                yield call


def declared(statement: Statement) -> Iterator[str]:
    """Yield the names that a statement declares, however deep."""
    return (found.name for found in ast.walk(statement) if isinstance(found, Declare))


def _prune(statement: Statement) -> Statement | None:
    """Return the statement without `STORES`; None when nothing is left."""
    match statement:
        case Run(expression=ast.Call() as call) if call.name in STORES | _PERF:
            return None
        case Block(body=body):
            kept = tuple(inner for inner in map(_prune, body) if inner is not None)
            return replace(statement, body=kept) if kept else None
        case If():
            return _prune_if(statement)
        case Loop(body=body):
            inner = _prune(body)
            return replace(statement, body=inner) if inner is not None else None
        case Switch(body=body):
            inner = _prune(body)
            if not isinstance(inner, Block) or all(isinstance(s, Case | Jump) for s in inner.body):
                return None
            return replace(statement, body=inner)
    return statement


def _prune_if(statement: If) -> Statement | None:
    then = _prune(statement.then)
    otherwise = _prune(statement.otherwise) if statement.otherwise is not None else None
    if then is not None:
        return replace(statement, then=then, otherwise=otherwise)
    if otherwise is None:
        return None
    return replace(statement, condition=ast.Unary("!", statement.condition), then=otherwise, otherwise=None)


def with_lengths(block: Block, lengths: Mapping[str, ast.Node]) -> Block:
    """Return the statements with the lengths in bytes of dynamic members in place of their getters."""

    def with_length(node: ast.Node) -> ast.Node:
        match node:
            case ast.Call(arguments=(ast.Name(name=name),)) as call if call.name in _LENGTHS:
                return lengths.get(name, node)
        return node

    return ast.map_children(block, lambda statement: ast.transform(statement, with_length))


# --- looking through ------------------------------------------------------------------------


def _piece(statement: Statement) -> Piece:
    text = "\n".join(statement_lines((statement,)))
    declares = statement.name if isinstance(statement, Declare) else ""
    words = _Words(tokens_of(text))
    words.read()
    return Piece(
        statement,
        text,
        declares,
        frozenset(words.fields),
        frozenset(words.names),
        frozenset(words.changes),
        frozenset(words.resets),
        "the whole record is handed on" if words.hands_on else _unread(statement),
        jumps=words.jumps,
    )


@dataclass(slots=True)
class _Words:
    """Sorts the names in a statement."""

    tokens: list[Token]
    fields: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    changes: set[str] = field(default_factory=set)
    resets: set[str] = field(default_factory=set)
    hands_on: bool = False
    jumps: bool = False

    def read(self) -> None:
        for at, token in enumerate(self.tokens):
            if token.kind is Kind.NAME:
                self._name(at, token.text)

    def _name(self, at: int, name: str) -> None:
        before, after = _text(self.tokens, at - 1), _text(self.tokens, at + 1)
        if name == "__entry":
            self.hands_on |= after != "->"
            self.fields |= {_text(self.tokens, at + 2)} if after == "->" else set()
        elif name in ("return", "goto"):
            self.jumps = True
        elif name in _POINTERS | _LENGTHS and after == "(":
            self.fields.add(_text(self.tokens, at + 2))
        elif before not in ("->", ".") and _text(self.tokens, at - 2) not in _POINTERS | _LENGTHS:
            if after == "=" and name not in self.names:
                self.resets.add(name)
            self.names.add(name)
            if after in CHANGES or before in ("++", "--"):
                self.changes.add(name)


def _unread(statement: Statement) -> str:
    """Say what is wrong with a statement of which only the text is known; loops by a macro are fine."""
    match statement:
        case Unreadable(text=text, reason=reason):
            is_loop = "for_each" in text.partition("(")[0] and len(text) < _CUT
            return "" if is_loop else reason
        case Block(body=body):
            return next(filter(None, map(_unread, body)), "")
        case If(then=then, otherwise=otherwise):
            return _unread(then) or (_unread(otherwise) if otherwise is not None else "")
        case Loop(body=inner) | Switch(body=inner):
            return _unread(inner)
    return ""


def tokens_of(text: str) -> list[Token]:
    """Return the tokens of a text without its end."""
    return lex(SourceFile("", text))[:-1]


def _text(tokens: list[Token], at: int) -> str:
    return tokens[at].text if 0 <= at < len(tokens) else ""


def rewrite(text: str) -> str:
    """Let the record's members be those of `tp_locvar`.

    >>> rewrite("__entry->a = __get_dynamic_array_len(b);")
    'tp_locvar->a = sizeof(tp_locvar->b);'
    """
    tokens = tokens_of(text)
    pieces: list[str] = []
    done = at = 0
    while at < len(tokens):
        token = tokens[at]
        new, taken = "", 0
        if token.text == "__entry":
            new, taken = "tp_locvar", 1
        elif token.text in _PERF and _text(tokens, at + 1) == "(":
            new, taken = "", 1
        elif token.text in _POINTERS | _LENGTHS and _text(tokens, at + 3) == ")":
            member = f"tp_locvar->{_text(tokens, at + 2)}"
            new, taken = _place(token.text, member, _text(tokens, at + 4)), 4
        if taken:
            pieces += (text[done : token.start], new)
            at += taken
            done = tokens[at - 1].end
        else:
            at += 1
    return "".join((*pieces, text[done:]))


def _place(getter: str, member: str, after: str) -> str:
    """Return what replaces a getter and its field when `after` follows."""
    if getter in _LENGTHS:
        return f"sizeof({member})"
    if getter.endswith("_str"):
        return member
    return f"((void *){member})" if after in ("[", "->", ".") else f"(void *){member}"
